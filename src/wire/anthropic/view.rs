//! Reads a Messages request as spans of its body. NOT a value tree of it (numbers,
//! signatures and escapes must survive), NOT what to do about what it says.

mod tools;

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::WireError;
use crate::wire::document::{List, Text, Top};
use crate::wire::json::{self, Object};
use crate::wire::known::Recall;
use crate::wire::text;
use crate::wire::view::{AnswerView, CallView, ChatView, Choice, Layout, MessageView, Role, Traits};

/// The keys that are read, and that must therefore not stand twice: which of the two a provider takes is its secret.
const READ: [&str; 8] =
    ["model", "stream", "system", "tool_choice", "max_tokens", "thinking", "output_format", "output_config"];

/// A block that Claude Code puts in front of its system prompt and that differs from request to request.
const BILLING: &str = "\"x-anthropic-billing-header";

/// Reads a request.
pub fn read<'a>(body: &'a str, recall: &Recall<'_>) -> Result<ChatView<'a>, WireError> {
    let top = Top::read(body, recall).ok_or(WireError::Json)?;
    if let Some(key) = top.duplicate(&READ) {
        return Err(WireError::Duplicate(key));
    }
    let mut traits = Traits { structured: structured(&top), ..Traits::default() };
    let mut layout = Layout { max_tokens: max_tokens(body, &top), ..Layout::default() };
    let tools = match &top.tools {
        List::Missing => Vec::new(),
        List::Items(entries) => {
            layout.tools = json::around(body, entries);
            tools::tools(entries, &mut traits)
        }
        List::Known(known, at) => known.read(body, *at, &mut layout),
        List::Other => return Err(WireError::Shape("tools")),
    };
    let List::Items(entries) = &top.messages else { return Err(WireError::Shape("messages")) };
    layout.messages = json::around(body, entries);
    let messages = entries
        .iter()
        .map(|entry| message(body, entry, &mut traits))
        .collect::<Option<Vec<_>>>()
        .ok_or(WireError::Shape("messages"))?;
    // A reply that the model shall go on with: a prefill, or a turn that was paused.
    traits.partial = messages.last().is_some_and(|last| last.role == Role::Assistant);

    Ok(ChatView {
        model: top.find("model").and_then(json::string).unwrap_or_default(),
        stream: json::flag(top.find("stream")).ok_or(WireError::Shape("stream"))?,
        choice: choice(top.find("tool_choice")).ok_or(WireError::Shape("tool_choice"))?,
        system: top.find("system").map(system).unwrap_or_default(),
        tools,
        messages,
        traits,
        layout,
    })
}

/// An entry of `messages`.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Text<'a>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

/// An element of a content: its parts are looked at only where the type gives them a meaning.
#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_use_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    is_error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

fn message<'a>(body: &str, raw: &'a RawValue, traits: &mut Traits) -> Option<MessageView<'a>> {
    let message = json::object::<Message<'a>>(raw)?;
    let role = match &*message.role.0 {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        _ => return None,
    };
    let span = json::span(body, raw.get());
    let mut view = MessageView { role, texts: Vec::new(), calls: Vec::new(), answers: Vec::new(), span };
    let Some(content) = message.content else { return Some(view) };
    if let Some(text) = text::of(content) {
        view.texts.push(text);
        return Some(view);
    }
    let blocks = json::elements(content)?;
    for raw in &blocks {
        let block = json::object::<Block<'a>>(raw)?;
        let string = |raw: Option<&'a RawValue>| raw.and_then(json::string).unwrap_or_default();
        match &*block.kind.0 {
            "text" => view.texts.extend(block.text.and_then(text::of)),
            "tool_use" if role == Role::Assistant => {
                let arguments = Cow::Borrowed(block.input.map_or("{}", RawValue::get));
                view.calls.push(CallView { id: string(block.id), name: string(block.name), arguments });
            }
            "tool_result" => {
                traits.client_search |= block.content.is_some_and(refers_to_tools);
                let failed = block.is_error.is_some_and(|raw| raw.get() == "true");
                view.answers.push(AnswerView { id: string(block.tool_use_id), name: Cow::Borrowed(""), failed });
            }
            "tool_reference" | "tool_search_tool_result" => traits.client_search = true,
            "server_tool_use" => traits.client_search |= string(block.name).starts_with("tool_search"),
            _ => {}
        }
    }
    if role == Role::User && !blocks.is_empty() && view.answers.len() == blocks.len() {
        view.role = Role::Tool;
    }
    Some(view)
}

/// Does the result of a call name tools for the provider to load?
fn refers_to_tools(content: &RawValue) -> bool {
    let named =
        |block: &&RawValue| Object::of(block).is_some_and(|o| o.text("type").as_deref() == Some("tool_reference"));
    content.get().contains("tool_reference") && json::elements(content).is_some_and(|blocks| blocks.iter().any(named))
}

/// The texts of the system prompt, as raw JSON: not their cache marks, which clients move about.
fn system(raw: &RawValue) -> Vec<&str> {
    let Some(blocks) = json::elements(raw) else { return vec![raw.get()] };
    let texts = blocks.into_iter().map(|block| match Object::of(block).and_then(|object| object.find("text")) {
        Some(text) => text.get(),
        None => block.get(),
    });
    texts.filter(|text| !text.starts_with(BILLING)).collect()
}

fn choice(raw: Option<&RawValue>) -> Option<Choice<'_>> {
    let Some(raw) = raw.filter(|raw| !json::is_null(raw)) else { return Some(Choice::Auto) };
    let choice = Object::of(raw)?;
    match &*choice.text("type")? {
        "auto" => Some(Choice::Auto),
        "none" => Some(Choice::None),
        "any" => Some(Choice::Required),
        "tool" => Some(Choice::Only(vec![choice.text("name")?])),
        _ => None,
    }
}

