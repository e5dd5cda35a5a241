//! The outcome of ONE chat request, filled along the corridor and recorded once,
//! when the reply is over or its client is gone. Becomes metrics and one decision
//! record, so the two cannot disagree. NOT prompts, NOT keys.

mod action;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

pub use self::action::Action;
use crate::cost::cache::Segment;
use crate::cost::policy::CALL_TOOL;
use crate::decision::{self, Called, Decision, Query, Saved, Scored, Timings, Used};
use crate::turn::bypass::Bypass;
use crate::turn::fold::{Block, Cause};
use crate::turn::policy::Binding;
use crate::turn::roster::Roster;
use crate::turn::{script, search};
use crate::wire::reply::Usage;

/// Was the called tool in front of the model?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    Bound,
    /// A search had found it.
    Discovered,
    /// The model called it all the same.
    Withheld,
}

impl Verdict {
    pub fn label(self) -> &'static str {
        match self {
            Self::Bound => "bound",
            Self::Discovered => "discovered",
            Self::Withheld => "withheld",
        }
    }
}

/// One call of the model's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub name: String,
    pub verdict: Verdict,
    /// Place in the turn's ranking, from 1.
    pub rank: Option<usize>,
}

/// The outcome of one request.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Id of this request, as in the header.
    pub request: String,
    /// Digest of the conversation.
    pub conversation: String,
    /// Whose prompt cache it is: a hash of upstream, model and credential that never leaves the process.
    pub account: u64,
    /// Seconds since the epoch, with milliseconds.
    pub ts: f64,
    pub upstream: String,
    pub wire: &'static str,
    pub model: String,
    pub mode: &'static str,
    pub action: Action,
    /// Empty when narrowed.
    pub reason: &'static str,
    pub binding: &'static str,
    /// Narrowed although the full roster costs less, to see what searches cost.
    pub explored: bool,
    /// User-authored messages so far.
    pub turn: usize,
    /// Number of this request within its turn, from 1.
    pub call: usize,
    /// Why the block is not the one of the request before, and of the leg before: one for each change.
    pub causes: Vec<Cause>,
    /// The provider refused tools in messages; the request went on with `replace`.
    pub append_refused: bool,
    /// Digest of what the user wrote; empty: not read.
    pub query: String,
    /// What the user wrote, cut; in records with `log.text = true` only.
    pub text: String,
    /// May a record hold the text?
    pub log_text: bool,
    /// Id of the head that had a part in the ranking.
    pub head: Option<Arc<str>>,
    /// Tools that the agent sent.
    pub roster: usize,
    /// The same, as they were read.
    pub tools: Option<Arc<Roster>>,
    /// Those of them that a request in full gets, where the provider takes fewer than a catalog has.
    pub fitting: Option<Arc<[usize]>>,
    /// Names that the model was sent, or in shadow would have been, `find_tools` not counted; empty unless chosen.
    pub bound: Vec<String>,
    /// The same as a block, and whether `find_tools` stands in it.
    pub block: Option<Block>,
    pub searchable: bool,
    /// The best of the selection; only known in the request that made it.
    pub selection: Vec<(String, f32)>,
    /// How many of its ranking were selected for the turn's message.
    pub selected: Option<usize>,
    /// Every tool that may be withheld, best first.
    pub ranking: Option<Arc<[u32]>>,
    /// int8 vectors of the query's passages, and whose they are; with `log.vectors = true`.
    pub vectors: Vec<Vec<i8>>,
    pub embedder: String,
    /// System prompt and messages; set once somebody has counted them.
    pub history: Arc<OnceLock<Vec<Segment>>>,
    /// How many parts of it stand before the first message.
    pub system_parts: usize,
    /// Tokens of the roster and of the block, as they are known when somebody asks.
    pub roster_tokens: u64,
    /// What the provider itself counts for the roster, where it was asked.
    pub provider_tokens: Option<u64>,
    pub bound_tokens: u64,
    /// What searches came to, in order.
    pub searches: Vec<search::Outcome>,
    /// What searches of this turn found, and those of this request.
    pub discovered: Vec<String>,
    pub found: Vec<String>,
    pub called: Vec<Call>,
    pub legs: usize,
    /// All legs.
    pub usage: Usage,
    /// The first leg, and the last one.
    pub first: Option<Usage>,
    pub last: Usage,
    /// What `usage` costs, where prices are known.
    pub cost_usd: Option<f64>,
    /// Net of cache and legs; an estimate.
    pub saved_usd: Option<f64>,
    /// Status of the reply; 0: there was none.
    pub status: u16,
    pub embed: Option<Duration>,
    pub rank: Option<Duration>,
    /// Everything of ours before the upstream call.
    pub overhead: Duration,
    /// From the upstream call to the end of the reply.
    pub upstream_time: Duration,
}

