//! The last resort when a provider refuses merged thinking: the agent knows the thinking
//! of all legs as one message that no single reply was. Where the memory of the hidden
//! exchange is lost, the first leg's thinking is left out. NOT the usual way: a remembered
//! exchange stands in a message of its own (`history`).

use serde_json::value::RawValue;

use crate::wire::json::{self, Object};
use crate::wire::splice::Edits;

/// May this be the complaint of a provider that refuses altered thinking? `error`: the body of its 400.
pub fn is_refused(error: &[u8]) -> bool {
    let error = String::from_utf8_lossy(error).to_lowercase();
    error.contains("thinking") || error.contains("signature")
}

/// `body` with the last leg's blocks only in each reply of the current turn; `None`: none has thinking of several.
///
/// A leg begins with its thinking, and a hidden one left thinking and text behind: what stands before the last run of
/// thinking was an earlier leg's; where it is one run, all but the last of it was. Its text goes along, since a reply
/// must begin with its thinking.
pub fn without_first(body: &str) -> Option<String> {
    let messages = json::elements(Object::parse(body)?.find("messages")?)?;
    let messages: Vec<(bool, Vec<&RawValue>)> = messages
        .iter()
        .filter_map(|raw| Object::of(raw))
        .map(|message| {
            let is_reply = message.text("role").as_deref() == Some("assistant");
            (is_reply, message.find("content").and_then(json::elements).unwrap_or_default())
        })
        .collect();
    let last = messages.iter().rposition(|(is_reply, _)| *is_reply)?;
    let asks =
        |(is_reply, blocks): &(bool, Vec<&RawValue>)| !is_reply && !blocks.iter().any(|block| is(block, "tool_result"));
    let turn = messages.iter().take(last).rposition(asks).unwrap_or_default();
    let mut edits = Edits::new();
    for (_, blocks) in messages.iter().skip(turn).filter(|(is_reply, _)| *is_reply) {
        cut(body, blocks, &mut edits);
    }
    (!edits.is_empty()).then(|| edits.apply(body))
}

fn cut(body: &str, blocks: &[&RawValue], edits: &mut Edits) {
    let thoughts: Vec<usize> =
        blocks.iter().enumerate().filter(|(_, block)| is_thought(block)).map(|(at, _)| at).collect();
    let begins = |at: &usize| !at.checked_sub(1).is_some_and(|before| thoughts.contains(&before));
    let kept = match thoughts.iter().filter(|at| begins(at)).count() {
        0 | 1 => thoughts.last().copied(),
        _ => thoughts.iter().rev().copied().find(|at| begins(at)),
    };
    let Some((front, [first, ..])) = kept.and_then(|kept| blocks.split_at_checked(kept)) else { return };
    // A call of the provider's own between two thoughts belongs to one reply.
    if front.iter().any(|block| is_thought(block)) && front.iter().all(|block| is_thought(block) || is(block, "text")) {
        let start = |block: &RawValue| json::span(body, block.get()).start;
        let from = front.first().map_or_else(|| start(first), |block| start(block));
        edits.replace(from..start(first), "");
    }
}

fn is_thought(block: &RawValue) -> bool {
    is(block, "thinking") || is(block, "redacted_thinking")
}

fn is(block: &RawValue, kind: &str) -> bool {
    Object::of(block).is_some_and(|block| block.text("type").as_deref() == Some(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(blocks: &str) -> String {
        format!(r#"{{"role":"assistant","content":[{blocks}]}}"#)
    }

    fn thought(sign: &str) -> String {
        format!(r#"{{"type":"thinking","thinking":"x","signature":"{sign}"}}"#)
    }

    #[test]
    fn only_the_last_leg_of_each_reply_of_the_turn_stays() {
        let (a, b, c) = (thought("a"), thought("b"), thought("c"));
        let text = r#"{"type":"text","text":"Let me look"}"#;
        let call = r#"{"type":"tool_use","id":"t","name":"f","input":{}}"#;
        let user = r#"{"role":"user","content":"hi"}"#;
        let result = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}"#;
        let body = |first: &str, second: &str| {
            let old = reply(&format!("{a},{text},{b}"));
            format!(r#"{{"messages":[{user},{old},{user}, {},{result},{},{result}]}}"#, reply(first), reply(second))
        };
        let merged = body(&format!("{a}, {text}, {b}, {c},{call}"), &format!("{a},{b},{call}"));
        let mended = without_first(&merged).expect("merged");
        assert_eq!(mended, body(&format!("{b}, {c},{call}"), &format!("{b},{call}")));
        assert_eq!(without_first(&body(&format!("{a},{text},{call}"), text)), None);
        let served = r#"{"type":"server_tool_use","id":"s"}"#;
        assert_eq!(
            without_first(&body(&format!("{a},{served},{b},{call}"), text)),
            None,
            "one reply with a server's tool"
        );
        assert_eq!(without_first(r#"{"messages":[{"role":"user","content":"hi"}]}"#), None);
    }
}
