//! Many shapes of conversations, and what `binding = "auto"` costs for each against the full roster: once it knows them,
//! and before. NOT the choice (`cost::policy`).

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use super::synthetic::Synthetic;
use crate::chart::number::percent;
use crate::cost::cache::Read;
use crate::cost::policy::{self, Able, EXPLORED, Policy, Traffic};

/// The axes, each from its least to its most in even proportions: conversations differ by factors.
pub const TURNS: [u32; 5] = [1, 2, 3, 6, 12];
pub const CALLS: [u32; 5] = [1, 2, 5, 10, 25];
pub const STEPS: [u32; 5] = [100, 250, 650, 1600, 4000];
pub const EXPANSIONS: [u32; 4] = [0, 1, 2, 3];
pub const RATIOS: [f64; 3] = [0.05, 0.10, 0.168];

/// One shape under one price.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    pub traffic: Traffic,
    /// Does the provider cache? If not, `traffic.ratio` is 1.
    pub cached: bool,
    /// As it is served once the traffic's averages are known: in full where that costs less, but for the share of
    /// conversations that is narrowed all the same.
    pub served: Chosen,
    /// As the first conversations are served, of which nothing is known but the price and the roster.
    pub first: Chosen,
    /// As [`Cell::served`], but narrowed in any case: what an explicit binding serves where it is chosen well.
    pub narrowed: Chosen,
}

#[derive(Debug, Clone, Copy)]
pub struct Chosen {
    pub policy: Policy,
    /// Input cost against the full roster's; 0: the same, below: less.
    pub change: f64,
}

/// Every cell, for models of each of these abilities. `tick` is called once for each of the [`shapes`].
pub fn grid<const MODELS: usize>(able: [Able; MODELS], mut tick: impl FnMut()) -> [Vec<Cell>; MODELS] {
    let mut grids = [const { Vec::new() }; MODELS];
    for shape in each() {
        // What is sent does not depend on the price: each policy is played once.
        let mut played = BTreeMap::new();
        for (cells, able) in grids.iter_mut().zip(able) {
            fill(cells, shape, able, &mut played);
        }
        tick();
    }
    grids
}

/// How many shapes there are, prices apart.
pub fn shapes() -> u64 {
    each().count() as u64
}

fn each() -> impl Iterator<Item = Traffic> {
    let turns = TURNS.into_iter().flat_map(|turns| CALLS.into_iter().map(move |calls| (turns, calls)));
    let steps = turns.flat_map(|(turns, calls)| STEPS.into_iter().map(move |step| (turns, calls, step)));
    let all = steps.flat_map(|(turns, calls, step)| EXPANSIONS.into_iter().map(move |e| (turns, calls, step, e)));
    all.map(|(turns, calls, step, expansions)| Traffic {
        turns: f64::from(turns),
        calls: f64::from(calls),
        step: f64::from(step),
        expansions: f64::from(expansions),
        ..Traffic::default()
    })
}

fn fill(cells: &mut Vec<Cell>, shape: Traffic, able: Able, played: &mut BTreeMap<Policy, Read>) {
    let mut cost = |policy: Policy, ratio: f64| {
        let play = || Synthetic { traffic: shape, ..Synthetic::default() }.play(policy).input;
        played.entry(policy).or_insert_with(play).weighed(ratio)
    };
    for price in RATIOS {
        for cached in [true, false] {
            let traffic = Traffic { ratio: if cached { price } else { 1.0 }, ..shape };
            let mut change = |policy: Policy| cost(policy, traffic.ratio) / cost(Policy::Full, traffic.ratio) - 1.0;
            let mut chosen = |policy: Policy, otherwise: Policy| match policy {
                Policy::Full => Chosen { policy, change: EXPLORED * change(otherwise) },
                policy => Chosen { policy, change: change(policy) },
            };
            let best = policy::narrowing(&traffic, able);
            let served = chosen(policy::choose(&traffic, able), best);
            let first = policy::guess(able);
            let first = chosen(first, first);
            let narrowed = chosen(best, best);
            cells.push(Cell { traffic, cached, served, first, narrowed });
        }
    }
}

