//! What is measured together: rosters with their labelled requests, from arguments or from a file of sets. Which cases
//! of a file belong to a set is decided by what stands in them and a hash, never by chance. NOT ranking.

use std::collections::{BTreeMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use xxhash_rust::xxh3::xxh3_64;

use super::Problem;
use super::input::{self, Case, Tools};
use crate::config::catalog::Catalog;

/// A roster and labelled requests for it, as they are asked for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Set {
    /// Empty: the name of the first file's folder.
    pub name: String,
    /// A `tools` array; absent: `catalog.json` beside the cases. A case that names its own is asked of that.
    pub catalog: Option<PathBuf>,
    /// A catalog file in TOML: categories, keywords, the core.
    pub overlay: Option<PathBuf>,
    /// Files of JSON lines, or folders with a `cases.jsonl`.
    pub cases: Vec<PathBuf>,
    /// Only these languages; empty: all.
    pub langs: Vec<String>,
    pub not_langs: Vec<String>,
    /// Only cases with one of these tags; empty: all.
    pub tags: Vec<String>,
    pub not_tags: Vec<String>,
    /// `1/2`: the first half of the messages, by their hash; a message in several languages is in one part.
    pub part: Option<Part>,
    /// At most so many cases of each language, chosen by the hash of their text.
    pub sample: Option<usize>,
    /// At most so many tools: those that the cases expect, then others by the hash of their names.
    pub tools: Option<usize>,
}

/// One of several parts of all messages, written `2/5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Part {
    /// From 0.
    at: u64,
    of: u64,
}

/// A roster and its cases, read.
#[derive(Debug)]
pub struct Loaded {
    pub name: String,
    pub tools: Tools,
    pub cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    set: Vec<Set>,
}

/// Sets from arguments: one catalog for all cases, or one for each file of cases in the same order, or none.
pub fn paired(catalogs: &[PathBuf], cases: &[PathBuf], overlay: Option<&PathBuf>) -> Result<Vec<Set>, Problem> {
    let set = |catalog: Option<&PathBuf>, cases: Vec<PathBuf>| Set {
        catalog: catalog.cloned(),
        overlay: overlay.cloned(),
        cases,
        ..Set::default()
    };
    match catalogs {
        [one] => Ok(vec![set(Some(one), cases.to_vec())]),
        [] => Ok(cases.iter().map(|file| set(None, vec![file.clone()])).collect()),
        many if many.len() == cases.len() => {
            Ok(many.iter().zip(cases).map(|(catalog, file)| set(Some(catalog), vec![file.clone()])).collect())
        }
        many => Err(Problem::Pairs { catalogs: many.len(), cases: cases.len() }),
    }
}

/// Sets from a file: TOML, a list of `[[set]]`. Paths are relative to it.
pub fn file(path: &Path) -> Result<Vec<Set>, Problem> {
    let text = std::fs::read_to_string(path).map_err(|error| Problem::Read { path: path.to_owned(), error })?;
    let file: File =
        toml::from_str(&text).map_err(|error| Problem::Sets { path: path.to_owned(), why: error.to_string() })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut sets = file.set;
    for set in &mut sets {
        let paths = set.cases.iter_mut().chain(&mut set.catalog).chain(&mut set.overlay);
        paths.for_each(|path| *path = folder.join(&*path));
    }
    Ok(sets)
}

impl Set {
    /// Reads it: one roster with its cases for each catalog that is named; without files of cases the roster alone. `ignore`: elements that agents wrap around a
    /// message. `overlay`: what holds where the set names none.
    pub fn load(&self, ignore: &[String], overlay: Option<&Arc<Catalog>>) -> Result<Vec<Loaded>, Problem> {
        if self.cases.is_empty() {
            let tools = self.roster(overlay)?;
            return Ok(vec![Loaded { name: self.title(), tools, cases: Vec::new() }]);
        }
        let overlay = self.overlaid(overlay)?;
        let mut by_catalog: BTreeMap<PathBuf, Vec<Case>> = BTreeMap::new();
        for path in &self.cases {
            let path = if path.is_dir() { path.join("cases.jsonl") } else { path.clone() };
            let folder = path.parent().unwrap_or(Path::new(""));
            let default = self.catalog.clone().unwrap_or_else(|| folder.join("catalog.json"));
            for case in input::cases(&path, ignore)?.into_iter().filter(|case| self.wants(case)) {
                let catalog = case.catalog.as_ref().map_or_else(|| default.clone(), |named| folder.join(named));
                by_catalog.entry(catalog).or_default().push(case);
            }
        }
        let (many, name) = (by_catalog.len() > 1, self.title());
        if by_catalog.is_empty() {
            return Err(Problem::NoCases { set: name });
        }
        let load = |(catalog, cases): (PathBuf, Vec<Case>)| {
            let mut tools = Tools::read(&catalog, &overlay).map_err(|problem| self.unnamed(problem))?;
            let cases = self.sampled(cases);
            if let Some(most) = self.tools {
                let needed: HashSet<&str> = cases.iter().flat_map(|case| &case.expect).map(String::as_str).collect();
                tools.cut(most, &|name| needed.contains(name));
            }
            let stem = catalog.file_stem().unwrap_or_default().to_string_lossy();
            let name = if many { format!("{name}/{stem}") } else { name.clone() };
            Ok(Loaded { name, tools, cases })
        };
        by_catalog.into_iter().map(load).collect()
    }

