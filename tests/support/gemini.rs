//! Gemini's own wire: which requests it refuses, and the bytes of a scripted
//! reply as SSE, as a JSON array, or whole. NOT routing, NOT sockets.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::provider::Rules;
use super::received::{Received, either, list};
use super::reply::{Part, Reply, Usage, pieces, signature};
use super::wiring::Response;

/// Gemini's cap over all `Tool` objects.
const MAX_TOOLS: usize = 512;
/// The documented value for calls that the API did not sign.
const SKIP: &str = "skip_thought_signature_validator";

/// Why the provider answers 400.
pub fn check(request: &Received, rules: Rules) -> Result<(), String> {
    let text = std::str::from_utf8(&request.body).map_err(|_| "Invalid UTF-8")?;
    let body: Value = serde_json::from_str(text).map_err(|e| format!("Invalid JSON payload received: {e}"))?;
    let contents = list(&body["contents"]);
    if contents.is_empty() {
        return Err("contents is not specified".into());
    }
    if !either(&body, "cachedContent", "cached_content").is_null() {
        let spellings =
            [("tools", "tools"), ("toolConfig", "tool_config"), ("systemInstruction", "system_instruction")];
        if spellings.iter().any(|(camel, snake)| !either(&body, camel, snake).is_null()) {
            return Err("CachedContent can not be used with system_instruction, tools or tool_config".into());
        }
        return Ok(());
    }
    let names = check_tools(request, &body)?;
    check_config(&body, &names)?;
    let steps = steps(&contents)?;
    check_history(&steps, &names)?;
    if rules.signatures || request.model().starts_with("gemini-3") {
        check_signatures(&steps)?;
    }
    Ok(())
}

fn check_tools(request: &Received, body: &Value) -> Result<HashSet<String>, String> {
    let mut builtin = false;
    for tool in list(&body["tools"]) {
        let members = tool.as_object().ok_or("tools: a Tool is an object")?;
        if members.is_empty() {
            return Err("tools[0].tool_type: required one_of 'tool_type' must have one initialized field".into());
        }
        for (key, value) in members {
            match key.as_str() {
                "functionDeclarations" | "function_declarations" if list(value).is_empty() => {
                    return Err("tools.function_declarations: should not be empty".into());
                }
                "functionDeclarations" | "function_declarations" => {}
                _ => builtin = true,
            }
        }
    }
    let declarations = request.declarations();
    if declarations.len() > MAX_TOOLS {
        return Err(format!("at most {MAX_TOOLS} function declarations, found {}", declarations.len()));
    }
    let server_side = either(
        either(body, "toolConfig", "tool_config"),
        "includeServerSideToolInvocations",
        "include_server_side_tool_invocations",
    );
    if builtin && !declarations.is_empty() && *server_side != true {
        return Err("Built-in tools and function calling cannot be combined in the same request".into());
    }
    let mut names = HashSet::new();
    for declaration in declarations {
        let name = declaration["name"].as_str().unwrap_or_default();
        let start = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let rest = name.chars().all(|c| c.is_ascii_alphanumeric() || "_.:-".contains(c));
        if !start || !rest || name.len() > 128 {
            return Err(format!("Invalid function name {name:?}"));
        }
        let schema = either(&declaration, "parametersJsonSchema", "parameters_json_schema");
        if !schema.is_null() && !declaration["parameters"].is_null() {
            return Err(format!("{name}: only one of parameters and parameters_json_schema"));
        }
        if !names.insert(name.to_owned()) {
            return Err(format!("Duplicate function declaration found: {name}"));
        }
    }
    Ok(names)
}

fn check_config(body: &Value, names: &HashSet<String>) -> Result<(), String> {
    let config = either(either(body, "toolConfig", "tool_config"), "functionCallingConfig", "function_calling_config");
    let allowed = list(either(config, "allowedFunctionNames", "allowed_function_names"));
    if let Some(name) = allowed.iter().find(|n| !names.contains(n.as_str().unwrap_or_default())) {
        return Err(format!("allowed_function_names: {name} is not declared"));
    }
    match config["mode"] == "ANY" && names.is_empty() {
        true => Err("Function calling config is set without function_declarations".into()),
        false => Ok(()),
    }
}

