//! A schema of Gemini's (OpenAPI 3.0's, in Google's JSON) as JSON Schema: types in
//! lower case, `nullable` as a type, numbers that came as text as numbers. What is
//! the same in both keeps its bytes. NOT the reverse: Gemini takes JSON Schema as it is.

use serde_json::value::RawValue;

use crate::wire::json::{Object, elements, quoted, string};

/// The schema as JSON Schema; what is no object stays what it is.
pub fn json_schema(schema: &str) -> String {
    match Object::parse(schema) {
        Some(object) => of(&object),
        None => schema.to_owned(),
    }
}

fn of(object: &Object<'_>) -> String {
    let nullable = object.is_true("nullable");
    let members = object.0.iter().filter_map(|(key, value)| {
        let key = spelt(key);
        let value = match key {
            "nullable" | "propertyOrdering" => return None,
            "type" => kind(value, nullable),
            "properties" | "$defs" | "defs" => each(value),
            "items" | "additionalProperties" => json_schema(value.get()),
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => list(value),
            "minItems" | "maxItems" | "minLength" | "maxLength" | "minProperties" | "maxProperties" => number(value),
            _ => value.get().to_owned(),
        };
        Some(format!("{}:{value}", quoted(key)))
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// Google's reader takes snake_case as well.
fn spelt(key: &str) -> &str {
    match key {
        "any_of" => "anyOf",
        "property_ordering" => "propertyOrdering",
        "min_items" => "minItems",
        "max_items" => "maxItems",
        "min_length" => "minLength",
        "max_length" => "maxLength",
        "min_properties" => "minProperties",
        "max_properties" => "maxProperties",
        "additional_properties" => "additionalProperties",
        "prefix_items" => "prefixItems",
        "ref" => "$ref",
        "defs" => "$defs",
        key => key,
    }
}

fn kind(value: &RawValue, nullable: bool) -> String {
    match string(value) {
        None => value.get().to_owned(),
        Some(word) if nullable => format!(r#"[{},"null"]"#, quoted(&word.to_ascii_lowercase())),
        Some(word) => quoted(&word.to_ascii_lowercase()),
    }
}

/// The members are names of the user's, a schema behind each.
fn each(value: &RawValue) -> String {
    let Some(object) = Object::of(value) else { return value.get().to_owned() };
    let members = object.0.iter().map(|(name, value)| format!("{}:{}", quoted(name), json_schema(value.get())));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

fn list(value: &RawValue) -> String {
    let Some(items) = elements(value) else { return value.get().to_owned() };
    let items = items.into_iter().map(|item| json_schema(item.get()));
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// A 64-bit integer is text in Google's JSON.
fn number(value: &RawValue) -> String {
    match string(value) {
        Some(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.into_owned(),
        _ => value.get().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_said_as_json_schema_says_them_and_names_stay() {
        let gemini = r#"{"type":"OBJECT","properties":{"type":{"type":"STRING","nullable":true,"enum":["OBJECT"]},
            "rows":{"type":"ARRAY","minItems":"1","items":{"any_of":[{"type":"INTEGER"},{"type":"NUMBER","maximum":1e16}]}}},
            "propertyOrdering":["rows","type"],"required":["type"]}"#;
        let json = r#"{"type":"object","properties":{"type":{"type":["string","null"],"enum":["OBJECT"]},"rows":{"type":"array","minItems":1,"items":{"anyOf":[{"type":"integer"},{"type":"number","maximum":1e16}]}}},"required":["type"]}"#;
        assert_eq!(json_schema(gemini), json);
        assert_eq!(json_schema(json), json, "JSON Schema stays what it is");
        assert_eq!(json_schema("true"), "true");
    }
}
