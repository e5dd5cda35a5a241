//! The demo's roster is one a provider accepts and one that retrieval can be judged on: schemas inside what Kimi and
//! Gemini both take, the size it claims, and requests in five languages for every tool that may be withheld.

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

/// The languages of the cases. Every request stands in each of them: the figures of two languages are of the same asks.
const LANGUAGES: [&str; 5] = ["en", "ar", "tr", "fa", "zh"];

/// The cases of the 44 tools, of the dialogues over them, and of the connectors beside them.
const CASES: [&str; 3] =
    [include_str!("eval/cases.jsonl"), include_str!("eval/dialogue.jsonl"), include_str!("eval/connectors.jsonl")];

fn cases(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|problem| panic!("{problem}: {line}"))).collect()
}

fn expected(case: &Value) -> impl Iterator<Item = &str> {
    case["expect"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn text<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().unwrap_or_else(|| panic!("{case}: no {key}"))
}

#[test]
fn every_tool_that_may_be_withheld_has_two_requests_in_every_language() {
    let (roster, catalog, cases) = (roster(), catalog(), cases(CASES[0]));
    let is_core = |name: &str| catalog.get(name).is_some_and(|entry| entry.contains_key("always_on"));
    for lang in LANGUAGES {
        let of_lang = cases.iter().filter(|case| case["lang"] == lang);
        let mut asked: BTreeMap<&str, usize> = BTreeMap::new();
        for name in of_lang.flat_map(expected) {
            *asked.entry(name).or_default() += 1;
        }
        for name in roster.iter().map(name).filter(|name| !is_core(name)) {
            assert!(asked.get(name).is_some_and(|times| *times >= 2), "{lang}: {name}: {:?}", asked.get(name));
        }
        // the core is bound whatever is asked: a case for it would pass without any choosing
        assert!(!asked.keys().any(|name| is_core(name)), "{lang}: a request that expects the core proves nothing");
    }
}

#[test]
fn every_connector_tool_has_a_request_in_every_language() {
    let tools: Vec<Value> = serde_json::from_str(include_str!("eval/connectors.json")).expect("an array");
    let overlay: toml::Table = include_str!("eval/connectors.toml").parse().expect("TOML");
    let known: BTreeSet<_> = tools.iter().map(name).collect();
    let said: BTreeSet<_> =
        overlay["tool"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(known, said);
    assert_eq!(known.iter().filter(|name| name.ends_with("send_message")).count(), 4);
    for tool in &tools {
        check_schema(&tool["function"]["parameters"], name(tool));
    }
    for lang in LANGUAGES {
        let cases = cases(CASES[2]);
        let asked: BTreeSet<_> = cases.iter().filter(|case| case["lang"] == lang).flat_map(expected).collect();
        assert_eq!(asked, known, "{lang}");
    }
}

#[test]
fn the_same_is_asked_in_every_language() {
    for lines in CASES {
        let cases = cases(lines);
        let mut pairs: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for case in &cases {
            assert_eq!(text(case, "id"), format!("{}.{}", text(case, "pair"), text(case, "lang")));
            pairs.entry(text(case, "pair")).or_default().push(case);
        }
        for (pair, cases) in pairs {
            let langs: BTreeSet<_> = cases.iter().map(|case| text(case, "lang")).collect();
            assert_eq!((langs, cases.len()), (LANGUAGES.into(), LANGUAGES.len()), "{pair}");
            assert!(cases.iter().all(|case| case["expect"] == cases[0]["expect"]), "{pair}: other tools");
        }
    }
}

#[test]
fn requests_are_whole_and_told_apart() {
    for lines in CASES {
        let (mut ids, mut asks) = (BTreeSet::new(), BTreeSet::new());
        for case in &cases(lines) {
            let (id, query) = (text(case, "id").to_owned(), text(case, "query"));
            assert!(asks.insert((query.to_owned(), case["messages"].to_string())), "{id}: the same request twice");
            assert!(ids.insert(id.clone()), "{id} twice");
            assert!(!query.trim().is_empty() && case["tags"].is_array() && expected(case).count() > 0, "{id}");
            assert_eq!(script(case), text(case, "lang"), "{id}: another language");
            if let Some(messages) = case.get("messages") {
                let last = messages.as_array().and_then(|messages| messages.last()).expect("a dialogue");
                assert_eq!((&last["role"], &last["content"]), (&Value::from("user"), &case["query"]), "{id}");
            }
        }
    }
}

/// The language of a case as far as its letters tell: of the Latin ones its own word stands.
fn script(case: &Value) -> &str {
    let all = format!("{}{}", text(case, "query"), case["messages"]);
    let any = |letters: &str| all.contains(|c: char| letters.contains(c));
    let lang = text(case, "lang");
    if all.contains(|c| ('\u{4e00}'..='\u{9fff}').contains(&c)) {
        "zh"
    } else if all.contains(|c| ('\u{0600}'..='\u{06ff}').contains(&c)) {
        // Persian has letters that Arabic has not, and the reverse; short requests may have neither
        match (any("پچژگکی"), any("ةىيكأإ")) {
            (true, false) => "fa",
            (false, true) => "ar",
            _ => lang,
        }
    } else if any("ğşıİçöü") {
        "tr"
    } else if lang == "tr" || lang == "en" {
        lang
    } else {
        "a Latin one"
    }
}

/// People do not type a tool's name. A case may share half of the name's words at most (of two, one).
#[test]
fn requests_do_not_say_the_tools_name() {
    for case in CASES.iter().flat_map(|lines| cases(lines)) {
        let query = text(&case, "query").to_lowercase();
        let words: BTreeSet<_> = query.split(|c: char| !c.is_alphanumeric()).collect();
        for name in expected(&case) {
            let (said, all) = name.split('_').fold((0, 0), |(said, all), word| {
                (said + usize::from(words.contains(word.trim_end_matches('s')) || words.contains(word)), all + 1)
            });
            assert!(said * 2 <= all, "{}: says {name}", case["id"]);
        }
    }
}
