//! Reads a `generateContent` request: spans of the body, no copies.
//! NOT what is done with it.
//!
//! Google's JSON reader takes camelCase and snake_case, also mixed in one body, `null` for "absent", and one object
//! where a list is due; what it takes, this takes. Both spellings of one key are one key that stands twice.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::wire::WireError;
use crate::wire::document;
use crate::wire::gemini::nest::{self, Entry, Item, List, listed};
use crate::wire::json::{Object, is_null, span, string};
use crate::wire::known::{Known, Recall};
use crate::wire::verdict;
use crate::wire::view::{
    AnswerView, CallView, ChatView, Choice, Group, Layout, MessageView, Role, ToolKind, ToolView, Traits,
};

/// Reads a request. `path`: `…/models/{model}:{method}`, with or without a query.
///
/// # Errors
/// The body is no JSON object, a key that is read stands twice, or a part is not of the format's shape.
pub fn read<'a>(body: &'a str, path: &'a str, recall: &Recall<'_>) -> Result<ChatView<'a>, WireError> {
    let (object, known) = members(body, recall).ok_or(WireError::Json)?;
    let (model, method) = route(path);
    let mut layout = Layout::default();
    let mut traits =
        Traits { cached_content: one(&object, "cachedContent", "cached_content")?.is_some(), ..Traits::default() };
    if let Some(config) = one(&object, "generationConfig", "generation_config")? {
        generation(body, config, &mut traits, &mut layout)?;
    }
    let given = object.find("tools").is_some();
    let tools = match (known.as_slice(), one(&object, "tools", "tools")?) {
        ([], Some(value)) => tools(body, value, &mut layout)?,
        ([], None) => Vec::new(),
        ([(known, at)], _) if !given => known.read(body, *at, &mut layout),
        _ => return Err(WireError::Duplicate("tools")),
    };
    let messages = match one(&object, "contents", "contents")? {
        Some(value) => {
            layout.messages = span(body, value.get());
            let contents = value.get().starts_with('[').then(|| nest::read(body, value)).flatten();
            let contents = contents.ok_or(WireError::Shape("contents"))?;
            contents.into_iter().map(message).collect::<Result<_, _>>()?
        }
        None => Vec::new(),
    };
    let choice = match one(&object, "toolConfig", "tool_config")? {
        Some(config) => choice(config, &mut traits)?,
        None => Choice::Auto,
    };
    let system = one(&object, "systemInstruction", "system_instruction")?;
    Ok(ChatView {
        model: Cow::Borrowed(model),
        stream: method == "streamGenerateContent",
        tools,
        system: system.map(RawValue::get).into_iter().collect(),
        messages,
        choice,
        traits,
        layout,
    })
}

/// The members of the document, and those values of `tools` that are known.
type Members<'a> = (Object<'a>, Vec<(Arc<Known>, usize)>);

fn members<'a>(body: &'a str, recall: &Recall<'_>) -> Option<Members<'a>> {
    let (mut members, mut known) = (Vec::new(), Vec::new());
    document::walk(body, |key, walk| {
        match if key == "tools" { walk.recalled(recall) } else { None } {
            Some(found) => known.push(found),
            None => members.push((key, walk.value()?)),
        }
        Some(())
    })?;
    Some((Object(members), known))
}

/// Model and method of a path.
fn route(path: &str) -> (&str, &str) {
    let path = path.split('?').next().unwrap_or_default();
    let action = path.rsplit('/').next().unwrap_or_default();
    action.rsplit_once(':').unwrap_or((action, ""))
}

fn generation(body: &str, raw: &RawValue, traits: &mut Traits, layout: &mut Layout) -> Result<(), WireError> {
    let config = Object::of(raw).ok_or(WireError::Shape("generationConfig"))?;
    let candidates = one(&config, "candidateCount", "candidate_count")?;
    traits.several_choices = candidates.and_then(number).is_some_and(|n| n > 1);
    let mime = one(&config, "responseMimeType", "response_mime_type")?.and_then(string);
    traits.structured = mime.is_some_and(|mime| !mime.is_empty() && mime != "text/plain")
        || one(&config, "responseSchema", "response_schema")?.is_some()
        || one(&config, "responseJsonSchema", "response_json_schema")?.is_some();
    if let Some(cap) = one(&config, "maxOutputTokens", "max_output_tokens")? {
        layout.max_tokens = number(cap).map(|n| (span(body, cap.get()), n));
    }
    Ok(())
}

