//! What the ranking found, per set and language, and what makes a measurement worthless: tools nobody asks for,
//! descriptions that say nothing, cases that cannot fail. NOT a threshold on recall: what is enough is the roster's
//! owner's decision (`gate`).

use std::collections::{BTreeMap, HashMap, HashSet};

use comfy_table::Table;
use serde::Serialize;

use super::figures::{DEPTHS, Figures};
use super::measure::{Measured, Ranked};
pub use super::missing::Missing;
use super::table::{self, Row};
pub use super::table::{percent, shown};
pub use super::thin::{Thin, thin};
use crate::retrieval::width::{self, Width};

/// What was found.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Identity of the embedder.
    pub model: String,
    /// Tools selected for a message.
    pub k: Width,
    pub depths: [usize; 6],
    pub sets: Vec<SetReport>,
    /// The mean of the sets' figures, each set counting once; only of several.
    pub mean: Option<Mean>,
}

/// What was found on one roster.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SetReport {
    pub name: String,
    pub tools: usize,
    pub core: usize,
    /// By language, then all together.
    pub languages: Vec<Language>,
    /// Cases that need nothing but core tools: no part of the figures.
    pub core_only: usize,
    pub missing: Vec<Missing>,
    /// Tools that no case expects.
    pub uncovered: Vec<String>,
    pub thin: Vec<Thin>,
    /// Cases that pass because every tool is sent.
    pub not_narrowed: Vec<String>,
    /// Cases that expect what the roster does not have.
    pub unknown: Vec<Missing>,
}

/// Figures of one language.
#[derive(Debug, Clone, Serialize)]
pub struct Language {
    pub lang: String,
    pub figures: Figures,
    /// Share of cases with all their tools among those selected or found by one search in the message's own words.
    pub found: f64,
}

/// Shares that are means over sets; 0 to 1.
#[derive(Debug, Clone, Serialize)]
pub struct Mean {
    pub recall: [f64; 6],
    pub complete: [f64; 6],
    pub selected: f64,
    /// Number of tools selected.
    pub taken: f64,
    pub found: f64,
    pub mrr: f64,
}

/// What all sets are called together.
pub const ALL: &str = "all";

/// Tools that one search finds: the default of `max_discovered_tools`.
const FOUND: usize = 5;

/// Lines of a list in a text; `--json` has all.
const LISTED: usize = 40;

impl Report {
    pub fn of(measured: &[Measured], k: Width, model: &str) -> Self {
        let sets: Vec<SetReport> = measured.iter().map(SetReport::of).collect();
        Self { model: model.to_owned(), k, depths: DEPTHS, mean: (sets.len() > 1).then(|| Mean::of(&sets)), sets }
    }

    /// Is the measurement worth its name? Recall is not part of it.
    pub fn passed(&self) -> bool {
        self.sets.iter().all(SetReport::passed)
    }

    /// For a person.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n", self.model);
        for set in &self.sets {
            let named = if self.sets.len() > 1 { format!("{}: ", set.name) } else { String::new() };
            let (tools, core, k) = (set.tools, set.core, said(self.k));
            out.push_str(&format!("{named}{tools} tools, {core} of them core, {k} selected of {}\n", tools - core));
        }
        out.push_str(&format!("\n{}\n", self.table()));
        for set in &self.sets {
            set.lists(self.k, self.sets.len() > 1, &mut out);
        }
        out
    }

    /// For a machine.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    fn table(&self) -> Table {
        let many = self.sets.len() > 1;
        let languages =
            self.sets.iter().flat_map(|set| set.languages.iter().map(move |language| (&set.name, language)));
        let rows = languages.map(|(set, Language { lang, figures, found })| Row {
            names: many.then(|| set.clone()).into_iter().chain([lang.clone(), figures.cases.to_string()]).collect(),
            recall: &figures.recall,
            complete: &figures.complete,
            selected: shown(&figures.selected),
            taken: figures.taken,
            found: *found,
            mrr: figures.mrr,
        });
        let mean = self.mean.iter().map(|mean| Row {
            names: vec!["mean of sets".into(), ALL.into(), String::new()],
            recall: &mean.recall,
            complete: &mean.complete,
            selected: percent(&mean.selected),
            taken: mean.taken,
            found: mean.found,
            mrr: mean.mrr,
        });
        table::of(rows.chain(mean), many, self.k, FOUND)
    }
}