    /// A catalog that nobody named and that is not there: the arguments lack it, not the disk.
    fn unnamed(&self, problem: Problem) -> Problem {
        match problem {
            Problem::Read { path, error } if self.catalog.is_none() && error.kind() == ErrorKind::NotFound => {
                Problem::Catalog {
                    path,
                    why: "there is no such file beside the cases: name their roster (--catalog)".into(),
                }
            }
            other => other,
        }
    }

    /// Its roster alone, whether it has cases or not.
    pub fn roster(&self, overlay: Option<&Arc<Catalog>>) -> Result<Tools, Problem> {
        let catalog = self.catalog.as_ref().ok_or(Problem::NoCatalog)?;
        Tools::read(catalog, &*self.overlaid(overlay)?)
    }

    fn overlaid(&self, overlay: Option<&Arc<Catalog>>) -> Result<Arc<Catalog>, Problem> {
        match &self.overlay {
            Some(path) => Catalog::read(path).map(Arc::new).map_err(Problem::Overlay),
            None => Ok(overlay.cloned().unwrap_or_default()),
        }
    }

    fn title(&self) -> String {
        if !self.name.is_empty() {
            return self.name.clone();
        }
        let Some(first) = self.cases.first().or(self.catalog.as_ref()) else { return "cases".into() };
        let folder = if first.is_dir() { Some(first.as_path()) } else { first.parent() };
        let folder = folder.and_then(|folder| folder.file_name()).map(|name| name.to_string_lossy().into_owned());
        folder.filter(|name| !name.is_empty()).unwrap_or_else(|| "cases".into())
    }

    fn wants(&self, case: &Case) -> bool {
        let has = |tags: &[String]| case.tags.iter().any(|tag| tags.contains(tag));
        (self.langs.is_empty() || self.langs.contains(&case.lang))
            && !self.not_langs.contains(&case.lang)
            && (self.tags.is_empty() || has(&self.tags))
            && !has(&self.not_tags)
            && self.part.is_none_or(|part| part.holds(case))
    }

    /// In the order of the file.
    fn sampled(&self, cases: Vec<Case>) -> Vec<Case> {
        let Some(most) = self.sample else { return cases };
        let mut by_lang: BTreeMap<&str, Vec<(u64, usize)>> = BTreeMap::new();
        for (at, case) in cases.iter().enumerate() {
            let said = case.dialogue.last().map_or("", |last| last.text.as_str());
            by_lang.entry(&case.lang).or_default().push((xxh3_64(format!("{}\0{said}", case.id).as_bytes()), at));
        }
        let mut kept = HashSet::new();
        for hashes in by_lang.values_mut() {
            hashes.sort_unstable();
            kept.extend(hashes.iter().take(most).map(|(_, at)| *at));
        }
        cases.into_iter().enumerate().filter(|(at, _)| kept.contains(at)).map(|(_, case)| case).collect()
    }
}

impl Part {
    fn holds(self, case: &Case) -> bool {
        let said = case.dialogue.last().map_or("", |last| last.text.trim());
        xxh3_64(case.pair.as_deref().unwrap_or(said).as_bytes()) % self.of == self.at
    }
}

