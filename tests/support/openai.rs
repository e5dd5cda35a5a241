//! The OpenAI chat wire as Kimi and Gemini's compatible endpoint speak it: which
//! requests they refuse, and the bytes of a scripted reply. NOT routing, NOT sockets.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::provider::Rules;
use super::received::{Received, Wire, list};
use super::reply::{Part, Reply, Usage, UsageAt, pieces, signature};
use super::wiring::Response;

/// Kimi's cap on functions.
const MAX_TOOLS: usize = 128;

/// Why the provider answers 400.
pub fn check(request: &Received, rules: Rules) -> Result<(), String> {
    let text = std::str::from_utf8(&request.body).map_err(|_| "the body is not UTF-8")?;
    let body: Value = serde_json::from_str(text).map_err(|e| format!("the body is not JSON: {e}"))?;
    let model = body["model"].as_str().ok_or("model is missing")?;
    for old in ["functions", "function_call"] {
        if body.get(old).is_some() {
            return Err(format!("`{old}` is not supported, use `tools`"));
        }
    }
    if body.get("thinking").is_some() && body.get("reasoning_effort").is_some() {
        return Err("cannot set both thinking and reasoning_effort".into());
    }
    let messages = list(&body["messages"]);
    if messages.is_empty() {
        return Err("messages must not be empty".into());
    }
    let names = check_tools(&body, &messages, model)?;
    check_choice(&body, &names)?;
    check_pairing(&messages, rules)
}

/// The names of all functions, top level and message level.
fn check_tools(body: &Value, messages: &[Value], model: &str) -> Result<HashSet<String>, String> {
    let mut names = HashSet::new();
    if let Some(tools) = body.get("tools").filter(|t| !t.is_null()) {
        let tools = tools.as_array().ok_or("tools must be an array")?;
        if tools.is_empty() {
            return Err("[] is too short - 'tools'".into());
        }
        take(tools, model, &mut names)?;
    }
    for message in messages.iter().filter(|m| m.get("tools").is_some()) {
        if message["role"] != "system" {
            return Err("tools stand only in a system message".into());
        }
        if !model.starts_with("kimi-k3") {
            return Err("tokenization failed".into());
        }
        if message.get("content").is_some() {
            return Err("tools cannot be used with content".into());
        }
        let tools = list(&message["tools"]);
        if tools.is_empty() {
            return Err("[] is too short - 'messages.tools'".into());
        }
        take(&tools, model, &mut names)?;
    }
    match names.len() > MAX_TOOLS {
        true => Err(format!("tools: {} functions, at most {MAX_TOOLS}", names.len())),
        false => Ok(names),
    }
}

fn take(tools: &[Value], model: &str, names: &mut HashSet<String>) -> Result<(), String> {
    for tool in tools {
        let function = &tool["function"];
        let name = function["name"].as_str().unwrap_or_default();
        match tool["type"].as_str() {
            Some("builtin_function") if name.starts_with('$') => {}
            Some("function") => {
                check_name(name, model)?;
                check_schema(&function["parameters"], true).map_err(|e| format!("tool `{name}`: {e}"))?;
            }
            _ => return Err("a tool needs the type `function`".into()),
        }
        if !names.insert(name.to_owned()) {
            return Err(format!("function name {name} is duplicated"));
        }
    }
    Ok(())
}

fn check_name(name: &str, model: &str) -> Result<(), String> {
    let sizes = if model.starts_with("kimi-k3") { 1..=256 } else { 3..=64 };
    let start = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let rest = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    match start && rest && sizes.contains(&name.len()) {
        true => Ok(()),
        false => Err(format!("function name {name:?} is invalid")),
    }
}

