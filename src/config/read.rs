//! Reads a tree key by key: what is read is known, what is left over is not. NOT the meaning of a key.
//! There is no second list of key names that could disagree with the code that reads them.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::problem::{self, Place, Problem};
use super::source::{Node, Table, Value};
use super::units;

/// Collects what is wrong while a tree is read.
#[derive(Debug, Default)]
pub(super) struct Reader {
    problems: RefCell<Vec<Problem>>,
    known: RefCell<BTreeSet<String>>,
    unknown: RefCell<Vec<(String, Place)>>,
    /// Paths in a file start at its folder; those in variables where the process stands.
    folder: PathBuf,
}

/// A table while its keys are read. Must end with [`Section::finish`].
#[derive(Debug)]
pub(super) struct Section<'a> {
    reader: &'a Reader,
    /// As shown to people: `upstream.kimi`.
    path: String,
    place: Place,
    entries: &'a [(String, Node)],
    taken: Vec<&'static str>,
}

impl Reader {
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), ..Self::default() }
    }

    pub fn root<'a>(&'a self, tree: &'a Table) -> Section<'a> {
        Section { reader: self, path: String::new(), place: Place::Whole, entries: tree, taken: Vec::new() }
    }

    pub fn report(&self, key: &str, place: &Place, text: String) {
        self.problems.borrow_mut().push(Problem { key: key.to_owned(), text, place: place.clone() });
    }

    /// All problems, unknown keys among them.
    pub fn into_problems(self) -> Vec<Problem> {
        let mut problems = self.problems.into_inner();
        let known = self.known.into_inner();
        for (key, place) in self.unknown.into_inner() {
            let text = problem::unknown(&key, &known);
            problems.push(Problem { key, text, place });
        }
        problem::sort(&mut problems);
        problems
    }
}

impl<'a> Section<'a> {
    /// Reads a key into its slot; a key that is not given leaves the slot as it is.
    pub fn take<T>(&mut self, key: &'static str, slot: &mut T, parse: impl FnOnce(&Node) -> Result<T, String>) {
        let Some(node) = self.node(key) else { return };
        match parse(node) {
            Ok(value) => *slot = value,
            Err(text) => self.reader.report(&self.name(key), &node.place, text),
        }
    }

    /// Like [`Section::take`], for a path: relative ones start at the file's folder. Empty text is no path.
    pub fn take_path(&mut self, key: &'static str, slot: &mut Option<PathBuf>) {
        let folder = self.reader.folder.clone();
        self.take(key, slot, |node| {
            let given = text(node)?;
            let base = if node.is_variable() { Path::new("") } else { &folder };
            Ok((!given.is_empty()).then(|| base.join(given)))
        });
    }

    /// A table inside; an absent one is empty.
    pub fn section(&mut self, key: &'static str) -> Section<'a> {
        let node = self.node(key);
        let entries: &'a [(String, Node)] = match node.map(|node| (&node.value, &node.place)) {
            Some((Value::Table(table), _)) => table,
            Some((other, place)) => {
                self.reader.report(&self.name(key), place, format!("must be a table, not {}", other.kind()));
                &[]
            }
            None => &[],
        };
        let place = node.map_or(Place::Whole, |node| node.place.clone());
        Section { reader: self.reader, path: self.name(key), place, entries, taken: Vec::new() }
    }

    /// A list of tables (`[[key]]`), each under the name `naming` finds in it or its number from 0; `None`: absent.
    pub fn sections(&mut self, key: &'static str, naming: &str) -> Option<Vec<Section<'a>>> {
        let node = self.node(key)?;
        let Value::List(items) = &node.value else {
            let text = format!("must be a list of tables ([[{key}]]), not {}", node.value.kind());
            self.reader.report(&self.name(key), &node.place, text);
            return Some(Vec::new());
        };
        let mut sections = Vec::new();
        for (number, item) in items.iter().enumerate() {
            let Value::Table(table) = &item.value else {
                let text = format!("must be a table, not {}", item.value.kind());
                self.reader.report(&join(&self.name(key), &number.to_string()), &item.place, text);
                continue;
            };
            let name = table.iter().find_map(|(key, node)| match &node.value {
                Value::Text(text) if key == naming && !text.is_empty() => Some(text.clone()),
                _ => None,
            });
            sections.push(Section {
                reader: self.reader,
                path: join(&self.name(key), &name.unwrap_or_else(|| number.to_string())),
                place: item.place.clone(),
                entries: table,
                taken: Vec::new(),
            });
        }
        Some(sections)
    }

    /// A table whose keys are names of the user's, each with a table behind it.
    pub fn named(&mut self, key: &'static str) -> Vec<(String, Section<'a>)> {
        let outer = self.section(key);
        let mut sections = Vec::new();
        for (name, node) in outer.entries {
            let path = join(&outer.path, name);
            let Value::Table(table) = &node.value else {
                self.reader.report(&path, &node.place, format!("must be a table, not {}", node.value.kind()));
                continue;
            };
            let place = node.place.clone();
            let section = Section { reader: self.reader, path, place, entries: table, taken: Vec::new() };
            sections.push((name.clone(), section));
        }
        sections
    }

    /// Was the key given?
    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(name, _)| name == key)
    }

    /// Where the key was given; the table's place when it was not.
    pub fn place(&self, key: &str) -> Place {
        let entry = self.entries.iter().find(|(name, _)| name == key);
        entry.map_or_else(|| self.place.clone(), |(_, node)| node.place.clone())
    }

    /// A problem with a key, given or missing.
    pub fn report(&self, key: &str, text: impl Into<String>) {
        self.reader.report(&self.name(key), &self.place(key), text.into());
    }

    /// The dotted name of a key in here.
    pub fn name(&self, key: &str) -> String {
        join(&self.path, key)
    }

    /// Keys that were given and never taken are unknown.
    pub fn finish(self) {
        let shown: BTreeSet<String> = self.taken.iter().map(|key| join(&self.path, key)).collect();
        for (key, node) in self.entries {
            if !self.taken.iter().any(|taken| taken == key) {
                self.reader.unknown.borrow_mut().push((join(&self.path, key), node.place.clone()));
            }
        }
        self.reader.known.borrow_mut().extend(shown);
    }

    fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        self.taken.push(key);
        self.entries.iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }
}

