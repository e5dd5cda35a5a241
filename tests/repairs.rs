//! What the provider refuses after narrowing and Packlight mends before the agent sees a byte: a bad schema among a
//! search's finds, a call of a function that was withheld. NOT the ways to fail open before the upstream call.

mod support;

use serde_json::json;
use support::provider::Provider;
use support::reply::Reply;
use support::roster;
use support::sidecar::Sidecar;

const KIMI: &str = "/kimi/v1/chat/completions";
const WEATHER: &str = "Weather report: temperature, rain forecast";
const LOCK: &str = "locks the front door of the house";
const REFUSAL: &str = r#"{"error":{"message":"tools.4: property without type","type":"invalid_request_error"}}"#;

#[test]
fn a_bad_schema_among_the_finds_does_not_fail_the_turn() {
    let provider = Provider::new()
        .lenient()
        .answer(|request| match request.declares("lock_door") {
            true => Reply::status(400, REFUSAL),
            false if request.messages().len() > 2 => Reply::text("cannot"),
            false => Reply::find(LOCK),
        })
        .start();
    let sidecar = Sidecar::over(&provider).set("narrow.max_retrieved_tools", "3").start();
    for body in [roster::ask(WEATHER), roster::ask_stream(WEATHER)] {
        let before = provider.chats().len();
        let answer = sidecar.post(KIMI, &body.to_string());
        assert_eq!((answer.status, answer.packlight("action")), (200, "narrowed".to_owned()));
        assert!(answer.text().contains("cannot"));
        let legs = provider.chats()[before..].to_vec();
        assert_eq!(legs.len(), 3, "search, refused with the finds, once more without them");
        assert!(legs[1].declares("lock_door") && !legs[2].declares("lock_door"));
        assert!(legs[2].text().contains("not available right now"), "the model is not promised what is not there");
    }
}

#[test]
fn a_later_leg_that_is_refused_whatever_it_binds_ends_in_the_agents_own_request() {
    let provider = Provider::new()
        .lenient()
        .answer(|request| match (request.declares("find_tools"), request.messages().len()) {
            (true, 2) => Reply::find(LOCK),
            (true, _) => Reply::status(400, REFUSAL),
            (false, _) => Reply::text("done"),
        })
        .start();
    let sidecar = Sidecar::over(&provider).set("narrow.max_retrieved_tools", "3").start();
    let body = roster::ask(WEATHER).to_string();
    let answer = sidecar.post(KIMI, &body);
    assert_eq!(
        (answer.status, answer.packlight("action"), answer.packlight("reason")),
        (200, "full".to_owned(), "refused".to_owned())
    );
    assert!(answer.text().contains("done"));
    assert!(provider.chats().last().expect("own").body == body.as_bytes());
    assert_eq!(provider.chats().len(), 4);
}

#[test]
fn a_call_of_a_withheld_function_that_gemini_refuses_is_made_again_with_it_declared() {
    let unexpected = json!({
        "candidates": [{"finishReason": "UNEXPECTED_TOOL_CALL", "index": 0,
            "finishMessage": "Unexpected tool call: undeclared function: lock_door"}],
        "usageMetadata": {"promptTokenCount": 10, "totalTokenCount": 10},
        "responseId": "r1", "modelVersion": "gemini-3-pro",
    });
    for (path, kind, text) in [
        ("generateContent", "application/json", unexpected.to_string()),
        ("streamGenerateContent?alt=sse", "text/event-stream", format!("data: {unexpected}\r\n\r\n")),
        ("streamGenerateContent", "application/json", format!("[{unexpected}]")),
    ] {
        let sent = text.clone();
        let provider = Provider::new()
            .answer(move |request| match request.declares("lock_door") {
                true => Reply::call("lock_door", json!({"value": "front"})),
                false => Reply::raw(kind, vec![sent.clone().into_bytes()]),
            })
            .start();
        let sidecar = Sidecar::over(&provider).set("narrow.max_retrieved_tools", "3").start();
        let path = format!("/gemini/v1beta/models/gemini-3-pro:{path}");
        let answer = sidecar.post(&path, &roster::ask_gemini(WEATHER).to_string());
        assert_eq!(answer.status, 200);
        assert!(!answer.text().contains("UNEXPECTED_TOOL_CALL"), "{path}: {}", answer.text());
        assert!(answer.text().contains("lock_door"));
        assert_eq!(provider.chats().len(), 2);

        // a function that the agent does not have: the reply is the provider's own
        let stranger = text.replace("lock_door", "open_sesame");
        let bytes = stranger.clone();
        let provider = Provider::new().answer(move |_| Reply::raw(kind, vec![bytes.clone().into_bytes()])).start();
        let sidecar = Sidecar::over(&provider).set("narrow.max_retrieved_tools", "3").start();
        let answer = sidecar.post(&path, &roster::ask_gemini(WEATHER).to_string());
        assert_eq!(answer.text(), stranger);
        assert_eq!(provider.chats().len(), 1);
    }
}

#[test]
fn gemini_without_the_memory_falls_back_to_the_documented_signature() {
    // The stash is lost and the agent kept no signature: the provider refuses once, the skip value passes.
    let provider = Provider::new().signatures().reply(Reply::text("Found.")).start();
    let sidecar = Sidecar::over(&provider).set("narrow.max_retrieved_tools", "3").start();
    let mut body = roster::ask_gemini(WEATHER);
    let call = json!({"functionCall": {"name": "get_weather", "args": {}, "id": "1"}});
    let result = json!({"functionResponse": {"name": "get_weather", "id": "1", "response": {"output": "rain"}}});
    let contents = body["contents"].as_array_mut().expect("contents");
    contents.extend([json!({"role": "model", "parts": [call]}), json!({"role": "user", "parts": [result]})]);
    let answer = sidecar.post("/gemini/v1beta/models/gemini-3-pro:generateContent", &body.to_string());
    assert_eq!((answer.status, answer.packlight("action")), (200, "narrowed".to_owned()), "{}", answer.text());
    let legs = provider.chats();
    assert!(legs[0].refused.as_ref().is_some_and(|why| why.contains("thought_signature")));
    assert!(legs[1].text().contains("skip_thought_signature_validator"));
    assert_eq!(legs.len(), 2);
}
