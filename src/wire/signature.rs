//! The documented last resort when Gemini 3 misses thought signatures: calls that it
//! did not sign carry a fixed value instead. Needed after a step whose signed call was
//! the hidden one, when its memory is lost. NOT the usual way: a remembered exchange
//! is put back with its own signature.

use serde_json::value::RawValue;

use super::Format;
use super::json::{Object, elements, span};
use super::splice::Edits;

/// Tells the validator to pass a call over; documented for calls that the API did not sign.
const SKIP: &str = "skip_thought_signature_validator";

/// Is this the complaint of a provider that misses signatures? `error`: the body of its 400.
pub fn is_missed(error: &[u8]) -> bool {
    let error = String::from_utf8_lossy(error).to_lowercase();
    error.contains("thought") && error.contains("signature")
}

/// `body` with the skip value on the first call of each step of the current turn that has no signature; `None`: all
/// have one.
pub fn skipped(format: Format, body: &str) -> Option<String> {
    let request = Object::parse(body)?;
    let mut edits = Edits::new();
    match format {
        Format::Gemini => native(body, &elements(request.find("contents")?)?, &mut edits),
        // Its signatures stand on thinking, not on calls.
        Format::Anthropic => {}
        Format::OpenAi => compatible(body, &elements(request.find("messages")?)?, &mut edits),
    }
    (!edits.is_empty()).then(|| edits.apply(body))
}

/// Gemini's own contents: a step is a run of model contents, the turn begins at the last user content that is more
/// than answers.
fn native(body: &str, contents: &[&RawValue], edits: &mut Edits) {
    let contents: Vec<(bool, Vec<Object<'_>>, Vec<&RawValue>)> = contents
        .iter()
        .filter_map(|raw| {
            let content = Object::of(raw)?;
            let raw = content.find("parts").and_then(elements).unwrap_or_default();
            let is_model = content.text("role").as_deref() == Some("model");
            Some((is_model, raw.iter().filter_map(|part| Object::of(part)).collect(), raw))
        })
        .collect();
    let asks = |(is_model, parts, _): &(bool, Vec<Object<'_>>, Vec<&RawValue>)| {
        !is_model && parts.iter().any(|part| part.either("functionResponse", "function_response").is_none())
    };
    let turn = contents.iter().rposition(asks).unwrap_or_default();
    let mut begun = false;
    for (is_model, parts, raw) in contents.iter().skip(turn) {
        if !is_model {
            begun = false;
            continue;
        }
        for (part, raw) in parts.iter().zip(raw) {
            if begun || part.either("functionCall", "function_call").is_none() {
                continue;
            }
            begun = true;
            if part.either("thoughtSignature", "thought_signature").is_none() {
                edits.insert(span(body, raw.get()).start + 1, format!(r#""thoughtSignature":"{SKIP}","#));
            }
        }
    }
}

/// Gemini behind the OpenAI shape: the signature stands in a call's `extra_content`.
fn compatible(body: &str, messages: &[&RawValue], edits: &mut Edits) {
    let messages: Vec<Object<'_>> = messages.iter().filter_map(|raw| Object::of(raw)).collect();
    let turn = messages.iter().rposition(|message| message.text("role").as_deref() == Some("user")).unwrap_or_default();
    for message in messages.iter().skip(turn) {
        let Some(calls) = message.find("tool_calls").and_then(elements) else { continue };
        let Some((first, raw)) = calls.first().and_then(|raw| Some((Object::of(raw)?, raw))) else { continue };
        if first.find("extra_content").is_none() {
            let value = format!(r#""extra_content":{{"google":{{"thought_signature":"{SKIP}"}}}},"#);
            edits.insert(span(body, raw.get()).start + 1, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_unsigned_call_of_each_step_of_the_current_turn_is_marked() {
        let body = r#"{"contents":[{"role":"user","parts":[{"text":"a"}]},
{"role":"model","parts":[{"functionCall":{"name":"old","args":{}}}]},
{"role":"user","parts":[{"functionResponse":{"name":"old","response":{}}}]},
{"role":"user","parts":[{"text":"b"}]},
{"role":"model","parts":[{"text":"x"},{"functionCall":{"name":"f","args":{"n":1e16}}},{"functionCall":{"name":"g","args":{}}}]},
{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}},{"functionResponse":{"name":"g","response":{}}}]},
{"role":"model","parts":[{"functionCall":{"name":"h","args":{}},"thought_signature":"s"}]}]}"#;
        let marked = skipped(Format::Gemini, body).expect("one is unsigned");
        let expected = body.replace(
            r#"{"functionCall":{"name":"f""#,
            r#"{"thoughtSignature":"skip_thought_signature_validator","functionCall":{"name":"f""#,
        );
        assert_eq!(marked, expected);
        assert_eq!(skipped(Format::Gemini, &marked), None);
    }

    #[test]
    fn the_openai_shape_carries_it_in_the_call() {
        let body =
            r#"{"messages":[{"role":"user","content":"b"},{"role":"assistant","tool_calls":[{"id":"1"},{"id":"2"}]}]}"#;
        let marked = skipped(Format::OpenAi, body).expect("unsigned");
        assert!(marked.contains(r#"[{"extra_content":{"google":{"thought_signature":"skip_thought_signature_validator"}},"id":"1"},{"id":"2"}]"#));
    }

    #[test]
    fn the_complaint_is_known_by_its_words() {
        assert!(is_missed(br#"{"error":{"message":"Function call is missing a thought_signature"}}"#));
        assert!(!is_missed(br#"{"error":{"message":"bad schema"}}"#));
    }
}