impl SetReport {
    fn of(measured: &Measured) -> Self {
        let Measured { name, tools, ranked } = measured;
        let documents = tools.documents.as_slice();
        let candidates: HashSet<&str> = documents.iter().map(|document| document.name.as_str()).collect();
        let names: HashSet<&str> = tools.names.iter().map(String::as_str).collect();
        let mut by_lang: BTreeMap<&str, Vec<Counted>> = BTreeMap::new();
        let numbers: HashMap<&str, usize> = documents.iter().enumerate().map(|(i, d)| (d.name.as_str(), i)).collect();
        let mut report = Self {
            name: name.clone(),
            tools: tools.names.len(),
            core: names.len() - candidates.len(),
            languages: Vec::new(),
            core_only: 0,
            missing: Vec::new(),
            uncovered: Vec::new(),
            thin: documents.iter().filter_map(thin).collect(),
            not_narrowed: Vec::new(),
            unknown: Vec::new(),
        };
        let mut covered: HashSet<&str> = HashSet::new();
        for Ranked { case, places, taken, top, search } in ranked {
            covered.extend(places.iter().map(|(name, _)| name.as_str()));
            let strangers = case.expect.iter().filter(|name| !names.contains(name.as_str()));
            report.unknown.extend(Missing::new(case, strangers.map(|name| (name.clone(), 0))));
            if places.is_empty() {
                report.core_only += usize::from(case.expect.iter().all(|name| names.contains(name.as_str())));
                continue;
            }
            let bound = top.get(..*taken.min(&top.len())).unwrap_or_default();
            let more: Vec<usize> = search.iter().filter(|tool| !bound.contains(tool)).take(FOUND).copied().collect();
            let at_hand = |(name, place): &(String, usize)| {
                place <= taken || numbers.get(name.as_str()).is_some_and(|tool| more.contains(tool))
            };
            let found = places.iter().all(at_hand);
            let own = Counted { places: places.iter().map(|(_, place)| *place).collect(), taken: *taken, found };
            by_lang.entry(&case.lang).or_default().push(own);
            report.missing.extend(Missing::new(case, places.iter().filter(|(_, place)| place > taken).cloned()));
            if candidates.len() <= *taken {
                report.not_narrowed.push(case.id.clone());
            }
        }
        let unasked = documents.iter().map(|document| &document.name).filter(|name| !covered.contains(name.as_str()));
        report.uncovered = unasked.cloned().collect();
        let figures = |lang: &str, cases: Vec<&Counted>| {
            let places: Vec<(&[usize], usize)> =
                cases.iter().map(|case| (case.places.as_slice(), case.taken)).collect();
            let found = cases.iter().filter(|case| case.found).count() as f64 / cases.len().max(1) as f64;
            Language { lang: lang.into(), figures: Figures::of(&places), found }
        };
        report.languages = by_lang.iter().map(|(lang, cases)| figures(lang, cases.iter().collect())).collect();
        if report.languages.len() != 1 {
            report.languages.push(figures(ALL, by_lang.values().flatten().collect()));
        }
        report
    }

    /// The figures of all its languages together.
    pub fn whole(&self) -> Option<&Figures> {
        self.languages.last().map(|language| &language.figures)
    }

    fn passed(&self) -> bool {
        self.uncovered.is_empty() && self.thin.is_empty() && self.not_narrowed.is_empty() && self.unknown.is_empty()
    }

