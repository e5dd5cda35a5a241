//! What the ranking found, per language, and what makes a measurement worthless:
//! tools nobody asks for, descriptions that say nothing, cases that cannot fail.
//! NOT a threshold on recall: what is enough is the roster's owner's decision.

use std::collections::{BTreeMap, HashMap, HashSet};

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use super::input::{Case, Tools};
use crate::retrieval::document::{self, Document};
use crate::retrieval::lexical;

/// Where recall is read.
pub const DEPTHS: [usize; 6] = [1, 5, 8, 12, 15, 20];

/// A case and the roster's documents, best first.
#[derive(Debug)]
pub struct Ranked {
    pub case: Case,
    pub order: Vec<usize>,
}

/// What was found.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Identity of the embedder.
    pub model: String,
    pub tools: usize,
    pub core: usize,
    /// Tools selected for a message.
    pub k: usize,
    pub depths: [usize; 6],
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
    pub cases: usize,
    /// Mean share of a case's tools within each depth; 0 to 1.
    pub recall: [f64; 6],
    /// Share of cases with all their tools within each depth; 0 to 1.
    pub complete: [f64; 6],
    /// Mean of one over the place of a case's best tool.
    pub mrr: f64,
}

/// A case and the tools it misses.
#[derive(Debug, Clone, Serialize)]
pub struct Missing {
    pub id: String,
    pub lang: String,
    pub prompt: String,
    pub tools: Vec<String>,
    /// Places of these tools, from 1; 0: not in the roster.
    pub places: Vec<usize>,
}

/// A tool whose description says too little.
#[derive(Debug, Clone, Serialize)]
pub struct Thin {
    pub tool: String,
    pub why: String,
}

impl Report {
    pub fn of(tools: &Tools, ranked: Vec<Ranked>, k: usize, model: &str) -> Self {
        let documents = tools.documents.as_slice();
        let candidates: HashMap<&str, usize> =
            documents.iter().enumerate().map(|(i, d)| (d.name.as_str(), i)).collect();
        let names: HashSet<&str> = tools.names.iter().map(String::as_str).collect();
        let mut by_lang: BTreeMap<String, Sums> = BTreeMap::new();
        let mut total = Sums::default();
        let mut report = Self {
            model: model.to_owned(),
            tools: tools.names.len(),
            core: names.len() - candidates.len(),
            k,
            depths: DEPTHS,
            languages: Vec::new(),
            core_only: 0,
            missing: Vec::new(),
            uncovered: Vec::new(),
            thin: documents.iter().filter_map(thin).collect(),
            not_narrowed: Vec::new(),
            unknown: Vec::new(),
        };
        let mut covered: HashSet<&str> = HashSet::new();
        for Ranked { case, order } in &ranked {
            let needed: Vec<&str> =
                case.expect.iter().map(String::as_str).filter(|name| candidates.contains_key(name)).collect();
            covered.extend(&needed);
            let stranger = |name: &&String| !names.contains(name.as_str());
            report
                .unknown
                .extend(Missing::new(case, case.expect.iter().filter(stranger).map(|name| (name.clone(), 0))));
            if needed.is_empty() {
                report.core_only += usize::from(case.expect.iter().all(|name| names.contains(name.as_str())));
                continue;
            }
            let place = |name: &str| {
                order.iter().position(|tool| candidates.get(name) == Some(tool)).map_or(usize::MAX, |at| at + 1)
            };
            let places: Vec<usize> = needed.iter().map(|name| place(name)).collect();
            by_lang.entry(case.lang.clone()).or_default().add(&places);
            total.add(&places);
            let missed = needed.iter().zip(&places).filter(|(_, place)| **place > k);
            report.missing.extend(Missing::new(case, missed.map(|(name, place)| ((*name).to_owned(), *place))));
            if candidates.len() <= k {
                report.not_narrowed.push(case.id.clone());
            }
        }
        report.uncovered =
            documents.iter().map(|d| &d.name).filter(|name| !covered.contains(name.as_str())).cloned().collect();
        report.languages = by_lang.into_iter().map(|(lang, sums)| sums.language(lang)).collect();
        if report.languages.len() != 1 {
            report.languages.push(total.language("all".into()));
        }
        report
    }

