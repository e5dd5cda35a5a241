//! Two ways of choosing tools on the same cases: what the second gains and loses, and whether that could be luck. NOT
//! which is better for a roster's owner.

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use super::figures::{Interval, interval};
use super::measure::{Measured, Ranked};
use super::report::{ALL, percent};

/// Two measurements of one language of one set. Shares of cases with all their tools selected; 0 to 1.
#[derive(Debug, Clone, Serialize)]
pub struct Compared {
    pub set: String,
    pub lang: String,
    pub cases: usize,
    pub first: f64,
    pub second: f64,
    /// Second less first, case by case.
    pub difference: Interval,
    /// Cases that only the second completes.
    pub gained: usize,
    /// Cases that only the first completes.
    pub lost: usize,
    /// How likely so uneven a split of the changed cases is by luck (exact sign test, two-sided).
    pub p: f64,
}

/// Case by case; both were measured on the same sets.
pub fn compared(first: &[Measured], second: &[Measured]) -> Vec<Compared> {
    let mut out = Vec::new();
    let mut all: Vec<(bool, bool)> = Vec::new();
    for (a, b) in first.iter().zip(second) {
        let mut by_lang: BTreeMap<&str, Vec<(bool, bool)>> = BTreeMap::new();
        for (a, b) in a.ranked.iter().zip(&b.ranked).filter(|(a, _)| !a.places.is_empty()) {
            by_lang.entry(&a.case.lang).or_default().push((complete(a), complete(b)));
        }
        let own: Vec<(bool, bool)> = by_lang.values().flatten().copied().collect();
        out.extend(by_lang.iter().map(|(lang, hits)| Compared::of(&a.name, lang, hits)));
        if by_lang.len() != 1 {
            out.push(Compared::of(&a.name, ALL, &own));
        }
        all.extend(own);
    }
    if first.len() > 1 {
        out.push(Compared::of("all sets", ALL, &all));
    }
    out
}

/// For a person. `names`: of the two.
pub fn text(compared: &[Compared], names: (&str, &str)) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_BORDERS_ONLY);
    table.set_header(["set", "language", "cases", "A", "B", "B - A [95 %]", "gained", "lost", "p"]);
    for row in compared {
        let points = |share: f64| format!("{:+.1}", share * 100.0);
        let Interval { share, low, high } = row.difference;
        table.add_row([
            row.set.clone(),
            row.lang.clone(),
            row.cases.to_string(),
            percent(&row.first),
            percent(&row.second),
            format!("{} [{}, {}]", points(share), points(low), points(high)),
            row.gained.to_string(),
            row.lost.to_string(),
            if row.p < 0.001 { "<.001".into() } else { format!("{:.3}", row.p) },
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("A: {}\nB: {}\nCases with all their tools selected:\n\n{table}\n", names.0, names.1)
}

impl Compared {
    fn of(set: &str, lang: &str, hits: &[(bool, bool)]) -> Self {
        let count = hits.len().max(1) as f64;
        let share = |of: &dyn Fn(&(bool, bool)) -> bool| hits.iter().filter(|hit| of(hit)).count();
        let (gained, lost) = (share(&|(a, b)| *b && !a), share(&|(a, b)| *a && !b));
        let differences: Vec<f64> = hits.iter().map(|(a, b)| f64::from(i8::from(*b) - i8::from(*a))).collect();
        Self {
            set: set.to_owned(),
            lang: lang.to_owned(),
            cases: hits.len(),
            first: share(&|(a, _)| *a) as f64 / count,
            second: share(&|(_, b)| *b) as f64 / count,
            difference: interval(&differences),
            gained,
            lost,
            p: sign_test(gained, lost),
        }
    }
}

fn complete(ranked: &Ranked) -> bool {
    ranked.places.iter().all(|(_, place)| *place <= ranked.taken)
}

/// Twice the chance of a split at least this uneven when both sides are equally likely; at most 1.
fn sign_test(gained: usize, lost: usize) -> f64 {
    let (all, least) = (gained + lost, gained.min(lost));
    // ln of C(all, i) / 2^all, one after the other.
    let mut term = -(all as f64) * std::f64::consts::LN_2;
    let mut sum = 0.0;
    for i in 0..=least {
        sum += term.exp();
        term += ((all - i) as f64).ln() - ((i + 1) as f64).ln();
    }
    (2.0 * sum).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn luck_is_told_from_change() {
        // 2 * (1 + 10 + 45) / 1024
        assert!((sign_test(8, 2) - 0.109_375).abs() < 1e-9);
        assert_eq!(sign_test(0, 0), 1.0);
        assert_eq!(sign_test(5, 5), 1.0);
        assert!(sign_test(3000, 2000) < 1e-9 && sign_test(3000, 2990) > 0.8);
        let compared = Compared::of("s", "en", &[(true, true), (false, true), (false, true), (true, false)]);
        assert_eq!((compared.first, compared.second, compared.gained, compared.lost), (0.5, 0.75, 2, 1));
        assert!(text(&[compared], ("a", "b")).contains("+25.0"));
    }
}