/// Calls of one reply that are noted: a model may go mad.
const CALLS: usize = 256;
/// Bytes of a text in a record, and of one that is kept for its language only.
const TEXT: usize = 16 << 10;
const SAMPLE: usize = 600;
/// Bytes of a name in a record: names may be hostile.
const NAME: usize = 256;

impl Outcome {
    /// Which group its usage counts for: what `auto` sends in full is narrowing's own choice.
    pub fn arm(&self) -> &'static str {
        if self.action == Action::Full && self.reason == Bypass::Cost.label() {
            Action::Narrowed.arm()
        } else {
            self.action.arm()
        }
    }

    /// Was a block chosen, for use or in shadow?
    pub fn chose(&self) -> bool {
        matches!(self.action, Action::Narrowed | Action::Shadow) && self.block.is_some()
    }

    /// Estimated tokens that were not sent, or in shadow would not have been, per leg 1.
    pub fn saved_tokens(&self) -> i64 {
        if self.chose() { self.roster_tokens as i64 - self.bound_tokens as i64 } else { 0 }
    }

    /// How many of the agent's tools the model saw.
    pub fn bound_count(&self) -> usize {
        match (&self.fitting, self.action) {
            (_, Action::Narrowed) => self.bound.len(),
            (Some(fitting), _) => fitting.len(),
            (None, _) => self.roster,
        }
    }

    /// Brings the sizes of roster and block up to what is known of them now.
    pub fn measure(&mut self) {
        let Some(roster) = &self.tools else { return };
        self.roster_tokens = match &self.fitting {
            // What could not have been sent was not saved.
            Some(fitting) => fitting.iter().map(|tool| roster.sizes().tokens(*tool)).sum(),
            None => roster.sizes().all_tokens(),
        };
        let Some(block) = &self.block else { return };
        let find_tools = if self.searchable { roster.sizes().find_tools().1 } else { 0 };
        let call_tool = if self.binding == Binding::Dispatch.label() { CALL_TOOL } else { 0 };
        self.bound_tokens = block.tools().map(|tool| roster.sizes().tokens(tool)).sum::<u64>() + find_tools + call_tool;
    }

    /// Notes what the user wrote: all of it for a record that may hold it, else as much as tells its language.
    pub fn asked(&mut self, text: &str, log_text: bool) {
        let most = if log_text { TEXT } else { SAMPLE };
        self.text = text.get(..text.floor_char_boundary(most)).unwrap_or_default().to_owned();
        self.log_text = log_text;
    }

    /// Notes a call.
    pub fn called(&mut self, name: &str, verdict: Verdict) {
        if self.called.len() < CALLS {
            self.called.push(Call { name: cut(name), verdict, rank: self.rank_of(name) });
        }
    }

    /// Shadow: judges the calls by the block that would have been bound.
    pub fn judge(&mut self) {
        let (Some(roster), Some(block)) = (self.tools.clone(), self.block.clone()) else { return };
        let mut called = std::mem::take(&mut self.called);
        for call in &mut called {
            call.rank = self.rank_of(&call.name);
            // An entry that is no plain function is never withheld.
            if roster.named(&call.name).first().is_some_and(|tool| !block.contains(*tool)) {
                call.verdict = Verdict::Withheld;
            }
        }
        self.called = called;
    }

    fn rank_of(&self, name: &str) -> Option<usize> {
        let (roster, ranking) = (self.tools.as_ref()?, self.ranking.as_ref()?);
        let tool = u32::try_from(*roster.named(name).first()?).ok()?;
        ranking.iter().position(|ranked| *ranked == tool).map(|at| at + 1)
    }

    /// The value of the `x-packlight` response header.
    pub fn header(&self) -> String {
        format!(
            "action={};reason={};roster={};bound={};saved_tokens={};binding={};request={}",
            self.action.label(),
            self.reason,
            self.roster,
            self.bound_count(),
            if self.action == Action::Narrowed { self.saved_tokens() } else { 0 },
            if self.action == Action::Narrowed { self.binding } else { "" },
            self.request
        )
    }

    /// The decision record, without the sizes of the roster's tools.
    pub fn decision(&self) -> Decision {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let chose = self.chose();
        let names = |names: &[String]| names.iter().map(|name| cut(name)).collect();
        Decision {
            ts: self.ts,
            request: self.request.clone(),
            conversation: self.conversation.clone(),
            turn: self.turn,
            call: self.call,
            upstream: self.upstream.clone(),
            wire: self.wire.to_owned(),
            model: cut(&self.model),
            mode: self.mode.to_owned(),
            arm: self.arm().to_owned(),
            action: self.action.label().to_owned(),
            reason: self.reason.to_owned(),
            binding: if chose { self.binding.to_owned() } else { String::new() },
            status: self.status,
            legs: self.legs,
            block: chose.then(|| decision::Block {
                hash: self.block_hash(),
                cause: self.causes.first().map(|cause| cause.label().to_owned()),
                tokens: self.bound_tokens,
            }),
            roster: self.roster_read(),
            history_tokens: self.history.get().map_or(0, |history| history.iter().map(|part| part.tokens).sum()),
            bound: if chose { names(&self.bound) } else { Vec::new() },
            selection: self.selection.iter().map(|(name, score)| Scored { name: cut(name), score: *score }).collect(),
            selected: self.selected.filter(|_| chose),
            query: (!self.query.is_empty()).then(|| self.query()),
            searches: self.searches.iter().map(|search| search.label().to_owned()).collect(),
            discovered: names(&self.discovered),
            called: self.called.iter().map(Called::from).collect(),
            usage: self.usage.reported.then_some(Used {
                prompt: self.usage.prompt,
                cached: self.usage.cached,
                completion: self.usage.completion,
            }),
            cost_usd: self.cost_usd,
            saved: Saved { tokens: self.saved_tokens(), usd: self.saved_usd },
            timings_us: Timings {
                embed: self.embed.map(micros),
                rank: self.rank.map(micros),
                total: micros(self.overhead),
                upstream: micros(self.upstream_time),
            },
        }
    }

    fn roster_read(&self) -> decision::Roster {
        let tools = self.tools.as_ref();
        decision::Roster {
            count: self.roster,
            hash: tools.map(|tools| format!("{:016x}", tools.sizes().digest())).unwrap_or_default(),
            tokens: self.roster_tokens,
            find_tools_tokens: tools.filter(|_| self.chose()).map_or(0, |tools| tools.sizes().find_tools().1),
            provider_tokens: self.provider_tokens,
            tool_tokens: Vec::new(),
        }
    }

    fn query(&self) -> Query {
        Query {
            hash: self.query.clone(),
            head: self.head.as_deref().map(str::to_owned),
            lang: script::of(&self.text).map(str::to_owned),
            text: self.log_text.then(|| self.text.clone()),
            embedder: if self.vectors.is_empty() { String::new() } else { self.embedder.clone() },
            vectors: self.vectors.clone(),
        }
    }

    fn block_hash(&self) -> String {
        let (Some(roster), Some(block)) = (&self.tools, &self.block) else { return String::new() };
        let find_tools = if self.searchable { roster.sizes().find_tools().0 } else { 0 };
        let contents = block.tools().map(|tool| roster.sizes().content(tool)).chain([find_tools]);
        let contents: Vec<u8> = contents.flat_map(u64::to_le_bytes).collect();
        format!("{:016x}", xxh3_64(&contents))
    }
}

