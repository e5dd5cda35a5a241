//! The tools of a file, in whatever form they are written: an array or an object
//! with `tools` of OpenAI, Gemini, Anthropic or MCP tools. NOT what they become.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::value::RawValue;

use super::ListingError;
use crate::wire::json::{Object, elements, is_null, string};

/// One function.
#[derive(Debug)]
pub struct Entry<'a> {
    pub form: Form,
    pub name: Cow<'a, str>,
    /// `""` where it has none.
    pub description: Cow<'a, str>,
    /// Its schema, in the dialect of its form.
    pub parameters: Option<&'a RawValue>,
    /// Its own bytes.
    pub text: &'a str,
}

/// Whose form it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `{"type":"function","function":{…}}`.
    OpenAi,
    /// With `input_schema`.
    Anthropic,
    /// A declaration of Gemini's with a schema of Gemini's.
    Gemini,
    /// One with a JSON Schema.
    GeminiJson,
    /// Flat, with a JSON Schema: MCP's, the Responses API's.
    Flat,
}

/// Every tool of a file, in order, the declarations of Gemini's `Tool` objects one by one; a tool that cannot be taken
/// as what is wrong with it.
pub fn entries(text: &str) -> Result<Vec<Result<Entry<'_>, ListingError>>, ListingError> {
    let root: &RawValue = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|error| ListingError::Json(error.to_string()))?;
    let listed = Object::of(root).and_then(|root| root.find("tools").or_else(|| root.find("result"))).unwrap_or(root);
    let listed = Object::of(listed).and_then(|result| result.find("tools")).unwrap_or(listed);
    let tools = match elements(listed) {
        Some(tools) => tools,
        None if declarations(listed).is_some() => vec![listed],
        None => return Err(ListingError::Shape),
    };
    let mut entries = Vec::new();
    for tool in tools {
        match declarations(tool) {
            Some(declarations) => {
                for declaration in declarations {
                    let at = entries.len() + 1;
                    entries.push(declared(declaration, at));
                }
            }
            None => {
                let at = entries.len() + 1;
                entries.push(entry(tool, at));
            }
        }
    }
    Ok(entries)
}

/// The declarations of one of Gemini's `Tool` objects.
fn declarations(raw: &RawValue) -> Option<Vec<&RawValue>> {
    Object::of(raw)?.either("functionDeclarations", "function_declarations").and_then(elements)
}

fn entry(raw: &RawValue, at: usize) -> Result<Entry<'_>, ListingError> {
    let object = Object::of(raw).ok_or(ListingError::NoFunction { at })?;
    let kind = object.text("type");
    let plain = object.find("type").is_none_or(is_null) || matches!(kind.as_deref(), Some("function" | "custom"));
    let function = object.find("function").and_then(Object::of);
    let named = object.find("name").is_some() || object.find("description").is_some();
    if !plain || (function.is_none() && !named && !object.0.is_empty()) {
        return Err(ListingError::NoFunction { at });
    }
    unique(&object, at)?;
    let (form, inner, schema) = match &function {
        Some(function) => {
            unique(function, at)?;
            (Form::OpenAi, function, ["parameters"].as_slice())
        }
        None if object.find("input_schema").is_some() => (Form::Anthropic, &object, ["input_schema"].as_slice()),
        None if kind.is_none() && object.find("parameters").is_some() => return declared(raw, at),
        None => (Form::Flat, &object, SCHEMAS.as_slice()),
    };
    made(form, inner, schema, raw, at)
}

/// Where a flat tool has its schema.
const SCHEMAS: [&str; 4] = ["parameters", "inputSchema", "parametersJsonSchema", "parameters_json_schema"];

fn declared(raw: &RawValue, at: usize) -> Result<Entry<'_>, ListingError> {
    let object = Object::of(raw).ok_or(ListingError::NoFunction { at })?;
    unique(&object, at)?;
    if object.find("parameters").is_some_and(|schema| !is_null(schema)) {
        return made(Form::Gemini, &object, &["parameters"], raw, at);
    }
    if object.find("parametersJsonSchema").is_some() && object.find("parameters_json_schema").is_some() {
        return Err(ListingError::Key { at, key: "parametersJsonSchema".to_owned() });
    }
    made(Form::GeminiJson, &object, &["parametersJsonSchema", "parameters_json_schema"], raw, at)
}

fn made<'a>(
    form: Form,
    object: &Object<'a>,
    schema: &[&'static str],
    raw: &'a RawValue,
    at: usize,
) -> Result<Entry<'a>, ListingError> {
    let name = object.text("name").filter(|name| !name.is_empty()).ok_or(ListingError::Nameless { at })?;
    if name.starts_with('$') {
        return Err(ListingError::NoFunction { at });
    }
    let given = |key: &'static str| Some((key, object.find(key).filter(|value| !is_null(value))?));
    let description = match given("description") {
        None => Cow::Borrowed(""),
        Some((key, value)) => string(value).ok_or(ListingError::Member { at, key })?,
    };
    let parameters = match schema.iter().find_map(|key| given(key)) {
        None => None,
        Some((_, value)) if value.get().starts_with('{') => Some(value),
        Some((key, _)) => return Err(ListingError::Member { at, key }),
    };
    Ok(Entry { form, name, description, parameters, text: raw.get() })
}

/// Which of two members of one name counts is the provider's secret.
fn unique(object: &Object<'_>, at: usize) -> Result<(), ListingError> {
    let mut seen = HashSet::new();
    match object.0.iter().find(|(key, _)| !seen.insert(key.as_ref())) {
        Some((key, _)) => Err(ListingError::Key { at, key: key.to_string() }),
        None => Ok(()),
    }
}
