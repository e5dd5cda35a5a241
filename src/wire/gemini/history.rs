//! Hidden exchanges in `contents`: those of earlier requests back in their place, those of this one behind the last.
//! NOT the memory of them, NOT their words.
//!
//! What the model said in a hidden leg and the agent has seen stands at the front of the visible reply; put back, it
//! would stand twice, so it is taken from the front of the visible contents.

use std::ops::Range;

use crate::wire::json::{Object, elements, quoted, span, string};
use crate::wire::request::{Answer, Exchange, Restored};
use crate::wire::splice::Edits;
use crate::wire::view::{ChatView, MessageView, Role};

/// Puts the exchanges of earlier requests back.
pub(super) fn restore(body: &str, view: &ChatView<'_>, restored: &[Restored], edits: &mut Edits) {
    for Restored { run, exchanges } in restored {
        let Some(visible) = view.messages.get(run.clone()).filter(|run| !run.is_empty()) else { continue };
        let behind = view.messages.get(run.end);
        place(body, visible, behind, exchanges, edits);
    }
}

/// Puts the exchanges of this request behind the last content.
pub(super) fn append(view: &ChatView<'_>, appended: &[Exchange], edits: &mut Edits) {
    if appended.is_empty() {
        return;
    }
    let contents: Vec<_> = appended.iter().map(contents).collect();
    match view.messages.last() {
        Some(last) => edits.insert(last.span.end, format!(",{}", contents.join(","))),
        None if view.layout.messages.is_empty() => {}
        None => {
            let inside = view.layout.messages.end.saturating_sub(1);
            edits.insert(inside, contents.join(","));
        }
    }
}