    fn lists(&self, k: Width, named: bool, out: &mut String) {
        let of = if named { format!(" ({})", self.name) } else { String::new() };
        let mut list = |title: String, lines: Vec<String>| {
            if lines.is_empty() {
                return;
            }
            let more = lines.len().saturating_sub(LISTED);
            out.push_str(&format!("\n{title}{of}\n"));
            lines.iter().take(LISTED).for_each(|line| out.push_str(&format!("  {line}\n")));
            if more > 0 {
                out.push_str(&format!("  … and {more} more: --json has all\n"));
            }
        };
        list(format!("Not among the {} selected:", said(k)), self.missing.iter().map(Missing::line).collect());
        let core_only = Some(self.core_only).filter(|count| *count > 0);
        list("Core only, not counted:".into(), core_only.map(|n| format!("{n} cases")).into_iter().collect());
        list("FAIL: no case needs these tools:".into(), self.uncovered.clone());
        let thin = self.thin.iter().map(|thin| format!("{}: {}", thin.tool, thin.why));
        list("FAIL: these descriptions are thin:".into(), thin.collect());
        list(
            "FAIL: these cases expect tools that the roster does not have:".into(),
            self.unknown.iter().map(Missing::line).collect(),
        );
        let why = format!("{} tools may be withheld and {} are selected", self.tools - self.core, said(k));
        list(format!("FAIL: these cases pass only because nothing is narrowed ({why}):"), self.not_narrowed.clone());
    }
}

/// How many are selected, in a sentence.
fn said(k: Width) -> String {
    match k {
        Width::Fixed(count) => count.to_string(),
        Width::Auto => format!("{} to {}", width::LEAST, k.most()),
    }
}

/// A case as it counts.
struct Counted {
    /// Of its tools.
    places: Vec<usize>,
    /// How many were selected for it.
    taken: usize,
    /// All its tools are selected, or found by one search.
    found: bool,
}

