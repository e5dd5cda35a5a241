//! Replies in one document.

use crate::*;

const WHOLE_SEARCH: &str = r#"{"id":"a","object":"chat.completion","created":1,"model":"m-a","choices":[{"index":0,"message":{"role":"assistant","content":"Let me look. ","reasoning_content":"Hm","tool_calls":[{"id":"find_tools:0","type":"function","function":{"name":"find_tools","arguments":"{\"query\":\"mail\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"total_tokens":12}}"#;
const WHOLE_CALL: &str = r#"{ "id":"b", "created":2,"model":"m-b","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"send:1","type":"function","function":{"name":"send","arguments":"{\"n\": 1.0}"}, "x": 9007199254740993001}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":20,"total_tokens":25}}"#;

#[test]
fn one_document_is_verbatim_when_nothing_was_hidden() {
    for body in [WHOLE_CALL, "not json", r#"[{"error":{"code":400}}]"#, "", r#"{"error":{"message":"x"}}"#] {
        assert_eq!(assemble(Framing::Whole, &[body], false, 9).out, body);
    }
    assert!(assemble(Framing::Whole, &[r#"{"error":{"message":"x"}}"#], false, 9).legs[0].failed);
}

#[test]
fn one_document_of_two_legs_reads_as_one() {
    let reply = assemble(Framing::Whole, &[WHOLE_SEARCH, WHOLE_CALL], false, 9);
    let body: Value = serde_json::from_str(&reply.out).expect("JSON");
    assert_eq!(
        (body["id"].as_str(), body["model"].as_str(), body["created"].as_u64()),
        (Some("a"), Some("m-a"), Some(1))
    );
    let message = &body["choices"][0]["message"];
    assert_eq!(message["content"], "Let me look. ");
    assert_eq!(message["reasoning_content"], "Hm");
    assert_eq!(body["usage"]["prompt_tokens"], 30);
    assert!(reply.out.contains(r#"{"id":"send:1","type":"function","function":{"name":"send","arguments":"{\"n\": 1.0}"}, "x": 9007199254740993001}"#));
    assert!(!reply.out.contains("find_tools"));
    let held = assemble(Framing::Whole, &[WHOLE_SEARCH, WHOLE_CALL], true, 9);
    assert!(!held.out.contains("Let me look") && held.text.is_empty());
}

#[test]
fn one_document_with_mixed_calls_loses_only_ours_and_keeps_the_signature() {
    let body = r#"{"id":"a","choices":[{"message":{"role":"assistant","tool_calls":[{"id":"1","extra_content":{"google":{"thought_signature":"s"}},"function":{"name":"find_tools","arguments":"{}"}},{"id":"2","function":{"name":"send","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
    let reply = assemble(Framing::Whole, &[body], false, 9);
    let written: Value = serde_json::from_str(&reply.out).expect("JSON");
    let calls = written["choices"][0]["message"]["tool_calls"].as_array().expect("calls").clone();
    assert_eq!(calls.len(), 1);
    assert_eq!(
        (&calls[0]["id"], &calls[0]["extra_content"]["google"]["thought_signature"]),
        (&Value::from("2"), &Value::from("s"))
    );
    assert!(reply.exchanges[0].mixed);
    let alone = assemble(Framing::Whole, &[WHOLE_SEARCH], false, 9);
    let alone: Value = serde_json::from_str(&alone.out).expect("JSON");
    assert_eq!(alone["choices"][0]["finish_reason"], "stop");
    assert!(alone["choices"][0]["message"]["tool_calls"].is_null());
}
