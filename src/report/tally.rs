//! Everything that is kept of a log while it is read. Its size does not depend on the log's. NOT figures made of it.

use super::arms::Sums;
use super::conversations::Conversations;
use super::names::Names;
use super::recall::Calls;
use crate::cost::correction::Corrections;
use crate::decision::Decision;

/// Tools that are told apart, and values of a field that is an enum.
const TOOLS: usize = 2_000;
const VALUES: usize = 64;

/// What a log comes to.
#[derive(Debug)]
pub struct Tally {
    pub records: u64,
    /// Lines that are no record, and the first of them.
    pub unreadable: u64,
    pub first_unreadable: Option<String>,
    /// Of the first and the last request, seconds.
    pub span: Option<(f64, f64)>,
    pub calls: Calls,
    pub sums: Sums,
    pub conversations: Conversations,
    /// What providers report for estimated tokens.
    pub corrections: Corrections,
    /// Why requests went in full.
    pub reasons: Names<u64>,
    pub causes: Names<u64>,
    pub searches: Names<u64>,
    /// Turns whose tools were chosen.
    pub turns: u64,
    pub tools: Names<Use>,
}

/// Of one tool, in all arms.
#[derive(Debug, Default)]
pub struct Use {
    /// Turns in which it was chosen, or would have been.
    pub chosen: u64,
    pub called: u64,
    /// Narrowed: a search had to find it, or the model called it unseen.
    pub searched: u64,
    pub unseen: u64,
    /// Estimated; 0: no record says.
    pub tokens: u64,
    /// Never withheld.
    pub always: bool,
}

impl Tally {
    /// `k`: what is asked about; `None`: what was served.
    pub fn new(k: Option<usize>) -> Self {
        Self {
            records: 0,
            unreadable: 0,
            first_unreadable: None,
            span: None,
            calls: Calls::new(k),
            sums: Sums::default(),
            conversations: Conversations::default(),
            corrections: Corrections::default(),
            reasons: Names::new(VALUES),
            causes: Names::new(VALUES),
            searches: Names::new(VALUES),
            turns: 0,
            tools: Names::new(TOOLS),
        }
    }

    /// Counts one record.
    pub fn add(&mut self, decision: &Decision) {
        self.records += 1;
        if decision.ts > 0.0 && decision.ts.is_finite() {
            let (first, last) = self.span.unwrap_or((decision.ts, decision.ts));
            self.span = Some((first.min(decision.ts), last.max(decision.ts)));
        }
        self.calls.add(decision);
        self.sums.add(decision);
        self.conversations.add(decision);
        let whole = matches!(decision.action.as_str(), "full" | "shadow" | "holdout") && decision.legs == 1;
        if let Some(usage) = decision.usage.as_ref().filter(|_| whole && decision.history_tokens > 0) {
            let estimated = decision.history_tokens + decision.roster.tokens;
            self.corrections.learn(&decision.model, usage.prompt, estimated);
        }
        if !decision.reason.is_empty() {
            self.reasons.count(&decision.reason);
        }
        if let Some(cause) = decision.block.as_ref().and_then(|block| block.cause.as_deref()) {
            self.causes.count(cause);
        }
        decision.searches.iter().for_each(|outcome| self.searches.count(outcome));
        for tool in &decision.roster.tool_tokens {
            let known = self.tools.of(&tool.name);
            (known.tokens, known.always) = (tool.tokens, tool.always);
        }
        if !decision.selection.is_empty() {
            self.turns += 1;
            decision.bound.iter().for_each(|name| self.tools.of(name).chosen += 1);
        }
        for call in &decision.called {
            let tool = self.tools.of(&call.name);
            tool.called += 1;
            if decision.arm == "narrow" {
                tool.searched += u64::from(call.verdict == "discovered");
                tool.unseen += u64::from(call.verdict == "withheld");
            }
        }
    }

    /// Counts a line that is none. `place`: file and line.
    pub fn unreadable(&mut self, place: String) {
        self.unreadable += 1;
        self.first_unreadable.get_or_insert(place);
    }
}
