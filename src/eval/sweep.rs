//! How many tools to select: where the curve of complete cases flattens. NOT a law: what a tool costs and what a miss
//! costs is the roster's owner's to weigh.

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use super::figures::DEEPEST;
use super::report::{Report, percent};

/// Tools looked ahead.
const AHEAD: usize = 4;
/// So many further tools have to complete at least this share of cases to be worth their tokens: half a point a tool.
const WORTH: f64 = 0.02;
/// Where a text shows the curve.
const SHOWN: [usize; 8] = [4, 8, 12, 16, 20, 24, 32, 40];

/// The curve of one language of one set, and the number it speaks for.
#[derive(Debug, Clone, Serialize)]
pub struct Sweep {
    pub set: String,
    pub lang: String,
    /// The least number from which four more tools complete less than two points more cases.
    pub recommended: usize,
    /// Share of complete cases at the recommended number.
    pub complete: f64,
    /// Of complete cases, for every number from 1.
    pub curve: Vec<f64>,
}

/// Of every set and language, and of the mean over sets.
pub fn sweeps(report: &Report) -> Vec<Sweep> {
    let mut out = Vec::new();
    let mut mean = vec![0.0; DEEPEST];
    for set in &report.sets {
        for language in &set.languages {
            out.push(Sweep::of(&set.name, &language.lang, language.figures.complete_curve.clone()));
        }
        let whole = set.whole().into_iter().flat_map(|figures| &figures.complete_curve);
        mean.iter_mut().zip(whole).for_each(|(sum, share)| *sum += share / report.sets.len() as f64);
    }
    if report.sets.len() > 1 {
        out.push(Sweep::of("mean of sets", super::report::ALL, mean));
    }
    out
}

/// For a person.
pub fn text(sweeps: &[Sweep]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_BORDERS_ONLY);
    let header = ["set", "language"].map(String::from).into_iter();
    table.set_header(header.chain(SHOWN.map(|k| format!("all@{k}"))).chain(["recommended k".into(), "all@k".into()]));
    for sweep in sweeps {
        let at = SHOWN.map(|k| percent(sweep.curve.get(k - 1).unwrap_or(&0.0)));
        let row = [sweep.set.clone(), sweep.lang.clone()].into_iter().chain(at);
        table.add_row(row.chain([sweep.recommended.to_string(), percent(&sweep.complete)]));
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!(
        "\n{table}\nrecommended k: from there {AHEAD} more tools complete less than {:.0} points more cases\n",
        WORTH * 100.0
    )
}

impl Sweep {
    fn of(set: &str, lang: &str, curve: Vec<f64>) -> Self {
        let recommended = recommended(&curve);
        let complete = curve.get(recommended - 1).copied().unwrap_or_default();
        Self { set: set.to_owned(), lang: lang.to_owned(), recommended, complete, curve }
    }
}

/// From 1. A curve that never flattens speaks for its end.
fn recommended(curve: &[f64]) -> usize {
    let flat = curve.iter().zip(curve.iter().skip(AHEAD)).position(|(here, ahead)| ahead - here < WORTH);
    flat.map_or(curve.len().max(1), |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_speaks_for_where_it_flattens() {
        let rising = |k: usize| 1.0 - 0.8f64.powi(k as i32);
        let curve: Vec<f64> = (1..=DEEPEST).map(rising).collect();
        let k = recommended(&curve);
        assert!(curve[k + AHEAD - 1] - curve[k - 1] < WORTH && curve[k + AHEAD - 2] - curve[k - 2] >= WORTH, "{k}");
        assert_eq!(recommended(&[1.0; 40]), 1);
        assert_eq!(recommended(&(1..=40).map(|k| f64::from(k) / 40.0).collect::<Vec<_>>()), 40);
        assert_eq!(recommended(&[]), 1);
    }
}