/// A run of contents of one role. Chat helpers send one content per streamed chunk.
struct Step {
    model: bool,
    calls: Vec<Value>,
    responses: Vec<Value>,
    /// A person wrote: a content without any function response.
    spoken: bool,
}

fn steps(contents: &[Value]) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    for (at, content) in contents.iter().enumerate() {
        let model = match content["role"].as_str() {
            Some("model") => true,
            None | Some("user" | "function" | "tool") => false,
            Some(role) => return Err(format!("contents[{at}]: role {role} is not supported")),
        };
        let parts = list(&content["parts"]);
        if parts.is_empty() {
            return Err(format!("contents[{at}].parts must not be empty"));
        }
        if steps.last().is_none_or(|step| step.model != model) {
            steps.push(Step { model, calls: Vec::new(), responses: Vec::new(), spoken: false });
        }
        let step = steps.last_mut().expect("pushed above");
        step.spoken |= parts.iter().all(|part| either(part, "functionResponse", "function_response").is_null());
        for part in parts {
            let call = either(&part, "functionCall", "function_call");
            let response = either(&part, "functionResponse", "function_response");
            if !call.is_null() {
                if !step.model {
                    return Err(format!("contents[{at}]: a function call in a user turn"));
                }
                step.calls.push(part.clone());
            } else if !response.is_null() {
                if step.model {
                    return Err(format!("contents[{at}]: a function response in a model turn"));
                }
                step.responses.push(response.clone());
            }
        }
    }
    Ok(steps)
}

fn check_history(steps: &[Step], names: &HashSet<String>) -> Result<(), String> {
    for (at, step) in steps.iter().enumerate() {
        let called: Vec<&Value> = step.calls.iter().map(|p| either(p, "functionCall", "function_call")).collect();
        for call in &called {
            let name = call["name"].as_str().unwrap_or_default();
            if !names.contains(name) {
                return Err(format!("Function call to `{name}`, which is not declared in tools"));
            }
            if !call["args"].is_null() && !call["args"].is_object() {
                return Err(format!("{name}: args must be an object"));
            }
        }
        let before: Vec<&Value> = match at.checked_sub(1).and_then(|i| steps.get(i)) {
            Some(previous) if previous.model => {
                previous.calls.iter().map(|p| either(p, "functionCall", "function_call")).collect()
            }
            _ => Vec::new(),
        };
        if !step.model && step.responses.len() != before.len()
            || step.model && at + 1 == steps.len() && !called.is_empty()
        {
            return Err("Please ensure that the number of function response parts is equal to the number of function \
                        call parts of the function call turn."
                .into());
        }
        let mut open = before;
        for response in &step.responses {
            let name = response["name"].as_str().unwrap_or_default();
            if name.is_empty() {
                return Err("function_response.name: Name cannot be empty".into());
            }
            if !response["response"].is_object() {
                return Err(format!("{name}: function_response.response must be an object"));
            }
            let same = |call: &&Value| call["name"] == name && (call["id"].is_null() || call["id"] == response["id"]);
            let Some(place) = open.iter().position(same) else {
                return Err(format!("function response `{name}` answers no call"));
            };
            open.remove(place);
        }
    }
    Ok(())
}

/// Each step of the current turn: its first call carries a signature.
fn check_signatures(steps: &[Step]) -> Result<(), String> {
    let turn = steps.iter().rposition(|s| !s.model && s.spoken).unwrap_or(0);
    for step in steps.iter().skip(turn).filter(|s| !s.calls.is_empty()) {
        let signature = either(&step.calls[0], "thoughtSignature", "thought_signature");
        let name = &either(&step.calls[0], "functionCall", "function_call")["name"];
        match signature.as_str() {
            Some(SKIP) => {}
            Some(text) if text.starts_with("sig0") => {}
            Some(text) => return Err(format!("Thought signature {text:?} is not valid")),
            None => return Err(format!("Function call {name} is missing a thought_signature in functionCall parts")),
        }
    }
    Ok(())
}

