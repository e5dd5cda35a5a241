//! Figures as a table for a person. NOT their making.

use comfy_table::{CellAlignment, Table, presets};

use super::figures::{DEPTHS, Interval};
use crate::retrieval::width::Width;

/// Figures of one language of a set, or of the mean of all sets.
pub struct Row<'a> {
    /// The set, where there are several, the language and the number of cases.
    pub names: Vec<String>,
    pub recall: &'a [f64; 6],
    pub complete: &'a [f64; 6],
    /// Complete among those selected.
    pub selected: String,
    /// Mean number of tools selected.
    pub taken: f64,
    /// Complete with what one search adds.
    pub found: f64,
    pub mrr: f64,
}

/// A row per set and language. `k` tools are selected, `found` more are found by a search; `many`: there are several sets.
pub fn of<'a>(rows: impl Iterator<Item = Row<'a>>, many: bool, k: Width, found: usize) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_BORDERS_ONLY);
    let mut header: Vec<String> = if many { vec!["set".into()] } else { Vec::new() };
    header.extend(["language".into(), "cases".into()]);
    header.extend(DEPTHS.iter().enumerate().map(|(i, d)| if i == 0 { format!("recall@{d}") } else { format!("@{d}") }));
    header.extend(["all@1".into(), "@5".into(), "@20".into(), format!("all@{k} [95 %]")]);
    header.extend([format!("found@{k}+{found}"), "MRR".into()]);
    header.extend((k == Width::Auto).then(|| "selected".into()));
    table.set_header(header);
    for row in rows {
        let mut cells = row.names;
        cells.extend(row.recall.iter().map(percent));
        let [one, five, .., twenty] = row.complete;
        cells.extend([percent(one), percent(five), percent(twenty), row.selected, percent(&row.found)]);
        cells.push(format!("{:.3}", row.mrr));
        cells.extend((k == Width::Auto).then(|| format!("{:.1}", row.taken)));
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(if many { 2 } else { 1 }) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A share as a percentage.
pub fn percent(share: &f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// A share and its interval, as percentages.
pub fn shown(interval: &Interval) -> String {
    format!("{} [{}, {}]", percent(&interval.share), percent(&interval.low), percent(&interval.high))
}
