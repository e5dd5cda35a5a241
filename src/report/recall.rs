//! Calls in shadow: which would have been bound, by tool, language and k, and what that says of narrowing. NOT calls of
//! tools that are never withheld: they cannot be missed, and counting them would flatter.

use serde::Serialize;

use super::compare::wilson;
use super::names::Names;
use super::ranks::{Point, Ranks, Stand};
pub use super::verdict::Verdict;
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
/// What was selected where a record does not say: those of earlier versions.
const EARLIER: usize = 12;

/// Calls as they are read.
#[derive(Debug)]
pub struct Calls {
    /// What is asked about; `None`: what was served.
    k: Option<usize>,
    all: Ranks,
    selected: Selected,
    /// Calls of tools that are never withheld.
    core: u64,
    tools: Names<Tool>,
    languages: Names<Ranks>,
    /// Requests for which nothing was chosen, by why.
    unchosen: Names<u64>,
}

/// How many tools were selected, over the calls.
#[derive(Debug, Default)]
struct Selected {
    sum: u64,
    calls: u64,
    range: Option<(usize, usize)>,
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
    /// What was asked about, or what was selected for every call's message; absent: that was not one number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k: Option<usize>,
    /// How many tools were selected for a call's message, on average.
    pub selected: f64,
    /// Calls of tools that may be withheld.
    pub calls: u64,
    /// By the rank at the k that was asked about, else as served.
    pub bound: u64,
    /// As the log has it, blocks that stayed and what they kept out counted.
    pub served: u64,
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

impl Calls {
    /// `k`: what is asked about; `None`: what was served.
    pub fn new(k: Option<usize>) -> Self {
        Self {
            k,
            all: Ranks::default(),
            selected: Selected::default(),
            core: 0,
            tools: Names::new(TOOLS),
            languages: Names::new(LANGUAGES),
            unchosen: Names::new(LANGUAGES),
        }
    }

    pub fn add(&mut self, decision: &Decision) {
        if decision.arm != "shadow" {
            return;
        }
        // Nobody judged its calls.
        if decision.block.is_none() && !decision.reason.is_empty() {
            self.unchosen.count(&decision.reason);
            return;
        }
        let selected = decision.selected.unwrap_or(EARLIER);
        for call in &decision.called {
            let is_bound = !call.is_missed();
            if call.rank.is_none() && is_bound {
                self.core += 1;
                continue;
            }
            let stand = Stand { rank: call.rank, is_bound };
            self.all.add(stand, selected);
            self.selected.add(selected);
            let query = decision.query.as_ref();
            let lang = query.and_then(|query| query.lang.as_deref()).unwrap_or(UNTOLD);
            self.languages.of(lang).add(stand, selected);
            let tool = self.tools.of(&call.name);
            tool.ranks.add(stand, selected);
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
        let (asked, calls) = (self.k, self.all.calls());
        if calls == 0 {
            return None;
        }
        let mut missed: Vec<Missed> = Vec::new();
        let mut tools: Vec<Named> = Vec::new();
        for (name, tool) in self.tools.sorted() {
            let row = Named::of(name, &tool.ranks, asked);
            if row.bound < row.calls {
                missed.push(Missed {
                    tool: name.to_owned(),
                    misses: row.calls - row.bound,
                    calls: row.calls,
                    median_rank: tool.ranks.median_missed(asked),
                    examples: tool.examples.clone(),
                });
            }
            tools.push(row);
        }
        missed.sort_by_key(|missed| std::cmp::Reverse(missed.misses));
        tools.sort_by(|a, b| a.recall.total_cmp(&b.recall).then(b.calls.cmp(&a.calls)));
        let mut languages: Vec<Named> =
            self.languages.sorted().into_iter().map(|(name, ranks)| Named::of(name, ranks, asked)).collect();
        languages.sort_by_key(|language| std::cmp::Reverse(language.calls));
        let is_enough = |bound: u64| bound as f64 >= TARGET * calls as f64 && wilson(bound, calls).0 >= FLOOR;
        let recommended_k = self.all.least(|k| is_enough(self.all.bound(k)));
        let (k, served) = (asked.or(self.selected.one()), self.all.served());
        let bound = self.all.held(asked);
        let verdict = match (recommended_k, k) {
            _ if wilson(calls, calls).0 < FLOOR => Verdict::TooFewCalls,
            _ if is_enough(bound) => Verdict::Promote,
            // No k helps against a block that stays.
            _ if asked.is_none() && is_enough(served + self.all.kept_out()) => Verdict::KeptOut,
            (Some(_), Some(_)) => Verdict::RaiseK,
            (Some(_), None) => Verdict::SetK,
            (None, _) => Verdict::ImproveCatalog,
        };
        let mut recall = Recall {
            k,
            selected: self.selected.mean(),
            calls,
            bound,
            served,
            recall: self.all.recall(asked),
            interval: wilson(bound, calls),
            core_calls: self.core,
            missed,
            tools,
            languages,
            curve: self.all.curve(),
            recommended_k: recommended_k.filter(|_| verdict != Verdict::KeptOut),
            verdict,
            words: String::new(),
        };
        recall.words = recall.said();
        Some(recall)
    }

    /// Why nothing was chosen for requests in shadow, most first.
    pub fn unchosen(&self) -> Vec<(String, u64)> {
        self.unchosen.ranked()
    }
}

impl Selected {
    fn add(&mut self, selected: usize) {
        self.sum = self.sum.saturating_add(selected as u64);
        self.calls += 1;
        let (least, most) = self.range.unwrap_or((selected, selected));
        self.range = Some((least.min(selected), most.max(selected)));
    }