impl From<&Call> for Called {
    fn from(call: &Call) -> Self {
        Self { name: call.name.clone(), verdict: call.verdict.label().to_owned(), rank: call.rank }
    }
}

/// A name for a record: never longer than a name should be.
fn cut(name: &str) -> String {
    name.get(..name.floor_char_boundary(NAME)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::policy::{Facts, test_policy};
    use crate::turn::selection::Selection;

    fn block() -> Block {
        let policy = test_policy();
        Block::begin(&Roster::new(&[], &policy, &|_| Facts::default()), &policy, &Selection::default())
    }

    #[test]
    fn the_header_counts_the_whole_roster_when_nothing_was_narrowed() {
        let mut outcome = Outcome { roster: 44, request: "r1".into(), reason: "no_query", ..Outcome::default() };
        outcome.roster_tokens = 12_000;
        assert_eq!(
            outcome.header(),
            "action=full;reason=no_query;roster=44;bound=44;saved_tokens=0;binding=;request=r1"
        );
        outcome.action = Action::Narrowed;
        outcome.reason = "";
        outcome.binding = "replace";
        outcome.bound = vec!["a".into(), "b".into()];
        outcome.block = Some(block());
        outcome.bound_tokens = 700;
        assert_eq!(
            outcome.header(),
            "action=narrowed;reason=;roster=44;bound=2;saved_tokens=11300;binding=replace;request=r1"
        );
    }

    #[test]
    fn a_record_has_no_usage_that_was_not_reported() {
        let mut outcome = Outcome::default();
        outcome.called("f", Verdict::Withheld);
        let record = outcome.decision();
        assert_eq!(record.usage, None);
        assert!(record.called[0].is_missed());
    }
}
