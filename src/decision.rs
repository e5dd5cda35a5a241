//! The decision record: what was done with ONE chat request, as one JSON line. The
//! proxy writes it; `report`, `replay` and `tune` read it, in logs of older versions
//! too: unknown fields are passed over, missing ones are empty. NOT prompts, NOT
//! keys; what the user wrote only with `log.text = true`.
//!
//! Names in it are the agent's own tools. Every token count is an estimate but for
//! `usage`, which is what the provider reported.

use serde::{Deserialize, Serialize};

/// One request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decision {
    /// Seconds since the epoch, with milliseconds: when the request came.
    pub ts: f64,
    /// Id of the request, as in the `x-packlight` header of its reply.
    pub request: String,
    /// Digest of the conversation: 16 hex digits.
    pub conversation: String,
    /// User-authored messages so far; 0: not read.
    pub turn: usize,
    /// Number of this request within its turn, from 1; 0: not read.
    pub call: usize,
    pub upstream: String,
    /// `openai`, `gemini` or `anthropic`.
    pub wire: String,
    pub model: String,
    /// `off`, `shadow` or `narrow`, as configured or asked for.
    pub mode: String,
    /// `narrow`, `holdout`, `shadow`, `bypass` or `off`: the group its usage counts for.
    pub arm: String,
    /// `narrowed`, `full`, `shadow`, `holdout` or `relayed`, as in the header.
    pub action: String,
    /// Why it was not narrowed; empty when it was.
    pub reason: String,
    /// `replace`, `append` or `dispatch`; in shadow the one that would have been; else empty.
    pub binding: String,
    /// Status of the reply; 0: there was none.
    pub status: u16,
    /// Upstream calls made for it.
    pub legs: usize,
    /// What was bound; in shadow what would have been; absent where nothing was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<Block>,
    pub roster: Roster,
    /// Estimated tokens of everything in the request but its tools.
    pub history_tokens: u64,
    /// Names of the block's tools in order, `find_tools` not counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bound: Vec<String>,
    /// The best of the ranking (at most 20), best first; only in the request that made it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub selection: Vec<Scored>,
    /// How many of the ranking, from its front, were selected for the turn's message; absent: nothing was, or the record
    /// is of a version that did not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<Query>,
    /// What searches came to, in order: `found`, `nothing`, `error` or `exhausted`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<String>,
    /// Names that searches of this turn found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub discovered: Vec<String>,
    /// What the model called, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub called: Vec<Called>,
    /// As reported by the provider, all legs; absent: it reported none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Used>,
    /// What `usage` costs by the configured prices; absent: no usage, or no price for this model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    pub saved: Saved,
    pub timings_us: Timings,
}

/// What was bound.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Block {
    /// Digest of its bytes: two requests with one hash were sent the same tools.
    pub hash: String,
    /// Why it is not the one of the request before: `first`, `needed`, `discovery`, `full`, …; absent: it is the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Estimated tokens of its tools, `find_tools` included.
    pub tokens: u64,
}

/// What the agent sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Roster {
    /// Entries, all of them.
    pub count: usize,
    /// Digest of its tools' bytes, the same in every process; empty: not read.
    pub hash: String,
    /// Estimated tokens of all entries.
    pub tokens: u64,
    /// Estimated tokens of the `find_tools` declaration that goes with it.
    #[serde(skip_serializing_if = "is_zero")]
    pub find_tools_tokens: u64,
    /// What the provider's own endpoint counts for all of them; absent: it was not asked (`count_tokens`), or not yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_tokens: Option<u64>,
    /// Its tools in request order: in the first record of this hash in a file, and nowhere else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_tokens: Vec<ToolTokens>,
}

/// One tool's size.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolTokens {
    pub name: String,
    pub tokens: u64,
    /// Never withheld: core, or not a plain function.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub always: bool,
}

/// One tool of a ranking.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scored {
    pub name: String,
    pub score: f32,
}