/// Moonshot's flavour: each property has a `type`, unless branches or a reference say it.
fn check_schema(schema: &Value, root: bool) -> Result<(), String> {
    if schema.is_null() {
        return Ok(());
    }
    let Some(members) = schema.as_object() else {
        return if root { Err("parameters must be an object".into()) } else { Ok(()) };
    };
    let branches = ["anyOf", "oneOf", "allOf"].iter().find(|k| members.contains_key(**k));
    if root && schema["type"] != "object" {
        return Err("parameters must be of type object".into());
    }
    if branches.is_none() && !members.contains_key("type") && !members.contains_key("$ref") {
        return Err("type is not defined".into());
    }
    if let Some(branches) = branches {
        if members.contains_key("type") && *branches == "anyOf" {
            return Err("when using anyOf, type should be defined in the branches".into());
        }
        for branch in list(&schema[*branches]) {
            check_schema(&branch, false)?;
        }
    }
    let empty = serde_json::Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    for (name, property) in properties {
        check_schema(property, false).map_err(|e| format!("properties.{name}: {e}"))?;
    }
    if let Some(missing) = list(&schema["required"]).iter().find(|r| !properties.contains_key(r.as_str().unwrap_or("")))
    {
        return Err(format!("required {missing} is not in properties"));
    }
    members.get("items").map_or(Ok(()), |items| check_schema(items, false))
}

fn check_choice(body: &Value, names: &HashSet<String>) -> Result<(), String> {
    let choice = &body["tool_choice"];
    if names.is_empty() && (choice == "required" || choice.is_object()) {
        return Err("tool_choice is only allowed when tools are specified".into());
    }
    let listed = list(&choice["allowed_tools"]["tools"]);
    for entry in listed.iter().chain(choice["function"].is_object().then_some(choice)) {
        let name = entry["function"]["name"].as_str().unwrap_or_default();
        if !names.contains(name) {
            return Err(format!("tool_choice names `{name}`, which is not in tools"));
        }
    }
    Ok(())
}

/// Every call is answered right behind its message, no answer is without a call.
fn check_pairing(messages: &[Value], rules: Rules) -> Result<(), String> {
    let mut open: Vec<String> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        match message["role"].as_str() {
            Some("tool") => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                let Some(place) = open.iter().position(|o| o == id) else {
                    return Err(format!("tool_call_id {id} is not found (message {at})"));
                };
                open.remove(place);
                if !message["content"].is_string() && !message["content"].is_array() {
                    return Err(format!("message {at}: a tool result needs content"));
                }
            }
            Some("system" | "developer" | "user" | "assistant") if !open.is_empty() => {
                return Err(format!("tool_calls {open:?} are not followed by their tool messages (message {at})"));
            }
            Some("assistant") => open = check_calls(message, at, rules)?,
            Some("system" | "developer" | "user") => {}
            role => return Err(format!("message {at}: role {role:?} is unknown")),
        }
    }
    match open.is_empty() {
        true => Ok(()),
        false => Err(format!("tool_calls {open:?} are not followed by their tool messages")),
    }
}

/// The ids of one assistant message's calls.
fn check_calls(message: &Value, at: usize, rules: Rules) -> Result<Vec<String>, String> {
    let Some(calls) = message.get("tool_calls").filter(|c| !c.is_null()) else {
        return Ok(Vec::new());
    };
    let calls = list(calls);
    if calls.is_empty() {
        return Err(format!("message {at}: tool_calls must not be empty"));
    }
    if rules.thinking && !message["reasoning_content"].is_string() {
        return Err(format!(
            "thinking is enabled but reasoning_content is missing in assistant tool call message at index {at}"
        ));
    }
    let mut ids = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        let function = &call["function"];
        if function["name"].as_str().is_none_or(str::is_empty) || !function["arguments"].is_string() {
            return Err(format!("message {at}: a call needs a name and arguments as a string"));
        }
        let signature = &call["extra_content"]["google"]["thought_signature"];
        if rules.signatures && index == 0 && signature.as_str().is_none_or(str::is_empty) {
            return Err(format!("message {at}: function call is missing a thought_signature"));
        }
        ids.push(call["id"].as_str().filter(|id| !id.is_empty()).ok_or(format!("message {at}: a call needs an id"))?);
    }
    let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
    match ids.iter().collect::<HashSet<_>>().len() == ids.len() {
        true => Ok(ids),
        false => Err(format!("message {at}: call ids repeat")),
    }
}

