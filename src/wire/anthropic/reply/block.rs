//! One content block as it grows from its deltas, in the model's own spelling. NOT
//! when it leaves, NOT the number under which the client knows it.

use crate::wire::dispatch::Native;
use crate::wire::hidden::{Hidden, Whose};
use crate::wire::json::{self, Object};
use crate::wire::reply::Call;
use crate::wire::text;

/// A content block.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// The provider's own number for it.
    pub(super) index: Option<u64>,
    /// Its type: `text`, `thinking`, `tool_use`, …
    pub(super) kind: String,
    whose: Whose,
    /// What the agent sees of a `call_tool`.
    pub(super) native: Option<Native>,
    /// Its arguments have left.
    pub(super) told: bool,
    /// The number under which the client knows it.
    pub(super) slot: Option<u64>,
    /// Its members in their order, as far as deltas have brought them.
    members: Vec<(String, Piece)>,
    /// The text of `input`, from its pieces.
    input: String,
    citations: Vec<String>,
}

#[derive(Debug)]
enum Piece {
    /// Spelt as in a JSON string: a character that the provider cut in two is whole again.
    Text(String),
    Raw(String),
}

impl Block {
    /// As it stands in `content_block_start`, or in a whole message.
    pub(super) fn begin(index: Option<u64>, block: &Object<'_>, hidden: &Hidden) -> Self {
        let members = block.0.iter().map(|(key, raw)| {
            let piece = text::inner(raw).map(|spelling| Piece::Text(spelling.to_owned()));
            (key.clone().into_owned(), piece.unwrap_or_else(|| Piece::Raw(raw.get().to_owned())))
        });
        let kind = block.text("type").unwrap_or_default().into_owned();
        let named = block.text("name").filter(|_| kind == "tool_use");
        let whose = named.map_or(Whose::Agents, |name| hidden.whose(&name));
        Self { index, whose, kind, members: members.collect(), ..Self::default() }
    }

    /// It grows no more: whose a `call_tool` is, is known now.
    pub(super) fn settle(&mut self, hidden: &Hidden) {
        if self.whose == Whose::Wrapped {
            self.native = hidden.unwrapped(self.arguments());
            self.whose = if self.native.is_some() { Whose::Agents } else { Whose::Ours };
        }
    }

    /// Is it not known yet whose it is?
    pub(super) fn waits(&self) -> bool {
        self.whose == Whose::Wrapped
    }

    /// A call that the client does not see.
    pub(super) fn is_ours(&self) -> bool {
        self.whose == Whose::Ours
    }

    /// Takes a delta. The kinds of deltas need no table: a string is added to the member of its name (`text`,
    /// `thinking`), anything else takes its place.
    pub(super) fn grow(&mut self, delta: &Object<'_>) {
        for (key, raw) in delta.0.iter().filter(|(key, _)| key != "type") {
            let spelling = text::inner(raw);
            match (&**key, spelling) {
                ("partial_json", Some(spelling)) => self.input.push_str(&text::decoded(spelling)),
                ("citation", None) => self.citations.push(raw.get().to_owned()),
                // It comes whole; SDKs take the last.
                ("signature", Some(spelling)) => self.set(key, Piece::Text(spelling.to_owned())),
                (_, Some(spelling)) => match self.members.iter_mut().find(|(name, _)| name == key) {
                    Some((_, Piece::Text(own))) => own.push_str(spelling),
                    _ => self.set(key, Piece::Text(spelling.to_owned())),
                },
                (_, None) => self.set(key, Piece::Raw(raw.get().to_owned())),
            }
        }
    }

    fn set(&mut self, key: &str, piece: Piece) {
        match self.members.iter_mut().find(|(name, _)| name == key) {
            Some((_, own)) => *own = piece,
            None => self.members.push((key.to_owned(), piece)),
        }
    }

    /// The spelling of a member that is a string; empty when it is none.
    pub(super) fn spelling(&self, key: &str) -> &str {
        let found = self.members.iter().find(|(name, _)| name == key);
        found.map_or("", |(_, piece)| if let Piece::Text(spelling) = piece { spelling } else { "" })
    }

    pub(super) fn text(&self, key: &str) -> String {
        text::decoded(self.spelling(key)).into_owned()
    }

    pub(super) fn is_text(&self) -> bool {
        self.kind == "text"
    }

    /// A call that the agent answers.
    pub(super) fn is_own_call(&self) -> bool {
        self.kind == "tool_use" && self.whose == Whose::Agents
    }

    /// The call as the agent knows it.
    pub(super) fn call(&self) -> Call {
        let id = self.text("id");
        match self.native.clone() {
            Some(Native { name, arguments }) => Call { id, name, arguments },
            None => Call { id, name: self.text("name"), arguments: self.arguments().to_owned() },
        }
    }

    /// Did its arguments come in pieces?
    pub(super) fn grew(&self) -> bool {
        !self.input.trim().is_empty()
    }

    /// Gives it an id if it has none: an answer must name one.
    pub(super) fn name(&mut self, id: impl FnOnce() -> String) {
        if self.spelling("id").is_empty() {
            self.set("id", Piece::Text(id()));
        }
    }

