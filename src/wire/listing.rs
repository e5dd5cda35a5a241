//! A list of tools that lies in a file, in any provider's form, as the tools of any wire: read and
//! written once per version, so that a request that refers to it pays for none of its tools. NOT
//! where the file lies, NOT which of its tools a request gets.
//!
//! A tool keeps its own bytes on the wire of its own form. On another one its name and description
//! are the same and its schema stands under that wire's key: as it is where that takes JSON Schema
//! (Gemini's `parametersJsonSchema`), and as JSON Schema where it is one of Gemini's own.

pub mod entry;
mod written;

use std::collections::HashSet;
use std::sync::OnceLock;

use xxhash_rust::xxh3::xxh3_64;

use super::Format;
use super::view::ToolView;
use entry::Entry;

/// Why a file is no list of tools.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListingError {
    #[error("not JSON: {0}")]
    Json(String),
    #[error("neither an array of tools nor an object with `tools`")]
    Shape,
    #[error("no tool in it")]
    Empty,
    #[error("tool {at} has no name")]
    Nameless { at: usize },
    #[error("tool {at} is no function: built-in tools are the agent's to send")]
    NoFunction { at: usize },
    #[error("`{name}` stands twice: names must be unique")]
    Twice { name: String },
    #[error("tool {at}: `{key}` stands twice")]
    Key { at: usize, key: String },
    #[error("tool {at}: `{key}` is not what it should be")]
    Member { at: usize, key: &'static str },
}

/// A list of tools.
#[derive(Debug)]
pub struct Listing {
    text: String,
    names: HashSet<String>,
    /// Identity of the tools' bytes, in every process.
    digest: u64,
    openai: OnceLock<Form>,
    gemini: OnceLock<Form>,
    anthropic: OnceLock<Form>,
}

/// The list as one wire has it.
#[derive(Debug, Default)]
pub struct Form {
    /// In the order of the file.
    pub tools: Vec<ToolView<'static>>,
    /// A tool of it is one that the client searches for by itself.
    pub client_search: bool,
}

impl Listing {
    /// Reads a file's text: an array, or an object with `tools`, of OpenAI, Gemini, Anthropic or MCP tools, all of them
    /// functions, no two of one name.
    pub fn parse(text: &str) -> Result<Self, ListingError> {
        let mut names = HashSet::new();
        for entry in entry::entries(text)? {
            let name = entry?.name.into_owned();
            if names.contains(&name) {
                return Err(ListingError::Twice { name });
            }
            names.insert(name);
        }
        if names.is_empty() {
            return Err(ListingError::Empty);
        }
        let (openai, gemini, anthropic) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Ok(Self { text: text.to_owned(), names, digest: xxh3_64(text.as_bytes()), openai, gemini, anthropic })
    }

    /// Identity of its bytes.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// How many tools.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Never: such a file is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Is there a tool of this name?
    pub fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// The tools as this wire has them; made the first time.
    pub fn form(&self, format: Format) -> &Form {
        self.place(format).get_or_init(|| Form::of(&self.text, format))
    }

    /// Makes what another version has been asked for: a request need not wait for it.
    pub fn warm_like(&self, other: &Self) {
        for format in [Format::OpenAi, Format::Gemini, Format::Anthropic] {
            if other.place(format).get().is_some() {
                self.form(format);
            }
        }
    }

    fn place(&self, format: Format) -> &OnceLock<Form> {
        match format {
            Format::OpenAi => &self.openai,
            Format::Gemini => &self.gemini,
            Format::Anthropic => &self.anthropic,
        }
    }
}