fn place(
    body: &str,
    visible: &[MessageView<'_>],
    behind: Option<&MessageView<'_>>,
    exchanges: &[Exchange],
    edits: &mut Edits,
) {
    let (Some(first), Some(last)) = (visible.first(), visible.last()) else { return };
    let (mut text, mut thoughts) = (String::new(), String::new());
    let mut replaced = false;
    for exchange in exchanges {
        if !exchange.mixed {
            edits.insert(first.span.start, format!("{},", contents(exchange)));
            text.push_str(&exchange.text);
            thoughts.push_str(&exchange.reasoning);
            continue;
        }
        let answered = behind.filter(|message| !replaced && message.role == Role::Tool);
        let Some(front) = answered.and_then(|message| front_of_parts(body, &message.span)) else {
            continue; // the calls beside the search are not answered here: without their answers there is no pair
        };
        edits.insert(front, format!("{},", answers(&exchange.answers)));
        edits.replace(first.span.start..last.span.end, exchange.said.as_str());
        replaced = true;
    }
    if !replaced {
        strip(body, visible, &text, &thoughts, edits);
    }
}

/// A content of the model's and the content that answers it.
fn contents(exchange: &Exchange) -> String {
    format!(r#"{},{{"role":"user","parts":[{}]}}"#, exchange.said, answers(&exchange.answers))
}

/// An id only where the call had one: models before Gemini 3 give none and expect none.
fn answers(answers: &[Answer]) -> String {
    let parts: Vec<_> = answers
        .iter()
        .map(|answer| {
            let id = if answer.id.is_empty() { String::new() } else { format!(r#""id":{},"#, quoted(&answer.id)) };
            let (name, text) = (quoted(&answer.name), quoted(&answer.text));
            format!(r#"{{"functionResponse":{{{id}"name":{name},"response":{{"output":{text}}}}}}}"#)
        })
        .collect();
    parts.join(",")
}

/// The place before the first part of a content. `None`: it has no array of parts, or an empty one.
fn front_of_parts(body: &str, content: &Range<usize>) -> Option<usize> {
    let object = Object::parse(body.get(content.clone())?)?;
    let first = *elements(object.find("parts")?)?.first()?;
    Some(span(body, first.get()).start)
}

/// One part of a visible content.
struct Part {
    span: Range<usize>,
    /// Its text, where that stands, and is it a thought?
    text: Option<(String, Range<usize>, bool)>,
}

/// What is taken from a part.
enum Cut {
    Nothing,
    /// Its text becomes this.
    Front(String),
    Whole,
}

/// Takes what was said in hidden legs from the front of the visible contents; nothing unless all of it stands there.
fn strip(body: &str, visible: &[MessageView<'_>], text: &str, thoughts: &str, edits: &mut Edits) {
    if text.is_empty() && thoughts.is_empty() {
        return;
    }
    let parts: Vec<_> = visible.iter().map(|message| parts(body, &message.span)).collect();
    let said = |thought: bool| -> String {
        let texts = parts.iter().flatten().filter_map(|part| part.text.as_ref());
        texts.filter(|(_, _, is)| *is == thought).map(|(text, _, _)| text.as_str()).collect()
    };
    let mut text = if said(false).starts_with(text) { text } else { "" };
    let mut thoughts = if said(true).starts_with(thoughts) { thoughts } else { "" };
    for (i, (message, parts)) in visible.iter().zip(&parts).enumerate() {
        let cuts: Vec<_> = parts.iter().map(|part| cut(part, &mut text, &mut thoughts)).collect();
        match (cuts.iter().rposition(|cut| !matches!(cut, Cut::Whole)), visible.get(i + 1)) {
            (Some(survivor), _) => remove(parts, &cuts, survivor, edits),
            (None, Some(next)) if !parts.is_empty() => edits.replace(message.span.start..next.span.start, ""),
            (None, _) => {} // a content without parts would be refused: rather its text twice
        }
    }
}

fn cut<'t>(part: &Part, text: &mut &'t str, thoughts: &mut &'t str) -> Cut {
    let Some((own, _, thought)) = &part.text else { return Cut::Nothing };
    let left = if *thought { thoughts } else { text };
    if left.is_empty() || own.is_empty() {
        return Cut::Nothing;
    }
    if let Some(rest) = left.strip_prefix(own.as_str()) {
        *left = rest;
        return Cut::Whole;
    }
    let rest = own.strip_prefix(*left).map(str::to_owned);
    *left = "";
    rest.map_or(Cut::Nothing, Cut::Front)
}

/// `survivor`: the last part that is not taken whole.
fn remove(parts: &[Part], cuts: &[Cut], survivor: usize, edits: &mut Edits) {
    for (k, (part, cut)) in parts.iter().zip(cuts).enumerate() {
        match (cut, &part.text, parts.get(k + 1)) {
            (Cut::Front(rest), Some((_, at, _)), _) => edits.replace(at.clone(), quoted(rest)),
            (Cut::Whole, _, Some(next)) if k < survivor => edits.replace(part.span.start..next.span.start, ""),
            _ => {}
        }
    }
    if let (Some(kept), Some(last)) = (parts.get(survivor), parts.last())
        && kept.span.end < last.span.end
    {
        edits.replace(kept.span.end..last.span.end, "");
    }
}

fn parts(body: &str, content: &Range<usize>) -> Vec<Part> {
    let object = body.get(content.clone()).and_then(Object::parse);
    let parts = object.and_then(|object| object.find("parts")).and_then(elements).unwrap_or_default();
    let part = |raw: &serde_json::value::RawValue| {
        let object = Object::of(raw);
        let text = object.as_ref().and_then(|object| {
            let value = object.find("text")?;
            Some((string(value)?.into_owned(), span(body, value.get()), object.is_true("thought")))
        });
        Part { span: span(body, raw.get()), text }
    };
    parts.into_iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::gemini::view::view;

    const SAID: &str = r#"{"role":"model","parts":[{"text":"Let me look. "},{"functionCall":{"name":"find_tools","args":{"query":"q"}},"thoughtSignature":"s1"}]}"#;

    fn exchange(said: &str, text: &str, mixed: bool, id: &str) -> Exchange {
        Exchange {
            said: said.to_owned(),
            answers: vec![Answer { id: id.to_owned(), name: "find_tools".to_owned(), text: "found: a".to_owned() }],
            text: text.to_owned(),
            reasoning: String::new(),
            mixed,
            found: vec!["a".to_owned()],
        }
    }

    fn restored(body: &str, run: Range<usize>, exchanges: Vec<Exchange>) -> String {
        let seen = view(body, "/models/m:generateContent").expect("a request");
        let mut edits = Edits::new();
        restore(body, &seen, &[Restored { run, exchanges }], &mut edits);
        let out = edits.apply(body);
        assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok(), "{out}");
        out
    }

    #[test]
    fn an_exchange_behind_the_last_content_has_the_calls_id_or_none() {
        let body = r#"{"contents":[{"parts":[{"text":"hi"}]} ] , "x":1e16}"#;
        let seen = view(body, "/models/m:generateContent").expect("a request");
        let mut edits = Edits::new();
        append(&seen, &[exchange("{S}", "", false, "c1"), exchange("{T}", "", false, "")], &mut edits);
        let answer = |id: &str| {
            format!(
                r#"{{"role":"user","parts":[{{"functionResponse":{{{id}"name":"find_tools","response":{{"output":"found: a"}}}}}}]}}"#
            )
        };
        let expected = format!(
            r#"{{"contents":[{{"parts":[{{"text":"hi"}}]}},{{S}},{},{{T}},{} ] , "x":1e16}}"#,
            answer(r#""id":"c1","#),
            answer("")
        );
        assert_eq!(edits.apply(body), expected);
    }

    #[test]
    fn text_of_a_hidden_leg_stands_once() {
        // one content per streamed chunk, as the chat helpers of the SDKs send them
        let body = r#"{"contents":[{"parts":[{"text":"hi"}]}, {"role":"model","parts":[{"text":"Let me "}]}, {"role":"model","parts":[{"text":"look. Done"},{"functionCall":{"name":"a","args":{}}}]}, {"parts":[{"functionResponse":{"name":"a","response":{}}}]}]}"#;
        let out = restored(body, 1..3, vec![exchange(SAID, "Let me look. ", false, "")]);
        assert!(out.contains(r#"[{"text":"Done"},{"functionCall":{"name":"a","args":{}}}]"#), "{out}");
        assert_eq!(out.matches("Let me").count(), 1, "{out}");
        let seen = view(&out, "/models/m:generateContent").expect("a request");
        let roles: Vec<_> = seen.messages.iter().map(|m| m.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Assistant, Role::Tool]);
    }

    #[test]
    fn parts_wholly_said_before_are_gone_and_no_content_is_left_without_parts() {
        let body = r#"{"contents":[{"role":"model","parts":[{"text":"th","thought":true}, {"text":"Let me look. "} , {"functionCall":{"name":"a"}}]},{"role":"user","parts":[]}]}"#;
        let mut hidden = exchange(SAID, "Let me look. ", false, "");
        hidden.reasoning = "th".to_owned();
        let out = restored(body, 0..1, vec![hidden]);
        assert!(out.contains(r#"{"role":"model","parts":[{"functionCall":{"name":"a"}}]}"#), "{out}");

        let body = r#"{"contents":[{"role":"model","parts":[{"text":"Let me look. "}]},{"role":"user","parts":[]}]}"#;
        let out = restored(body, 0..1, vec![exchange(SAID, "Let me look. ", false, "")]);
        assert!(out.ends_with(&body[13..]), "{out}");
    }

    #[test]
    fn text_that_the_agent_changed_stays() {
        let body =
            r#"{"contents":[{"role":"model","parts":[{"text":"Let us look. Done"}]},{"parts":[{"text":"more"}]}]}"#;
        let out = restored(body, 0..1, vec![exchange(SAID, "Let me look. ", false, "")]);
        assert!(out.ends_with(&body[13..]), "{out}");
    }

    #[test]
    fn a_mixed_reply_is_what_the_model_said_and_the_answers_stand_in_one_content() {
        let said = r#"{"role":"model","parts":[{"functionCall":{"id":"1","name":"find_tools","args":{"query":"q"}},"thoughtSignature":"s"},{"functionCall":{"id":"2","name":"a","args":{"n":9007199254740993001}}}]}"#;
        let body = r#"{"contents":[{"parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"id":"2","name":"a","args":{}},"thoughtSignature":"s"}]},{"role":"user","parts":[ {"functionResponse":{"id":"2","name":"a","response":{}}}]}]}"#;
        let out = restored(body, 1..2, vec![exchange(SAID, "", false, ""), exchange(said, "", true, "1")]);
        let expected = r#"{"functionResponse":{"id":"1","name":"find_tools","response":{"output":"found: a"}}},{"functionResponse":{"id":"2","name":"a","response":{}}}]}]}"#;
        assert!(out.ends_with(expected), "{out}");
        assert!(out.contains(&format!("{SAID},")) && out.contains(&format!(",{said},")), "{out}");
    }

    #[test]
    fn a_mixed_reply_without_answers_behind_it_stays_as_the_agent_wrote_it() {
        let body =
            r#"{"contents":[{"role":"model","parts":[{"functionCall":{"name":"a"}}]},{"parts":[{"text":"x"}]}]}"#;
        assert_eq!(restored(body, 0..1, vec![exchange(SAID, "", true, "1")]), body);
        assert_eq!(restored(body, 1..9, vec![exchange(SAID, "", false, "1")]), body);
    }
}