impl Mean {
    fn of(sets: &[SetReport]) -> Self {
        let figures: Vec<&Figures> = sets.iter().filter_map(SetReport::whole).collect();
        let count = figures.len().max(1) as f64;
        let found =
            sets.iter().filter_map(|set| set.languages.last()).map(|language| language.found).sum::<f64>() / count;
        let mean = |of: &dyn Fn(&Figures) -> f64| figures.iter().map(|figures| of(figures)).sum::<f64>() / count;
        let depths = |of: &dyn Fn(&Figures) -> [f64; 6]| {
            let mut sums = [0.0; 6];
            for figures in &figures {
                sums.iter_mut().zip(of(figures)).for_each(|(sum, share)| *sum += share / count);
            }
            sums
        };
        Self {
            recall: depths(&|figures| figures.recall),
            complete: depths(&|figures| figures.complete),
            selected: mean(&|figures| figures.selected.share),
            taken: mean(&|figures| figures.taken),
            found,
            mrr: mean(&|figures| figures.mrr),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::input::{Case, Tools};
    use crate::retrieval::document::Document;
    use crate::retrieval::question::Utterance;
    use std::sync::Arc;

    fn tools(candidates: &[&str], core: &[&str]) -> Tools {
        let document = |name: &&str| Document {
            name: (*name).to_owned(),
            description: "Does something nobody else here can do".into(),
            ..Document::default()
        };
        Tools {
            names: candidates.iter().chain(core).map(|name| (*name).to_owned()).collect(),
            documents: Arc::new(candidates.iter().map(document).collect()),
        }
    }

    /// `places`: expected tools and where they came; 0: they are no candidates.
    fn ranked(lang: &str, places: &[(&str, usize)]) -> Ranked {
        let case = Case {
            id: format!("{lang}-1"),
            lang: lang.into(),
            dialogue: vec![Utterance { text: "do\nit".into(), reply_before: String::new() }],
            expect: places.iter().map(|(name, _)| (*name).to_owned()).collect(),
            ..Case::default()
        };
        let places = places.iter().filter(|(_, place)| *place > 0);
        Ranked {
            case,
            places: places.map(|(name, place)| ((*name).to_owned(), *place)).collect(),
            taken: 1,
            top: Vec::new(),
            search: Vec::new(),
        }
    }

    fn report(tools: Tools, mut ranked: Vec<Ranked>, k: usize) -> Report {
        ranked.iter_mut().for_each(|ranked| ranked.taken = k);
        Report::of(&[Measured { name: "s".into(), tools, ranked }], Width::Fixed(k), "m")
    }

    #[test]
    fn figures_are_per_language_and_for_all() {
        let cases = vec![ranked("en", &[("a", 1), ("b", 3)]), ranked("ar", &[("c", 1), ("z", 0)])];
        let report = report(tools(&["a", "b", "c"], &["z"]), cases, 1);
        let [arabic, english, all] = report.sets[0].languages.as_slice() else { panic!("{report:?}") };
        assert_eq!((arabic.figures.recall[0], arabic.figures.complete[0], arabic.figures.mrr), (1.0, 1.0, 1.0));
        let english = &english.figures;
        assert_eq!((english.recall[0], english.complete[0], english.recall[1]), (0.5, 0.0, 1.0));
        assert_eq!((all.figures.cases, all.figures.recall[0]), (2, 0.75));
        assert_eq!(report.sets[0].core, 1);
        assert!(report.passed());
        assert!(report.text().contains("en \"do it\" -> b (place 3)"), "{}", report.text());
        assert!(serde_json::from_str::<serde_json::Value>(&report.json()).is_ok());
    }

    #[test]
    fn a_search_adds_to_what_is_selected() {
        let names: Vec<String> = (0..8).map(|i| format!("t{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let case = |expected: &'static str, place| Ranked {
            top: (0..8).collect(),
            search: (0..8).collect(),
            ..ranked("en", &[(expected, place)])
        };
        // of eight tools two are selected and five more are found
        let report = report(tools(&names, &[]), vec![case("t1", 2), case("t6", 7), case("t7", 8)], 2);
        let all = &report.sets[0].languages[0];
        assert_eq!((all.figures.selected.share, all.found), (1.0 / 3.0, 2.0 / 3.0));
        assert!(report.text().contains("found@2+5"), "{}", report.text());
    }

    #[test]
    fn each_set_counts_once_in_their_mean() {
        let set = |name: &str, places: &[usize]| Measured {
            name: name.into(),
            tools: tools(&["a"], &[]),
            ranked: places.iter().map(|place| ranked("en", &[("a", *place)])).collect(),
        };
        let report = Report::of(&[set("one", &[1]), set("two", &[3, 3, 1, 3])], Width::Fixed(1), "m");
        assert_eq!(report.mean.as_ref().map(|mean| mean.complete[0]), Some(0.625));
        assert!(report.text().contains("mean of sets"), "{}", report.text());
    }

    #[test]
    fn what_makes_a_measurement_worthless_fails() {
        let uncovered = report(tools(&["a", "b", "c"], &[]), vec![ranked("en", &[("a", 1)])], 1);
        assert_eq!(uncovered.sets[0].uncovered, ["b", "c"]);
        let not_narrowed = report(tools(&["a"], &[]), vec![ranked("en", &[("a", 1)])], 12);
        assert_eq!(not_narrowed.sets[0].not_narrowed, ["en-1"]);
        let unknown = report(tools(&["a"], &[]), vec![ranked("en", &[("a", 1), ("x", 0)])], 0);
        assert_eq!(unknown.sets[0].unknown[0].tools, ["x"]);
        let mut roster = tools(&["get_user", "b"], &[]);
        Arc::get_mut(&mut roster.documents).expect("unshared")[0].description = "Get user".into();
        let thin = report(roster, vec![ranked("en", &[("get_user", 1), ("b", 2)])], 1);
        assert_eq!(thin.sets[0].thin[0].why, "2 words");
        for report in [uncovered, not_narrowed, unknown, thin] {
            assert!(!report.passed());
            assert!(report.text().contains("FAIL"));
        }
    }

    #[test]
    fn a_case_of_core_tools_is_no_figure() {
        let report = report(tools(&["a"], &["z"]), vec![ranked("en", &[("z", 0)])], 0);
        assert_eq!((report.sets[0].core_only, report.sets[0].languages[0].figures.cases), (1, 0));
        assert_eq!(report.sets[0].uncovered, ["a"]);
    }
}