    /// Is the measurement worth its name? Recall is not part of it.
    pub fn passed(&self) -> bool {
        self.uncovered.is_empty() && self.thin.is_empty() && self.not_narrowed.is_empty() && self.unknown.is_empty()
    }

    /// For a person.
    pub fn text(&self) -> String {
        let mut out = format!(
            "{} tools, {} of them core, {} selected of {}; {}\n\n{}\n",
            self.tools,
            self.core,
            self.k,
            self.tools - self.core,
            self.model,
            self.table()
        );
        let mut list = |title: String, lines: Vec<String>| {
            if !lines.is_empty() {
                out.push_str(&format!("\n{title}\n  {}\n", lines.join("\n  ")));
            }
        };
        let shown = |missing: &Missing| {
            let tools = missing.tools.iter().zip(&missing.places);
            let tools: Vec<String> = tools
                .map(|(tool, place)| if *place == 0 { tool.clone() } else { format!("{tool} (place {place})") })
                .collect();
            format!("{} \"{}\" -> {}", missing.lang, missing.prompt, tools.join(", "))
        };
        list(format!("Not among the {} selected:", self.k), self.missing.iter().map(shown).collect());
        list(
            "Core only, not counted:".into(),
            Some(self.core_only).filter(|n| *n > 0).map(|n| format!("{n} cases")).into_iter().collect(),
        );
        list("FAIL: no case needs these tools:".into(), self.uncovered.clone());
        list(
            "FAIL: these descriptions are thin:".into(),
            self.thin.iter().map(|thin| format!("{}: {}", thin.tool, thin.why)).collect(),
        );
        list(
            "FAIL: these cases expect tools that the roster does not have:".into(),
            self.unknown.iter().map(shown).collect(),
        );
        if !self.not_narrowed.is_empty() {
            let why = format!("{} tools may be withheld and {} are selected", self.tools - self.core, self.k);
            list(
                format!("FAIL: these cases pass only because nothing is narrowed ({why}):"),
                self.not_narrowed.clone(),
            );
        }
        out
    }