/// One call, ready to be written.
struct Call {
    id: String,
    name: String,
    arguments: String,
    signature: Option<String>,
}

/// The bytes of a scripted reply to this request. `number` makes ids unique.
pub fn render(request: &Received, reply: &Reply, number: u64) -> Response {
    let compat = request.wire() == Some(Wire::Compat);
    let model = request.model();
    let calls = calls(request, reply, number);
    let finish = reply.finish.clone().unwrap_or_else(|| {
        let streams_stop = compat && request.streams();
        if calls.is_empty() || streams_stop { "stop".into() } else { "tool_calls".into() }
    });
    let head = json!({
        "id": format!("chatcmpl-{number:024x}"),
        "created": 1_790_000_000 + number,
        "model": model,
    });
    let usage = reply.usage.map(|usage| usage_json(usage, reply, compat));
    if !request.streams() {
        let body = whole(head, reply, &calls, &finish, usage, compat);
        let headers = vec![("content-type".into(), "application/json; charset=utf-8".into())];
        return Response { headers, pieces: vec![body.to_string().into_bytes()], ..Response::default() };
    }
    let frames = if compat {
        compat_frames(&head, reply, &calls, &finish, usage)
    } else {
        let asked = request.json()["stream_options"]["include_usage"] == true;
        kimi_frames(&head, reply, &calls, &finish, usage, asked)
    };
    let end = reply.lines.text();
    let mut pieces: Vec<Vec<u8>> = frames.iter().map(|f| format!("data: {f}{end}{end}").into_bytes()).collect();
    if reply.done {
        pieces.push(format!("data: [DONE]{end}{end}").into_bytes());
    }
    let headers = vec![("content-type".into(), "text/event-stream; charset=utf-8".into())];
    Response { headers, pieces, chunked: true, ..Response::default() }
}

fn calls(request: &Received, reply: &Reply, number: u64) -> Vec<Call> {
    let compat = request.wire() == Some(Wire::Compat);
    let before: usize = request.messages().iter().map(|m| list(&m["tool_calls"]).len()).sum();
    let k3 = request.model().starts_with("kimi-k3");
    let mut calls: Vec<Call> = Vec::new();
    for part in &reply.parts {
        let Part::Call { id, name, arguments } = part else { continue };
        let nth = before + calls.len();
        let own = match (compat, k3) {
            (true, _) => format!("function-call-{number}-{nth}"),
            (false, true) => format!("{name}:{nth}"),
            (false, false) => format!("functions.{name}:{nth}"),
        };
        let signature = (compat && reply.signed && calls.is_empty()).then(|| signature(number, name));
        calls.push(Call { id: id.clone().unwrap_or(own), name: name.clone(), arguments: arguments.clone(), signature });
    }
    calls
}

fn usage_json(usage: Usage, reply: &Reply, compat: bool) -> Value {
    let mut json = json!({
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
    });
    if !compat {
        json["cached_tokens"] = usage.cached.into();
        json["prompt_tokens_details"] = json!({"cached_tokens": usage.cached});
    }
    if reply.thought().is_some() {
        json["completion_tokens_details"] = json!({"reasoning_tokens": usage.completion / 2});
    }
    json
}

fn whole(head: Value, reply: &Reply, calls: &[Call], finish: &str, usage: Option<Value>, compat: bool) -> Value {
    let said = reply.said();
    let mut message = json!({"role": "assistant"});
    message["content"] = if said.is_empty() && !calls.is_empty() { Value::Null } else { said.into() };
    if let Some(thought) = reply.thought() {
        message["reasoning_content"] = thought.into();
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.iter().map(|c| whole_call(c, compat)).collect();
    }
    let mut body = head;
    body["object"] = "chat.completion".into();
    body["choices"] = json!([{"index": 0, "message": message, "finish_reason": finish}]);
    if let Some(usage) = usage {
        if reply.usage_at != UsageAt::Top && !compat {
            body["choices"][0]["usage"] = usage.clone();
        }
        if reply.usage_at != UsageAt::Choice {
            body["usage"] = usage;
        }
    }
    body
}