/// What the tools were chosen for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Query {
    /// Digest of what the user wrote: 16 hex digits.
    pub hash: String,
    /// Of the text, by its script: ISO 639 code, or `und-Latn` and the like where many languages are written so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lang: Option<String>,
    /// What the user wrote: with `log.text = true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Id of the head, learnt from requests before, that had a part in the ranking; absent: none had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Identity of the embedder of `vectors`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub embedder: String,
    /// One per passage, with `log.vectors = true`, in the request that embedded it: each scaled so that its largest
    /// component is ±127.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vectors: Vec<Vec<i8>>,
}

/// One call of the model's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Called {
    pub name: String,
    /// `bound`, `discovered` (a search had found it) or `withheld`. In shadow: what it would have been; `withheld` there
    /// means that a search would have been needed. Where the agent's whole roster was sent unwatched: `bound`.
    pub verdict: String,
    /// Place in the turn's ranking of all tools that may be withheld, from 1; absent: not ranked (core), or no ranking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
}

/// Tokens as the provider reports them, all legs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Used {
    /// Cached ones included.
    pub prompt: u64,
    pub cached: u64,
    /// Thoughts included.
    pub completion: u64,
}

/// Estimates of what narrowing saved, or in shadow would have; negative: it cost more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Saved {
    /// Tokens of tools that were not sent, in the first leg.
    pub tokens: i64,
    /// Net of the prompt cache and of extra legs; absent: no price for this model, or nothing to compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

/// Microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timings {
    /// Waiting for query vectors; absent: the turn was known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u64>,
    /// Everything of ours before the upstream call.
    pub total: u64,
    /// From the upstream call to the end of the reply.
    pub upstream: u64,
}

impl Decision {
    /// Reads one line of a log. The error says where the line is not a record.
    pub fn read(line: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(line)
    }

    /// As one line, without its end.
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Called {
    /// The model called what it had not been sent and no search had found (in shadow: would not have been).
    pub fn is_missed(&self) -> bool {
        self.verdict == "withheld"
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde asks for")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_line_that_reads_back() {
        let decision = Decision {
            ts: 1_700_000_000.125,
            request: "r\n1".into(),
            block: Some(Block { hash: "ab".into(), cause: Some("first".into()), tokens: 700 }),
            roster: Roster {
                count: 2,
                hash: "cd".into(),
                tokens: 900,
                find_tools_tokens: 90,
                provider_tokens: Some(880),
                tool_tokens: vec![ToolTokens { name: "a".into(), tokens: 450, always: true }],
            },
            selection: vec![Scored { name: "a".into(), score: 0.25 }],
            selected: Some(1),
            query: Some(Query { hash: "ef".into(), vectors: vec![vec![-127, 3]], ..Query::default() }),
            called: vec![Called { name: "f".into(), verdict: "withheld".into(), rank: Some(14) }],
            usage: Some(Used { prompt: 9, cached: 6, completion: 1 }),
            cost_usd: Some(0.5),
            saved: Saved { tokens: -3, usd: Some(-0.25) },
            ..Decision::default()
        };
        let line = decision.line();
        assert!(!line.contains('\n'));
        assert_eq!(Decision::read(&line).expect("a record"), decision);
        assert!(decision.called.iter().all(Called::is_missed));
    }

    #[test]
    fn what_is_unknown_is_passed_over_and_what_is_missing_is_empty() {
        let old = r#"{"ts":1,"of_tomorrow":{"x":[1]},"roster":{"count":44,"new":1},"called":[{"name":"f","verdict":"bound"}],"usage":null}"#;
        let read = Decision::read(old).expect("a record");
        assert_eq!((read.roster.count, read.called.len(), read.usage), (44, 1, None));
        assert_eq!(read.saved, Saved::default());
        assert!(Decision::read("{\"ts\":1").is_err(), "a line torn off");
    }
}
