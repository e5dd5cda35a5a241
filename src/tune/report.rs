//! What a head changes, told to a person or a machine, and whether that is a gain. NOT the measuring.

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use super::judge::Judged;
use crate::eval::figures::Interval;
use crate::eval::report::percent;
use crate::retrieval::width::Width;

/// What was learnt from, and what it changes.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Identity of the embedder.
    pub model: String,
    /// Tools selected for a message.
    pub k: Width,
    pub learnt_from: usize,
    /// Of fitting and judging; embedding is not part of it.
    pub seconds: f64,
    pub judged: Vec<Judged>,
}

impl Report {
    /// Do messages that were not learnt from gain beyond chance, and do tools that were not learnt from lose nothing?
    /// Otherwise why not.
    pub fn verdict(&self) -> Result<(), String> {
        let all = |part: &str| self.judged.iter().rfind(|judged| judged.part == part);
        let Some(messages) = all("new messages") else { return Err("no message was held out".into()) };
        if messages.gain_overall.low <= 0.0 || messages.gain.share < 0.0 {
            return Err(format!("the messages held out do not gain beyond chance: {}", signed(&messages.gain_overall)));
        }
        match all("new tools") {
            Some(tools) if tools.gain_overall.high < 0.0 => {
                Err(format!("tools that were not learnt from lose: {}", signed(&tools.gain_overall)))
            }
            _ => Ok(()),
        }
    }

    /// For a person.
    pub fn text(&self) -> String {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_BORDERS_ONLY);
        let (k, gain) = (format!("@{}", self.k), format!("gain @{} [95 %]", self.k));
        table.set_header(["held out", "language", "cases", "all@1", "@5", &k, &gain]);
        for judged in &self.judged {
            let mut row = vec![judged.part.clone(), judged.lang.clone(), judged.cases.to_string()];
            let pairs = judged.before.iter().zip(&judged.after);
            row.extend(pairs.map(|(before, after)| format!("{} -> {}", percent(before), percent(after))));
            row.push(signed(&judged.gain));
            table.add_row(row);
        }
        for column in table.column_iter_mut().skip(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let (model, count, seconds) = (&self.model, self.learnt_from, self.seconds);
        let verdict = match self.verdict() {
            Ok(()) => "The messages held out gain.".to_owned(),
            Err(why) => format!("No gain: {why}."),
        };
        format!("{model}\n{count} labelled messages, fitted and judged in {seconds:.1} s\n\n{table}\n\n{verdict}\n")
    }

    /// For a machine.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(&serde_json::json!({ "gains": self.verdict().is_ok(), "report": self }))
            .unwrap_or_default()
    }
}

/// A difference of shares and its interval, in points.
fn signed(interval: &Interval) -> String {
    let points = |share: f64| format!("{:+.1}", share * 100.0);
    format!("{} [{}, {}]", points(interval.share), points(interval.low), points(interval.high))
}