fn join(path: &str, key: &str) -> String {
    match (path, key) {
        ("", key) => key.to_owned(),
        (path, "") => path.to_owned(),
        (path, key) => format!("{path}.{key}"),
    }
}

/// Text.
pub(super) fn text(node: &Node) -> Result<String, String> {
    match &node.value {
        Value::Text(text) => Ok(text.clone()),
        other => Err(format!("must be text, not {}", other.kind())),
    }
}

/// `true` or `false`.
pub(super) fn flag(node: &Node) -> Result<bool, String> {
    match &node.value {
        Value::Flag(flag) => Ok(*flag),
        Value::Text(text) if node.is_variable() => {
            text.trim().parse().map_err(|_| format!("must be true or false, not `{text}`"))
        }
        other => Err(format!("must be true or false, not {}", other.kind())),
    }
}

/// A whole number of `least..=most`.
pub(super) fn count(least: usize, most: usize) -> impl FnOnce(&Node) -> Result<usize, String> {
    move |node| {
        let wanted = || match most {
            usize::MAX => format!("must be a whole number of at least {least}"),
            _ => format!("must be a whole number from {least} to {most}"),
        };
        let number = match &node.value {
            Value::Whole(number) => usize::try_from(*number).map_err(|_| format!("{}, not {number}", wanted()))?,
            Value::Text(text) if node.is_variable() => {
                text.trim().parse().map_err(|_| format!("{}, not `{text}`", wanted()))?
            }
            other => return Err(format!("{}, not {}", wanted(), other.kind())),
        };
        if (least..=most).contains(&number) { Ok(number) } else { Err(format!("{}, not {number}", wanted())) }
    }
}

/// A finite number of at least 0.
pub(super) fn number(node: &Node) -> Result<f64, String> {
    let number = match &node.value {
        Value::Number(number) => *number,
        Value::Whole(number) => *number as f64,
        Value::Text(text) if node.is_variable() => {
            text.trim().parse().map_err(|_| format!("must be a number, not `{text}`"))?
        }
        other => return Err(format!("must be a number, not {}", other.kind())),
    };
    if number.is_finite() && number >= 0.0 { Ok(number) } else { Err(format!("must be at least 0, not {number}")) }
}

/// A list of text; in a variable separated by commas.
pub(super) fn list(node: &Node) -> Result<Vec<String>, String> {
    match &node.value {
        Value::List(items) => items
            .iter()
            .map(|item| match &item.value {
                Value::Text(text) => Ok(text.clone()),
                other => Err(format!("must be a list of text, one entry is {}", other.kind())),
            })
            .collect(),
        Value::Text(text) if node.is_variable() => {
            Ok(text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect())
        }
        other => Err(format!("must be a list of text, not {}", other.kind())),
    }
}

/// One of a few words.
pub(super) fn one_of<T: Copy>(words: &[(&'static str, T)]) -> impl FnOnce(&Node) -> Result<T, String> {
    move |node| {
        let given = text(node)?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == given) {
            return Ok(*value);
        }
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        Err(format!("must be one of {}, not `{given}`", words.join(", ")))
    }
}

/// `64MiB`, in bytes.
pub(super) fn size(node: &Node) -> Result<usize, String> {
    units::size(&text(node)?)
}

/// `300ms`; never nothing at all.
pub(super) fn duration(node: &Node) -> Result<Duration, String> {
    match units::duration(&text(node)?)? {
        Duration::ZERO => Err("must be longer than nothing".to_owned()),
        duration => Ok(duration),
    }
}
