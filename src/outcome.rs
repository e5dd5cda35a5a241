//! The outcome of ONE chat request, filled along the corridor and recorded once,
//! when the reply is over or its client is gone. Becomes metrics and one decision
//! record, so the two cannot disagree. NOT prompts, NOT keys.

use std::sync::Arc;
use std::time::Duration;

use crate::decision::{self, Called, Decision, Query, Saved, Scored, Timings, Used};
use crate::turn::fold::Cause;
use crate::turn::search;
use crate::wire::reply::Usage;

/// What was done with a request; the header's and the metrics' `action`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Action {
    /// The rewritten request was sent.
    Narrowed,
    /// The agent's own bytes were sent, for a reason.
    #[default]
    Full,
    /// The agent's own bytes were sent, watched.
    Shadow,
    /// The agent's own bytes were sent: this conversation is in the comparison group.
    Holdout,
    /// Packlight did not look at it.
    Relayed,
}

impl Action {
    pub fn label(self) -> &'static str {
        match self {
            Self::Narrowed => "narrowed",
            Self::Full => "full",
            Self::Shadow => "shadow",
            Self::Holdout => "holdout",
            Self::Relayed => "relayed",
        }
    }

    /// Which group its usage counts for.
    pub fn arm(self) -> &'static str {
        match self {
            Self::Narrowed => "narrow",
            Self::Full => "bypass",
            Self::Shadow => "shadow",
            Self::Holdout => "holdout",
            Self::Relayed => "off",
        }
    }
}

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

/// The outcome of one request.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Id of this request, as in the header.
    pub request: String,
    /// Digest of the conversation.
    pub conversation: String,
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
    /// What the user wrote, only with `log.text = true`.
    pub text: Option<String>,
    /// Id of the head that had a part in the ranking.
    pub head: Option<Arc<str>>,
    /// Tools that the agent sent.
    pub roster: usize,
    /// Names that the model was sent, `find_tools` not counted; empty unless narrowed.
    pub bound: Vec<String>,
    /// The best of the selection; only known in the request that made it.
    pub selection: Vec<(String, f32)>,
    /// Estimated tokens of the roster and of the block.
    pub roster_tokens: u64,
    pub bound_tokens: u64,
    /// What searches came to, in order.
    pub searches: Vec<search::Outcome>,
    pub discovered: Vec<String>,
    pub called: Vec<(String, Verdict)>,
    pub legs: usize,
    pub usage: Usage,
    /// Status of the reply; 0: there was none.
    pub status: u16,
    pub embed: Option<Duration>,
    pub rank: Option<Duration>,
    /// Everything of ours before the upstream call.
    pub overhead: Duration,
    /// From the upstream call to the end of the reply.
    pub upstream_time: Duration,
}

impl Outcome {
    /// Estimated tokens that were not sent, per leg 1.
    pub fn saved_tokens(&self) -> i64 {
        match self.action {
            Action::Narrowed => self.roster_tokens as i64 - self.bound_tokens as i64,
            Action::Full | Action::Shadow | Action::Holdout | Action::Relayed => 0,
        }
    }

    /// How many of the agent's tools the model saw.
    pub fn bound_count(&self) -> usize {
        if self.action == Action::Narrowed { self.bound.len() } else { self.roster }
    }

    /// The value of the `x-packlight` response header.
    pub fn header(&self) -> String {
        format!(
            "action={};reason={};roster={};bound={};saved_tokens={};binding={};request={}",
            self.action.label(),
            self.reason,
            self.roster,
            self.bound_count(),
            self.saved_tokens(),
            self.binding,
            self.request
        )
    }

    /// The decision record.
    pub fn decision(&self) -> Decision {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Decision {
            ts: self.ts,
            request: self.request.clone(),
            conversation: self.conversation.clone(),
            turn: self.turn,
            call: self.call,
            upstream: self.upstream.clone(),
            wire: self.wire.to_owned(),
            model: self.model.clone(),
            mode: self.mode.to_owned(),
            arm: self.action.arm().to_owned(),
            action: self.action.label().to_owned(),
            reason: self.reason.to_owned(),
            binding: self.binding.to_owned(),
            status: self.status,
            legs: self.legs,
            block: (!self.bound.is_empty()).then(|| decision::Block {
                hash: String::new(),
                cause: self.causes.first().map(|cause| cause.label().to_owned()),
                tokens: self.bound_tokens,
            }),
            roster: decision::Roster { count: self.roster, tokens: self.roster_tokens, ..decision::Roster::default() },
            history_tokens: 0,
            bound: self.bound.clone(),
            selection: self
                .selection
                .iter()
                .map(|(name, score)| Scored { name: name.clone(), score: *score })
                .collect(),
            query: (!self.query.is_empty()).then(|| Query {
                hash: self.query.clone(),
                text: self.text.clone(),
                head: self.head.as_deref().map(str::to_owned),
                ..Query::default()
            }),
            searches: self.searches.iter().map(|search| search.label().to_owned()).collect(),
            discovered: self.discovered.clone(),
            called: self
                .called
                .iter()
                .map(|(name, verdict)| Called { name: name.clone(), verdict: verdict.label().to_owned(), rank: None })
                .collect(),
            usage: self.usage.reported.then_some(Used {
                prompt: self.usage.prompt,
                cached: self.usage.cached,
                completion: self.usage.completion,
            }),
            cost_usd: None,
            saved: Saved { tokens: self.saved_tokens(), usd: None },
            timings_us: Timings {
                embed: self.embed.map(micros),
                rank: self.rank.map(micros),
                total: micros(self.overhead),
                upstream: micros(self.upstream_time),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        outcome.bound_tokens = 700;
        assert_eq!(
            outcome.header(),
            "action=narrowed;reason=;roster=44;bound=2;saved_tokens=11300;binding=replace;request=r1"
        );
    }

    #[test]
    fn a_record_has_no_usage_that_was_not_reported() {
        let outcome = Outcome { called: vec![("f".into(), Verdict::Withheld)], ..Outcome::default() };
        let record = outcome.decision();
        assert_eq!(record.usage, None);
        assert!(record.called[0].is_missed());
    }
}
