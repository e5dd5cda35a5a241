//! A tool of a list in the form of a wire: its own bytes where that is its form,
//! else its name, its description and its schema under that wire's keys. NOT which
//! tools a request gets.

use std::borrow::Cow;

use super::entry::{Entry, Form};
use crate::wire::Format;
use crate::wire::gemini::schema;
use crate::wire::json::{Object, quoted};

/// The entry as this wire declares it. The same bytes for the same entry.
pub(super) fn written(entry: &Entry<'_>, format: Format) -> String {
    match (format, entry.form) {
        (Format::OpenAi, Form::OpenAi)
        | (Format::Anthropic, Form::Anthropic)
        | (Format::Gemini, Form::Gemini | Form::GeminiJson) => entry.text.to_owned(),
        (Format::OpenAi, _) => {
            let schema = json_schema(entry);
            let function = members(entry, schema.as_deref().map(|schema| ("parameters", schema)));
            format!(r#"{{"type":"function","function":{function}}}"#)
        }
        // It must stand there, with its type.
        (Format::Anthropic, _) => {
            let schema = json_schema(entry).unwrap_or(Cow::Borrowed(r#"{"type":"object","properties":{}}"#));
            members(entry, Some(("input_schema", &schema)))
        }
        // A function without arguments has no schema: Gemini refuses an object without properties.
        (Format::Gemini, _) => {
            let schema = json_schema(entry).filter(|schema| takes_something(schema));
            members(entry, schema.as_deref().map(|schema| ("parametersJsonSchema", schema)))
        }
    }
}

/// A request of that wire with these tools and nothing else.
pub(super) fn request(format: Format, tools: &[String]) -> String {
    let tools = tools.join(",");
    match format {
        Format::OpenAi | Format::Anthropic => format!(r#"{{"messages":[],"tools":[{tools}]}}"#),
        Format::Gemini => format!(r#"{{"tools":[{{"functionDeclarations":[{tools}]}}]}}"#),
    }
}

fn members(entry: &Entry<'_>, schema: Option<(&str, &str)>) -> String {
    let mut text = format!(r#"{{"name":{}"#, quoted(&entry.name));
    if !entry.description.is_empty() {
        text.push_str(&format!(r#","description":{}"#, quoted(&entry.description)));
    }
    if let Some((key, schema)) = schema {
        text.push_str(&format!(r#","{key}":{schema}"#));
    }
    text + "}"
}

fn json_schema<'a>(entry: &Entry<'a>) -> Option<Cow<'a, str>> {
    let schema = entry.parameters?.get();
    Some(if entry.form == Form::Gemini { Cow::Owned(schema::json_schema(schema)) } else { Cow::Borrowed(schema) })
}

fn takes_something(schema: &str) -> bool {
    let Some(object) = Object::parse(schema) else { return false };
    object.0.iter().any(|(key, value)| match &**key {
        "properties" => Object::of(value).is_some_and(|properties| !properties.0.is_empty()),
        "$ref" | "anyOf" | "oneOf" | "allOf" | "patternProperties" => true,
        "additionalProperties" => value.get() != "false",
        _ => false,
    })
}
