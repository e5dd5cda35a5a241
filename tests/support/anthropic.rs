//! The Messages wire as Anthropic and Kimi's `/anthropic` speak it: which requests
//! they refuse, and the bytes of a scripted reply. NOT routing, NOT sockets.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::received::{Received, list};
use super::reply::{Part, Reply, Usage, UsageAt, pieces, signature};
use super::wiring::Response;

const MAX_TOOLS: usize = 128;
const MAX_MARKS: usize = 4;
/// What a request may hold; anything else is an "extra input".
const KNOWN: [&str; 19] = [
    "model",
    "max_tokens",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "stream",
    "thinking",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "metadata",
    "service_tier",
    "output_format",
    "output_config",
    "container",
    "mcp_servers",
    "context_management",
];

/// Why the provider answers 400.
pub fn check(request: &Received) -> Result<(), String> {
    let text = std::str::from_utf8(&request.body).map_err(|_| "the body is not UTF-8")?;
    let body: Value = serde_json::from_str(text).map_err(|e| format!("the body is not JSON: {e}"))?;
    if let Some(key) = body.as_object().and_then(|top| top.keys().find(|key| !KNOWN.contains(&key.as_str()))) {
        return Err(format!("{key}: Extra inputs are not permitted"));
    }
    body["model"].as_str().ok_or("model: Field required")?;
    let cap = body["max_tokens"].as_u64().filter(|cap| *cap > 0).ok_or("max_tokens: Field required")?;
    let thinks = matches!(body["thinking"]["type"].as_str(), Some("enabled" | "adaptive"));
    if body["thinking"]["budget_tokens"].as_u64().is_some_and(|budget| budget >= cap) {
        return Err("`max_tokens` must be greater than `thinking.budget_tokens`".into());
    }
    if text.matches("\"cache_control\"").count() > MAX_MARKS {
        return Err(format!("A maximum of {MAX_MARKS} blocks with cache_control may be provided"));
    }
    let names = check_tools(&body)?;
    check_choice(&body, &names, thinks)?;
    let messages = list(&body["messages"]);
    if messages.first().is_none_or(|first| first["role"] != "user") {
        return Err("messages: first message must use the user role".into());
    }
    let blocks: Vec<(bool, Vec<Value>)> =
        messages.iter().enumerate().map(|(at, message)| blocks(message, at)).collect::<Result<_, _>>()?;
    let of_tools = |block: &Value| matches!(block["type"].as_str(), Some("tool_use" | "tool_result"));
    if names.is_empty() && blocks.iter().any(|(_, blocks)| blocks.iter().any(of_tools)) {
        return Err("tools: Requests which include `tool_use` or `tool_result` blocks must define tools".into());
    }
    check_pairing(&blocks)?;
    check_thinking(&blocks, thinks)
}

/// The names of all tools.
fn check_tools(body: &Value) -> Result<HashSet<String>, String> {
    let mut names = HashSet::new();
    let Some(tools) = body.get("tools") else { return Ok(names) };
    let tools = tools.as_array().ok_or("tools: Input should be a valid list")?;
    if tools.is_empty() {
        return Err("tools: List should have at least 1 item".into());
    }
    for tool in tools {
        let name = tool["name"].as_str().unwrap_or_default();
        let good = !name.is_empty() && name.len() <= 128;
        if !good || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
            return Err(format!("tools.name: {name:?} should match '^[a-zA-Z0-9_-]{{1,128}}$'"));
        }
        let custom = matches!(tool["type"].as_str(), None | Some("custom"));
        if custom && tool["input_schema"]["type"] != "object" {
            return Err(format!("tools.{name}.input_schema.type: Field required"));
        }
        if custom && tool.get("function").is_some() || !custom && tool.get("input_schema").is_some() {
            return Err(format!("tools.{name}: Extra inputs are not permitted"));
        }
        if !names.insert(name.to_owned()) {
            return Err("tools: Tool names must be unique".into());
        }
    }
    match names.len() > MAX_TOOLS {
        true => Err(format!("tools: {} of them, at most {MAX_TOOLS}", names.len())),
        false => Ok(names),
    }
}

fn check_choice(body: &Value, names: &HashSet<String>, thinks: bool) -> Result<(), String> {
    let Some(choice) = body.get("tool_choice") else { return Ok(()) };
    let kind = choice["type"].as_str().ok_or("tool_choice.type: Field required")?;
    if names.is_empty() {
        return Err("tool_choice: may only be specified while providing tools".into());
    }
    match kind {
        "auto" | "none" => Ok(()),
        "any" | "tool" if thinks => Err("Thinking may not be enabled when tool_choice forces tool use".into()),
        "any" => Ok(()),
        "tool" if choice["name"].as_str().is_some_and(|name| names.contains(name)) => Ok(()),
        "tool" => Err(format!("tool_choice.name: Tool {} not found in provided tools", choice["name"])),
        other => Err(format!("tool_choice.type: {other} is not known")),
    }
}