    /// The call's arguments as the provider wrote them, JSON or not.
    pub(super) fn arguments(&self) -> &str {
        let given = self.members.iter().find(|(key, _)| key == "input");
        match (self.input.trim(), given) {
            ("", Some((_, Piece::Raw(raw)))) => raw,
            ("", Some((_, Piece::Text(spelling)))) => spelling,
            ("", None) => "{}",
            (input, _) => input,
        }
    }

    /// The block as the provider must see it again; `None`: an empty text, which it would refuse.
    pub(super) fn json(&self) -> Option<String> {
        if self.is_text() && self.spelling("text").is_empty() {
            return None;
        }
        let mut members: Vec<String> = Vec::with_capacity(self.members.len() + 1);
        for (key, piece) in &self.members {
            let value = match (key.as_str(), piece) {
                ("input", _) => continue,
                ("citations", Piece::Raw(given)) if !self.citations.is_empty() => self.cited(given),
                (_, Piece::Text(spelling)) => format!("\"{spelling}\""),
                (_, Piece::Raw(raw)) => raw.clone(),
            };
            members.push(format!("{}:{value}", json::quoted(key)));
        }
        if !self.citations.is_empty() && !self.members.iter().any(|(key, _)| key == "citations") {
            members.push(format!("\"citations\":{}", self.cited("[]")));
        }
        if self.kind.ends_with("tool_use") {
            let input = if Object::parse(self.arguments()).is_some() { self.arguments() } else { "{}" };
            members.push(format!("\"input\":{input}"));
        }
        Some(format!("{{{}}}", members.join(",")))
    }

    /// The citations that stood in it from the start, and those that came.
    fn cited(&self, given: &str) -> String {
        let inner = given.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or_default().trim();
        let given = (!inner.is_empty()).then_some(inner);
        let all: Vec<&str> = given.into_iter().chain(self.citations.iter().map(String::as_str)).collect();
        format!("[{}]", all.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(start: &str, deltas: &[&str]) -> Block {
        let mut block = Block::begin(Some(0), &Object::parse(start).expect("a block"), &Hidden::new("find_tools"));
        for delta in deltas {
            block.grow(&Object::parse(delta).expect("a delta"));
        }
        block
    }

    #[test]
    fn blocks_are_whole_again() {
        let cases: [(&str, &[&str], Option<&str>); 7] = [
            (
                r#"{"type":"thinking","thinking":"","signature":""}"#,
                &[
                    r#"{"type":"thinking_delta","thinking":"a\ud83d"}"#,
                    r#"{"type":"thinking_delta","thinking":"\ude00"}"#,
                    r#"{"type":"signature_delta","signature":"Ab\/=="}"#,
                ],
                Some(r#"{"type":"thinking","thinking":"a\ud83d\ude00","signature":"Ab\/=="}"#),
            ),
            (r#"{"type":"text","text":""}"#, &[], None),
            (
                r#"{"type":"text","text":"","citations":null}"#,
                &[r#"{"type":"text_delta","text":"x"}"#, r#"{"type":"citations_delta","citation":{"n":1.0}}"#],
                Some(r#"{"type":"text","text":"x","citations":[{"n":1.0}]}"#),
            ),
            (
                r#"{"type":"tool_use","id":"t","name":"f","input":{},"caller":{"type":"direct"}}"#,
                &[
                    r#"{"type":"input_json_delta","partial_json":""}"#,
                    r#"{"type":"input_json_delta","partial_json":"{\"n\": 90071992"}"#,
                    r#"{"type":"input_json_delta","partial_json":"54740993001}"}"#,
                ],
                Some(
                    r#"{"type":"tool_use","id":"t","name":"f","caller":{"type":"direct"},"input":{"n": 9007199254740993001}}"#,
                ),
            ),
            (
                r#"{"type":"tool_use","id":"t","name":"f","input":{"at":"once"}}"#,
                &[],
                Some(r#"{"type":"tool_use","id":"t","name":"f","input":{"at":"once"}}"#),
            ),
            (
                r#"{"type":"server_tool_use","id":"t","name":"web_search","input":{}}"#,
                &[r#"{"type":"input_json_delta","partial_json":"{\"cut"}"#],
                Some(r#"{"type":"server_tool_use","id":"t","name":"web_search","input":{}}"#),
            ),
            (
                r#"{"type":"redacted_thinking","data":"Zz=="}"#,
                &[],
                Some(r#"{"type":"redacted_thinking","data":"Zz=="}"#),
            ),
        ];
        for (start, deltas, expected) in cases {
            assert_eq!(grown(start, deltas).json().as_deref(), expected, "{start}");
        }
    }

    #[test]
    fn only_a_call_of_that_name_is_ours() {
        assert!(grown(r#"{"type":"tool_use","name":"find_tools"}"#, &[]).is_ours());
        assert!(!grown(r#"{"type":"server_tool_use","name":"find_tools"}"#, &[]).is_ours());
        assert!(grown(r#"{"type":"tool_use","name":"find_tools2"}"#, &[]).is_own_call());
    }
}