/// Is a JSON answer demanded?
fn structured(top: &Top<'_>) -> bool {
    let demanded = |raw: &RawValue| !json::is_null(raw);
    top.find("output_format").is_some_and(demanded)
        || top.find("output_config").and_then(Object::of).and_then(|o| o.find("format")).is_some_and(demanded)
}

/// The cap, where it may be lowered for a later leg: not beside a budget for thinking, which must stay below it.
fn max_tokens(body: &str, top: &Top<'_>) -> Option<(Range<usize>, u64)> {
    if top.find("thinking").and_then(Object::of).is_some_and(|thinking| thinking.find("budget_tokens").is_some()) {
        return None;
    }
    let raw = top.find("max_tokens")?;
    Some((json::span(body, raw.get()), raw.get().parse().ok()?))
}

/// Reads a request of which nothing is known.
#[cfg(test)]
pub fn view(body: &str) -> Result<ChatView<'_>, WireError> {
    read(body, &crate::wire::known::nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(members: &str) -> String {
        format!(r#"{{"model":"kimi-k3","max_tokens":50,"messages":[{{"role":"user","content":"hi"}}]{members}}}"#)
    }

    #[test]
    fn messages_show_texts_calls_and_answers() {
        let body = r#"{"stream":true,"max_tokens":50,"system":[{"type":"text","text":"x-anthropic-billing-header: cch=1;"},{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"messages":[
            {"role":"user","content":[{"type":"text","text":"cut \ud83d"},{"type":"image","source":{}}]},
            {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"ok"},{"type":"tool_use","id":"t1","name":"f","input":{"a": 9007199254740993001}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"1"}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"},{"type":"text","text":"and"}]},
            {"role":"user","content":""}]}"#;
        let view = view(body).expect("view");
        use Role::{Assistant, Tool, User};
        let roles: Vec<_> = view.messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [User, Assistant, Tool, User, User]);
        assert_eq!(view.system, [r#""s""#]);
        assert_eq!(view.messages[0].texts, ["cut \u{fffd}"]);
        assert_eq!(view.messages[1].texts, ["ok"]);
        assert_eq!(view.messages[1].calls[0].arguments, r#"{"a": 9007199254740993001}"#);
        assert_eq!(view.messages[2].answers[0].id, "t1");
        let (span, cap) = view.layout.max_tokens.expect("cap");
        assert_eq!((&body[span], cap), ("50", 50));
        assert!(view.stream && !view.traits.partial);
    }

    #[test]
    fn the_cap_stays_above_a_budget_for_thinking() {
        let body = with(r#","thinking":{"type":"enabled","budget_tokens":40}"#);
        assert_eq!(view(&body).expect("view").layout.max_tokens, None);
        assert!(view(&with(r#","thinking":{"type":"enabled"}"#)).expect("view").layout.max_tokens.is_some());
    }

    #[test]
    fn the_choice_is_read() {
        let read =
            |choice: &str| view(&with(&format!(r#","tool_choice":{choice}"#))).map(|view| format!("{:?}", view.choice));
        let cases = [
            ("null", "Auto"),
            (r#"{"type":"auto","disable_parallel_tool_use":true}"#, "Auto"),
            (r#"{"type":"none"}"#, "None"),
            (r#"{"type":"any"}"#, "Required"),
            (r#"{"type":"tool","name":"a"}"#, r#"Only(["a"])"#),
        ];
        for (choice, expected) in cases {
            assert_eq!(read(choice).as_deref(), Ok(expected), "{choice}");
        }
        assert_eq!(read(r#""auto""#), Err(WireError::Shape("tool_choice")));
    }

    #[test]
    fn traits_are_read() {
        let read = |members: &str| view(&with(members)).expect("view").traits;
        assert_eq!(read(r#","output_format":null,"output_config":{"effort":"low"}"#), Traits::default());
        assert!(read(r#","output_config":{"format":{"type":"json_schema"}}"#).structured);
        assert!(read(r#","output_format":{"type":"json_schema"}"#).structured);
        for block in [
            r#"{"type":"tool_result","tool_use_id":"x","content":[{"type":"tool_reference","tool_name":"X"}]}"#,
            r#"{"type":"tool_search_tool_result"}"#,
            r#"{"type":"server_tool_use","id":"1","name":"tool_search_tool_regex","input":{}}"#,
        ] {
            let body = format!(r#"{{"messages":[{{"role":"user","content":[{block}]}}]}}"#);
            assert!(view(&body).expect("view").traits.client_search, "{block}");
        }
        let body =
            r#"{"messages":[{"role":"user","content":"it says tool_reference"},{"role":"assistant","content":"{"}]}"#;
        let traits = view(body).expect("view").traits;
        assert!(traits.partial && !traits.client_search);
    }

    #[test]
    fn a_body_that_is_not_one_document_is_not_read() {
        for body in
            ["", "[]", "{", "{} x", r#"{"messages":[]}{}"#, r#"{"messages":["x"]}"#, r#"{"messages":[{"role":"bot"}]}"#]
        {
            assert!(view(body).is_err(), "{body:?}");
        }
        assert_eq!(view(&with(r#","to\u006fls":[],"tools":[]"#)).err(), Some(WireError::Duplicate("tools")));
        assert_eq!(view(&with(r#","model":"x""#)).err(), Some(WireError::Duplicate("model")));
        assert_eq!(view(&with(r#","tools":{}"#)).err(), Some(WireError::Shape("tools")));
    }
}