/// Is it a reply, and its blocks.
fn blocks(message: &Value, at: usize) -> Result<(bool, Vec<Value>), String> {
    let is_reply = match message["role"].as_str() {
        Some("assistant") => true,
        Some("user") => false,
        role => return Err(format!("messages.{at}.role: {role:?} should be 'user' or 'assistant'")),
    };
    let blocks = match message["content"].as_str() {
        Some(text) => vec![json!({"type": "text", "text": text})],
        None => list(&message["content"]),
    };
    if blocks.is_empty() {
        return Err(format!("messages.{at}: all messages must have non-empty content"));
    }
    for block in &blocks {
        check_block(block, is_reply).map_err(|error| format!("messages.{at}.content: {error}"))?;
    }
    Ok((is_reply, blocks))
}

fn check_block(block: &Value, is_reply: bool) -> Result<(), String> {
    let kind = block["type"].as_str().unwrap_or_default();
    let known: &[&str] = match (kind, is_reply) {
        ("text", _) => &["text", "citations"],
        ("thinking", true) => &["thinking", "signature"],
        ("redacted_thinking", true) => &["data"],
        ("tool_use", true) => &["id", "name", "input", "caller"],
        ("server_tool_use", true) => &["id", "name", "input"],
        ("web_search_tool_result", true) => &["tool_use_id", "content"],
        ("tool_result", false) => &["tool_use_id", "content", "is_error"],
        ("image", false) => &["source"],
        _ => return Err(format!("a block of type {kind:?} is not allowed here")),
    };
    let members = block.as_object().into_iter().flatten();
    let given = |key: &&String| !["type", "cache_control"].contains(&key.as_str()) && !known.contains(&key.as_str());
    if let Some(key) = members.map(|(key, _)| key).find(given) {
        return Err(format!("{kind}.{key}: Extra inputs are not permitted"));
    }
    if kind.ends_with("thinking") && block.get("cache_control").is_some() {
        return Err("thinking blocks cannot be marked for the cache".into());
    }
    match kind {
        "text" if block["text"].as_str().is_none_or(str::is_empty) => {
            Err("text content blocks must be non-empty".into())
        }
        "tool_use" if !block["input"].is_object() => Err("tool_use.input: Input should be a valid dictionary".into()),
        "tool_result" if list(&block["content"]).iter().any(|part| part["type"] == "tool_reference") => {
            Err("tool_reference is not supported".into())
        }
        _ => Ok(()),
    }
}

/// Every call is answered at the front of the next message, no answer is without a call, ids are unique.
fn check_pairing(messages: &[(bool, Vec<Value>)]) -> Result<(), String> {
    let ids = |blocks: &[Value], kind: &str, key: &str| -> Vec<String> {
        let of_kind = blocks.iter().filter(|block| block["type"] == kind);
        of_kind.map(|block| block[key].as_str().unwrap_or_default().to_owned()).collect()
    };
    let mut seen = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    for (at, (is_reply, blocks)) in messages.iter().enumerate() {
        let results = ids(blocks, "tool_result", "tool_use_id");
        let front = blocks.iter().take(open.len()).filter(|block| block["type"] == "tool_result").count();
        if *is_reply && !open.is_empty() || front < open.len() || open.iter().any(|id| !results.contains(id)) {
            return Err(format!(
                "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {open:?}"
            ));
        }
        if let Some(id) = results.iter().find(|id| !open.contains(id)) {
            return Err(format!("messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {id}"));
        }
        open = ids(blocks, "tool_use", "id");
        if let Some(id) = open.iter().find(|id| id.is_empty() || !seen.insert((*id).clone())) {
            return Err(format!("messages.{at}: `tool_use` ids must be unique: {id:?}"));
        }
    }
    match open.is_empty() {
        true => Ok(()),
        false => Err(format!("`tool_use` ids were found without `tool_result` blocks: {open:?}")),
    }
}

/// Thinking comes back as it was given: each block with its own signature, and never the blocks of two replies in one
/// message. With thinking on, the turn's first reply begins with it.
fn check_thinking(messages: &[(bool, Vec<Value>)], thinks: bool) -> Result<(), String> {
    let asks = |(is_reply, blocks): &(bool, Vec<Value>)| {
        !is_reply && blocks.iter().all(|block| block["type"] != "tool_result")
    };
    let turn = messages.iter().rposition(asks).unwrap_or_default();
    for (at, (_, blocks)) in messages.iter().enumerate().filter(|(_, (is_reply, _))| *is_reply) {
        let thoughts = blocks.iter().filter(|block| block["type"] == "thinking");
        let mut replies = HashSet::new();
        for thought in thoughts {
            let sign = thought["signature"].as_str().unwrap_or_default();
            let number = sign.get(4..12).and_then(|hex| u64::from_str_radix(hex, 16).ok());
            let text = thought["thinking"].as_str().unwrap_or_default();
            if number.is_none_or(|number| signature(number, text) != sign) {
                return Err(format!("messages.{at}.content: Invalid `signature` in `thinking` block"));
            }
            replies.insert(number);
        }
        if replies.len() > 1 && at >= turn {
            return Err(format!(
                "messages.{at}.content: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified"
            ));
        }
    }
    let first = messages.iter().skip(turn).find(|(is_reply, _)| *is_reply);
    let begins =
        |blocks: &[Value]| blocks.first().is_some_and(|b| b["type"].as_str().unwrap_or_default().ends_with("thinking"));
    match first.is_some_and(|(_, blocks)| thinks && !begins(blocks)) {
        true => Err("Expected `thinking` or `redacted_thinking`, but found another block".into()),
        false => Ok(()),
    }
}