    fn one(&self) -> Option<usize> {
        self.range.filter(|(least, most)| least == most).map(|(one, _)| one)
    }

    fn mean(&self) -> f64 {
        if self.calls > 0 { self.sum as f64 / self.calls as f64 } else { 0.0 }
    }
}

impl Named {
    /// `k`: what is asked about; `None`: what was served.
    fn of(name: &str, ranks: &Ranks, k: Option<usize>) -> Self {
        let (calls, bound) = (ranks.calls(), ranks.held(k));
        let (recall, interval) = (ranks.recall(k), wilson(bound, calls));
        Self { name: name.to_owned(), calls, bound, recall, interval, curve: ranks.curve() }
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
        let mut calls = Calls::new(None);
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
            let mut calls = Calls::new(None);
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
        assert!(Calls::new(None).recall().is_none());
        let mut calls = Calls::new(None);
        (0..300).for_each(|_| calls.add(&shadow("t", Some(3), "bound", "en")));
        // A block that stayed is no question of k.
        (0..20).for_each(|_| calls.add(&shadow("t", Some(2), "withheld", "en")));
        let kept_out = calls.recall().expect("calls");
        assert_eq!((kept_out.verdict, kept_out.verdict.label()), (Verdict::KeptOut, "NOT YET"));
        assert_eq!((kept_out.bound, kept_out.recommended_k), (300, None));
        assert!(kept_out.words.contains("sticky_need"), "{}", kept_out.words);
    }

    /// `auto`: what counts is what was served, and k is a question of its own.
    #[test]
    fn a_log_without_one_k_is_judged_as_it_was_served() {
        let log = |k: Option<usize>, missed: usize| {
            let mut calls = Calls::new(k);
            let mut add = |rank, verdict, selected| {
                let decision = Decision { selected: Some(selected), ..shadow("t", Some(rank), verdict, "en") };
                calls.add(&decision);
            };
            (0..200).for_each(|_| add(2, "bound", 8));
            (0..200).for_each(|n| add(13 + n % 8, "bound", 20));
            (0..missed).for_each(|_| add(24, "withheld", 20));
            calls.recall().expect("calls")
        };
        let served = log(None, 0);
        assert_eq!((served.k, served.selected, served.bound, served.verdict), (None, 14.0, 400, Verdict::Promote));
        assert_eq!(served.words, "with 14.0 tools selected on average, 400 of 400 calls would have been bound");
        assert_eq!([1, 12, 20].map(|k| served.curve[k - 1].bound), [0, 200, 400]);
        let asked = log(Some(12), 0);
        assert_eq!((asked.k, asked.bound, asked.served, asked.verdict), (Some(12), 200, 400, Verdict::RaiseK));
        let more = log(None, 20);
        assert_eq!((more.bound, more.verdict, more.recommended_k), (400, Verdict::SetK, Some(24)));
        assert!(
            more.words.ends_with("the 20 misses: t 20x (rank 24); recommended k 24 for every message"),
            "{}",
            more.words
        );
    }
}
