//! Reads a chat completions request as spans of its body. NOT a value tree of it
//! (numbers and escapes must survive), NOT what to do about what it says.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::WireError;
use crate::wire::document::{List, Text, Top};
use crate::wire::json::{self, Object};
use crate::wire::known::Recall;
use crate::wire::text;
use crate::wire::verdict;
use crate::wire::view::{
    AnswerView, CallView, ChatView, Choice, Layout, MessageView, Role, ToolKind, ToolView, Traits,
};

/// The keys that are read, and that must therefore not stand twice: which of the two a provider takes is its secret.
const READ: [&str; 13] = [
    "tools",
    "messages",
    "model",
    "stream",
    "tool_choice",
    "n",
    "response_format",
    "stream_options",
    "max_completion_tokens",
    "max_tokens",
    "extra_body",
    "google",
    "cached_content",
];

/// Reads a request.
///
/// The document is walked once, each tool and each message once more: a body of 70 KB is read in the time the network
/// takes for a few packets.
pub fn read<'a>(body: &'a str, recall: &Recall<'_>) -> Result<ChatView<'a>, WireError> {
    let top = Top::read(body, recall).ok_or(WireError::Json)?;
    if let Some(key) = top.duplicate(&READ) {
        return Err(WireError::Duplicate(key));
    }
    let mut traits = traits(&top)?;
    let mut layout = Layout { max_tokens: max_tokens(body, &top), ..Layout::default() };

    let mut tools = match &top.tools {
        List::Missing => Vec::new(),
        List::Items(entries) => {
            layout.tools = json::around(body, entries);
            entries.iter().map(|entry| tool(entry, &mut traits)).collect()
        }
        List::Known(known, at) => known.read(body, *at, &mut layout),
        List::Other => return Err(WireError::Shape("tools")),
    };
    let List::Items(entries) = &top.messages else { return Err(WireError::Shape("messages")) };
    layout.messages = json::around(body, entries);
    let messages = entries.iter().map(|entry| message(body, entry, &mut tools, &mut traits));
    let messages = messages.collect::<Option<Vec<_>>>().ok_or(WireError::Shape("messages"))?;
    traits.partial = entries.last().and_then(|raw| Object::of(raw)).is_some_and(|last| last.is_true("partial"));
    let system = messages
        .iter()
        .zip(entries)
        .take_while(|(message, _)| message.role == Role::System)
        .map(|(_, raw)| raw.get())
        .collect();

    Ok(ChatView {
        model: top.find("model").and_then(json::string).unwrap_or_default(),
        stream: json::flag(top.find("stream")).ok_or(WireError::Shape("stream"))?,
        choice: choice(top.find("tool_choice")).ok_or(WireError::Shape("tool_choice"))?,
        tools,
        system,
        messages,
        traits,
        layout,
    })
}

/// An entry of `tools`.
#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
    #[serde(default)]
    defer_loading: Option<bool>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow, default)]
    description: Option<Text<'a>>,
    #[serde(borrow, default)]
    parameters: Option<&'a RawValue>,
    #[serde(default)]
    defer_loading: Option<bool>,
}

/// An entry of `messages`: its parts are looked at only where the role gives them a meaning.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Text<'a>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function_call: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tools: Option<&'a RawValue>,
}

fn tool<'a>(raw: &'a RawValue, traits: &mut Traits) -> ToolView<'a> {
    let fixed = |name| ToolView {
        kind: ToolKind::Fixed,
        name,
        description: Cow::Borrowed(""),
        parameters: None,
        text: Cow::Borrowed(raw.get()),
        group: 0,
    };
    // Derived readers take an array for a struct; a tool is none.
    let Some(entry) = json::object::<Entry<'a>>(raw) else { return fixed(Cow::Borrowed("")) };
    let kind = entry.kind.map_or(Cow::Borrowed("function"), |kind| kind.0);
    let deferred = |flag: Option<bool>| flag == Some(true);
    traits.client_search |= kind.starts_with("tool_search") || deferred(entry.defer_loading);
    let Some(function) = entry.function else { return fixed(Cow::Borrowed("")) };
    traits.client_search |= deferred(function.defer_loading);
    let name = function.name.0;
    if kind != "function" || name.is_empty() || name.starts_with('$') {
        return fixed(name);
    }
    ToolView {
        kind: ToolKind::Function,
        name,
        description: function.description.map(|text| text.0).unwrap_or_default(),
        parameters: function.parameters.map(|schema| Cow::Borrowed(schema.get())),
        text: Cow::Borrowed(raw.get()),
        group: 0,
    }
}

