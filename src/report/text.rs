//! The report for a terminal. Whatever a name holds, it cannot move the cursor. NOT figures of its own.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table, presets};

use super::compare::Change;
use super::conversations::Comparison;
use super::recall::{Named, Recall};
use super::summary::Summary;
use crate::chart::number::{count, percent, usd};

/// Rows of a table that a person reads; `--json` has all.
const ROWS: usize = 15;

impl Summary {
    /// For a person.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "{} records of {} conversations, {} to {} UTC",
            count(self.records as i64),
            count(self.conversations as i64),
            if self.from.is_empty() { "-" } else { &self.from },
            if self.to.is_empty() { "-" } else { &self.to },
        );
        if let Some(place) = &self.first_unreadable {
            let _ = writeln!(out, "{} lines are no record, the first is {}", self.unreadable, plain(place));
        }
        if let Some(recall) = &self.recall {
            recall_text(&mut out, recall);
        }
        self.savings(&mut out);
        list(&mut out, "Sent in full, by reason", &self.reasons);
        list(&mut out, "Block changes, by cause", &self.causes);
        list(&mut out, "Searches, by what they came to", &self.searches);
        if !self.advice.is_empty() {
            out.push_str("\nWhat to change\n");
            for advice in &self.advice {
                let _ = writeln!(out, "  {}: {}", plain(&advice.about), plain(&advice.why));
                advice.toml.lines().for_each(|line| {
                    let _ = writeln!(out, "      {}", plain(line));
                });
            }
        }
        if !self.notes.is_empty() {
            out.push_str("\nWhat these figures do not say\n");
            self.notes.iter().for_each(|note| {
                let _ = writeln!(out, "  {note}");
            });
        }
        out
    }

    fn savings(&self, out: &mut String) {
        if self.arms.is_empty() {
            return;
        }
        let mut arms = table(&["arm", "requests", "prompt tokens", "cached", "completion", "cost"]);
        for arm in &self.arms {
            arms.add_row([
                arm.arm.to_owned(),
                count(arm.requests as i64),
                count(arm.prompt as i64),
                percent(arm.cached_share()),
                count(arm.completion as i64),
                usd(arm.cost_usd),
            ]);
        }
        let _ = writeln!(out, "\nUsage as providers report it, by arm\n{}", aligned(arms));
        for arm in self.arms.iter().filter(|arm| arm.valued > 0 || arm.saved_tokens != 0) {
            let would = if arm.arm == "shadow" { "would have been saved" } else { "saved" };
            let _ = writeln!(
                out,
                "{}: {} tool tokens {would} (estimate){}",
                arm.arm,
                count(arm.saved_tokens),
                if arm.valued > 0 {
                    format!(", {} net of the prompt cache", usd(arm.saved_usd))
                } else {
                    String::new()
                }
            );
        }
        for (model, correction) in self.token_factors.iter().take(ROWS) {
            let said = correction.said();
            let _ = writeln!(out, "{}: tokens reported for each estimated: {said}", plain(model));
        }
        for comparison in &self.comparisons {
            let _ = writeln!(
                out,
                "\n{} {}: {} narrowed conversations against {} held out",
                plain(&comparison.upstream),
                plain(&comparison.model),
                count(comparison.narrow as i64),
                count(comparison.holdout as i64)
            );
            for (what, change) in comparison.rows() {
                let shown = if what.starts_with("cost") { usd } else { |tokens: f64| count(tokens.round() as i64) };
                let _ = writeln!(
                    out,
                    "  {what:<24} {} against {}: {}",
                    shown(change.narrow.mean),
                    shown(change.holdout.mean),
                    change.said()
                );
            }
        }
    }
}

impl Comparison {
    /// What is compared, in the order of a table.
    pub fn rows(&self) -> Vec<(&'static str, Change)> {
        let all = [
            ("cost per call", self.usd_per_call),
            ("cost per conversation", self.usd_per_conversation),
            ("prompt tokens per call", self.prompt_per_call),
        ];
        all.into_iter().filter_map(|(what, change)| Some((what, change?))).collect()
    }
}

