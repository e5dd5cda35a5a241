//! Cache marks (`cache_control`): clients move them to the newest message with every
//! request, so two spellings of one message may differ in them. NOT marks on tools
//! (a marked tool keeps its place, `view/tools.rs`).

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::wire::json::{self, Object};
use crate::wire::member;
use crate::wire::splice::Edits;

const MARK: &str = "cache_control";
/// Blocks within the result of a call may be marked, too; nothing stands deeper.
const LEVELS: usize = 3;

/// A message without its marks, otherwise as it was written.
pub fn without(message: &str) -> Cow<'_, str> {
    let Some(object) = message.contains(MARK).then(|| Object::parse(message)).flatten() else {
        return Cow::Borrowed(message);
    };
    let mut edits = Edits::new();
    strip(message, &object, LEVELS, &mut edits);
    Cow::Owned(edits.apply(message))
}

/// The mark of this block, if it has one.
pub(super) fn of(block: &RawValue) -> Option<&RawValue> {
    block.get().contains(MARK).then(|| Object::of(block)?.find(MARK)).flatten().filter(|mark| !json::is_null(mark))
}

/// A message of the model's with `mark` on its last block.
pub(super) fn with(message: &str, mark: &str) -> String {
    let last = || {
        let blocks = json::elements(Object::parse(message)?.find("content")?)?;
        let block = blocks.last()?;
        let thought = Object::of(block)?.text("type").is_some_and(|kind| kind.ends_with("thinking"));
        (!thought && of(block).is_none()).then(|| json::span(message, block.get()).end.checked_sub(1)).flatten()
    };
    let Some(end) = last() else { return message.to_owned() };
    let mut edits = Edits::new();
    edits.insert(end, format!(r#","{MARK}":{mark}"#));
    edits.apply(message)
}

fn strip(message: &str, object: &Object<'_>, levels: usize, edits: &mut Edits) {
    if let Some(range) =
        object.find(MARK).and_then(|mark| member::with_comma(message, &json::span(message, mark.get())))
    {
        edits.replace(range, "");
    }
    let inside = object.find("content").filter(|content| levels > 0 && content.get().contains(MARK));
    for block in inside.and_then(json::elements).unwrap_or_default() {
        if let Some(block) = Object::of(block) {
            strip(message, &block, levels - 1, edits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_comes_and_goes_without_a_trace() {
        let bare = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"x"}]}, {"type":"tool_result","tool_use_id":"2"}]}"#;
        let mark = r#"{"type":"ephemeral","ttl":"5m"}"#;
        let marked = bare
            .replace(r#""x"}"#, &format!(r#""x","cache_control":{mark}}}"#))
            .replace(r#""2"}"#, &format!(r#""2", "cache_control": {mark}}}"#));
        assert_ne!(marked, bare);
        assert_eq!(without(&marked), bare);
        assert!(matches!(without(bare), Cow::Borrowed(_)));
        let text = r#"{"role":"user","content":"cache_control"}"#;
        assert_eq!(without(text), text);
    }

    #[test]
    fn the_last_block_takes_a_mark_unless_it_is_a_thought() {
        let message = r#"{"role":"assistant","content":[{"type":"thinking"},{"type":"tool_use","input":{}}]}"#;
        assert!(with(message, "{}").ends_with(r#"{"type":"tool_use","input":{},"cache_control":{}}]}"#));
        let thought = r#"{"role":"assistant","content":[{"type":"thinking"}]}"#;
        assert_eq!(with(thought, "{}"), thought);
    }
}
