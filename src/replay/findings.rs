//! What the played traffic comes to: for each model a row for each policy, and the policy to use. For a machine, for a
//! terminal. NOT the page (`page`), NOT the playing.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use super::ledger::Ledger;
use super::models::Models;
use super::read::Passed;
use crate::chart::number::{count, percent, usd};
use crate::cost::policy::{Able, Policy, WORTH_A_DETOUR, choose};

/// All of it.
#[derive(Debug, Clone, Serialize)]
pub struct Findings {
    pub models: Vec<Model>,
    /// Records that were not played.
    pub passed: Passed,
    /// Lines that are no record.
    pub unreadable: u64,
}

/// One model's traffic.
#[derive(Debug, Clone, Serialize)]
pub struct Model {
    pub model: String,
    pub requests: u64,
    pub conversations: u64,
    /// What a cached token costs of a fresh one; 1: no cache.
    pub ratio: f64,
    /// USD per million input tokens; `None`: no price is known.
    pub input_price: Option<f64>,
    pub policies: Vec<Row>,
    /// The cheapest of those that this model can be served with.
    pub cheapest: &'static str,
    /// What `binding = "auto"` takes for traffic of this shape.
    pub auto: &'static str,
    /// Lines of configuration.
    pub advice: String,
    pub reported: Reported,
    pub shape: Shape,
}

/// One policy.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    pub policy: &'static str,
    pub prompt_tokens: u64,
    pub cached_tokens: u64,
    /// Input at full price: a cached token counts its ratio.
    pub weighed_tokens: f64,
    /// Against `full`: below 0 is saved.
    pub change: f64,
    pub extra_legs: u64,
    /// Input and output.
    pub usd: Option<f64>,
    /// Requests so far, and USD (tokens where there is no price) of input: the curve.
    #[serde(skip)]
    pub curve: Vec<(f64, f64)>,
}

/// What the provider said of these requests, as they were sent.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Reported {
    pub requests: u64,
    pub prompt_tokens: u64,
    pub cached_tokens: u64,
    pub completion_tokens: u64,
}

/// Averages that the choice rests on.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Shape {
    pub turns: f64,
    pub calls: f64,
    pub roster_tokens: f64,
    pub bound_tokens: f64,
    pub first_history_tokens: f64,
    pub growth_tokens: f64,
    pub searches: f64,
    pub new_needs: f64,
    /// Share of conversations that begin while the roster is still cached from another.
    pub warm: f64,
}

impl Findings {
    pub fn of(models: &Models) -> Self {
        let played = models.ledgers.iter().map(|(name, ledger)| Model::of(name, ledger)).collect();
        Self { models: played, passed: models.passed(), unreadable: models.unreadable }
    }

    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// For a person.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for model in &self.models {
            model.text(&mut out);
        }
        let Passed { untouched, roster_unknown, failed, models } = self.passed;
        for (number, why) in [
            (untouched, "had no tools or could not be read: every policy sends them as they are"),
            (roster_unknown, "name a roster whose sizes stand in no record of these files"),
            (failed, "failed"),
            (models, "are of models beyond the sixteen that are told apart"),
            (self.unreadable, "lines are no record"),
        ] {
            if number > 0 {
                let _ = writeln!(out, "Not played: {} {why}.", count(number as i64));
            }
        }
        out
    }
}

impl Model {
    fn of(name: &str, ledger: &Ledger) -> Self {
        let weighed = |policy: Policy| {
            let player = ledger.played().find(|(player, _)| player.policy() == policy);
            player.map_or(0.0, |(player, _)| ledger.weighed(player))
        };
        let full = weighed(Policy::Full);
        let change = |policy| if full > 0.0 { weighed(policy) / full - 1.0 } else { 0.0 };
        let policies = ledger.played().map(|(player, curve)| {
            let sum = player.sum();
            Row {
                policy: player.policy().label(),
                prompt_tokens: sum.input.prompt,
                cached_tokens: if ledger.terms.cached { sum.input.cached } else { 0 },
                weighed_tokens: ledger.weighed(player),
                change: change(player.policy()),
                extra_legs: sum.extra_legs,
                usd: ledger.usd(player),
                curve: curve.to_vec(),
            }
        });
        let Able { append, dispatch } = ledger.terms.able;
        let served = [
            (Policy::Append, append),
            (Policy::Sticky, true),
            (Policy::EveryTurn, true),
            (Policy::Dispatch, dispatch),
            (Policy::Full, true),
        ];
        let mut cheapest = Policy::Full;
        for (policy, able) in served {
            // Of equals the first; dispatch, a detour for the model, must save more than the others.
            let handicap = if policy == Policy::Dispatch { WORTH_A_DETOUR } else { 0.999 };
            let better = cheapest == Policy::Full || weighed(policy) < weighed(cheapest) * handicap;
            if able && better && change(policy) < 0.0 {
                cheapest = policy;
            }
        }
        let traffic = ledger.traffic();
        Self {
            model: name.to_owned(),
            requests: ledger.requests,
            conversations: ledger.conversations(),
            ratio: ledger.ratio(),
            input_price: ledger.terms.price.map(|price| price.input),
            policies: policies.collect(),
            cheapest: cheapest.label(),
            auto: choose(&traffic, ledger.terms.able).label(),
            advice: advice(cheapest).to_owned(),
            reported: Reported {
                requests: ledger.reported_requests,
                prompt_tokens: ledger.reported.prompt,
                cached_tokens: ledger.reported.cached,
                completion_tokens: ledger.reported.completion,
            },
            shape: Shape {
                turns: traffic.turns,
                calls: traffic.calls,
                roster_tokens: traffic.roster,
                bound_tokens: traffic.bound,
                first_history_tokens: traffic.system,
                growth_tokens: traffic.step,
                searches: traffic.expansions,
                new_needs: traffic.needs,
                warm: traffic.warm,
            },
        }
    }

