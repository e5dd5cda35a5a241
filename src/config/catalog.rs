//! What a tool's JSON cannot say: category, keywords, tier, connector. Data, not code: a new connector is a few lines
//! in a file. NOT the roster: an entry for a tool that no agent sends is no error.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use globset::{Glob, GlobMatcher};

use super::read::{self, Reader, Section};
use super::source;
use crate::retrieval::prior::{Standing, Tier};
use crate::turn::policy::Facts;

/// A catalog file.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// Categories in the order their tools are bound.
    pub domain_order: Vec<String>,
    /// What `tune` learnt for these tools: used where `head` is not set.
    pub head: Option<PathBuf>,
    entries: Vec<Entry>,
    exact: HashMap<String, usize>,
    globs: Vec<(GlobMatcher, usize)>,
}

/// `[[tool]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Exact or glob.
    pub name: String,
    /// Empty: none.
    pub category: String,
    pub keywords: Vec<String>,
    pub tier: Option<Tier>,
    pub connector: Option<String>,
    pub always_on: bool,
    pub cost: Option<f64>,
    pub latency_ms: Option<f64>,
    /// Replaces the description for retrieval only.
    pub search_text: Option<String>,
}

impl Entry {
    /// What changes the tool's place among equals.
    pub fn standing(&self) -> Standing {
        let number = |given: Option<f64>| given.unwrap_or_default().max(0.0) as f32;
        Standing { tier: self.tier.unwrap_or_default(), cost: number(self.cost), latency: number(self.latency_ms) }
    }
}

impl Catalog {
    /// Reads a file. Errors: one line each, with the file and the line.
    pub fn read(path: &Path) -> Result<Self, Vec<String>> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| vec![format!("cannot read {shown}: {error}")])?;
        Self::parse_in(&text, path.parent().unwrap_or(Path::new("")))
            .map_err(|problems| problems.iter().map(|problem| format!("{shown}: {problem}")).collect())
    }

    /// Reads a file's text. Errors: one line each.
    pub fn parse(text: &str) -> Result<Self, Vec<String>> {
        Self::parse_in(text, Path::new(""))
    }

    /// `folder`: where relative paths start.
    fn parse_in(text: &str, folder: &Path) -> Result<Self, Vec<String>> {
        let tree =
            source::parse(text).map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        let reader = Reader::new(folder);
        let mut root = reader.root(&tree);
        let mut catalog = Self::default();
        root.take("domain_order", &mut catalog.domain_order, read::list);
        root.take_path("head", &mut catalog.head);
        for section in root.sections("tool", "name").unwrap_or_default() {
            catalog.read_entry(section);
        }
        root.finish();
        let problems = reader.into_problems();
        if problems.is_empty() { Ok(catalog) } else { Err(problems.iter().map(ToString::to_string).collect()) }
    }

    /// What is said of this tool: an exact name, else the first glob.
    pub fn find(&self, name: &str) -> Option<&Entry> {
        let glob = || self.globs.iter().find(|(glob, _)| glob.is_match(name)).map(|(_, index)| index);
        self.entries.get(*self.exact.get(name).or_else(glob)?)
    }

    /// What this file says of a tool to the floor that decides. `core`: always bound, whatever the file says.
    pub fn facts(&self, name: &str, core: bool) -> Facts {
        match self.find(name) {
            None => Facts { core, domain: self.domain_rank(""), ..Facts::default() },
            Some(entry) => Facts {
                core: core || entry.always_on,
                category: entry.category.clone(),
                keywords: entry.keywords.clone(),
                search_text: entry.search_text.clone(),
                connector: entry.connector.clone(),
                domain: self.domain_rank(&entry.category),
                standing: entry.standing(),
            },
        }
    }

    /// Place of a category in the order of domains; those not named come last, together.
    pub fn domain_rank(&self, category: &str) -> usize {
        self.domain_order.iter().position(|domain| domain == category).unwrap_or(self.domain_order.len())
    }

    /// In the order of the file.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn read_entry(&mut self, mut section: Section<'_>) {
        let mut entry = Entry {
            name: String::new(),
            category: String::new(),
            keywords: Vec::new(),
            tier: None,
            connector: None,
            always_on: false,
            cost: None,
            latency_ms: None,
            search_text: None,
        };
        let optional = |node: &_| read::text(node).map(|text| (!text.is_empty()).then_some(text));
        section.take("name", &mut entry.name, read::text);
        section.take("category", &mut entry.category, read::text);
        section.take("keywords", &mut entry.keywords, read::list);
        let tiers = [("safe", Some(Tier::Safe)), ("write", Some(Tier::Write)), ("danger", Some(Tier::Danger))];
        section.take("tier", &mut entry.tier, read::one_of(&tiers));
        section.take("connector", &mut entry.connector, optional);
        section.take("always_on", &mut entry.always_on, read::flag);
        section.take("cost", &mut entry.cost, |node| read::number(node).map(Some));
        section.take("latency_ms", &mut entry.latency_ms, |node| read::number(node).map(Some));
        section.take("search_text", &mut entry.search_text, optional);
        self.add(entry, &section);
        section.finish();
    }

    fn add(&mut self, entry: Entry, section: &Section<'_>) {
        let index = self.entries.len();
        if entry.name.is_empty() {
            section.report("name", "must be given, a tool's name or a glob");
        } else if entry.name.contains(['*', '?', '[', '{']) {
            match Glob::new(&entry.name) {
                Ok(glob) => self.globs.push((glob.compile_matcher(), index)),
                Err(error) => section.report("name", format!("`{}` is not a glob: {}", entry.name, error.kind())),
            }
        } else if self.exact.insert(entry.name.clone(), index).is_some() {
            section.report("name", format!("`{}` stands in the catalog already", entry.name));
        }
        self.entries.push(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
domain_order = ["records", "meta"]
[[tool]]
name = "delete_*"
category = "records"
tier = "danger"
[[tool]]
name = "delete_view"
connector = "crm"
cost = 1
[[tool]]
name = "*"
keywords = ["any"]
"#;

    #[test]
    fn an_exact_name_comes_before_a_glob_and_the_first_glob_before_the_next() {
        let catalog = Catalog::parse(TEXT).unwrap();
        let name = |tool| catalog.find(tool).map(|entry| entry.name.as_str());
        assert_eq!(name("delete_view"), Some("delete_view"));
        assert_eq!(name("delete_record"), Some("delete_*"));
        assert_eq!(name("list"), Some("*"));
        assert_eq!(catalog.find("delete_view").and_then(|entry| entry.cost), Some(1.0));
    }

    #[test]
    fn domains_that_are_not_named_come_last() {
        let catalog = Catalog::parse(TEXT).unwrap();
        assert_eq!(["records", "meta", "views", ""].map(|c| catalog.domain_rank(c)), [0, 1, 2, 2]);
    }

    #[test]
    fn reports_everything_that_is_wrong() {
        let text =
            "domain_order = 3\n[[tool]]\nname = \"a\"\ncategry = \"x\"\n[[tool]]\nname = \"a\"\ntier = \"evil\"\n";
        assert_eq!(
            Catalog::parse(text).unwrap_err(),
            [
                "line 1: domain_order: must be a list of text, not a whole number",
                "line 4: tool.a.categry: unknown key, did you mean tool.a.category?",
                "line 6: tool.a.name: `a` stands in the catalog already",
                "line 7: tool.a.tier: must be one of safe, write, danger, not `evil`",
            ]
        );
    }
}