    /// For a machine.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
        let depths = DEPTHS.iter().map(|depth| format!("recall@{depth}"));
        table.set_header(
            ["language", "cases"].map(String::from).into_iter().chain(depths).chain(["MRR".into(), "all@12".into()]),
        );
        for language in &self.languages {
            let percent = |share: &f64| format!("{:.1}", share * 100.0);
            let complete =
                DEPTHS.iter().zip(&language.complete).find(|(depth, _)| **depth == 12).map(|(_, share)| percent(share));
            let mut row = vec![language.lang.clone(), language.cases.to_string()];
            row.extend(language.recall.iter().map(percent));
            row.extend([format!("{:.3}", language.mrr), complete.unwrap_or_default()]);
            table.add_row(row);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

impl Missing {
    fn new(case: &Case, tools: impl Iterator<Item = (String, usize)>) -> Option<Self> {
        let (tools, places): (Vec<String>, Vec<usize>) = tools.unzip();
        (!tools.is_empty()).then(|| Self {
            id: case.id.clone(),
            lang: case.lang.clone(),
            prompt: case.dialogue.last().map(|last| line(&last.text)).unwrap_or_default(),
            tools,
            places,
        })
    }
}

#[derive(Default)]
struct Sums {
    cases: usize,
    recall: [f64; 6],
    complete: [f64; 6],
    reciprocal: f64,
}

impl Sums {
    fn add(&mut self, places: &[usize]) {
        self.cases += 1;
        let best = places.iter().min().copied().unwrap_or(usize::MAX);
        self.reciprocal += 1.0 / best as f64;
        for ((recall, complete), depth) in self.recall.iter_mut().zip(&mut self.complete).zip(DEPTHS) {
            let found = places.iter().filter(|place| **place <= depth).count();
            *recall += found as f64 / places.len() as f64;
            *complete += f64::from(u8::from(found == places.len()));
        }
    }

    fn language(self, lang: String) -> Language {
        let cases = self.cases.max(1) as f64;
        let share = |sums: [f64; 6]| sums.map(|sum| sum / cases);
        Language {
            lang,
            cases: self.cases,
            recall: share(self.recall),
            complete: share(self.complete),
            mrr: self.reciprocal / cases,
        }
    }
}

/// A description of fewer words cannot tell its tool from its siblings: on rosters of such descriptions every ranking
/// measured loses 10 to 20 points.
const LEAST_WORDS: usize = 5;

fn thin(document: &Document) -> Option<Thin> {
    let said = lexical::words(&document.description);
    let name = lexical::words(&document::words(&document.name));
    let why = match said.len() {
        0 => "it has none".to_owned(),
        1 => "one word".to_owned(),
        count if count < LEAST_WORDS => format!("{count} words"),
        _ if said.iter().all(|word| name.contains(word)) => "it only repeats the name".to_owned(),
        _ => return None,
    };
    Some(Thin { tool: document.name.clone(), why })
}

/// One line of at most 160 characters.
fn line(text: &str) -> String {
    let flat: Vec<&str> = text.split_whitespace().collect();
    let flat = flat.join(" ");
    match flat.char_indices().nth(160) {
        Some((at, _)) => format!("{}…", flat.get(..at).unwrap_or_default()),
        None => flat,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    fn ranked(lang: &str, expect: &[&str], order: &[usize]) -> Ranked {
        let case = Case {
            id: format!("{lang}-1"),
            lang: lang.into(),
            dialogue: vec![Utterance { text: "do\nit".into(), reply_before: String::new() }],
            expect: expect.iter().map(|name| (*name).to_owned()).collect(),
            tags: Vec::new(),
        };
        Ranked { case, order: order.to_vec() }
    }

    #[test]
    fn figures_are_per_language_and_for_all() {
        let tools = tools(&["a", "b", "c"], &["z"]);
        let report = Report::of(
            &tools,
            vec![ranked("en", &["a", "b"], &[0, 2, 1]), ranked("ar", &["c", "z"], &[2, 1, 0])],
            1,
            "m",
        );
        let [arabic, english, all] = report.languages.as_slice() else { panic!("{:?}", report.languages) };
        assert_eq!((arabic.recall[0], arabic.complete[0], arabic.mrr), (1.0, 1.0, 1.0));
        assert_eq!((english.recall[0], english.complete[0], english.recall[1]), (0.5, 0.0, 1.0));
        assert_eq!((all.cases, all.recall[0]), (2, 0.75));
        assert_eq!(report.core, 1);
        assert!(report.passed());
        assert!(report.text().contains("en \"do it\" -> b (place 3)"), "{}", report.text());
        assert!(serde_json::from_str::<serde_json::Value>(&report.json()).is_ok());
    }

    #[test]
    fn what_makes_a_measurement_worthless_fails() {
        let uncovered = Report::of(&tools(&["a", "b", "c"], &[]), vec![ranked("en", &["a"], &[0, 1, 2])], 1, "m");
        assert_eq!(uncovered.uncovered, ["b", "c"]);
        let not_narrowed = Report::of(&tools(&["a"], &[]), vec![ranked("en", &["a"], &[0])], 12, "m");
        assert_eq!(not_narrowed.not_narrowed, ["en-1"]);
        let unknown = Report::of(&tools(&["a"], &[]), vec![ranked("en", &["a", "x"], &[0])], 0, "m");
        assert_eq!(unknown.unknown[0].tools, ["x"]);
        let mut roster = tools(&["get_user", "b"], &[]);
        Arc::get_mut(&mut roster.documents).expect("unshared")[0].description = "Get user".into();
        let thin = Report::of(&roster, vec![ranked("en", &["get_user", "b"], &[0, 1])], 1, "m");
        assert_eq!(thin.thin[0].why, "2 words");
        for report in [uncovered, not_narrowed, unknown, thin] {
            assert!(!report.passed());
            assert!(report.text().contains("FAIL"));
        }
    }

    #[test]
    fn a_case_of_core_tools_is_no_figure() {
        let report = Report::of(&tools(&["a"], &["z"]), vec![ranked("en", &["z"], &[0])], 0, "m");
        assert_eq!((report.core_only, report.languages[0].cases), (1, 0));
        assert_eq!(report.uncovered, ["a"]);
    }
}