fn whole_call(call: &Call, compat: bool) -> Value {
    let mut json = json!({
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    });
    if let Some(signature) = call.signature.as_ref().filter(|_| compat) {
        json["extra_content"] = json!({"google": {"thought_signature": signature}});
    }
    json
}

fn chunk(head: &Value, choices: Value) -> Value {
    let mut frame = head.clone();
    frame["object"] = "chat.completion.chunk".into();
    frame["choices"] = choices;
    frame
}

/// Kimi's order: role, reasoning and its empty end, content, calls in fragments, end frame with usage.
fn kimi_frames(
    head: &Value,
    reply: &Reply,
    calls: &[Call],
    finish: &str,
    usage: Option<Value>,
    include_usage: bool,
) -> Vec<Value> {
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    if let Some(thought) = reply.thought() {
        deltas.extend(pieces(&thought, 12).into_iter().map(|p| json!({"reasoning_content": p})));
        deltas.push(json!({"reasoning_content": ""}));
    }
    if !reply.said().is_empty() {
        deltas.extend(pieces(&reply.said(), 12).into_iter().map(|p| json!({"content": p})));
    }
    for (index, call) in calls.iter().enumerate() {
        let function = json!({"name": call.name, "arguments": ""});
        let first = json!({"index": index, "id": call.id, "type": "function", "function": function});
        deltas.push(json!({"tool_calls": [first]}));
        for piece in pieces(&call.arguments, 7) {
            deltas.push(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}));
        }
    }
    let one = |delta: Value| chunk(head, json!([{"index": 0, "delta": delta, "finish_reason": null}]));
    let mut frames: Vec<Value> = deltas.into_iter().map(one).collect();
    let mut end = chunk(head, json!([{"index": 0, "delta": {}, "finish_reason": finish}]));
    if let Some(usage) = usage.clone().filter(|_| reply.usage_at != UsageAt::Top) {
        end["choices"][0]["usage"] = usage;
    }
    frames.push(end);
    if let Some(usage) = usage.filter(|_| include_usage && reply.usage_at != UsageAt::Choice) {
        let mut last = chunk(head, json!([]));
        last["usage"] = usage;
        frames.push(last);
    }
    frames
}

/// Gemini's compatible endpoint: no `index`, a call whole in its chunk, `stop` even for calls, the role in every delta.
fn compat_frames(head: &Value, reply: &Reply, calls: &[Call], finish: &str, usage: Option<Value>) -> Vec<Value> {
    let mut deltas = Vec::new();
    if !reply.said().is_empty() {
        deltas.extend(pieces(&reply.said(), 12).into_iter().map(|p| json!({"role": "assistant", "content": p})));
    }
    let written: Vec<Value> = calls.iter().map(|c| whole_call(c, true)).collect();
    if reply.together && !written.is_empty() {
        deltas.push(json!({"role": "assistant", "tool_calls": written}));
    } else {
        deltas.extend(written.into_iter().map(|c| json!({"role": "assistant", "tool_calls": [c]})));
    }
    if !reply.finish_joined || deltas.is_empty() {
        deltas.push(json!({"role": "assistant"}));
    }
    let last = deltas.len() - 1;
    let frame = |(i, delta): (usize, Value)| {
        let mut choice = json!({"index": 0, "delta": delta});
        if i == last {
            choice["finish_reason"] = finish.into();
        }
        let mut frame = chunk(head, json!([choice]));
        if let Some(usage) = usage.clone().filter(|_| i == last) {
            frame["usage"] = usage;
        }
        frame
    };
    deltas.into_iter().enumerate().map(frame).collect()
}