/// The bytes of a scripted reply to this request. `number` makes ids unique.
pub fn render(request: &Received, reply: &Reply, number: u64) -> Response {
    let parts = parts(request, reply, number);
    let finish = reply.finish.clone().unwrap_or_else(|| "STOP".into());
    let usage = reply.usage.map(|usage| usage_json(usage, reply));
    let chunk = |parts: Vec<Value>, end: Option<&str>| {
        let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
        if let Some(end) = end {
            candidate["finishReason"] = end.into();
        }
        let mut chunk = json!({
            "candidates": [candidate],
            "modelVersion": request.model(),
            "responseId": format!("response-{number}"),
        });
        if let Some(usage) = &usage {
            chunk["usageMetadata"] = usage.clone();
        }
        chunk
    };
    if request.path.contains(":generateContent") {
        let headers = vec![("content-type".into(), "application/json; charset=UTF-8".into())];
        let whole = merged(parts);
        let body = chunk(whole, Some(&finish)).to_string().into_bytes();
        return Response { headers, pieces: vec![body], ..Response::default() };
    }
    let mut chunks: Vec<Value> = Vec::new();
    let (calls, rest): (Vec<Value>, Vec<Value>) = parts.into_iter().partition(|p| p.get("functionCall").is_some());
    chunks.extend(rest.into_iter().map(|part| chunk(vec![part], None)));
    match reply.together && !calls.is_empty() {
        true => chunks.push(chunk(calls, None)),
        false => chunks.extend(calls.into_iter().map(|part| chunk(vec![part], None))),
    }
    chunks.push(chunk(vec![json!({"text": ""})], Some(&finish)));
    let sse = request.path.contains("alt=sse");
    let last = chunks.len() - 1;
    let frame = |(i, chunk): (usize, &Value)| match sse {
        true => {
            let end = if reply.lines.text() == "\n" { "\r\n" } else { reply.lines.text() };
            format!("data: {chunk}{end}{end}").into_bytes()
        }
        false => {
            let open = if i == 0 { "[" } else { ",\r\n" };
            let close = if i == last { "]" } else { "" };
            format!("{open}{chunk}\n{close}").into_bytes()
        }
    };
    let kind = if sse { "text/event-stream" } else { "application/json; charset=UTF-8" };
    let headers = vec![("content-type".into(), kind.into())];
    let pieces = chunks.iter().enumerate().map(frame).collect();
    Response { headers, pieces, chunked: true, ..Response::default() }
}

/// The parts of the reply in streamed pieces; the first call is signed.
fn parts(request: &Received, reply: &Reply, number: u64) -> Vec<Value> {
    let gemini3 = request.model().starts_with("gemini-3");
    let mut parts = Vec::new();
    let mut calls = 0;
    for part in &reply.parts {
        match part {
            Part::Text(text) => parts.extend(pieces(text, 12).into_iter().map(|t| json!({"text": t}))),
            Part::Reasoning(text) => {
                parts.extend(pieces(text, 12).into_iter().map(|t| json!({"text": t, "thought": true})));
            }
            Part::Call { id, name, arguments } => {
                let args: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({"broken": arguments}));
                let mut part = json!({"functionCall": {"name": name, "args": args}});
                if let Some(id) = id.clone().or(gemini3.then(|| format!("fc-{number}-{calls}"))) {
                    part["functionCall"]["id"] = id.into();
                }
                if reply.signed && calls == 0 {
                    part["thoughtSignature"] = signature(number, name).into();
                }
                calls += 1;
                parts.push(part);
            }
        }
    }
    parts
}

/// Neighbouring texts of one kind as one part.
fn merged(parts: Vec<Value>) -> Vec<Value> {
    let mut whole: Vec<Value> = Vec::new();
    for part in parts {
        let joins =
            |last: &Value| last["text"].is_string() && part["text"].is_string() && last["thought"] == part["thought"];
        match whole.last_mut() {
            Some(last) if joins(last) => {
                let text = last["text"].as_str().unwrap_or_default().to_owned();
                last["text"] = (text + part["text"].as_str().unwrap_or_default()).into();
            }
            _ => whole.push(part),
        }
    }
    whole
}

fn usage_json(usage: Usage, reply: &Reply) -> Value {
    let mut json = json!({
        "promptTokenCount": usage.prompt,
        "candidatesTokenCount": usage.completion,
        "totalTokenCount": usage.prompt + usage.completion,
        "cachedContentTokenCount": usage.cached,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": usage.prompt}],
    });
    if reply.thought().is_some() {
        json["thoughtsTokenCount"] = 7.into();
        json["totalTokenCount"] = (usage.prompt + usage.completion + 7).into();
    }
    json
}
