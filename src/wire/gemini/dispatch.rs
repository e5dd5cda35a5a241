//! Calls of functions that are not declared, in the history that the provider gets:
//! written as calls of `call_tool`, their answers renamed with them. NOT replies.

use crate::wire::dispatch::Dispatch;
use crate::wire::json::{self, Object};
use crate::wire::member;
use crate::wire::splice::Edits;
use crate::wire::view::ChatView;

/// Edits every such call and answer of the agent's contents.
pub(super) fn wrap(body: &str, view: &ChatView<'_>, dispatch: &Dispatch, edits: &mut Edits) {
    for message in &view.messages {
        let calls = message.calls.iter().any(|call| dispatch.wraps(&call.name));
        if !calls && !message.answers.iter().any(|answer| dispatch.wraps(&answer.name)) {
            continue;
        }
        let content = body.get(message.span.clone()).and_then(Object::parse);
        let parts = content.and_then(|content| content.find("parts")).and_then(json::elements).unwrap_or_default();
        for part in parts.into_iter().filter_map(Object::of) {
            if let Some(call) = part.either("functionCall", "function_call") {
                wrap_call(body, call.get(), dispatch, edits);
            }
            if let Some(answer) = part.either("functionResponse", "function_response").and_then(Object::of) {
                rename(body, &answer, dispatch, edits);
            }
        }
    }
}

/// `call_tool` as a declaration.
pub(super) fn declaration(dispatch: &Dispatch) -> String {
    let (name, description) = (json::quoted(&dispatch.name), json::quoted(&dispatch.description));
    let parameters = Dispatch::PARAMETERS.replace(r#""object""#, r#""OBJECT""#).replace(r#""string""#, r#""STRING""#);
    format!(r#"{{"name":{name},"description":{description},"parameters":{parameters}}}"#)
}

fn wrap_call(body: &str, text: &str, dispatch: &Dispatch, edits: &mut Edits) {
    let Some(call) = Object::parse(text) else { return };
    let Some(name) = rename(body, &call, dispatch, edits) else { return };
    match call.either("args", "args").filter(|raw| !json::is_null(raw)) {
        Some(own) => edits.replace(json::span(body, own.get()), Dispatch::wrapped(&name, own.get())),
        None => {
            if let Some((at, comma)) = member::end(text) {
                let args = format!(r#"{}"args":{}"#, if comma { "," } else { "" }, Dispatch::wrapped(&name, "{}"));
                edits.insert(json::span(body, text).start + at, args);
            }
        }
    }
}

/// Gives a call or an answer the name `call_tool`; its own, if it had to.
fn rename(body: &str, object: &Object<'_>, dispatch: &Dispatch, edits: &mut Edits) -> Option<String> {
    let raw = object.find("name")?;
    let name = json::string(raw).filter(|name| dispatch.wraps(name))?;
    edits.replace(json::span(body, raw.get()), json::quoted(&dispatch.name));
    Some(name.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::gemini::view::view;

    #[test]
    fn a_call_and_its_answer_are_renamed_together() {
        let body = r#"{"contents":[{"parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"id":"1","name":"lock","args":{"n":1e16}},"thoughtSignature":"s"},{"functionCall":{"name":"lock"}}]},{"parts":[{"functionResponse":{"id":"1","name":"lock","response":{"output":1.0}}}]}]}"#;
        let dispatch = Dispatch { name: "call_tool".into(), known: ["lock".to_owned()].into(), ..Dispatch::default() };
        let mut edits = Edits::new();
        wrap(body, &view(body, "/models/m:generateContent").expect("view"), &dispatch, &mut edits);
        let expected = body
            .replace(
                r#""name":"lock","args":{"n":1e16}"#,
                r#""name":"call_tool","args":{"name":"lock","arguments":"{\"n\":1e16}"}"#,
            )
            .replace(r#"{"name":"lock"}"#, r#"{"name":"call_tool","args":{"name":"lock","arguments":"{}"}}"#)
            .replace(r#""name":"lock","response""#, r#""name":"call_tool","response""#);
        assert_eq!(edits.apply(body), expected);
    }
}