/// The bytes of a scripted reply to this request. `number` makes ids unique.
pub fn render(request: &Received, reply: &Reply, number: u64) -> Response {
    let finish = reply.finish.clone().unwrap_or_else(|| if reply.calls() { "tool_use" } else { "end_turn" }.into());
    let mut message = json!({
        "id": format!("msg_{number:024x}"),
        "type": "message",
        "role": "assistant",
        "model": request.model(),
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
    });
    if !request.streams() {
        message["content"] = reply.parts.iter().enumerate().filter_map(|(at, part)| block(part, at, number)).collect();
        message["stop_reason"] = finish.into();
        if let Some(usage) = reply.usage {
            message["usage"] = input(usage);
            message["usage"]["output_tokens"] = usage.completion.into();
        }
        let headers = vec![("content-type".into(), "application/json".into())];
        return Response { headers, pieces: vec![message.to_string().into_bytes()], ..Response::default() };
    }
    if let Some(usage) = reply.usage {
        message["usage"] = input(usage);
        message["usage"]["output_tokens"] = 1.into();
        message["usage"]["service_tier"] = "standard".into();
    }
    let mut events = vec![json!({"type": "message_start", "message": message}), json!({"type": "ping"})];
    for (index, part) in reply.parts.iter().enumerate() {
        block_events(part, index, number, &mut events);
    }
    let mut end = json!({"type": "message_delta", "delta": {"stop_reason": finish, "stop_sequence": null}});
    if let Some(usage) = reply.usage {
        // Anthropic says it all again, Kimi what came out.
        end["usage"] = if reply.usage_at == UsageAt::Both { input(usage) } else { json!({}) };
        end["usage"]["output_tokens"] = usage.completion.into();
    }
    events.extend([end, json!({"type": "message_stop"})]);
    let line = reply.lines.text();
    let write = |event: &Value| {
        let kind = event["type"].as_str().unwrap_or_default();
        format!("event: {kind}{line}data: {event}{line}{line}").into_bytes()
    };
    let headers = vec![("content-type".into(), "text/event-stream; charset=utf-8".into())];
    Response { headers, pieces: events.iter().map(write).collect(), chunked: true, ..Response::default() }
}

/// A block as a message without a stream holds it.
fn block(part: &Part, at: usize, number: u64) -> Option<Value> {
    match part {
        Part::Text(text) if text.is_empty() => None,
        Part::Text(text) => Some(json!({"type": "text", "text": text})),
        Part::Reasoning(text) => {
            Some(json!({"type": "thinking", "thinking": text, "signature": signature(number, text)}))
        }
        Part::Call { id, name, arguments } => {
            let input: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
            Some(json!({"type": "tool_use", "id": call_id(id, at, number), "name": name, "input": input}))
        }
    }
}

fn block_events(part: &Part, index: usize, number: u64, events: &mut Vec<Value>) {
    let start = |block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    match part {
        Part::Text(text) => {
            events.push(start(json!({"type": "text", "text": ""})));
            let cut = pieces(text, 12).into_iter();
            events.extend(cut.map(|text| delta(json!({"type": "text_delta", "text": text}))));
        }
        Part::Reasoning(text) => {
            events.push(start(json!({"type": "thinking", "thinking": "", "signature": ""})));
            let cut = pieces(text, 12).into_iter();
            events.extend(cut.map(|text| delta(json!({"type": "thinking_delta", "thinking": text}))));
            events.push(delta(json!({"type": "signature_delta", "signature": signature(number, text)})));
        }
        Part::Call { id, name, arguments } => {
            let id = call_id(id, index, number);
            events.push(start(json!({"type": "tool_use", "id": id, "name": name, "input": {}})));
            events.push(delta(json!({"type": "input_json_delta", "partial_json": ""})));
            let cut = pieces(arguments, 9).into_iter().filter(|piece| !piece.is_empty());
            events.extend(cut.map(|json| delta(json!({"type": "input_json_delta", "partial_json": json}))));
        }
    }
    events.push(json!({"type": "content_block_stop", "index": index}));
}

fn call_id(given: &Option<String>, at: usize, number: u64) -> String {
    given.clone().unwrap_or_else(|| format!("toolu_{number:x}_{at}"))
}

/// What went in: cached tokens, and those just written to the cache, are not in `input_tokens`.
fn input(usage: Usage) -> Value {
    let written = usage.cached / 10;
    json!({
        "input_tokens": usage.prompt - usage.cached - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": usage.cached,
    })
}