impl Change {
    /// `38.2 % less (95 %: 46.0 % less to 30.1 % less)`, and whether chance could be behind it.
    pub fn said(&self) -> String {
        let said = |share: f64| {
            let word = if share > 0.0 { "more" } else { "less" };
            format!("{} {word}", percent(share.abs()))
        };
        match self.interval {
            None => format!("{}, too few conversations for an interval", said(self.share)),
            Some((low, high)) => {
                let chance = if low <= 0.0 && high >= 0.0 { "; not told from chance" } else { "" };
                format!("{} (95 %: {} to {}{chance})", said(self.share), said(low), said(high))
            }
        }
    }
}

fn recall_text(out: &mut String, recall: &Recall) {
    let (low, high) = recall.interval;
    let _ = writeln!(
        out,
        "\nRecall in shadow: {}\n  {}\n  {} of calls, 95 % interval {} to {}; {} calls of tools that are never withheld are \
         not counted",
        recall.verdict.label(),
        plain(&recall.words),
        percent(recall.recall),
        percent(low),
        percent(high),
        recall.core_calls
    );
    let mut curve = table(&["k", "bound", "of", "recall"]);
    let depths = [1, 5, 8, 12, 15, 20, 30, 64].into_iter().chain(recall.k).chain(recall.recommended_k);
    let mut depths: Vec<usize> = depths.collect();
    depths.sort_unstable();
    depths.dedup();
    for point in depths.iter().filter_map(|k| recall.curve.iter().find(|point| point.k == *k)) {
        let mark = if Some(point.k) == recall.k { " *" } else { "" };
        curve.add_row([
            format!("{}{mark}", point.k),
            count(point.bound as i64),
            count(recall.calls as i64),
            percent(point.recall),
        ]);
    }
    curve.add_row([
        "as served".to_owned(),
        count(recall.served as i64),
        count(recall.calls as i64),
        percent(recall.served as f64 / recall.calls as f64),
    ]);
    let _ = writeln!(out, "\n{}", aligned(curve));
    let _ = writeln!(out, "\n{}", aligned(named("language", &recall.languages)));
    let worst: Vec<Named> = recall.tools.iter().filter(|tool| tool.bound < tool.calls).cloned().collect();
    if !worst.is_empty() {
        let _ = writeln!(out, "\n{}", aligned(named("tool (with misses)", &worst)));
        let _ = writeln!(out, "\nMessages that missed");
    }
    // Two of each tool: the list is for finding words, and `--json` has more.
    let examples =
        recall.missed.iter().flat_map(|missed| missed.examples.iter().take(2).map(|one| (&missed.tool, one)));
    for (tool, example) in examples.take(ROWS) {
        let rank = example.rank.map_or_else(|| "no rank".to_owned(), |rank| format!("rank {rank}"));
        let _ = writeln!(out, "  {} ({rank}): {}", plain(tool), plain(&example.shown()));
    }
}

fn named(what: &str, rows: &[Named]) -> Table {
    let mut table = table(&[what, "bound", "of", "recall", "95 % interval"]);
    for row in rows.iter().take(ROWS) {
        let (low, high) = row.interval;
        table.add_row([
            plain(&row.name),
            count(row.bound as i64),
            count(row.calls as i64),
            percent(row.recall),
            format!("{} to {}", percent(low), percent(high)),
        ]);
    }
    table
}

fn table(heads: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(heads.iter().copied());
    table
}

fn aligned(mut table: Table) -> Table {
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table
}

fn list(out: &mut String, title: &str, counts: &[(String, u64)]) {
    if !counts.is_empty() {
        let shown = counts.iter().take(ROWS).map(|(name, total)| format!("{} {}", plain(name), count(*total as i64)));
        let _ = writeln!(out, "\n{title}\n  {}", shown.collect::<Vec<_>>().join(", "));
    }
}

/// Without what a terminal would obey.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