fn message<'a>(
    body: &str,
    raw: &'a RawValue,
    tools: &mut Vec<ToolView<'a>>,
    traits: &mut Traits,
) -> Option<MessageView<'a>> {
    let message = json::object::<Message<'a>>(raw)?;
    let role = match &*message.role.0 {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        _ => return None,
    };
    for entry in message.tools.and_then(json::elements).unwrap_or_default() {
        tools.push(ToolView { kind: ToolKind::Placed, ..tool(entry, traits) });
    }
    let calls = match role {
        Role::Assistant => calls(message.tool_calls, message.function_call)?,
        _ => Vec::new(),
    };
    let texts = message.content.map(texts).unwrap_or_default();
    let answers = match role {
        Role::Tool => {
            let id = message.tool_call_id.and_then(json::string).unwrap_or_default();
            let failed = texts.first().is_some_and(|text| verdict::is_failure(text));
            vec![AnswerView { id, name: message.name.and_then(json::string).unwrap_or_default(), failed }]
        }
        _ => Vec::new(),
    };
    Some(MessageView { role, texts, calls, answers, span: json::span(body, raw.get()) })
}

fn calls<'a>(tool_calls: Option<&'a RawValue>, legacy: Option<&'a RawValue>) -> Option<Vec<CallView<'a>>> {
    let mut calls = Vec::new();
    for raw in tool_calls.map_or(Some(Vec::new()), json::elements)? {
        let call = Object::of(raw)?;
        // Other kinds of calls (custom tools) carry their name elsewhere and are never ours.
        let function = call.find("function").or_else(|| call.find("custom")).and_then(Object::of);
        calls.push(call_view(call.text("id").unwrap_or_default(), function.as_ref()));
    }
    if let Some(function) = legacy.and_then(Object::of) {
        calls.push(call_view(Cow::Borrowed(""), Some(&function)));
    }
    Some(calls)
}

fn call_view<'a>(id: Cow<'a, str>, function: Option<&Object<'a>>) -> CallView<'a> {
    let name = function.and_then(|function| function.text("name")).unwrap_or_default();
    let arguments = function.and_then(|function| function.find("arguments"));
    let arguments = arguments.map(|raw| text::of(raw).unwrap_or(Cow::Borrowed(raw.get()))).unwrap_or_default();
    CallView { id, name, arguments }
}

/// A string, or the `text` parts of a list.
fn texts(content: &RawValue) -> Vec<Cow<'_, str>> {
    if let Some(text) = text::of(content) {
        return vec![text];
    }
    let parts = json::elements(content).unwrap_or_default();
    parts.into_iter().filter_map(|part| text::of(part).or_else(|| text::of(Object::of(part)?.find("text")?))).collect()
}

fn choice(raw: Option<&RawValue>) -> Option<Choice<'_>> {
    let Some(raw) = raw.filter(|raw| !json::is_null(raw)) else { return Some(Choice::Auto) };
    if let Some(word) = json::string(raw) {
        return match &*word {
            "auto" => Some(Choice::Auto),
            "none" => Some(Choice::None),
            "required" | "any" => Some(Choice::Required),
            _ => None,
        };
    }
    let choice = Object::of(raw)?;
    match &*choice.text("type")? {
        "function" => Some(Choice::Only(vec![function_name(&choice)?])),
        "allowed_tools" => {
            let nested = choice.find("allowed_tools").and_then(Object::of);
            let list = nested.as_ref().unwrap_or(&choice).find("tools").and_then(json::elements)?;
            let names = list.into_iter().filter_map(|entry| function_name(&Object::of(entry)?));
            Some(Choice::Only(names.collect()))
        }
        _ => None,
    }
}

