//! The report as data: what `--json` prints and both pages show. NOT how.

use serde::Serialize;

use super::advice::{self, Advice};
use super::arms::{Arm, Day};
use super::conversations::Comparison;
use super::recall::Recall;
use super::tally::Tally;
use crate::chart::clock;
use crate::cost::correction::Correction;

/// Everything that a report says.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    pub records: u64,
    pub unreadable: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_unreadable: Option<String>,
    /// UTC; empty without a record.
    pub from: String,
    pub to: String,
    /// An estimate where `sampled` is below 1.
    pub conversations: u64,
    /// Share of conversations behind the comparisons.
    pub sampled: f64,
    /// Absent: nothing was called in shadow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall: Option<Recall>,
    pub arms: Vec<Arm>,
    pub comparisons: Vec<Comparison>,
    pub days: Vec<Day>,
    /// Prompt tokens that providers report for one that is estimated, by model, from requests sent in full.
    pub token_factors: Vec<(String, Correction)>,
    /// Why requests went in full, most first.
    pub reasons: Vec<(String, u64)>,
    /// Why blocks changed.
    pub causes: Vec<(String, u64)>,
    /// What searches came to.
    pub searches: Vec<(String, u64)>,
    pub advice: Vec<Advice>,
    /// What the figures do not say here.
    pub notes: Vec<String>,
}

impl Summary {
    pub fn of(tally: &Tally) -> Self {
        let recall = tally.calls.recall();
        let (from, to) = tally.span.map(|(from, to)| (clock::utc(from), clock::utc(to))).unwrap_or_default();
        let mut summary = Self {
            records: tally.records,
            unreadable: tally.unreadable,
            first_unreadable: tally.first_unreadable.clone(),
            from,
            to,
            conversations: tally.conversations.count(),
            sampled: tally.conversations.sampled(),
            advice: advice::advice(tally, recall.as_ref()),
            recall,
            arms: tally.sums.arms(),
            comparisons: tally.conversations.compared(),
            days: tally.sums.days(),
            token_factors: tally.corrections.known(),
            reasons: tally.reasons.ranked(),
            causes: tally.causes.ranked(),
            searches: tally.searches.ranked(),
            notes: Vec::new(),
        };
        summary.notes = summary.caveats(&tally.calls.unchosen());
        summary
    }

    /// For a machine.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Estimated savings of the narrowed requests, and of how many of them they are known.
    pub fn saved(&self) -> Option<&Arm> {
        self.arms.iter().find(|arm| arm.arm == "narrow")
    }

    /// `unchosen`: why shadow chose nothing.
    fn caveats(&self, unchosen: &[(String, u64)]) -> Vec<String> {
        let mut notes = Vec::new();
        let count = |arm: &str| self.arms.iter().find(|one| one.arm == arm).map_or(0, |one| one.requests);
        if self.recall.is_none() && !unchosen.is_empty() {
            notes.push(nothing_chosen(unchosen));
        } else if self.recall.is_none() {
            notes.push(
                "No tool that may be withheld was called in shadow, so there is no recall: run with mode = \"shadow\" \
                 first. Calls of narrowed requests cannot stand in for it: a model calls what it is shown."
                    .to_owned(),
            );
        }
        if count("narrow") > 0 && self.comparisons.is_empty() {
            notes.push(
                "No conversations were held out, so savings are estimates only: set percent below 100 to compare \
                 narrowed conversations with full ones."
                    .to_owned(),
            );
        }
        let unpriced: u64 = self.arms.iter().map(|arm| arm.unpriced).sum();
        if unpriced > 0 {
            notes.push(format!(
                "{unpriced} requests have usage and no price: name their model under [prices]. They are missing from \
                 every sum in dollars."
            ));
        }
        let silent: u64 = self.arms.iter().map(|arm| arm.requests - arm.reported).sum();
        if silent > 0 {
            notes.push(format!(
                "{silent} requests have no usage: the provider reported none, or the reply did not end. Streams of \
                 OpenAI-like providers report it with stream_options.include_usage."
            ));
        }
        let mixed: u64 = self.comparisons.iter().map(|one| one.mixed).sum();
        if mixed > 0 {
            notes.push(format!(
                "{mixed} conversations were narrowed in part (percent or a header changed on the way): compared with \
                 nothing."
            ));
        }
        if self.sampled < 1.0 {
            notes.push(format!(
                "Comparisons rest on {:.1} % of the conversations, sampled by their hash.",
                self.sampled * 100.0
            ));
        }
        notes
    }
}

/// Shadow ran and has no recall: why, and the way out of what has one.
fn nothing_chosen(unchosen: &[(String, u64)]) -> String {
    let named: Vec<String> = unchosen.iter().take(8).map(|(reason, count)| format!("{reason} {count}")).collect();
    let ways = [
        ("deadline", "a longer narrow.deadline or more CPU (a roster's first request embeds it)"),
        ("queue_full", "more CPU for the embedder"),
        ("model_absent", "the embedding model's file in its place (embeddings.model_path)"),
        ("embedder", "an embedder that answers ([embeddings], and the log of the sidecar)"),
    ];
    let ways: Vec<&str> = ways
        .into_iter()
        .filter(|(reason, _)| unchosen.iter().any(|(name, _)| name == reason))
        .map(|(_, way)| way)
        .collect();
    let ways = if ways.is_empty() { String::new() } else { format!(" What helps: {}.", ways.join("; ")) };
    format!(
        "Shadow ran and no call of it could be judged, so there is no recall: nothing was chosen, by reason {}.{ways}",
        named.join(", ")
    )
}
