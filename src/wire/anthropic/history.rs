//! Hidden exchanges in `messages`: those of earlier requests back in their place, those of this one behind the last.
//! NOT the memory of them, NOT their words.
//!
//! The agent knows the blocks of all legs as one message. Anthropic forbids to alter the thinking of a reply, so what a
//! hidden leg said goes back as a message of its own, thinking and signatures as they came, and is taken from the front
//! of the visible one.

use std::ops::Range;

use serde_json::value::RawValue;

use super::marks;
use crate::wire::json::{self, Object, quoted};
use crate::wire::request::{Exchange, Restored};
use crate::wire::splice::Edits;
use crate::wire::text;
use crate::wire::view::MessageView;

/// The exchanges of this request, behind the last message.
pub(super) fn appended(exchanges: &[Exchange]) -> String {
    exchanges.iter().map(|exchange| format!(",{}", whole(exchange))).collect()
}

/// Puts hidden exchanges back in front of the reply that they led to, or in its place.
pub(super) fn restore(body: &str, messages: &[MessageView<'_>], restored: &Restored, edits: &mut Edits) {
    let run = messages.get(restored.run.clone()).unwrap_or_default();
    let (Some(first), Some(last)) = (run.first(), run.last()) else { return };
    let hidden: Vec<&Exchange> = restored.exchanges.iter().filter(|exchange| !exchange.mixed).collect();
    let before: String = hidden.iter().map(|exchange| format!("{},", whole(exchange))).collect();
    edits.insert(first.span.start, before);
    // Without the answers to the calls beside the search there is no message that could take the search's.
    let behind = messages.get(restored.run.end).filter(|message| !message.answers.is_empty());
    let front = behind.and_then(|message| front_of_content(body, &message.span));
    match (restored.exchanges.iter().find(|exchange| exchange.mixed), front) {
        (Some(mixed), Some(front)) => {
            edits.insert(front, format!("{},", results(mixed)));
            let mark = run.iter().flat_map(|message| blocks(body, message)).filter_map(marks::of).next_back();
            let said = mark.map_or_else(|| mixed.said.clone(), |mark| marks::with(&mixed.said, mark.get()));
            edits.replace(first.span.start..last.span.end, said);
        }
        _ => unrepeat(body, run, &hidden, edits),
    }
}

/// The model's message and the answers to its searches.
fn whole(exchange: &Exchange) -> String {
    format!(r#"{},{{"role":"user","content":[{}]}}"#, exchange.said, results(exchange))
}

/// Plain text: Moonshot refuses a `tool_reference` here.
fn results(exchange: &Exchange) -> String {
    let result = |id: &str, text: &str| {
        format!(r#"{{"type":"tool_result","tool_use_id":{},"content":{}}}"#, quoted(id), quoted(text))
    };
    let results: Vec<String> = exchange.answers.iter().map(|answer| result(&answer.id, &answer.text)).collect();
    results.join(",")
}

/// Results stand first in a message. `None`: its content is no list of blocks.
fn front_of_content(body: &str, message: &Range<usize>) -> Option<usize> {
    let object = Object::parse(body.get(message.clone())?)?;
    let first = *json::elements(object.find("content")?)?.first()?;
    Some(json::span(body, first.get()).start)
}

/// The blocks of a message; none where its content is a string.
fn blocks<'b>(body: &'b str, message: &MessageView<'_>) -> Vec<&'b RawValue> {
    let content = body.get(message.span.clone()).and_then(Object::parse).and_then(|object| object.find("content"));
    content.and_then(json::elements).unwrap_or_default()
}

/// What a hidden leg said and the agent has seen, as far as it has not been met in the visible reply yet.
struct Shown<'s> {
    text: &'s str,
    said: Vec<Object<'s>>,
}

/// What becomes of a block at the front of the visible reply.
enum Fate {
    /// It stands in the restored message.
    Gone,
    /// Bytes of it do.
    Cut(Range<usize>),
    Kept,
}

/// Takes from the front of the agent's own message what the restored messages in front of it say already.
fn unrepeat(body: &str, run: &[MessageView<'_>], hidden: &[&Exchange], edits: &mut Edits) {
    let text: String = hidden.iter().map(|exchange| exchange.text.as_str()).collect();
    let visible: String = run.iter().flat_map(|message| &message.texts).map(AsRef::as_ref).collect();
    let contents = hidden.iter().filter_map(|exchange| json::elements(Object::parse(&exchange.said)?.find("content")?));
    let said = contents.flatten().filter_map(Object::of).collect();
    let mut shown = Shown { text: if visible.starts_with(&text) { &text } else { "" }, said };
    for (at, message) in run.iter().enumerate() {
        let blocks = blocks(body, message);
        if blocks.is_empty() {
            return unrepeat_string(body, message, shown.text, edits);
        }
        let mut gone = 0;
        let mut met = blocks.iter().map(|block| shown.meets(body, block));
        let end = loop {
            match met.next() {
                Some(Fate::Gone) => gone += 1,
                other => break other,
            }
        };
        match (end, run.get(at + 1)) {
            (None, Some(next)) => {
                edits.replace(message.span.start..next.span.start, "");
                continue;
            }
            // A message without a block would be refused: rather its last one twice.
            (None, None) => gone -= 1,
            (Some(Fate::Cut(range)), _) => edits.replace(range, ""),
            (Some(_), _) => {}
        }
        if let (Some(first), Some(kept)) = (blocks.first(), blocks.get(gone).filter(|_| gone > 0)) {
            let start = |block: &RawValue| json::span(body, block.get()).start;
            edits.replace(start(first)..start(kept), "");
        }
        return;
    }
}

/// The same where the agent keeps texts only.
fn unrepeat_string(body: &str, message: &MessageView<'_>, shown: &str, edits: &mut Edits) {
    let content = body.get(message.span.clone()).and_then(Object::parse).and_then(|object| object.find("content"));
    let Some(spelling) = content.and_then(text::inner) else { return };
    let start = json::span(body, spelling).start;
    if let Some(length) = text::prefix_len(spelling, shown).filter(|length| *length < spelling.len()) {
        edits.replace(start..start + length, "");
    }
}

impl Shown<'_> {
    fn meets(&mut self, body: &str, block: &RawValue) -> Fate {
        let Some(object) = Object::of(block) else { return Fate::Kept };
        if object.text("type").as_deref() != Some("text") {
            let met = self.said.iter().position(|said| same(said, &object));
            return met.map_or(Fate::Kept, |at| {
                self.said.remove(at);
                Fate::Gone
            });
        }
        let Some(raw) = object.find("text") else { return Fate::Kept };
        let Some(spelling) = text::inner(raw).filter(|_| !self.text.is_empty()) else { return Fate::Kept };
        let decoded = text::decoded(spelling);
        if let Some(rest) = self.text.strip_prefix(&*decoded).filter(|_| !decoded.is_empty()) {
            self.text = rest;
            return Fate::Gone;
        }
        let start = json::span(body, spelling).start;
        let cut = text::prefix_len(spelling, std::mem::take(&mut self.text));
        cut.map_or(Fate::Kept, |length| Fate::Cut(start..start + length))
    }
}

/// Are they the same block, however it is written? Calls never are: those of a hidden leg have not been seen.
fn same(said: &Object<'_>, seen: &Object<'_>) -> bool {
    let kind = seen.text("type");
    let equal = |key: &str| seen.text(key).is_some_and(|own| !own.is_empty() && said.text(key).as_ref() == Some(&own));
    kind == said.text("type")
        && match kind.as_deref() {
            Some("thinking") => equal("signature") || equal("thinking"),
            Some("redacted_thinking") => equal("data"),
            Some("tool_use") | None => false,
            Some(_) => equal("id") || equal("tool_use_id"),
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::anthropic::view::view;
    use crate::wire::request::Answer;
    use crate::wire::view::Role;

    const SAID: &str = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"Hm","signature":"s1"},{"type":"text","text":"Let me look. "},{"type":"tool_use","id":"f1","name":"find_tools","input":{"query":"q"}}]}"#;
    const RESULT: &str = r#"{"type":"tool_result","tool_use_id":"f1","content":"found: \"a\""}"#;

    fn exchange(said: &str, text: &str, mixed: bool) -> Exchange {
        Exchange {
            said: said.to_owned(),
            answers: vec![Answer { id: "f1".into(), name: "find_tools".into(), text: "found: \"a\"".into() }],
            text: text.to_owned(),
            reasoning: "Hm".into(),
            mixed,
            found: Vec::new(),
        }
    }

    fn restored(body: &str, run: Range<usize>, exchanges: Vec<Exchange>) -> String {
        let mut edits = Edits::new();
        restore(body, &view(body).expect("view").messages, &Restored { run, exchanges }, &mut edits);
        let out = edits.apply(body);
        assert!(view(&out).is_ok(), "{out}");
        out
    }

    fn dialogue(reply: &str, behind: &str) -> String {
        format!(
            r#"{{"messages":[{{"role":"user","content":"hi"}}, {{"role":"assistant","content":{reply}}}{behind}]}}"#
        )
    }

    #[test]
    fn a_search_stands_before_its_reply_and_its_blocks_stand_once() {
        let rest = r#"{"type":"thinking","thinking":"Aha","signature":"s2"}, {"type":"text","text":"Done"},{"type":"tool_use","id":"t","name":"a","input":{"n":9007199254740993001}}]"#;
        for front in [
            r#"[{"type":"thinking","thinking":"Hm","signature":"s1"}, {"type":"text","text":"Let me look. "},"#,
            r#"[{"signature":"s1","type":"thinking","thinking":"Hm"},{"type":"text","text":"Let me "},{"type":"text","text":"look. "},"#,
            "[", // an agent that keeps nothing of it
        ] {
            let behind = r#",{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"1.0"}]}"#;
            let out = restored(
                &dialogue(&format!("{front}{rest}"), behind),
                1..2,
                vec![exchange(SAID, "Let me look. ", false)],
            );
            let expected = dialogue(&format!("[{rest}"), behind).replace(
                r#"{"role":"assistant""#,
                &format!(r#"{SAID},{{"role":"user","content":[{RESULT}]}},{{"role":"assistant""#),
            );
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn texts_that_the_agent_merged_are_cut_and_a_reply_never_becomes_empty() {
        let hidden = || vec![exchange(SAID, "Let me look. ", false)];
        let out = restored(&dialogue(r#"[{"type":"text","text":"Let me look. D\u006fne"}]"#, ""), 1..2, hidden());
        assert!(out.ends_with(r#"{"role":"assistant","content":[{"type":"text","text":"D\u006fne"}]}]}"#), "{out}");
        let out = restored(&dialogue(r#""Let me look. Done""#, ""), 1..2, hidden());
        assert!(out.ends_with(r#"{"role":"assistant","content":"Done"}]}"#), "{out}");
        for reply in
            [r#"[{"type":"text","text":"Let me look. "}]"#, r#""Let me look. ""#, r#"[{"type":"text","text":"Else"}]"#]
        {
            let out = restored(&dialogue(reply, ""), 1..2, hidden());
            assert!(out.ends_with(&format!(r#"{{"role":"assistant","content":{reply}}}]}}"#)), "{out}");
        }
    }

    #[test]
    fn a_reply_in_several_messages_loses_those_that_said_nothing_else() {
        let thought = r#"[{"type":"thinking","thinking":"Hm","signature":"s1"}]"#;
        let behind = r#", {"role":"assistant","content":[{"type":"text","text":"Let me look. "},{"type":"text","text":"Done"}]}"#;
        let out = restored(&dialogue(thought, behind), 1..3, vec![exchange(SAID, "Let me look. ", false)]);
        assert!(
            out.ends_with(&format!(
                r#"[{RESULT}]}},{{"role":"assistant","content":[{{"type":"text","text":"Done"}}]}}]}}"#
            )),
            "{out}"
        );
    }

    #[test]
    fn a_mixed_reply_is_what_the_model_said_and_all_results_stand_first_in_one_message() {
        let said = r#"{"role":"assistant","content":[{"type":"tool_use","id":"f1","name":"find_tools","input":{}},{"type":"tool_use","id":"t","name":"a","input":{"n":1e16}}]}"#;
        let call =
            r#"[{"type":"tool_use","id":"t","name":"a","input":{"n":1e16},"cache_control":{"type":"ephemeral"}}]"#;
        let behind =
            r#",{"role":"user","content":[ {"type":"tool_result","tool_use_id":"t"},{"type":"text","text":"and"}]}"#;
        let mixed = || vec![exchange(SAID, "", false), exchange(said, "", true)];
        let out = restored(&dialogue(call, behind), 1..2, mixed());
        assert!(
            out.contains(&format!(r#"[ {RESULT},{{"type":"tool_result","tool_use_id":"t"}},{{"type":"text""#)),
            "{out}"
        );
        assert!(
            out.contains(
                r#"{"type":"tool_use","id":"t","name":"a","input":{"n":1e16},"cache_control":{"type":"ephemeral"}}]}"#
            ),
            "{out}"
        );
        let roles: Vec<Role> = view(&out).expect("view").messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Assistant, Role::User]);
        // nobody answered the calls: the search could not be answered either
        let out = restored(&dialogue(call, r#",{"role":"user","content":"x"}"#), 1..2, mixed());
        assert!(out.contains(call) && !out.contains(said), "{out}");
        assert_eq!(restored(&dialogue(call, ""), 5..9, mixed()), dialogue(call, ""));
    }
}
