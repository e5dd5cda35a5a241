//! `[catalogs.NAME]`: files of tools that requests may refer to by name. NOT what is said of tools
//! (`catalog`), NOT reading them again (`proxy/catalogs.rs`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::read::Section;
use crate::wire::listing::Listing;

/// A catalog: its name, where it lies, and what it held when it was read.
#[derive(Debug, Clone)]
pub struct ToolFile {
    /// Letters, digits, `-` and `_`.
    pub name: String,
    pub path: PathBuf,
    pub listing: Arc<Listing>,
}

impl ToolFile {
    /// Reads a file. The error names it.
    pub fn read(name: &str, path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
        let listing = Listing::parse(&text).map_err(|error| format!("{shown}: {error}"))?;
        Ok(Self { name: name.to_owned(), path: path.to_owned(), listing: Arc::new(listing) })
    }
}

/// Reads every `[catalogs.NAME]`, in the order of the file.
pub(super) fn read(sections: Vec<(String, Section<'_>)>) -> Vec<ToolFile> {
    sections.into_iter().filter_map(|(name, section)| read_one(&name, section)).collect()
}

fn read_one(name: &str, mut section: Section<'_>) -> Option<ToolFile> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        section.report("", format!("`{name}` must be letters, digits, - and _ only: it is the value of a header"));
    }
    let mut path: Option<PathBuf> = None;
    section.take_path("tools", &mut path);
    let file = match path.map(|path| ToolFile::read(name, &path)) {
        Some(Ok(file)) => Some(file),
        Some(Err(problem)) => {
            section.report("tools", problem);
            None
        }
        None => {
            section.report("tools", "must be given, the path of a JSON file with an array of tools");
            None
        }
    };
    section.finish();
    file
}