/// The name in `{"function":{"name":…}}`, or in the flat form of it.
fn function_name<'a>(entry: &Object<'a>) -> Option<Cow<'a, str>> {
    entry.find("function").and_then(Object::of).map_or_else(|| entry.text("name"), |function| function.text("name"))
}

fn traits(top: &Top<'_>) -> Result<Traits, WireError> {
    let part = |key| top.find(key).and_then(Object::of);
    let format = part("response_format").and_then(|format| format.text("type"));
    let options = part("stream_options");
    let cached =
        |google: Object<'_>| google.either("cachedContent", "cached_content").is_some_and(|raw| !json::is_null(raw));
    let nested = part("extra_body").and_then(|body| body.find("google").and_then(Object::of));
    Ok(Traits {
        several_choices: top.find("n").is_some_and(|raw| !matches!(raw.get(), "1" | "null")),
        structured: format.is_some_and(|kind| kind != "text"),
        cached_content: nested.is_some_and(cached)
            || part("google").is_some_and(cached)
            || top.find("cached_content").is_some_and(|raw| !json::is_null(raw)),
        usage_frame: options.is_some_and(|options| options.is_true("include_usage")),
        ..Traits::default()
    })
}

/// `max_tokens` is the older name; where both stand, the newer one counts.
fn max_tokens(body: &str, top: &Top<'_>) -> Option<(Range<usize>, u64)> {
    ["max_completion_tokens", "max_tokens"].into_iter().find_map(|key| {
        let raw = top.find(key)?;
        Some((json::span(body, raw.get()), raw.get().parse().ok()?))
    })
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
        format!(r#"{{"model":"kimi-k3","messages":[{{"role":"user","content":"hi"}}]{members}}}"#)
    }

    #[test]
    fn tools_are_functions_or_fixed() {
        let body = with(
            r#", "tools" : [ {"type":"function","function":{"name":"a","description":"d\n","parameters":{"x": 1.0}}},
            {"type":"builtin_function","function":{"name":"$web_search"}},{"function":{"name":"b"}},
            {"type":"function","function":{"name":"$c"}},{"type":"function","function":{"name":7}},3,["function"],
            {"type":"function","function":{"name":""}} ] "#,
        );
        let view = view(&body).expect("view");
        let names: Vec<_> = view.tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["a", "$web_search", "b", "$c", "", "", "", ""]);
        let functions = view.tools.iter().filter(|tool| tool.kind == ToolKind::Function);
        assert_eq!(functions.map(|tool| &*tool.name).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(view.tools[0].description, "d\n");
        assert_eq!(view.tools[0].parameters.as_deref(), Some(r#"{"x": 1.0}"#));
        assert_eq!(view.tools[2].text, r#"{"function":{"name":"b"}}"#);
        let array = &body[view.layout.tools];
        assert!(array.starts_with("[ {") && array.ends_with("} ]"));
    }

    #[test]
    fn null_tools_are_no_tools() {
        for members in ["", r#","tools":null"#, r#","tools":[]"#] {
            assert!(view(&with(members)).expect("view").tools.is_empty(), "{members}");
        }
        for members in [r#","tools":{}"#, r#","tools":"x""#, r#","tools":-1"#, r#","tools":true"#, r#","tools":1.5"#] {
            assert_eq!(view(&with(members)).err(), Some(WireError::Shape("tools")), "{members}");
        }
    }

    #[test]
    fn a_body_that_is_not_one_document_is_not_read() {
        for body in ["", "[]", "{", "{} x", "{}\0", r#"{"messages":[]}{}"#] {
            assert!(view(body).is_err(), "{body:?}");
        }
        assert_eq!(view("{}").err(), Some(WireError::Shape("messages")));
        assert_eq!(view(&with(r#","tools":[],"to\u006fls":[]"#)).err(), Some(WireError::Duplicate("tools")));
        assert_eq!(view(&with(r#","model":"x""#)).err(), Some(WireError::Duplicate("model")));
        assert!(view(&with(r#","x":1,"x":2"#)).is_ok());
    }

    #[test]
    fn the_choice_is_read_in_every_spelling() {
        let only = |names: &[&'static str]| Choice::Only(names.iter().map(|name| Cow::Borrowed(*name)).collect());
        let allowed = r#"{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"a"}},{"type":"function","name":"b"}]}}"#;
        let cases = [
            ("null", Choice::Auto),
            (r#""none""#, Choice::None),
            (r#""required""#, Choice::Required),
            (r#"{"type":"function","function":{"name":"a"}}"#, only(&["a"])),
            (allowed, only(&["a", "b"])),
        ];
        for (text, choice) in cases {
            let body = with(&format!(r#","tool_choice":{text}"#));
            assert_eq!(view(&body).expect("view").choice, choice, "{text}");
        }
        assert_eq!(view(&with(r#","tool_choice":"most""#)).err(), Some(WireError::Shape("tool_choice")));
    }

    #[test]
    fn traits_are_read() {
        let read = |members: &str| view(&with(members)).expect("view").traits;
        assert_eq!(read(r#","n":1,"response_format":{"type":"text"},"extra_body":{"google":{}}"#), Traits::default());
        assert!(read(r#","n":2"#).several_choices);
        assert!(read(r#","response_format":{"type":"json_schema"}"#).structured);
        assert!(read(r#","extra_body":{"google":{"cached_content":"c"}}"#).cached_content);
        assert!(read(r#","stream_options":{"include_usage":true}"#).usage_frame);
        assert!(read(r#","tools":[{"type":"function","defer_loading":true,"function":{"name":"a"}}]"#).client_search);
        let body = r#"{"messages":[{"role":"system","tools":[{"type":"function","function":{"name":"a"}}]},
            {"role":"assistant","content":"x","partial":true}]}"#;
        let view = view(body).expect("view");
        assert!(view.traits.partial && !view.traits.client_search);
        assert_eq!((view.tools[0].kind, &*view.tools[0].name), (ToolKind::Placed, "a"));
    }

    #[test]
    fn messages_show_texts_calls_and_answers() {
        let body = r#"{"stream":true,"max_tokens":50,"messages":[{"role":"developer","content":"s"},{"role":"system","content":"t"},
            {"role":"user","content":[{"type":"text","text":"cut \ud83d"},{"type":"image_url","image_url":"x"}]},
            {"role":"assistant","content":null,"reasoning_content":"r","tool_calls":[{"id":"f:0","type":"function","function":{"name":"f","arguments":"{\"a\":9007199254740993001}"}}]},
            {"role":"tool","tool_call_id":"f:0","name":"f","content":"ok"},{"role":"user","content":""}],"max_completion_tokens": 70}"#;
        let view = view(body).expect("view");
        assert!(view.stream);
        assert_eq!(view.system.len(), 2);
        let roles: Vec<_> = view.messages.iter().map(|message| message.role).collect();
        use Role::{Assistant, System, Tool, User};
        assert_eq!(roles, [System, System, User, Assistant, Tool, User]);
        assert_eq!(view.messages[2].texts, ["cut \u{fffd}"]);
        assert_eq!(view.messages[3].calls[0].arguments, r#"{"a":9007199254740993001}"#);
        assert_eq!((&*view.messages[4].answers[0].id, &*view.messages[4].answers[0].name), ("f:0", "f"));
        let (span, cap) = view.layout.max_tokens.expect("cap");
        assert_eq!((&body[span], cap), ("70", 70));
    }

    #[test]
    fn deep_and_huge_documents_are_read() {
        let deep = format!(r#","x":{}{}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert!(view(&with(&deep)).is_ok());
        let tool = r#"{"type":"function","function":{"name":"a","parameters":{"n":1e999999,"m":123456789012345678901234567890}}}"#;
        assert_eq!(view(&with(&format!(r#","tools":[{tool}]"#))).expect("view").tools[0].kind, ToolKind::Function);
    }
}