/// What a set of cells comes to.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    pub cells: usize,
    pub median: f64,
    pub worst: f64,
    /// Cells that cost over 2 % more than the full roster.
    pub losing: usize,
    /// How often each policy was chosen.
    pub chosen: BTreeMap<&'static str, usize>,
}

impl Cell {
    fn is(&self, kind: &str) -> bool {
        match kind {
            "cache on" => self.cached,
            "cache off" => !self.cached,
            "no searches" => self.traffic.expansions < 1.0,
            _ => true,
        }
    }
}

/// A summary and what it is of.
#[derive(Debug, Clone, Serialize)]
pub struct Figures {
    pub models: &'static str,
    pub chosen_by: &'static str,
    pub cells: &'static str,
    #[serde(rename = "figures")]
    pub summary: Summary,
}

impl Summary {
    /// The figures of one kind of models: by who chooses, and which cells.
    pub fn figures(models: &'static str, cells: &[Cell]) -> Vec<Figures> {
        type Way = fn(&Cell) -> Chosen;
        let ways: [(&str, Way); 3] = [
            ("auto, as served once it knows the traffic", |cell| cell.served),
            ("auto, the first conversations", |cell| cell.first),
            ("who knows the traffic and narrows in any case", |cell| cell.narrowed),
        ];
        let mut all = Vec::new();
        for (chosen_by, way) in ways {
            for kind in ["all", "cache on", "cache off", "no searches"] {
                let summary = Self::of(cells.iter().filter(|cell| cell.is(kind)).map(way));
                all.push(Figures { models, chosen_by, cells: kind, summary });
            }
        }
        all
    }

    pub fn of(chosen: impl Iterator<Item = Chosen>) -> Self {
        let chosen: Vec<Chosen> = chosen.collect();
        let mut changes: Vec<f64> = chosen.iter().map(|chosen| chosen.change).collect();
        changes.sort_by(f64::total_cmp);
        let mut counts = BTreeMap::new();
        for chosen in &chosen {
            *counts.entry(chosen.policy.label()).or_default() += 1;
        }
        Self {
            cells: chosen.len(),
            median: changes.get(changes.len() / 2).copied().unwrap_or_default(),
            worst: changes.last().copied().unwrap_or_default(),
            losing: changes.iter().filter(|change| **change > 0.02).count(),
            chosen: counts,
        }
    }
}

/// For a machine.
pub fn json(figures: &[Figures]) -> String {
    serde_json::to_string_pretty(figures).unwrap_or_default()
}

/// For a person.
pub fn text(figures: &[Figures]) -> String {
    let mut out = format!(
        "turns {TURNS:?}, requests a turn {CALLS:?}, growth {STEPS:?}, searches {EXPANSIONS:?}, ratios {RATIOS:?}, cache on \
         and off.\nInput cost against the full roster of what is sent:\n"
    );
    for models in figures.chunk_by(|a, b| a.models == b.models) {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        table.set_header(["chosen by", "cells", "number", "median", "worst", "over +2 %", "policies"]);
        for Figures { chosen_by, cells, summary, .. } in models {
            let chosen: Vec<String> =
                summary.chosen.iter().map(|(policy, count)| format!("{policy} {count}")).collect();
            table.add_row([
                (*chosen_by).to_owned(),
                (*cells).to_owned(),
                summary.cells.to_string(),
                percent(summary.median),
                percent(summary.worst),
                summary.losing.to_string(),
                chosen.join(", "),
            ]);
        }
        for column in table.column_iter_mut().skip(2).take(4) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let name = models.first().map_or("", |figures| figures.models);
        let lines = table.lines().map(|line| line.trim_end().to_owned() + "\n").collect::<String>();
        out.push_str(&format!("\n{name}\n{lines}"));
    }
    out
}
