//! What shadow's recall says of narrowing, as one word and as a sentence. NOT the counting.

use serde::Serialize;

use super::recall::{Missed, Recall};

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Narrow: enough would have been bound.
    Promote,
    /// A larger k binds enough.
    RaiseK,
    /// One k for every message binds enough, what was selected did not.
    SetK,
    /// Enough was selected: blocks that stayed kept it out.
    KeptOut,
    /// No k does: the catalog needs words.
    ImproveCatalog,
    /// So few calls say nothing either way.
    TooFewCalls,
}

impl Verdict {
    /// One word for a heading.
    pub fn label(self) -> &'static str {
        match self {
            Self::Promote => "PROMOTE",
            Self::RaiseK => "RAISE k",
            Self::SetK => "SET k",
            Self::ImproveCatalog | Self::KeptOut => "NOT YET",
            Self::TooFewCalls => "TOO FEW CALLS",
        }
    }
}

impl Recall {
    /// `at k=12`, or what was selected on average.
    pub fn width(&self) -> String {
        match self.k {
            Some(k) => format!("at k={k}"),
            None => format!("with {:.1} tools selected on average", self.selected),
        }
    }

    /// "at k=12, 412 of 415 calls would have been bound; the 3 misses: …; recommended k 12".
    pub(super) fn said(&self) -> String {
        let mut words = format!("{}, {} of {} calls would have been bound", self.width(), self.bound, self.calls);
        let misses = self.calls - self.bound;
        if misses > 0 {
            const NAMED: usize = 5;
            let named: Vec<String> = self.missed.iter().take(NAMED).map(Missed::said).collect();
            let rest: u64 = self.missed.iter().skip(NAMED).map(|missed| missed.misses).sum();
            let rest = if rest > 0 { format!(", {rest} of other tools") } else { String::new() };
            let noun = if misses == 1 { "miss" } else { "misses" };
            words += &format!("; the {misses} {noun}: {}{rest}", named.join(", "));
        }
        match self.recommended_k {
            _ if self.verdict == Verdict::TooFewCalls => {
                words += "; too few calls to recommend a k: not even a perfect record of so few would show 97 %";
            }
            _ if self.verdict == Verdict::KeptOut => {
                words += "; enough was selected, but blocks that earlier turns had bound stayed and kept it out: a larger \
                          sticky_need changes them sooner";
            }
            // What varies by message suffices: a number that all share is no improvement unless it is smaller.
            Some(k) if self.verdict == Verdict::Promote && self.k.is_none() => {
                if (k as f64) < self.selected {
                    words += &format!("; a fixed k of {k} would have been enough, too");
                }
            }
            Some(k) if self.k.is_none() => words += &format!("; recommended k {k} for every message"),
            Some(k) => words += &format!("; recommended k {k}"),
            None if self.verdict == Verdict::Promote => {}
            None => words += "; no k up to 64 binds 99 %: see what to change in the catalog",
        }
        words
    }
}

impl Missed {
    fn said(&self) -> String {
        let rank = self.median_rank.map_or_else(|| "not among the first 64".to_owned(), |rank| format!("rank {rank}"));
        format!("{} {}x ({rank})", self.tool, self.misses)
    }
}