impl TryFrom<String> for Part {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(at, of)| Some((at.parse::<u64>().ok()?, of.parse::<u64>().ok()?)));
        match parsed {
            Some((at, of)) if (1..=of).contains(&at) => Ok(Self { at: at - 1, of }),
            _ => Err(format!("`{text}` is no part such as 1/2")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASES: &str = r#"{"id":"1","lang":"en","query":"one","expect":["a"],"tags":["x"]}
{"id":"2","lang":"tr","query":"iki","expect":["b"],"catalog":"other.json"}
{"id":"3","lang":"en","query":"three","expect":["b"]}
"#;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("folder");
        let tools = |names: &[&str]| {
            let entries: Vec<String> =
                names.iter().map(|name| format!(r#"{{"name":"{name}","description":"does {name}"}}"#)).collect();
            format!("[{}]", entries.join(","))
        };
        for (name, text) in [
            ("cases.jsonl", CASES.to_owned()),
            ("catalog.json", tools(&["a", "b", "c", "d"])),
            ("other.json", tools(&["b"])),
        ] {
            std::fs::write(folder.path().join(name), text).expect("written");
        }
        folder
    }

    #[test]
    fn a_folder_is_a_set_and_a_case_may_name_its_catalog() {
        let folder = folder();
        let sets = paired(&[], &[folder.path().to_owned()], None).expect("sets");
        let loaded = sets[0].load(&[], None).expect("loaded");
        let shapes: Vec<(usize, usize)> = loaded.iter().map(|set| (set.tools.names.len(), set.cases.len())).collect();
        assert_eq!(shapes, [(4, 2), (1, 1)]);
        assert!(loaded[1].name.ends_with("/other"), "{}", loaded[1].name);
    }

    #[test]
    fn a_file_of_sets_chooses_cases_and_cuts_rosters() {
        let folder = folder();
        let path = folder.path().join("sets.toml");
        let text = "[[set]]\nname = \"english\"\ncases = [\"cases.jsonl\"]\nlangs = [\"en\"]\nsample = 1\ntools = 2\n\
                    [[set]]\nname = \"untagged\"\ncatalog = \"catalog.json\"\ncases = [\"cases.jsonl\"]\nnot_tags = [\"x\"]\nnot_langs = [\"tr\"]\n";
        std::fs::write(&path, text).expect("written");
        let sets = file(&path).expect("sets");
        let english = sets[0].load(&[], None).expect("english");
        assert_eq!((english[0].name.as_str(), english[0].cases.len(), english[0].tools.names.len()), ("english", 1, 2));
        assert!(english[0].tools.names.contains(&english[0].cases[0].expect[0]));
        let again = sets[0].load(&[], None).expect("english");
        assert_eq!(again[0].cases[0].id, english[0].cases[0].id);
        let untagged = sets[1].load(&[], None).expect("untagged");
        assert_eq!(untagged[0].cases.iter().map(|case| case.id.as_str()).collect::<Vec<_>>(), ["3"]);
        std::fs::write(&path, "[[set]]\ncase = [\"x\"]\n").expect("written");
        let refused = file(&path).expect_err("an unknown key").to_string();
        assert!(refused.contains("unknown field `case`"), "{refused}");
    }

    #[test]
    fn catalogs_and_cases_pair_up_or_are_refused() {
        let path = |name: &str| PathBuf::from(name);
        let two = [path("a"), path("b")];
        assert_eq!(paired(&two, &two, None).expect("pairs").len(), 2);
        assert_eq!(paired(&two[..1], &two, None).expect("one catalog")[0].cases.len(), 2);
        let refused = paired(&two, &[path("a"), path("b"), path("c")], None).expect_err("three").to_string();
        assert!(refused.contains("2 catalogs") && refused.contains("3 files"), "{refused}");
    }

    #[test]
    fn a_set_without_cases_is_refused() {
        let folder = folder();
        let set = Set { cases: vec![folder.path().to_owned()], langs: vec!["fi".into()], ..Set::default() };
        assert!(set.load(&[], None).expect_err("none").to_string().contains("no case"));
        let alone = tempfile::tempdir().expect("folder");
        let cases = alone.path().join("cases.jsonl");
        let refused = |text: &str| {
            std::fs::write(&cases, text).expect("written");
            let set = Set { cases: vec![cases.clone()], ..Set::default() };
            set.load(&[], None).expect_err("no catalog").to_string()
        };
        assert!(refused("").contains("they are empty"));
        let named = refused("{\"query\":\"x\",\"expect\":[\"a\"]}\n");
        assert!(named.contains("catalog.json: there is no such file") && named.contains("--catalog"), "{named}");
    }
}
