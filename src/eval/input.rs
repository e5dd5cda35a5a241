//! What is measured: a roster from a file in any of four forms, cases from JSON
//! lines. Read by the code that serves: a case is a request body, its turns are
//! the transcript's. NOT a judgement of either.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_64;

use super::Problem;
use crate::config::catalog::Catalog;
use crate::retrieval::document::Document;
use crate::retrieval::question::Utterance;
use crate::retrieval::width::Width;
use crate::turn::policy::{Directory, Order, Policy, Stability};
use crate::turn::roster::Roster;
use crate::turn::transcript::Transcript;
use crate::wire::Format;
use crate::wire::json::Object;
use crate::wire::listing::entry::{Entry, entries};
use crate::wire::view::{ToolKind, ToolView};

/// A roster to measure on.
#[derive(Debug, Default)]
pub struct Tools {
    /// Every name, in order.
    pub names: Vec<String>,
    /// What is ranked: all but the core.
    pub documents: Arc<Vec<Document>>,
}

/// A labelled request.
#[derive(Debug, Clone, Default)]
pub struct Case {
    pub id: String,
    /// `-`: not said.
    pub lang: String,
    pub dialogue: Vec<Utterance>,
    /// The tools it needs.
    pub expect: Vec<String>,
    pub tags: Vec<String>,
    /// The roster it is asked of, beside its file; `None`: the file's.
    pub catalog: Option<String>,
    /// What requests that say the same in several languages have in common.
    pub pair: Option<String>,
}

impl Case {
    /// What is asked, on one line of at most 160 characters.
    pub fn prompt(&self) -> String {
        let said = self.dialogue.last().map_or("", |last| last.text.as_str());
        let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
        match flat.char_indices().nth(160) {
            Some((at, _)) => format!("{}…", flat.get(..at).unwrap_or_default()),
            None => flat,
        }
    }
}

impl Tools {
    /// Reads a roster: an array, or an object with `tools`, of OpenAI, Gemini, Anthropic or MCP tools.
    pub fn read(path: &Path, overlay: &Catalog) -> Result<Self, Problem> {
        let text = text(path)?;
        let refused = |why: String| Problem::Catalog { path: path.to_owned(), why };
        let entries = entries(&text).map_err(|error| refused(error.to_string()))?;
        // Built-ins are not ranked.
        let views: Vec<ToolView<'_>> = entries.into_iter().flatten().map(view).collect();
        if views.is_empty() {
            return Err(refused("no tool in it that can be read".into()));
        }
        let roster = Roster::new(&views, &policy(), &|name| overlay.facts(name, false));
        Ok(Self {
            names: views.iter().map(|view| view.name.to_string()).collect(),
            documents: roster.documents().clone(),
        })
    }

    /// Keeps at most `most` tools: those that are `needed`, then others by the hash of their names. In their order.
    pub fn cut(&mut self, most: usize, needed: &dyn Fn(&str) -> bool) {
        let mut names: Vec<(bool, u64, &String)> =
            self.names.iter().map(|name| (!needed(name), xxh3_64(name.as_bytes()), name)).collect();
        names.sort_unstable();
        let kept: HashSet<String> = names.into_iter().take(most).map(|(_, _, name)| name.clone()).collect();
        self.names.retain(|name| kept.contains(name));
        let documents = self.documents.iter().filter(|document| kept.contains(&document.name));
        self.documents = Arc::new(documents.cloned().collect());
    }
}

/// The cases of a file; blank lines are skipped. `ignore`: elements that agents wrap around a message.
pub fn cases(path: &Path, ignore: &[String]) -> Result<Vec<Case>, Problem> {
    let text = text(path)?;
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(line, text)| case(text, ignore).map_err(|why| Problem::Case { path: path.to_owned(), line, why }))
        .collect()
}

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    id: String,
    #[serde(default)]
    lang: String,
    query: Option<String>,
    messages: Option<Box<RawValue>>,
    #[serde(default)]
    expect: Vec<String>,
    #[serde(default)]
    tags: Vec<String>,
    catalog: Option<String>,
    pair: Option<String>,
}

