//! Least figures, so that a change that loses tools fails a build: `recall@12=0.9,lang=ar`. NOT what is enough.

use std::str::FromStr;

use serde::Serialize;

use super::figures::DEEPEST;
use super::report::{ALL, Language, Report, SetReport};

/// A figure that must be reached.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gate {
    measure: Measure,
    least: f64,
    /// `None`: all languages together; [`EACH`]: every one for itself.
    lang: Option<String>,
    /// The best of each language may lead the worst by so much.
    within: Option<f64>,
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
    /// Share of cases with all their tools selected.
    Selected,
    /// Share of cases with all their tools selected or found by one search in the message's own words.
    Found,
}

/// Every language for itself.
const EACH: &str = "each";

/// What became of a gate.
#[derive(Debug, Clone, Serialize)]
pub struct Passage {
    pub passed: bool,
    /// For a person.
    pub line: String,
}

impl FromStr for Gate {
    type Err = String;

    /// `recall@12=0.9`, `all@5=0.7`, `mrr=0.5`, `selected=0.8` or `found=0.9`, then `,lang=ar` and `,set=name`;
    /// `,lang=each,within=0.04`: in every language, and none is so far behind another.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is no gate such as recall@12=0.9,lang=ar (or all@5=…, mrr=…, selected=…, found=…; lang=each,within=…; set=…)"
            )
        };
        let mut parts = text.split(',').map(|part| part.split_once('=').map(|(key, value)| (key.trim(), value.trim())));
        let (measure, least) = parts.next().flatten().ok_or_else(wrong)?;
        let depth = |text: &str| text.parse().ok().filter(|depth| (1..=DEEPEST).contains(depth)).ok_or_else(wrong);
        let measure = match measure.split_once('@') {
            Some(("recall", at)) => Measure::Recall(depth(at)?),
            Some(("all", at)) => Measure::All(depth(at)?),
            None if measure == "mrr" => Measure::Mrr,
            None if measure == "selected" => Measure::Selected,
            None if measure == "found" => Measure::Found,
            _ => return Err(wrong()),
        };
        let share = |text: &str| text.parse().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(wrong);
        let mut gate = Self { measure, least: share(least)?, lang: None, within: None, set: None };
        for part in parts {
            match part.ok_or_else(wrong)? {
                ("lang", lang) => gate.lang = Some(lang.to_owned()),
                ("set", set) => gate.set = Some(set.to_owned()),
                ("within", points) => gate.within = Some(share(points)?),
                _ => return Err(wrong()),
            }
        }
        let alone = gate.within.is_some() && gate.lang.as_deref() != Some(EACH);
        if alone { Err(wrong()) } else { Ok(gate) }
    }
}

impl Gate {
    /// One passage for each set and language it looks at; a gate that nothing stands before does not pass.
    pub fn passages(&self, report: &Report) -> Vec<Passage> {
        let lang = self.lang.as_deref().unwrap_or(ALL);
        let mut passages = Vec::new();
        for set in report.sets.iter().filter(|set| self.set.as_ref().is_none_or(|name| *name == set.name)) {
            let languages: Vec<&Language> = match lang {
                ALL => set.languages.last().into_iter().collect(),
                EACH => set.languages.iter().filter(|own| own.lang != ALL).collect(),
                one => set.languages.iter().filter(|own| own.lang == one).collect(),
            };
            let languages = languages.into_iter().filter(|own| own.figures.cases > 0);
            let shares: Vec<(&str, f64)> = languages.map(|own| (own.lang.as_str(), self.measure.of(own))).collect();
            passages.extend(shares.iter().map(|(lang, share)| self.passage(set, lang, *share)));
            passages.extend(self.evenness(set, &shares));
        }
        if passages.is_empty() {
            let set = self.set.as_deref().unwrap_or("any set");
            let line = format!("FAIL {}: no case of {lang} in {set}", self.measure.name());
            passages.push(Passage { passed: false, line });
        }
        passages
    }

    fn passage(&self, set: &SetReport, lang: &str, share: f64) -> Passage {
        let passed = share >= self.least;
        let (verdict, sign) = if passed { ("ok", ">=") } else { ("FAIL", "<") };
        // One language alone is not called "all".
        let lang = if self.lang.is_none() { ALL } else { lang };
        let line = format!("{verdict} {}, {lang}: {} {share:.3} {sign} {}", set.name, self.measure.name(), self.least);
        Passage { passed, line }
    }

    /// How far the best language leads the worst.
    fn evenness(&self, set: &SetReport, shares: &[(&str, f64)]) -> Option<Passage> {
        let most = self.within?;
        let order = |a: &&(&str, f64), b: &&(&str, f64)| a.1.total_cmp(&b.1);
        let ((worst, low), (best, high)) = (shares.iter().min_by(order)?, shares.iter().max_by(order)?);
        let (apart, measure) = (high - low, self.measure.name());
        let passed = apart <= most;
        let (verdict, sign) = if passed { ("ok", "<=") } else { ("FAIL", ">") };
        let line = format!("{verdict} {}, {best} before {worst}: {measure} {apart:.3} {sign} {most}", set.name);
        Some(Passage { passed, line })
    }
}

impl Measure {
    fn of(self, language: &Language) -> f64 {
        let figures = &language.figures;
        let at = |curve: &[f64], depth: usize| curve.get(depth - 1).copied().unwrap_or_default();
        match self {
            Self::Recall(depth) => at(&figures.recall_curve, depth),
            Self::All(depth) => at(&figures.complete_curve, depth),
            Self::Mrr => figures.mrr,
            Self::Selected => figures.selected.share,
            Self::Found => language.found,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Recall(depth) => format!("recall@{depth}"),
            Self::All(depth) => format!("all@{depth}"),
            Self::Mrr => "mrr".to_owned(),
            Self::Selected => "selected".to_owned(),
            Self::Found => "found".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::figures::Figures;
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
        assert!(passes("found=1") && passes("selected=0.75") && !passes("selected=0.76"));
        // Nothing stands before these.
        assert!(!passes("mrr=0,lang=fi") && !passes("mrr=0,set=x"));
    }

    #[test]
    fn every_language_for_itself_and_none_far_behind() {
        let mut report = report();
        let mut lead = report.sets[0].languages[0].clone();
        (lead.lang, lead.found) = ("en".into(), 0.9);
        report.sets[0].languages.insert(1, lead);
        let lines = |gate: &str| -> Vec<String> {
            gate.parse::<Gate>().expect(gate).passages(&report).into_iter().map(|passage| passage.line).collect()
        };
        assert_eq!(
            lines("found=0.95,lang=each,within=0.04"),
            [
                "ok s, ar: found 1.000 >= 0.95",
                "FAIL s, en: found 0.900 < 0.95",
                "FAIL s, ar before en: found 0.100 > 0.04"
            ]
        );
        assert_eq!(lines("all@12=0.5,lang=each,within=0").len(), 3);
    }

    #[test]
    fn what_is_no_gate_is_refused() {
        for wrong in [
            "",
            "recall",
            "recall@0=0.5",
            "recall@99=0.5",
            "all@5=90",
            "mrr@5=0.1",
            "mrr=0.5,x=y",
            "mrr=0.5,lang",
            "found=0.9,within=0.1",
        ] {
            assert!(wrong.parse::<Gate>().is_err(), "{wrong}");
        }
    }
}