    fn text(&self, out: &mut String) {
        let Shape { turns, calls, roster_tokens, bound_tokens, growth_tokens, searches, .. } = self.shape;
        let _ = writeln!(
            out,
            "{}: {} requests, {} conversations, a cached token costs {:.3} of a fresh one{}",
            plain(&self.model),
            count(self.requests as i64),
            count(self.conversations as i64),
            self.ratio,
            if self.input_price.is_none() { " (no price is known: tokens only)" } else { "" },
        );
        let _ = writeln!(
            out,
            "On average {turns:.1} turns of {calls:.1} requests, {roster_tokens:.0} tokens of tools of which \
             {bound_tokens:.0} are bound, {growth_tokens:.0} more a request, {searches:.1} searches a conversation."
        );
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        table.set_header(["policy", "prompt tokens", "cached", "at full price", "against full", "extra legs", "cost"]);
        for row in &self.policies {
            let full = row.policy == Policy::Full.label();
            table.add_row([
                row.policy.to_owned(),
                count(row.prompt_tokens as i64),
                percent(share(row.cached_tokens, row.prompt_tokens)),
                count(row.weighed_tokens.round() as i64),
                if full { "–".to_owned() } else { change(row.change) },
                count(row.extra_legs as i64),
                row.usd.map_or_else(|| "–".to_owned(), usd),
            ]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let _ = writeln!(out, "{}", table.lines().map(|line| line.trim_end().to_owned() + "\n").collect::<String>());
        if self.reported.requests > 0 {
            let Reported { requests, prompt_tokens, cached_tokens, .. } = self.reported;
            let _ = writeln!(
                out,
                "As they were sent, the provider reported for {} requests {} prompt tokens, {} of them cached.",
                count(requests as i64),
                count(prompt_tokens as i64),
                percent(share(cached_tokens, prompt_tokens)),
            );
            let full = self.policies.iter().find(|row| row.policy == Policy::Full.label());
            if full.is_some_and(|row| {
                share(row.cached_tokens, row.prompt_tokens) - share(cached_tokens, prompt_tokens) > APART
            }) {
                out.push_str(
                    "The simulated cache reads far more than that: this provider may keep no prefix, or not as long. See \
                     --no-cache before you follow what is said below.\n",
                );
            }
        }
        let _ = writeln!(out, "Use {} for this traffic: {}", self.cheapest, self.advice);
        let _ = writeln!(out, "(binding = \"auto\" takes {} where it knows this shape.)\n", self.auto);
    }
}

/// A simulated share of cached tokens that leads the reported one by more than this is no simulation of that provider.
const APART: f64 = 0.2;

fn share(cached: u64, prompt: u64) -> f64 {
    cached as f64 / prompt.max(1) as f64
}

/// The lines of configuration that are this policy.
fn advice(policy: Policy) -> &'static str {
    match policy {
        Policy::Append => "binding = \"append\"",
        Policy::Dispatch => "binding = \"dispatch\"",
        Policy::EveryTurn => "binding = \"replace\", stability = \"turn\"",
        Policy::Full => "mode = \"off\": no narrowing pays here",
        _ => "binding = \"replace\", stability = \"sticky\"",
    }
}

fn change(share: f64) -> String {
    let text = percent(share);
    if share > 0.0 { format!("+{text}") } else { text }
}

/// A name that cannot move a terminal's cursor.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).take(120).collect()
}