impl Form {
    /// Written as a request would hold them and read as one: what they are is the reader's to say.
    fn of(text: &str, format: Format) -> Self {
        let entries = entry::entries(text).unwrap_or_default().into_iter().flatten();
        let tools: Vec<String> = entries.map(|entry: Entry<'_>| written::written(&entry, format)).collect();
        let body = written::request(format, &tools);
        match format.view(body.as_bytes(), "") {
            Ok(view) => Self {
                tools: view.tools.into_iter().map(ToolView::owned).collect(),
                client_search: view.traits.client_search,
            },
            // A list that was read holds nothing that a reader refuses.
            Err(_) => Self::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::view::ToolKind;

    const SCHEMA: &str = r#"{"type":"object","properties":{"n":{"type":["integer","null"],"minimum":9007199254740993}},"additionalProperties":false}"#;

    fn files() -> [String; 5] {
        [
            format!(
                r#"[{{"type":"function","function":{{"name":"w","description":"d \"q\"","parameters":{SCHEMA}}}}}]"#
            ),
            format!(r#"{{"tools":[{{"name":"w","description":"d \"q\"","input_schema":{SCHEMA}}}]}}"#),
            format!(r#"{{"result":{{"tools":[{{"name":"w","description":"d \"q\"","inputSchema":{SCHEMA}}}]}}}}"#),
            format!(
                r#"[{{"functionDeclarations":[{{"name":"w","description":"d \"q\"","parametersJsonSchema":{SCHEMA}}}]}}]"#
            ),
            format!(r#"[{{"type":"function","name":"w","description":"d \"q\"","parameters":{SCHEMA}}}]"#),
        ]
    }

    #[test]
    fn a_tool_of_any_form_is_a_function_of_every_wire_with_its_own_schema() {
        for file in files() {
            let listing = Listing::parse(&file).expect("a list");
            for format in [Format::OpenAi, Format::Gemini, Format::Anthropic] {
                let [tool] = listing.form(format).tools.as_slice() else { panic!("{file}") };
                assert_eq!((tool.kind, &*tool.name, &*tool.description), (ToolKind::Function, "w", "d \"q\""));
                assert_eq!(tool.parameters.as_deref(), Some(SCHEMA), "{format:?} {file}");
            }
        }
    }

    #[test]
    fn on_the_wire_of_its_form_a_tool_keeps_its_bytes() {
        let [openai, anthropic, _, gemini, _] = files();
        for (file, format) in [(openai, Format::OpenAi), (anthropic, Format::Anthropic), (gemini, Format::Gemini)] {
            let listing = Listing::parse(&file).expect("a list");
            let text = listing.form(format).tools.first().map(|tool| tool.text.to_string()).expect("a tool");
            assert!(file.contains(&text) && text.starts_with('{') && text.ends_with('}'), "{text}");
        }
    }

    #[test]
    fn the_same_file_gives_the_same_bytes() {
        for file in files() {
            let [one, two] = [Listing::parse(&file), Listing::parse(&file)].map(|list| list.expect("a list"));
            assert_eq!(one.digest(), two.digest());
            for format in [Format::OpenAi, Format::Gemini, Format::Anthropic] {
                let text = |list: &Listing| list.form(format).tools.first().map(|tool| tool.text.to_string());
                assert_eq!(text(&one), text(&two));
            }
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let said = |file: &str| Listing::parse(file).expect_err(file).to_string();
        assert!(said("{").starts_with("not JSON"));
        assert_eq!(said("3"), "neither an array of tools nor an object with `tools`");
        assert_eq!(said("[]"), "no tool in it");
        assert_eq!(said(r#"[{"name":"a"},{"description":"x"}]"#), "tool 2 has no name");
        assert_eq!(said(r#"[{"function":{"name":""}}]"#), "tool 1 has no name");
        let builtin = "tool 2 is no function: built-in tools are the agent's to send";
        for odd in [
            r#"{"googleSearch":{}}"#,
            r#"{"type":"web_search_20250305","name":"web_search"}"#,
            r#"{"type":"builtin_function","function":{"name":"$web_search"}}"#,
            "7",
        ] {
            assert_eq!(said(&format!(r#"[{{"name":"a"}},{odd}]"#)), builtin, "{odd}");
        }
        let twice = r#"[{"functionDeclarations":[{"name":"a"},{"name":"b"}]},{"functionDeclarations":[{"name":"a"}]}]"#;
        assert_eq!(said(twice), "`a` stands twice: names must be unique");
        assert_eq!(said(r#"[{"name":"a","name":"b"}]"#), "tool 1: `name` stands twice");
        assert_eq!(said(r#"[{"name":"a","description":3}]"#), "tool 1: `description` is not what it should be");
        assert_eq!(said(r#"[{"name":"a","parameters":[]}]"#), "tool 1: `parameters` is not what it should be");
    }

    #[test]
    fn a_version_makes_what_the_one_before_was_asked_for() {
        let [first, second] = [&files()[0], &files()[1]].map(|file| Listing::parse(file).expect("a list"));
        first.form(Format::Gemini);
        second.warm_like(&first);
        assert!(second.gemini.get().is_some() && second.openai.get().is_none());
    }
}
