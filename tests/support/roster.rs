//! A roster whose tools differ in their words, in each wire's form, and requests
//! over it. NOT the demo's roster: a test must not depend on its wording.

use serde_json::{Value, json};

use super::received::list;

/// Name and description. A message that shares words with one finds it.
pub const TOOLS: [(&str, &str); 20] = [
    ("send_email", "Sends an email message to recipients through the mailbox"),
    ("search_flights", "Finds airline flights between two airports on a date"),
    ("book_hotel", "Reserves a hotel room for nights in a city"),
    ("create_invoice", "Creates an invoice with amounts owed by a customer"),
    ("refund_payment", "Refunds a card payment to the buyer"),
    ("get_weather", "Reports weather, temperature and rain forecast"),
    ("translate_text", "Translates a sentence from one language into another"),
    ("play_music", "Plays a song or an album on the speakers"),
    ("set_alarm", "Wakes somebody at a clock time with an alarm"),
    ("create_ticket", "Opens a support ticket for a defect"),
    ("list_employees", "Lists employees of a department with their managers"),
    ("order_pizza", "Orders pizza with toppings for delivery"),
    ("convert_currency", "Converts money between currencies at exchange rates"),
    ("scan_document", "Scans paper pages into a document"),
    ("schedule_meeting", "Schedules a meeting in calendars of attendees"),
    ("track_parcel", "Tracks a parcel by its shipping number"),
    ("water_plants", "Opens the garden valve to water plants"),
    ("lock_door", "Locks the front door of the house"),
    ("find_recipe", "Suggests a cooking recipe from ingredients"),
    ("measure_heartrate", "Reads the heartrate from a wrist sensor"),
];

/// The roster in OpenAI form.
pub fn openai() -> Value {
    TOOLS.iter().map(|(name, text)| function(name, text)).collect()
}

/// The roster as Gemini declarations.
pub fn gemini() -> Value {
    let declaration =
        |(name, text): &(&str, &str)| json!({"name": name, "description": text, "parameters": parameters()});
    TOOLS.iter().map(declaration).collect()
}

/// The roster as Anthropic tools.
pub fn anthropic() -> Value {
    let tool = |(name, text): &(&str, &str)| json!({"name": name, "description": text, "input_schema": parameters()});
    TOOLS.iter().map(tool).collect()
}

/// One OpenAI tool.
pub fn function(name: &str, description: &str) -> Value {
    let function = json!({"name": name, "description": description, "parameters": parameters()});
    json!({"type": "function", "function": function})
}

fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {"value": {"type": "string", "description": "what it is about"}},
        "required": ["value"],
    })
}

/// An OpenAI request over the roster.
pub fn ask(text: &str) -> Value {
    json!({
        "model": "kimi-k2.6",
        "messages": [{"role": "system", "content": "You are helpful."}, {"role": "user", "content": text}],
        "tools": openai(),
    })
}

/// The same, streamed, with usage.
pub fn ask_stream(text: &str) -> Value {
    let mut body = ask(text);
    body["stream"] = true.into();
    body["stream_options"] = json!({"include_usage": true});
    body
}

/// A Gemini request over the roster.
pub fn ask_gemini(text: &str) -> Value {
    json!({
        "systemInstruction": {"parts": [{"text": "You are helpful."}]},
        "contents": [{"role": "user", "parts": [{"text": text}]}],
        "tools": [{"functionDeclarations": gemini()}],
    })
}

/// An Anthropic request over the roster.
pub fn ask_anthropic(text: &str) -> Value {
    json!({
        "model": "kimi-k3",
        "max_tokens": 4096,
        "system": "You are helpful.",
        "messages": [{"role": "user", "content": text}],
        "tools": anthropic(),
    })
}

/// The next OpenAI request of an agent: the reply's message, a result for each of its calls, and more messages.
pub fn then(body: &Value, reply: &Value, more: &[Value]) -> Value {
    let mut body = body.clone();
    let messages = body["messages"].as_array_mut().expect("messages");
    messages.push(reply.clone());
    for call in list(&reply["tool_calls"]) {
        messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": "it is done"}));
    }
    messages.extend_from_slice(more);
    body
}

/// The next request of an agent of any wire: the reply, what its calls came to, and this message where it made none.
pub fn after(body: &Value, reply: &Value, message: &str) -> Value {
    let mut body = body.clone();
    let user = |content: Value| json!({"role": "user", "content": content});
    if body["contents"].is_array() {
        let said = reply["candidates"][0]["content"].clone();
        let calls = list(&said["parts"]).into_iter().filter_map(|part| part.get("functionCall").cloned());
        let mut parts: Vec<Value> = calls
            .map(|call| {
                let mut response = json!({"name": call["name"], "response": {"output": "ok"}});
                if let Some(id) = call.get("id") {
                    response["id"] = id.clone();
                }
                json!({"functionResponse": response})
            })
            .collect();
        if parts.is_empty() {
            parts.push(json!({"text": message}));
        }
        body["contents"].as_array_mut().expect("contents").extend([said, json!({"role": "user", "parts": parts})]);
        return body;
    }
    if reply["type"] == "message" {
        let said = reply["content"].clone();
        let used = list(&said).into_iter().filter(|part| part["type"] == "tool_use");
        let results: Vec<Value> =
            used.map(|call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": "ok"})).collect();
        let content = if results.is_empty() { message.into() } else { results.into() };
        let messages = body["messages"].as_array_mut().expect("messages");
        messages.extend([json!({"role": "assistant", "content": said}), user(content)]);
        return body;
    }
    let said = &reply["choices"][0]["message"];
    let more = if list(&said["tool_calls"]).is_empty() { vec![user(message.into())] } else { Vec::new() };
    then(&body, said, &more)
}
