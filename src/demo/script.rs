//! What the scripted model reads in a request and what it does next. Pure. NOT sockets, NOT the form of its reply.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::scenes;

/// A request as the model reads it.
#[derive(Debug)]
pub struct Heard<'a> {
    pub model: String,
    /// Declared tools in order, at the top and in messages: name and bytes.
    pub tools: Vec<(String, &'a str)>,
    pub usage_frame: bool,
    /// Calls in the transcript so far, searches included.
    pub calls: usize,
    /// The last message of the user.
    ask: String,
    /// Names called since.
    since: Vec<String>,
}

/// What the model does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    Say(String),
    /// `arguments`: JSON text.
    Call {
        tool: String,
        arguments: String,
    },
}

/// The name under which a model searches.
pub const FIND_TOOLS: &str = "find_tools";

#[derive(Deserialize)]
struct Wire<'a> {
    model: String,
    #[serde(borrow, default)]
    tools: Vec<&'a RawValue>,
    #[serde(borrow)]
    messages: Vec<Message<'a>>,
    #[serde(default)]
    stream_options: StreamOptions,
}

#[derive(Deserialize, Default)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Deserialize)]
struct Message<'a> {
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    tool_calls: Vec<Call>,
    #[serde(default)]
    tool_call_id: String,
    #[serde(borrow, default)]
    tools: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call {
    id: String,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
}

#[derive(Deserialize)]
struct Tool {
    function: Function,
}

/// Reads a request as strictly as Kimi does: every call answered, every answer called for, no name declared twice.
/// The error is the refusal.
pub fn hear(body: &[u8]) -> Result<Heard<'_>, String> {
    let wire: Wire<'_> = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let mut tools = Vec::new();
    let declared = wire.tools.iter().chain(wire.messages.iter().flat_map(|message| &message.tools));
    for raw in declared {
        let tool: Tool = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
        tools.push((tool.function.name, raw.get()));
    }
    let names: BTreeSet<_> = tools.iter().map(|(name, _)| name.as_str()).collect();
    if names.len() < tools.len() {
        return Err("function name is duplicated".to_owned());
    }
    check_pairs(&wire.messages)?;
    let (mut ask, mut since, mut calls) = (String::new(), Vec::new(), 0);
    for message in &wire.messages {
        calls += message.tool_calls.len();
        if message.role == "user" {
            ask = message.content.as_str().unwrap_or_default().to_owned();
            since.clear();
        }
        since.extend(message.tool_calls.iter().map(|call| call.function.name.clone()));
    }
    Ok(Heard { model: wire.model, tools, usage_frame: wire.stream_options.include_usage, calls, ask, since })
}

fn check_pairs(messages: &[Message<'_>]) -> Result<(), String> {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for message in messages {
        if message.role == "tool" {
            if !open.remove(message.tool_call_id.as_str()) {
                return Err("tool_call_id is not found".to_owned());
            }
        } else if !open.is_empty() {
            return Err("an assistant message with tool_calls must be followed by an answer to each".to_owned());
        }
        open.extend(message.tool_calls.iter().map(|call| call.id.as_str()));
    }
    if open.is_empty() { Ok(()) } else { Err("the last tool_calls are not answered".to_owned()) }
}

/// The scene's next step: its call if the tool is there; else a search, once; else it gives up.
pub fn act(heard: &Heard<'_>) -> Result<Act, String> {
    let Some(scene) = scenes::of(&heard.ask) else { return Ok(Act::Say("Hello.".to_owned())) };
    let done = heard.since.iter().filter(|name| *name != FIND_TOOLS).count();
    let Some(step) = scene.steps.get(done) else { return Ok(Act::Say(scene.farewell.to_owned())) };
    let is_declared = |name: &str| heard.tools.iter().any(|(declared, _)| declared == name);
    let has_just_searched = heard.since.last().is_some_and(|name| name == FIND_TOOLS);
    Ok(if is_declared(step.tool) {
        Act::Call { tool: step.tool.to_owned(), arguments: step.arguments.to_owned() }
    } else if is_declared(FIND_TOOLS) && !has_just_searched {
        Act::Call { tool: FIND_TOOLS.to_owned(), arguments: json!({"query": step.search}).to_string() }
    } else {
        Act::Say("I have no tool for that.".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> Value {
        json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}})
    }

    fn heard_act(body: &Value) -> Result<Act, String> {
        act(&hear(body.to_string().as_bytes())?)
    }

    fn name_of(act: Result<Act, String>) -> String {
        match act {
            Ok(Act::Call { tool, .. }) => tool,
            Ok(Act::Say(words)) => words,
            Err(refusal) => refusal,
        }
    }

    #[test]
    fn it_calls_what_is_there_searches_once_and_then_gives_up() {
        let scene = &scenes::SCENES[0];
        let needed = scene.steps[0].tool;
        let user = json!({"role": "user", "content": scene.ask});
        let body = |tools: &[&str], messages: Vec<Value>| json!({"model": "m", "tools": tools.iter().map(|name| tool(name)).collect::<Vec<_>>(), "messages": messages});
        let called = |name: &str| {
            vec![
                user.clone(),
                json!({"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": name}}]}),
                json!({"role": "tool", "tool_call_id": "a", "content": "x"}),
            ]
        };
        assert_eq!(name_of(heard_act(&body(&[needed, "find_tools"], vec![user.clone()]))), needed);
        assert_eq!(name_of(heard_act(&body(&["find_tools"], vec![user.clone()]))), "find_tools");
        assert_eq!(name_of(heard_act(&body(&["find_tools"], called("find_tools")))), "I have no tool for that.");
        assert_eq!(name_of(heard_act(&body(&[needed], called("find_tools")))), needed);
        assert_eq!(name_of(heard_act(&body(&[needed], called(needed)))), scene.farewell);
    }

    #[test]
    fn tools_in_a_message_are_declared_too() {
        let scene = &scenes::SCENES[0];
        let body = json!({"model": "m", "messages": [
            {"role": "user", "content": scene.ask}, {"role": "system", "tools": [tool(scene.steps[0].tool)]}]});
        assert_eq!(name_of(heard_act(&body)), scene.steps[0].tool);
    }

    #[test]
    fn it_refuses_what_kimi_refuses() {
        let twice = json!({"model": "m", "messages": [], "tools": [tool("a"), tool("a")]});
        assert_eq!(name_of(heard_act(&twice)), "function name is duplicated");
        let orphan = json!({"model": "m", "messages": [{"role": "tool", "tool_call_id": "a", "content": "x"}]});
        assert_eq!(name_of(heard_act(&orphan)), "tool_call_id is not found");
        let open = json!({"model": "m", "messages": [
            {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f"}}]},
            {"role": "user", "content": "x"}]});
        assert!(name_of(heard_act(&open)).contains("must be followed"));
    }
}
