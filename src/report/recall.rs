//! Calls in shadow: which would have been bound, by tool, language and k, and what that says of narrowing. NOT calls of
//! tools that are never withheld: they cannot be missed, and counting them would flatter.

use serde::Serialize;

use super::compare::wilson;
use super::names::Names;
use super::ranks::{Point, Ranks, Stand};
use crate::decision::Decision;

/// Tools, and languages, that are told apart.
const TOOLS: usize = 2_000;
const LANGUAGES: usize = 64;
/// Messages kept for a tool that was missed.
const EXAMPLES: usize = 5;
/// A message is cut here, in characters.
const EXAMPLE_LENGTH: usize = 240;
/// Recall that is enough, and what its interval must not fall below. A miss is no failure: the model asks `find_tools`
/// for it, at the price of one more call.
pub const TARGET: f64 = 0.99;
pub const FLOOR: f64 = 0.97;
/// What records say where no language could be told.
const UNTOLD: &str = "not told";

/// Calls as they are read.
#[derive(Debug)]
pub struct Calls {
    k: usize,
    all: Ranks,
    /// Calls of tools that are never withheld.
    core: u64,
    tools: Names<Tool>,
    languages: Names<Ranks>,
}

/// Of one tool.
#[derive(Debug, Default)]
struct Tool {
    ranks: Ranks,
    examples: Vec<Example>,
}

/// A message whose tool was missed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Example {
    /// Digest of the message.
    pub query: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lang: Option<String>,
    /// Only where the log has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
}

/// What shadow says.
#[derive(Debug, Clone, Serialize)]
pub struct Recall {
    pub k: usize,
    /// Calls of tools that may be withheld.
    pub calls: u64,
    pub bound: u64,
    pub recall: f64,
    pub interval: (f64, f64),
    /// Calls of tools that are never withheld: no part of the figures.
    pub core_calls: u64,
    /// Tools with misses, most first.
    pub missed: Vec<Missed>,
    /// Tools, worst recall first.
    pub tools: Vec<Named>,
    pub languages: Vec<Named>,
    pub curve: Vec<Point>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommended_k: Option<usize>,
    pub verdict: Verdict,
    pub words: String,
}

/// A tool that was missed.
#[derive(Debug, Clone, Serialize)]
pub struct Missed {
    pub tool: String,
    pub misses: u64,
    pub calls: u64,
    /// The place that would have held half of the missed calls; absent: deeper than any k.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_rank: Option<usize>,
    pub examples: Vec<Example>,
}

/// Recall of a tool's or a language's calls.
#[derive(Debug, Clone, Serialize)]
pub struct Named {
    pub name: String,
    pub calls: u64,
    pub bound: u64,
    pub recall: f64,
    pub interval: (f64, f64),
    #[serde(skip)]
    pub curve: Vec<Point>,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Narrow: at this k enough would have been bound.
    Promote,
    /// A larger k binds enough.
    RaiseK,
    /// No k does: the catalog needs words.
    ImproveCatalog,
    /// So few calls say nothing either way.
    TooFewCalls,
}

impl Calls {
    /// `k`: of the sidecar that wrote the log.
    pub fn new(k: usize) -> Self {
        Self { k, all: Ranks::default(), core: 0, tools: Names::new(TOOLS), languages: Names::new(LANGUAGES) }
    }

    pub fn add(&mut self, decision: &Decision) {
        if decision.arm != "shadow" {
            return;
        }
        for call in &decision.called {
            let is_bound = !call.is_missed();
            if call.rank.is_none() && is_bound {
                self.core += 1;
                continue;
            }
            let stand = Stand { rank: call.rank, is_bound };
            self.all.add(stand, self.k);
            let query = decision.query.as_ref();
            let lang = query.and_then(|query| query.lang.as_deref()).unwrap_or(UNTOLD);
            self.languages.of(lang).add(stand, self.k);
            let tool = self.tools.of(&call.name);
            tool.ranks.add(stand, self.k);
            if let (false, Some(query)) = (is_bound, query) {
                let is_new = tool.examples.iter().all(|example| example.query != query.hash);
                if is_new && tool.examples.len() < EXAMPLES {
                    tool.examples.push(Example {
                        query: crate::chart::html::cut(&query.hash, 64),
                        lang: query.lang.as_deref().map(|lang| crate::chart::html::cut(lang, 16)),
                        text: query.text.as_deref().map(|text| crate::chart::html::cut(text, EXAMPLE_LENGTH)),
                        rank: call.rank,
                    });
                }
            }
        }
    }