fn tools<'a>(body: &'a str, value: &'a RawValue, layout: &mut Layout) -> Result<Vec<ToolView<'a>>, WireError> {
    layout.tools = span(body, value.get());
    let entries = nest::read(body, value).ok_or(WireError::Shape("tools"))?;
    let mut tools = Vec::new();
    for (index, entry) in entries.into_iter().enumerate() {
        let mixed = entry.members.0.iter().any(|(_, value)| !is_null(value));
        let list = only_list(entry.lists, "functionDeclarations")?;
        let mut group = Group { span: entry.span.clone(), declarations: 0..0, mixed };
        if list.items.is_empty() {
            tools.push(ToolView {
                kind: ToolKind::Fixed,
                name: Cow::Borrowed(""),
                description: Cow::Borrowed(""),
                parameters: None,
                text: Cow::Borrowed(body.get(entry.span).unwrap_or_default()),
                group: index,
            });
        } else {
            group.declarations = list.span;
        }
        for declaration in list.items {
            tools.push(function(body, declaration, index)?);
        }
        layout.groups.push(group);
    }
    Ok(tools)
}

fn only_list<'a>(lists: Vec<List<'a>>, name: &'static str) -> Result<List<'a>, WireError> {
    match lists.len() {
        0 | 1 => Ok(lists.into_iter().next().unwrap_or_default()),
        _ => Err(WireError::Duplicate(name)),
    }
}

fn function<'a>(body: &'a str, declaration: Item<'a>, group: usize) -> Result<ToolView<'a>, WireError> {
    let Item { object, span } = declaration;
    let name = one(&object, "name", "name")?.and_then(string).ok_or(WireError::Shape("functionDeclarations"))?;
    let description = one(&object, "description", "description")?.and_then(string).unwrap_or_default();
    let parameters = match one(&object, "parameters", "parameters")? {
        Some(schema) => Some(schema),
        None => one(&object, "parametersJsonSchema", "parameters_json_schema")?,
    };
    let parameters = parameters.map(|schema| Cow::Borrowed(schema.get()));
    let text = Cow::Borrowed(body.get(span).unwrap_or_default());
    Ok(ToolView { kind: ToolKind::Function, name, description, parameters, text, group })
}

fn choice<'a>(raw: &'a RawValue, traits: &mut Traits) -> Result<Choice<'a>, WireError> {
    let config = Object::of(raw).ok_or(WireError::Shape("toolConfig"))?;
    let Some(calling) = one(&config, "functionCallingConfig", "function_calling_config")? else {
        return Ok(Choice::Auto);
    };
    let calling = Object::of(calling).ok_or(WireError::Shape("functionCallingConfig"))?;
    // Calls would come in pieces (`partialArgs`), and a piece does not say whose it is.
    let streamed = one(&calling, "streamFunctionCallArguments", "stream_function_call_arguments")?;
    traits.partial = streamed.is_some_and(|raw| raw.get() == "true");
    let mode = one(&calling, "mode", "mode")?.and_then(string).unwrap_or_default();
    if mode.eq_ignore_ascii_case("NONE") {
        return Ok(Choice::None);
    }
    let allowed = one(&calling, "allowedFunctionNames", "allowed_function_names")?;
    let allowed: Vec<_> = allowed.map(listed).unwrap_or_default().into_iter().filter_map(string).collect();
    Ok(match allowed.is_empty() {
        false => Choice::Only(allowed),
        true if mode.eq_ignore_ascii_case("ANY") => Choice::Required,
        true => Choice::Auto,
    })
}

