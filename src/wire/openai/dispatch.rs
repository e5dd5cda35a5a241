//! Calls of tools that are not declared, in the history that the provider gets:
//! written as calls of `call_tool`, ids as they were. NOT replies.

use crate::wire::dispatch::Dispatch;
use crate::wire::json::{self, Object};
use crate::wire::splice::Edits;
use crate::wire::text;
use crate::wire::view::{ChatView, MessageView};

/// Edits every such call of the agent's transcript.
pub fn wrap(body: &str, view: &ChatView<'_>, dispatch: &Dispatch, edits: &mut Edits) {
    for message in &view.messages {
        if message.calls.iter().any(|call| dispatch.wraps(&call.name)) {
            wrap_calls(body, message, dispatch, edits);
        }
    }
}

/// `call_tool` as an entry of `tools`.
pub fn declaration(dispatch: &Dispatch) -> String {
    let (name, description) = (json::quoted(&dispatch.name), json::quoted(&dispatch.description));
    let parameters = Dispatch::PARAMETERS;
    format!(
        r#"{{"type":"function","function":{{"name":{name},"description":{description},"parameters":{parameters}}}}}"#
    )
}

fn wrap_calls(body: &str, message: &MessageView<'_>, dispatch: &Dispatch, edits: &mut Edits) {
    let calls = body.get(message.span.clone()).and_then(Object::parse).and_then(|object| object.find("tool_calls"));
    for call in calls.and_then(json::elements).unwrap_or_default() {
        let Some(function) = Object::of(call).and_then(|call| call.find("function")).and_then(Object::of) else {
            continue;
        };
        let Some(raw) = function.find("name") else { continue };
        let Some(name) = json::string(raw).filter(|name| dispatch.wraps(name)) else { continue };
        let at = json::span(body, raw.get());
        let arguments = function.find("arguments");
        let own = arguments.map(|raw| text::of(raw).unwrap_or(raw.get().into())).unwrap_or_default();
        let wrapped = json::quoted(&Dispatch::wrapped(&name, &own));
        edits.replace(at.clone(), json::quoted(&dispatch.name));
        match arguments {
            Some(raw) => edits.replace(json::span(body, raw.get()), wrapped),
            None => edits.insert(at.end, format!(r#","arguments":{wrapped}"#)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::openai::view::view;

    #[test]
    fn only_calls_of_what_is_not_declared_are_wrapped_and_nothing_else_moves() {
        let call = |name: &str, arguments: &str| {
            format!(
                r#"{{"id":"{name}:0","type":"function", "function":{{"name":"{name}" ,"arguments":{arguments}}}, "x":1.0}}"#
            )
        };
        let body = |lock: &str| {
            format!(
                r#"{{"messages":[{{"role":"user","content":"a"}},{{"role":"assistant","tool_calls":[{},{lock}]}},{{"role":"tool","tool_call_id":"lock:0","content":"ok"}}]}}"#,
                call("mail", r#""{}""#)
            )
        };
        let dispatch = Dispatch {
            name: "call_tool".into(),
            known: ["lock", "mail"].map(str::to_owned).into(),
            declared: ["mail".to_owned()].into(),
            ..Dispatch::default()
        };
        let own = body(&call("lock", r#""{\"n\": 1e16}""#));
        let mut edits = Edits::new();
        wrap(&own, &view(&own).expect("view"), &dispatch, &mut edits);
        let wrapped = call("lock", r#""{\"name\":\"lock\",\"arguments\":\"{\\\"n\\\": 1e16}\"}""#);
        assert_eq!(edits.apply(&own), body(&wrapped.replace(r#""name":"lock" "#, r#""name":"call_tool" "#)));
    }
}
