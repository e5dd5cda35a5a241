//! A scripted model that wants one tool: it calls it when it is declared, else looks
//! for it with `find_tools`. NOT a provider's rules, NOT a wire.
//!
//! Which tool is said by number, so that the message itself shares no word with it:
//! `want=17` is `roster::TOOLS[17]`.

use serde_json::{Value, json};

use super::received::{Received, list};
use super::reply::Reply;
use super::roster::TOOLS;

/// The answer to a request over [`TOOLS`]. Legs that search say "Let me look. ", the leg after "Found.".
pub fn wants(request: &Received) -> Reply {
    let want = wanted(request);
    let searched = searched(request);
    let arguments = json!({"value": "größe"});
    match (request.reports() && !searched, request.declares(want)) {
        (true, _) => Reply::text("Finished."),
        (false, true) if searched => Reply::text("Found.").and_call(want, arguments),
        (false, true) => Reply::call(want, arguments),
        (false, false) if request.declares("find_tools") => Reply::text("Let me look. ").and_find(description(want)),
        (false, false) => Reply::text("I cannot do that."),
    }
}

/// The tool that the last question wants; empty when it names none.
pub fn wanted(request: &Received) -> &'static str {
    let asked = request.asked();
    let number = asked.split_once("want=").and_then(|(_, n)| n.trim().parse::<usize>().ok());
    number.and_then(|n| TOOLS.get(n)).map_or("", |(name, _)| name)
}

/// Is the last message an answer of `find_tools`?
pub fn searched(request: &Received) -> bool {
    let messages = request.messages();
    let Some(last) = messages.last() else { return false };
    let gemini = list(&last["parts"]).iter().any(|part| part["functionResponse"]["name"] == "find_tools");
    let id = &last["tool_call_id"];
    let calls: Vec<Value> = messages.iter().flat_map(|m| list(&m["tool_calls"])).collect();
    let call = calls.iter().rev().find(|call| call["id"] == *id);
    let blocks = |m: &Value| list(&m["content"]);
    let used = messages.iter().flat_map(blocks).find(|block| {
        block["type"] == "tool_use" && block["id"].is_string() && block["id"] == last["content"][0]["tool_use_id"]
    });
    let anthropic = used.is_some_and(|block| block["name"] == "find_tools");
    gemini || anthropic || id.is_string() && call.is_some_and(|call| call["function"]["name"] == "find_tools")
}

/// What a tool says of itself.
pub fn description(name: &str) -> &'static str {
    TOOLS.iter().find(|(tool, _)| *tool == name).map_or("something else", |(_, text)| text)
}