fn message(content: Entry<'_>) -> Result<MessageView<'_>, WireError> {
    let said_by = one(&content.members, "role", "role")?.and_then(string).unwrap_or_default();
    let mut message =
        MessageView { role: Role::User, texts: vec![], calls: vec![], answers: vec![], span: content.span };
    let parts = only_list(content.lists, "parts")?.items;
    let count = parts.len();
    for Item { object: part, .. } in parts {
        let text = one(&part, "text", "text")?.and_then(string);
        message.texts.extend(text.filter(|_| !part.is_true("thought")));
        if let Some(call) = one(&part, "functionCall", "function_call")? {
            let call = Object::of(call).ok_or(WireError::Shape("functionCall"))?;
            message.calls.push(CallView {
                id: call.text("id").unwrap_or_default(),
                name: one(&call, "name", "name")?.and_then(string).unwrap_or_default(),
                arguments: Cow::Borrowed(one(&call, "args", "args")?.map_or("{}", RawValue::get)),
            });
        }
        if let Some(answer) = one(&part, "functionResponse", "function_response")? {
            let answer = Object::of(answer).ok_or(WireError::Shape("functionResponse"))?;
            message.answers.push(AnswerView {
                id: answer.text("id").unwrap_or_default(),
                name: one(&answer, "name", "name")?.and_then(string).unwrap_or_default(),
                failed: answer.find("response").and_then(Object::of).is_some_and(|said| verdict::object_fails(&said)),
            });
        }
    }
    message.role = match said_by.to_ascii_lowercase().as_str() {
        "model" => Role::Assistant,
        "system" => Role::System,
        _ if count > 0 && message.answers.len() == count => Role::Tool,
        _ => Role::User,
    };
    Ok(message)
}

/// The one member of either spelling; `null` is absent, as in Google's reader.
fn one<'a>(object: &Object<'a>, camel: &'static str, snake: &'static str) -> Result<Option<&'a RawValue>, WireError> {
    let found = object.only(camel, snake).map_err(|_| WireError::Duplicate(camel))?;
    Ok(found.filter(|raw| !is_null(raw)))
}

/// A count, also as the string that Google's reader takes for one.
fn number(raw: &RawValue) -> Option<u64> {
    raw.get().trim_matches('"').parse().ok()
}

