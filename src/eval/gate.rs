//! Least figures, so that a change that loses tools fails a build: `recall@12=0.9,lang=ar`. NOT what is enough.

use std::str::FromStr;

use serde::Serialize;

use super::figures::{DEEPEST, Figures};
use super::report::{ALL, Report};

/// A figure that must be reached.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gate {
    measure: Measure,
    least: f64,
    /// `None`: all languages together.
    lang: Option<String>,
    /// `None`: every set.
    set: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum Measure {
    /// Mean share of a case's tools within so many.
    Recall(usize),
    /// Share of cases with all their tools within so many.
    All(usize),
    /// Mean of one over the place of a case's best tool.
    Mrr,
}

/// What became of a gate.
#[derive(Debug, Clone, Serialize)]
pub struct Passage {
    pub passed: bool,
    /// For a person.
    pub line: String,
}

impl FromStr for Gate {
    type Err = String;

    /// `recall@12=0.9`, `all@5=0.7` or `mrr=0.5`, then `,lang=ar` and `,set=name`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no gate such as recall@12=0.9,lang=ar (or all@5=…, mrr=…, set=…)");
        let mut parts = text.split(',').map(|part| part.split_once('=').map(|(key, value)| (key.trim(), value.trim())));
        let (measure, least) = parts.next().flatten().ok_or_else(wrong)?;
        let depth = |text: &str| text.parse().ok().filter(|depth| (1..=DEEPEST).contains(depth)).ok_or_else(wrong);
        let measure = match measure.split_once('@') {
            Some(("recall", at)) => Measure::Recall(depth(at)?),
            Some(("all", at)) => Measure::All(depth(at)?),
            None if measure == "mrr" => Measure::Mrr,
            _ => return Err(wrong()),
        };
        let least = least.parse().ok().filter(|least| (0.0..=1.0).contains(least)).ok_or_else(wrong)?;
        let mut gate = Self { measure, least, lang: None, set: None };
        for part in parts {
            match part.ok_or_else(wrong)? {
                ("lang", lang) => gate.lang = Some(lang.to_owned()),
                ("set", set) => gate.set = Some(set.to_owned()),
                _ => return Err(wrong()),
            }
        }
        Ok(gate)
    }
}

impl Gate {
    /// One passage for each set it looks at; a gate that nothing stands before does not pass.
    pub fn passages(&self, report: &Report) -> Vec<Passage> {
        let lang = self.lang.as_deref().unwrap_or(ALL);
        let mut passages = Vec::new();
        for set in report.sets.iter().filter(|set| self.set.as_ref().is_none_or(|name| *name == set.name)) {
            let figures = match &self.lang {
                None => set.whole(),
                Some(lang) => set.languages.iter().find(|own| own.lang == *lang).map(|own| &own.figures),
            };
            if let Some(figures) = figures.filter(|figures| figures.cases > 0) {
                let share = self.measure.of(figures);
                let passed = share >= self.least;
                let (verdict, sign) = if passed { ("ok", ">=") } else { ("FAIL", "<") };
                let (measure, least) = (self.measure.name(), self.least);
                let line = format!("{verdict} {}, {lang}: {measure} {share:.3} {sign} {least}", set.name);
                passages.push(Passage { passed, line });
            }
        }
        if passages.is_empty() {
            let set = self.set.as_deref().unwrap_or("any set");
            let line = format!("FAIL {}: no case of {lang} in {set}", self.measure.name());
            passages.push(Passage { passed: false, line });
        }
        passages
    }
}

impl Measure {
    fn of(self, figures: &Figures) -> f64 {
        let at = |curve: &[f64], depth: usize| curve.get(depth - 1).copied().unwrap_or_default();
        match self {
            Self::Recall(depth) => at(&figures.recall_curve, depth),
            Self::All(depth) => at(&figures.complete_curve, depth),
            Self::Mrr => figures.mrr,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Recall(depth) => format!("recall@{depth}"),
            Self::All(depth) => format!("all@{depth}"),
            Self::Mrr => "mrr".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::report::{Language, SetReport};
    use crate::retrieval::width::Width;

    fn report() -> Report {
        let language = |lang: &str, cases: &[&[usize]]| Language {
            lang: lang.into(),
            figures: Figures::of(&cases.iter().map(|places| (*places, 12)).collect::<Vec<_>>()),
            found: 1.0,
        };
        let set = SetReport {
            name: "s".into(),
            languages: vec![language("ar", &[&[1], &[30]]), language("all", &[&[1], &[30], &[2], &[2]])],
            ..SetReport::default()
        };
        Report {
            model: "m".into(),
            k: Width::Fixed(12),
            depths: super::super::figures::DEPTHS,
            sets: vec![set],
            mean: None,
        }
    }

    fn passes(gate: &str) -> bool {
        let passages = gate.parse::<Gate>().expect(gate).passages(&report());
        passages.iter().all(|passage| passage.passed)
    }

    #[test]
    fn a_figure_is_reached_or_not() {
        assert!(passes("recall@12=0.75") && !passes("recall@12=0.76"));
        assert!(passes("all@12=0.5,lang=ar") && !passes("all@12=0.51,lang=ar"));
        assert!(passes("all@30=1,lang=ar,set=s") && passes("mrr=0.5"));
        // Nothing stands before these.
        assert!(!passes("mrr=0,lang=fi") && !passes("mrr=0,set=x"));
    }

    #[test]
    fn what_is_no_gate_is_refused() {
        for wrong in
            ["", "recall", "recall@0=0.5", "recall@99=0.5", "all@5=90", "mrr@5=0.1", "mrr=0.5,x=y", "mrr=0.5,lang"]
        {
            assert!(wrong.parse::<Gate>().is_err(), "{wrong}");
        }
    }
}