    /// `None`: nothing was called in shadow that may be withheld.
    pub fn recall(&self) -> Option<Recall> {
        let (k, calls) = (self.k, self.all.calls());
        if calls == 0 {
            return None;
        }
        let mut missed: Vec<Missed> = Vec::new();
        let mut tools: Vec<Named> = Vec::new();
        for (name, tool) in self.tools.sorted() {
            let row = Named::of(name, &tool.ranks, k);
            if row.bound < row.calls {
                missed.push(Missed {
                    tool: name.to_owned(),
                    misses: row.calls - row.bound,
                    calls: row.calls,
                    median_rank: tool.ranks.median_missed(k),
                    examples: tool.examples.clone(),
                });
            }
            tools.push(row);
        }
        missed.sort_by_key(|missed| std::cmp::Reverse(missed.misses));
        tools.sort_by(|a, b| a.recall.total_cmp(&b.recall).then(b.calls.cmp(&a.calls)));
        let mut languages: Vec<Named> =
            self.languages.sorted().into_iter().map(|(name, ranks)| Named::of(name, ranks, k)).collect();
        languages.sort_by_key(|language| std::cmp::Reverse(language.calls));
        let is_enough = |k| self.all.recall(k) >= TARGET && wilson(self.all.bound(k), calls).0 >= FLOOR;
        let recommended_k = self.all.least(is_enough);
        let bound = self.all.bound(k);
        let verdict = match recommended_k {
            _ if wilson(calls, calls).0 < FLOOR => Verdict::TooFewCalls,
            Some(enough) if enough <= k => Verdict::Promote,
            Some(_) => Verdict::RaiseK,
            None => Verdict::ImproveCatalog,
        };
        let mut recall = Recall {
            k,
            calls,
            bound,
            recall: self.all.recall(k),
            interval: wilson(bound, calls),
            core_calls: self.core,
            missed,
            tools,
            languages,
            curve: self.all.curve(),
            recommended_k,
            verdict,
            words: String::new(),
        };
        recall.words = recall.said();
        Some(recall)
    }
}

impl Named {
    fn of(name: &str, ranks: &Ranks, k: usize) -> Self {
        let (calls, bound) = (ranks.calls(), ranks.bound(k));
        let (recall, interval) = (ranks.recall(k), wilson(bound, calls));
        Self { name: name.to_owned(), calls, bound, recall, interval, curve: ranks.curve() }
    }
}

impl Verdict {
    /// One word for a heading.
    pub fn label(self) -> &'static str {
        match self {
            Self::Promote => "PROMOTE",
            Self::RaiseK => "RAISE k",
            Self::ImproveCatalog => "NOT YET",
            Self::TooFewCalls => "TOO FEW CALLS",
        }
    }
}

impl Recall {
    /// "at k=12, 412 of 415 calls would have been bound; the 3 misses: …; recommended k 12".
    fn said(&self) -> String {
        let mut words = format!("at k={}, {} of {} calls would have been bound", self.k, self.bound, self.calls);
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
            Some(k) => words += &format!("; recommended k {k}"),
            None => words += "; no k up to 64 binds 99 %: see what to change in the catalog",
        }
        words
    }
}

impl Example {
    /// The text where the log has it, else the digest.
    pub fn shown(&self) -> String {
        match &self.text {
            Some(text) => format!("\"{}\"", text.split_whitespace().collect::<Vec<_>>().join(" ")),
            None => format!("message {}", self.query),
        }
    }
}

impl Missed {
    fn said(&self) -> String {
        let rank = self.median_rank.map_or_else(|| "not among the first 64".to_owned(), |rank| format!("rank {rank}"));
        format!("{} {}x ({rank})", self.tool, self.misses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{Called, Query};

    fn shadow(tool: &str, rank: Option<usize>, verdict: &str, lang: &str) -> Decision {
        Decision {
            arm: "shadow".into(),
            query: Some(Query { hash: format!("h-{tool}"), lang: Some(lang.into()), ..Query::default() }),
            called: vec![Called { name: tool.into(), verdict: verdict.into(), rank }],
            ..Decision::default()
        }
    }

    #[test]
    fn the_sentence_of_the_issue() {
        let mut calls = Calls::new(12);
        for n in 0..412 {
            calls.add(&shadow("search", Some(n % 12 + 1), "bound", "en"));
        }
        calls.add(&shadow("whoami", None, "bound", "en"));
        calls.add(&shadow("invoice", Some(14), "withheld", "ar"));
        calls.add(&shadow("invoice", Some(14), "withheld", "ar"));
        calls.add(&shadow("export", None, "withheld", "en"));
        let mut narrowed = shadow("export", Some(40), "withheld", "en");
        narrowed.arm = "narrow".into();
        calls.add(&narrowed);
        let recall = calls.recall().expect("calls");
        assert_eq!(
            recall.words,
            "at k=12, 412 of 415 calls would have been bound; the 3 misses: invoice 2x (rank 14), export 1x (not among \
             the first 64); recommended k 12"
        );
        assert_eq!((recall.verdict, recall.core_calls), (Verdict::Promote, 1));
        assert_eq!(recall.missed[0].examples.len(), 1, "one message");
        assert_eq!((recall.tools[0].name.as_str(), recall.tools[0].recall), ("invoice", 0.0));
        assert_eq!((recall.languages[1].name.as_str(), recall.languages[1].bound), ("ar", 0));
    }

    #[test]
    fn verdicts() {
        let of = |shadowed: &[(usize, Option<usize>, &str)]| {
            let mut calls = Calls::new(12);
            for (count, rank, verdict) in shadowed {
                (0..*count).for_each(|_| calls.add(&shadow("t", *rank, verdict, "en")));
            }
            calls.recall().expect("calls")
        };
        assert_eq!(of(&[(50, Some(1), "bound")]).verdict, Verdict::TooFewCalls);
        let raise = of(&[(300, Some(3), "bound"), (20, Some(16), "withheld")]);
        assert_eq!((raise.verdict, raise.recommended_k), (Verdict::RaiseK, Some(16)));
        assert_eq!(of(&[(300, Some(3), "bound"), (20, Some(90), "withheld")]).verdict, Verdict::ImproveCatalog);
        let fewer = of(&[(300, Some(3), "bound")]);
        assert_eq!((fewer.verdict, fewer.recommended_k), (Verdict::Promote, Some(3)));
        assert!(Calls::new(12).recall().is_none());
    }
}
