//! Calls of tools that are not declared, in the history that the provider gets:
//! written as calls of `call_tool`, ids as they were. NOT replies.

use serde_json::value::RawValue;

use crate::wire::dispatch::Dispatch;
use crate::wire::json::{self, Object};
use crate::wire::splice::Edits;
use crate::wire::view::{ChatView, MessageView};

/// Edits every such call of the agent's transcript.
pub(super) fn wrap(body: &str, view: &ChatView<'_>, dispatch: &Dispatch, edits: &mut Edits) {
    for message in &view.messages {
        if message.calls.iter().any(|call| dispatch.wraps(&call.name)) {
            wrap_calls(body, message, dispatch, edits);
        }
    }
}

/// `call_tool` as an entry of `tools`.
pub(super) fn declaration(dispatch: &Dispatch) -> String {
    let (name, description) = (json::quoted(&dispatch.name), json::quoted(&dispatch.description));
    format!(r#"{{"name":{name},"description":{description},"input_schema":{}}}"#, Dispatch::PARAMETERS)
}

fn wrap_calls(body: &str, message: &MessageView<'_>, dispatch: &Dispatch, edits: &mut Edits) {
    let content = body.get(message.span.clone()).and_then(Object::parse).and_then(|object| object.find("content"));
    for block in content.and_then(json::elements).unwrap_or_default() {
        let call = Object::of(block).filter(|block| block.text("type").as_deref() == Some("tool_use"));
        let Some(raw) = call.as_ref().and_then(|call| call.find("name")) else { continue };
        let Some(name) = json::string(raw).filter(|name| dispatch.wraps(name)) else { continue };
        let at = json::span(body, raw.get());
        let input = call.as_ref().and_then(|call| call.find("input"));
        let wrapped = Dispatch::wrapped(&name, input.map_or("{}", RawValue::get));
        edits.replace(at.clone(), json::quoted(&dispatch.name));
        match input {
            Some(raw) => edits.replace(json::span(body, raw.get()), wrapped),
            None => edits.insert(at.end, format!(r#","input":{wrapped}"#)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::anthropic::view::view;

    #[test]
    fn only_calls_of_what_is_not_declared_are_wrapped_and_nothing_else_moves() {
        let call = |name: &str, rest: &str| format!(r#"{{"type":"tool_use","id":"t_{name}", "name": "{name}"{rest}}}"#);
        let body = |lock: &str| {
            format!(
                r#"{{"messages":[{{"role":"user","content":"a"}},{{"role":"assistant","content":[{{"type":"text","text":"lock"}},{},{lock} ]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t_lock","content":"ok"}}]}}]}}"#,
                call("mail", r#","input":{}"#)
            )
        };
        let dispatch = Dispatch {
            name: "call_tool".into(),
            known: ["lock", "mail"].map(str::to_owned).into(),
            declared: ["mail".to_owned()].into(),
            ..Dispatch::default()
        };
        let wrapped = |own: String| {
            let mut edits = Edits::new();
            wrap(&own, &view(&own).expect("view"), &dispatch, &mut edits);
            edits.apply(&own)
        };
        for (own, inside) in [
            (r#","input":{"n": 1e16},"cache_control":{"type":"ephemeral"}"#, r#"{\"n\": 1e16}"#),
            (r#","input":{}"#, "{}"),
        ] {
            let expected = own.replace(
                own.split_once("\"input\":").map_or("", |(_, input)| input.split_inclusive('}').next().unwrap_or("")),
                &format!(r#"{{"name":"lock","arguments":"{inside}"}}"#),
            );
            let native = call("call_tool", &expected).replace("t_call_tool", "t_lock");
            assert_eq!(wrapped(body(&call("lock", own))), body(&native));
        }
    }
}