/// What is said in these messages, a JSON array in OpenAI's form (or an object with `messages`).
pub fn dialogue(json: &str, ignore: &[String]) -> Result<Vec<Utterance>, String> {
    let root: &RawValue = serde_json::from_str(json).map_err(|error| format!("not JSON: {error}"))?;
    let messages = Object::of(root).and_then(|root| root.find("messages")).unwrap_or(root);
    let body = format!(r#"{{"model":"","messages":{}}}"#, messages.get());
    let view = Format::OpenAi.view(body.as_bytes(), "").map_err(|error| format!("`messages`: {error}"))?;
    let dialogue = Transcript::of(&view, ignore).dialogue();
    if dialogue.is_empty() { Err("nobody says anything in it".into()) } else { Ok(dialogue) }
}

fn case(text: &str, ignore: &[String]) -> Result<Case, String> {
    let line: Line = serde_json::from_str(text).map_err(|error| format!("not a case: {error}"))?;
    let messages = match (&line.messages, &line.query) {
        (Some(messages), _) => messages.get().to_owned(),
        (None, Some(query)) => serde_json::json!([{ "role": "user", "content": query }]).to_string(),
        (None, None) => return Err("a case needs `query` or `messages`".into()),
    };
    let dialogue = dialogue(&messages, ignore)?;
    if line.expect.is_empty() {
        return Err("`expect` is empty: which tools does it need?".into());
    }
    let lang = if line.lang.is_empty() { "-".into() } else { line.lang };
    let Line { id, expect, tags, catalog, pair, .. } = line;
    Ok(Case { id, lang, dialogue, expect, tags, catalog, pair })
}

fn view(entry: Entry<'_>) -> ToolView<'_> {
    ToolView {
        kind: ToolKind::Function,
        name: entry.name,
        description: entry.description,
        parameters: entry.parameters.map(|schema| Cow::Borrowed(schema.get())),
        text: Cow::Borrowed(entry.text),
        group: 0,
    }
}

/// Nothing of it changes what is ranked.
fn policy() -> Policy {
    Policy {
        max_retrieved_tools: Width::Fixed(0),
        max_discovered_tools: 0,
        max_discovery_legs: 0,
        max_bound_tools: 0,
        sticky_need: 0,
        stability: Stability::Turn,
        order: Order::Roster,
        directory: Directory::None,
        find_tools_name: String::new(),
        query_ignore: Vec::new(),
        max_tools: usize::MAX,
    }
}

fn text(path: &Path) -> Result<String, Problem> {
    std::fs::read_to_string(path).map_err(|error| Problem::Read { path: path.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roster(json: &str, overlay: &str) -> Result<Tools, Problem> {
        let file = tempfile::NamedTempFile::new().expect("file");
        std::fs::write(file.path(), json).expect("written");
        Tools::read(file.path(), &Catalog::parse(overlay).expect("overlay"))
    }

    #[test]
    fn a_roster_is_read_in_every_form() {
        let schema = r#"{"type":"object","properties":{"city":{"description":"where"}}}"#;
        for json in [
            format!(r#"[{{"type":"function","function":{{"name":"w","description":"d","parameters":{schema}}}}}]"#),
            format!(r#"{{"tools":[{{"name":"w","description":"d","input_schema":{schema}}}]}}"#),
            format!(r#"{{"result":{{"tools":[{{"name":"w","description":"d","inputSchema":{schema}}}]}}}}"#),
            format!(
                r#"[{{"googleSearch":{{}}}},{{"functionDeclarations":[{{"name":"w","description":"d","parameters":{schema}}}]}}]"#
            ),
        ] {
            let tools = roster(&json, "").expect("tools");
            let [document] = tools.documents.as_slice() else { panic!("{json}: {:?}", tools.documents) };
            assert_eq!((document.name.as_str(), document.description.as_str()), ("w", "d"));
            assert_eq!(document.parameters.first().map(|p| p.description.as_str()), Some("where"));
        }
    }

    #[test]
    fn the_overlay_says_who_is_core_and_what_is_read() {
        let overlay = "[[tool]]\nname = \"a*\"\nalways_on = true\n[[tool]]\nname = \"b\"\nsearch_text = \"bees\"\nkeywords = [\"honey\"]\n";
        let tools =
            roster(r#"[{"name":"a1","description":"x"},{"name":"b","description":"y"}]"#, overlay).expect("tools");
        assert_eq!(tools.names, ["a1", "b"]);
        assert_eq!(tools.documents.len(), 1);
        assert_eq!(tools.documents[0].description, "bees");
        assert_eq!(tools.documents[0].keywords, ["honey"]);
    }

    #[test]
    fn rubbish_is_refused_by_file_and_reason() {
        for (json, why) in [("{", "not JSON"), ("3", "neither an array"), ("[]", "no tool"), ("[{}]", "no tool")] {
            let refused = roster(json, "").expect_err(json).to_string();
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn a_case_is_a_request() {
        let read = case(
            r#"{"id":"1","query":"<system-reminder>x</system-reminder> hi","expect":["a"]}"#,
            &["system-reminder".into()],
        );
        assert_eq!(read.expect("case").dialogue.last().map(|last| last.text.clone()), Some("hi".into()));
        let talk = r#"{"messages":[{"role":"user","content":"mail Bob"},{"role":"assistant","content":"Send it?"},{"role":"user","content":"yes"}],"expect":["a"]}"#;
        let read = case(talk, &[]).expect("case");
        assert_eq!(read.dialogue.len(), 2);
        assert_eq!(read.dialogue[1].reply_before, "Send it?");
        for wrong in [r#"{"expect":["a"]}"#, r#"{"query":"x"}"#, r#"{"query":" ","expect":["a"]}"#, "[]"] {
            assert!(case(wrong, &[]).is_err(), "{wrong}");
        }
    }
}