/// Reads a request of which nothing is known.
#[cfg(test)]
pub fn view<'a>(body: &'a str, path: &'a str) -> Result<ChatView<'a>, WireError> {
    read(body, path, &crate::wire::known::nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/v1beta/models/gemini-3-pro:generateContent";

    fn read(body: &str) -> ChatView<'_> {
        view(body, PATH).expect("a request")
    }

    #[test]
    fn model_and_method_come_from_the_path() {
        let seen = view("{}", "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse").expect("a request");
        assert_eq!((seen.model.as_ref(), seen.stream), ("gemini-3-pro", true));
        let seen = view("{}", "/v1/projects/p/locations/l/publishers/google/models/g-2.5:generateContent").expect("ok");
        assert_eq!((seen.model.as_ref(), seen.stream), ("g-2.5", false));
    }

    #[test]
    fn declarations_are_flattened_and_other_tools_are_fixed() {
        let body = r#"{"tools":[{"functionDeclarations":[{"name":"a","description":"A"},{"name":"b","parameters":{"type":"OBJECT"}}]},
            {"googleSearch":{}}, {"function_declarations":[{"name":"c","parametersJsonSchema":{"type":"object"}}],"code_execution":{}}]}"#;
        let seen = read(body);
        let names: Vec<_> = seen.tools.iter().map(|t| (t.name.as_ref(), t.group, t.kind)).collect();
        assert_eq!(
            names,
            [
                ("a", 0, ToolKind::Function),
                ("b", 0, ToolKind::Function),
                ("", 1, ToolKind::Fixed),
                ("c", 2, ToolKind::Function)
            ]
        );
        assert_eq!(seen.tools[0].text, r#"{"name":"a","description":"A"}"#);
        assert_eq!(seen.tools[2].text, r#"{"googleSearch":{}}"#);
        assert_eq!(seen.tools[1].parameters.as_deref(), Some(r#"{"type":"OBJECT"}"#));
        assert_eq!(seen.tools[3].parameters.as_deref(), Some(r#"{"type":"object"}"#));
        let mixed: Vec<_> = seen.layout.groups.iter().map(|g| (g.mixed, g.declarations.is_empty())).collect();
        assert_eq!(mixed, [(false, false), (true, true), (true, false)]);
        assert!(body[seen.layout.tools.clone()].starts_with("[{\"functionDeclarations\""));
    }

    #[test]
    fn one_tool_object_in_place_of_the_list_is_read() {
        let seen = read(r#"{"tools":{"functionDeclarations":[{"name":"a"}]}}"#);
        assert_eq!((seen.tools.len(), seen.layout.groups.len()), (1, 1));
    }

    #[test]
    fn both_spellings_of_one_key_are_a_key_that_stands_twice() {
        let twice = [
            r#"{"contents":[],"contents":[]}"#,
            r#"{"toolConfig":{},"tool_config":{}}"#,
            r#"{"tools":[{"functionDeclarations":[],"function_declarations":[]}]}"#,
            r#"{"tools":[],"to\u006fls":[]}"#,
            r#"{"contents":[{"parts":[{"functionCall":{"name":"a"},"function_call":{"name":"a"}}]}]}"#,
        ];
        for body in twice {
            assert!(matches!(view(body, PATH), Err(WireError::Duplicate(_))), "{body}");
        }
    }

    #[test]
    fn bodies_that_are_not_the_format_are_refused() {
        for body in ["", "[]", "{} x", r#"{"contents":{"parts":[]}}"#, r#"{"tools":[{"functionDeclarations":[1]}]}"#] {
            assert!(view(body, PATH).is_err(), "{body}");
        }
    }

    #[test]
    fn roles_texts_calls_and_answers() {
        let body = r#"{"system_instruction":{"parts":[{"text":"sys"}]},"contents":[
            {"parts":[{"text":"hi"},{"inlineData":{"data":""}}]},
            {"role":"model","parts":[{"text":"hm","thought":true},{"text":"ok"},{"functionCall":{"name":"f","args":{"n":9007199254740993001}},"thoughtSignature":"s"}]},
            {"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{}}}]},
            {"role":"function","parts":[{"function_response":{"name":"f","response":{}}}]},
            {"role":"USER","parts":{"text":"one"}},
            {"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}},{"text":"and this"}]}]}"#;
        let seen = read(body);
        let roles: Vec<_> = seen.messages.iter().map(|m| m.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::User, Role::User]);
        assert_eq!(seen.messages[1].texts, ["ok"]);
        assert_eq!(seen.messages[1].calls[0].arguments, r#"{"n":9007199254740993001}"#);
        assert_eq!((seen.messages[2].answers[0].id.as_ref(), seen.messages[3].answers[0].id.as_ref()), ("1", ""));
        assert_eq!(seen.messages[4].texts, ["one"]);
        assert_eq!(seen.system, [r#"{"parts":[{"text":"sys"}]}"#]);
    }

    #[test]
    fn choice_and_traits() {
        let calling = |config: &str| {
            let body = format!(r#"{{"tool_config":{{"functionCallingConfig":{config}}}}}"#);
            match read(&body).choice {
                Choice::Auto => "auto".to_owned(),
                Choice::None => "none".to_owned(),
                Choice::Required => "required".to_owned(),
                Choice::Only(names) => names.join(","),
            }
        };
        assert_eq!(calling(r#"{"mode":"AUTO"}"#), "auto");
        assert_eq!(calling(r#"{"mode":"VALIDATED"}"#), "auto");
        assert_eq!(calling(r#"{"mode":"NONE","allowedFunctionNames":["a"]}"#), "none");
        assert_eq!(calling(r#"{"mode":"ANY","allowed_function_names":[]}"#), "required");
        assert_eq!(calling(r#"{"mode":"ANY","allowedFunctionNames":["a","b"]}"#), "a,b");

        let body = r#"{"cached_content":"cachedContents/x","generationConfig":{"candidate_count":2,"responseMimeType":"application/json","maxOutputTokens": 512}}"#;
        let seen = read(body);
        assert!(seen.traits.cached_content && seen.traits.several_choices && seen.traits.structured);
        let (at, cap) = seen.layout.max_tokens.expect("a cap");
        assert_eq!((&body[at], cap), ("512", 512));
        let streamed = r#"{"toolConfig":{"functionCallingConfig":{"streamFunctionCallArguments":true}}}"#;
        assert!(read(streamed).traits.partial);
        let plain = r#"{"cachedContent":null,"generationConfig":{"candidateCount":1,"responseMimeType":"text/plain"}}"#;
        assert_eq!(read(plain).traits, Traits::default());
    }
}
