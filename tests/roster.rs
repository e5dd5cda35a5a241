//! The demo's roster is one a provider accepts and one that retrieval can be judged on: schemas inside what Kimi and
//! Gemini both take, the size it claims, and a request in English and in Arabic for every tool that may be withheld.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

const ROSTER: &str = include_str!("../src/demo/roster.json");
const CATALOG: &str = include_str!("../src/demo/catalog.toml");

fn roster() -> Vec<Value> {
    serde_json::from_str(ROSTER).expect("roster.json is a JSON array")
}

fn name(tool: &Value) -> &str {
    tool["function"]["name"].as_str().expect("a tool has a name")
}

fn catalog() -> BTreeMap<String, toml::Table> {
    let file: toml::Table = CATALOG.parse().expect("catalog.toml is TOML");
    let tools = file["tool"].as_array().expect("[[tool]] entries");
    tools
        .iter()
        .map(|tool| {
            let tool = tool.as_table().expect("a table");
            (tool["name"].as_str().expect("a name").to_owned(), tool.clone())
        })
        .collect()
}

/// Walks a schema. `path` is for the message only.
fn check_schema(schema: &Value, path: &str) {
    let object = schema.as_object().unwrap_or_else(|| panic!("{path}: not an object"));
    for banned in ["$ref", "$defs", "anyOf", "oneOf", "allOf", "additionalProperties", "const", "not"] {
        assert!(!object.contains_key(banned), "{path}: {banned} is not understood everywhere");
    }
    let kind = object.get("type").and_then(Value::as_str).unwrap_or_else(|| panic!("{path}: no type"));
    match kind {
        "object" => {
            let properties = object["properties"].as_object().unwrap_or_else(|| panic!("{path}: no properties"));
            assert!(!properties.is_empty(), "{path}: Gemini refuses an object without properties");
            for (key, property) in properties {
                let path = format!("{path}.{key}");
                let description = property["description"].as_str().unwrap_or_default();
                assert!(!description.is_empty(), "{path}: no description");
                check_schema(property, &path);
            }
            for required in object.get("required").and_then(Value::as_array).into_iter().flatten() {
                let required = required.as_str().expect("required holds names");
                assert!(properties.contains_key(required), "{path}: required {required} is no property");
            }
        }
        "array" => check_schema(&object["items"], &format!("{path}[]")),
        "string" => {
            if let Some(values) = object.get("enum") {
                let values = values.as_array().expect("enum is an array");
                assert!(values.iter().all(|value| value.as_str().is_some_and(|text| !text.is_empty())), "{path}: enum");
            }
        }
        "integer" | "number" | "boolean" => assert!(!object.contains_key("enum"), "{path}: Gemini takes enums of text"),
        other => panic!("{path}: type {other}"),
    }
}

#[test]
fn forty_four_tools_of_forty_four_names() {
    let roster = roster();
    assert_eq!(roster.len(), 44);
    let names: BTreeSet<_> = roster.iter().map(name).collect();
    assert_eq!(names.len(), 44);
    for name in names {
        assert!((3..=64).contains(&name.len()), "{name}");
        assert!(name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'), "{name}");
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'), "{name}");
    }
}

#[test]
fn every_schema_is_one_that_kimi_and_gemini_take() {
    for tool in roster() {
        assert_eq!(tool["type"], "function");
        assert_eq!(tool["function"]["parameters"]["type"], "object", "{}", name(&tool));
        check_schema(&tool["function"]["parameters"], name(&tool));
    }
}

#[test]
fn schemas_differ_and_descriptions_say_when() {
    let mut schemas = BTreeSet::new();
    for tool in roster() {
        assert!(schemas.insert(tool["function"]["parameters"].to_string()), "{}: a schema twice", name(&tool));
        let description = tool["function"]["description"].as_str().unwrap_or_default();
        assert!(description.contains("Use it"), "{}: does not say when to use it", name(&tool));
        assert!((120..700).contains(&description.len()), "{}: {} bytes", name(&tool), description.len());
    }
}

#[test]
fn the_roster_weighs_what_it_claims() {
    let tokens = tiktoken_rs::o200k_base().expect("the table is built in").encode_ordinary(ROSTER).len();
    assert!((11_000..13_000).contains(&tokens), "{tokens} o200k tokens");
}

#[test]
fn the_catalog_knows_every_tool_and_a_small_core() {
    let (roster, catalog) = (roster(), catalog());
    let file: toml::Table = CATALOG.parse().expect("catalog.toml is TOML");
    let order: BTreeSet<_> =
        file["domain_order"].as_array().expect("a list").iter().filter_map(|d| d.as_str()).collect();
    assert_eq!(catalog.keys().map(String::as_str).collect::<BTreeSet<_>>(), roster.iter().map(name).collect());
    for (name, entry) in &catalog {
        assert!(order.contains(entry["category"].as_str().unwrap_or_default()), "{name}: category");
        assert!(entry["keywords"].as_array().is_some_and(|words| words.len() >= 3), "{name}: keywords");
        assert!(["safe", "write", "danger"].contains(&entry["tier"].as_str().unwrap_or_default()), "{name}: tier");
    }
    let core = catalog.values().filter(|entry| entry.get("always_on").is_some()).count();
    assert!((4..=6).contains(&core), "a core of {core}");
}
