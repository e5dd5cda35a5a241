//! The entries of `tools`: plain functions, functions that keep their place, server
//! tools. NOT which of them are bound.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::document::Text;
use crate::wire::json;
use crate::wire::view::{ToolKind, ToolView, Traits};

/// Reads the entries.
pub(super) fn tools<'a>(entries: &[&'a RawValue], traits: &mut Traits) -> Vec<ToolView<'a>> {
    let mut tools: Vec<ToolView<'a>> = entries.iter().map(|entry| tool(entry, traits)).collect();
    // Tools of one name stay together: where one keeps its place, so does the other.
    let pinned: Vec<Cow<'a, str>> =
        tools.iter().filter(|tool| tool.kind == ToolKind::Pinned).map(|tool| tool.name.clone()).collect();
    for tool in tools.iter_mut().filter(|tool| tool.kind == ToolKind::Function && pinned.contains(&tool.name)) {
        tool.kind = ToolKind::Pinned;
    }
    tools
}

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    description: Option<Text<'a>>,
    #[serde(borrow, default)]
    input_schema: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cache_control: Option<&'a RawValue>,
    #[serde(borrow, default)]
    allowed_callers: Option<&'a RawValue>,
    #[serde(default)]
    defer_loading: Option<bool>,
}

fn tool<'a>(raw: &'a RawValue, traits: &mut Traits) -> ToolView<'a> {
    let fixed = |name| ToolView {
        kind: ToolKind::Fixed,
        name,
        description: Cow::Borrowed(""),
        parameters: None,
        text: Cow::Borrowed(raw.get()),
        group: 0,
    };
    let Some(entry) = json::object::<Entry<'a>>(raw) else { return fixed(Cow::Borrowed("")) };
    let name = entry.name.map(|name| name.0).unwrap_or_default();
    let kind = entry.kind.map_or(Cow::Borrowed("custom"), |kind| kind.0);
    traits.client_search |= entry.defer_loading == Some(true) || kind.starts_with("tool_search");
    let Some(schema) = entry.input_schema.filter(|_| kind == "custom" && !name.is_empty()) else {
        // A toolset of an MCP server says for each of its tools whether it is deferred.
        traits.client_search |= raw.get().contains("\"defer_loading\"");
        return fixed(name);
    };
    // A mark covers all tools up to its own: without it, or elsewhere, the client's plan for its cache is another one.
    // Tools that code calls are not found by a search of the model's.
    let pinned = entry.cache_control.is_some() || entry.allowed_callers.is_some();
    ToolView {
        kind: if pinned { ToolKind::Pinned } else { ToolKind::Function },
        description: entry.description.map(|text| text.0).unwrap_or_default(),
        parameters: Some(Cow::Borrowed(schema.get())),
        ..fixed(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::anthropic::view::view;

    fn read(tools: &str) -> (Vec<(String, ToolKind)>, Traits) {
        let body = format!(r#"{{"tools": [{tools}],"messages":[]}}"#);
        let view = view(&body).expect("view");
        (view.tools.iter().map(|tool| (tool.name.to_string(), tool.kind)).collect(), view.traits)
    }

    #[test]
    fn tools_are_functions_pinned_or_fixed() {
        use ToolKind::{Fixed, Function, Pinned};
        let (tools, traits) = read(
            r#"{"name":"a","description":"d","input_schema":{"type":"object"},"strict":true,"eager_input_streaming":true},
            {"type":"custom","name":"b","input_schema":{}},{"type":null,"name":"n","input_schema":{},"cache_control":null},
            {"name":"m","input_schema":{},"cache_control":{"type":"ephemeral","ttl":"1h"}},{"name":"m","input_schema":{}},
            {"name":"c","input_schema":{},"allowed_callers":["code_execution_20250825"]},
            {"type":"web_search_20250305","name":"web_search","max_uses":5},{"type":"bash_20250124","name":"bash"},
            {"type":"mcp_toolset","mcp_server_name":"s"},{"name":"x"},3,{"name":7,"input_schema":{}}"#,
        );
        let kinds = [
            ("a", Function),
            ("b", Function),
            ("n", Function),
            ("m", Pinned),
            ("m", Pinned),
            ("c", Pinned),
            ("web_search", Fixed),
            ("bash", Fixed),
            ("", Fixed),
            ("x", Fixed),
            ("", Fixed),
            ("", Fixed),
        ];
        assert_eq!(tools, kinds.map(|(name, kind)| (name.to_owned(), kind)));
        assert_eq!(traits, Traits::default());
    }

    #[test]
    fn a_client_that_searches_by_itself_is_seen() {
        for tool in [
            r#"{"name":"a","input_schema":{},"defer_loading":true}"#,
            r#"{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"}"#,
            r#"{"type":"mcp_toolset","mcp_server_name":"s","default_config":{"defer_loading":true}}"#,
        ] {
            assert!(read(tool).1.client_search, "{tool}");
        }
        assert!(!read(r#"{"name":"a","input_schema":{},"defer_loading":false}"#).1.client_search);
    }
}
