//! How much is narrowed, and how, and what that says to the floor that decides. NOT deciding.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use globset::{Glob, GlobSet, GlobSetBuilder};

use super::catalog::Catalog;
use super::read::{self, Section};
use super::source::Node;
use crate::embed::Provider;
use crate::retrieval::head::Head;
use crate::retrieval::width::Width;
use crate::turn::dispatch::CALL_TOOL;
use crate::turn::policy::{Directory, Facts, Order, Policy, Stability};

/// `[narrow]`, or an upstream's own.
#[derive(Debug, Clone)]
pub struct Narrow {
    pub mode: Mode,
    /// Of conversations; the rest are the holdout. 0 to 100.
    pub percent: u8,
    /// Names and globs of the core. Each is a valid glob.
    pub always_on: Vec<String>,
    /// [`Width::Auto`] is settled for the embedder by [`Narrow::settle`].
    pub max_retrieved_tools: Width,
    pub max_discovered_tools: usize,
    pub max_discovery_legs: usize,
    /// Beyond the core; never less than `max_retrieved_tools`, or what `auto` usually selects.
    pub max_bound_tools: usize,
    pub sticky_need: usize,
    /// Learn from calls that succeeded.
    pub history: bool,
    pub binding: Binding,
    /// Names and globs of the models that take tools in messages. Each is a valid glob.
    pub append_models: Vec<String>,
    pub stability: Stability,
    /// How long the provider's prompt cache keeps a prefix: after it choosing anew is free.
    pub cache_life: Duration,
    /// For everything before the upstream call.
    pub deadline: Duration,
    pub find_tools_name: String,
    pub order: Order,
    /// Elements that agents wrap around what the user wrote.
    pub query_ignore: Vec<String>,
    pub directory: Directory,
    pub catalog: Option<Arc<Catalog>>,
    /// What `tune` learnt from requests.
    pub head: Option<Arc<HeadFile>>,
}

/// A head and where it lies: it is read again when the file changes.
#[derive(Debug)]
pub struct HeadFile {
    pub path: PathBuf,
    pub head: Arc<Head>,
}

impl HeadFile {
    /// Reads a file. The error names it.
    pub fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let bytes = std::fs::read(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
        let head = Head::from_bytes(&bytes).map_err(|error| format!("{shown}: {error}"))?;
        Ok(Self { path: path.to_owned(), head: Arc::new(head) })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Off,
    Shadow,
    Narrow,
}

impl Mode {
    pub fn label(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Shadow => "shadow",
            Self::Narrow => "narrow",
        }
    }
}

/// How the block reaches the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    Auto,
    Replace,
    Append,
    Dispatch,
}

impl Default for Narrow {
    fn default() -> Self {
        Self {
            mode: Mode::Narrow,
            percent: 100,
            always_on: Vec::new(),
            max_retrieved_tools: Width::default(),
            max_discovered_tools: 5,
            max_discovery_legs: 2,
            max_bound_tools: 24,
            sticky_need: 5,
            history: false,
            binding: Binding::Auto,
            append_models: vec!["kimi-k3*".to_owned()],
            stability: Stability::Sticky,
            cache_life: Duration::from_secs(300),
            deadline: Duration::from_millis(300),
            find_tools_name: "find_tools".to_owned(),
            order: Order::Roster,
            query_ignore: ["system-reminder", "environment_details", "environment_context"].map(str::to_owned).into(),
            directory: Directory::Names,
            catalog: None,
            head: None,
        }
    }
}

impl Narrow {
    /// What the floor that decides is told. `max_tools`: the upstream's cap.
    pub fn policy(&self, max_tools: usize) -> Policy {
        Policy {
            max_retrieved_tools: self.max_retrieved_tools,
            max_discovered_tools: self.max_discovered_tools,
            max_discovery_legs: self.max_discovery_legs,
            max_bound_tools: self.max_bound_tools,
            sticky_need: self.sticky_need,
            stability: self.stability,
            order: self.order,
            directory: self.directory,
            find_tools_name: self.find_tools_name.clone(),
            query_ignore: self.query_ignore.clone(),
            max_tools,
        }
    }

    /// What configuration and catalog say of a tool. `core`: [`matching`] of `always_on`.
    pub fn facts(&self, name: &str, core: &GlobSet) -> Facts {
        let core = core.is_match(name);
        match &self.catalog {
            None => Facts { core, ..Facts::default() },
            Some(catalog) => catalog.facts(name, core),
        }
    }

    /// Reads what is given over `base`.
    pub(super) fn read(mut section: Section<'_>, base: &Self) -> Self {
        let mut narrow = base.clone();
        let modes = [("off", Mode::Off), ("shadow", Mode::Shadow), ("narrow", Mode::Narrow)];
        section.take("mode", &mut narrow.mode, read::one_of(&modes));
        section.take("percent", &mut narrow.percent, percent);
        section.take("always_on", &mut narrow.always_on, globs);
        section.take("max_retrieved_tools", &mut narrow.max_retrieved_tools, width);
        section.take("max_discovered_tools", &mut narrow.max_discovered_tools, read::count(1, usize::MAX));
        section.take("max_discovery_legs", &mut narrow.max_discovery_legs, read::count(0, 16));
        section.take("max_bound_tools", &mut narrow.max_bound_tools, read::count(0, usize::MAX));
        let least = narrow.max_retrieved_tools.usual();
        if narrow.max_bound_tools < least {
            if section.has("max_bound_tools") {
                section.report("max_bound_tools", format!("must be at least max_retrieved_tools, which is {least}"));
            }
            narrow.max_bound_tools = least;
        }
        section.take("sticky_need", &mut narrow.sticky_need, read::count(0, usize::MAX));
        section.take("history", &mut narrow.history, read::flag);
        let bindings = [
            ("auto", Binding::Auto),
            ("replace", Binding::Replace),
            ("append", Binding::Append),
            ("dispatch", Binding::Dispatch),
        ];
        section.take("binding", &mut narrow.binding, read::one_of(&bindings));
        section.take("append_models", &mut narrow.append_models, globs);
        let stabilities = [("sticky", Stability::Sticky), ("turn", Stability::Turn)];
        section.take("stability", &mut narrow.stability, read::one_of(&stabilities));
        section.take("cache_life", &mut narrow.cache_life, read::duration);
        section.take("deadline", &mut narrow.deadline, read::duration);
        section.take("find_tools_name", &mut narrow.find_tools_name, tool_name);
        section.take("order", &mut narrow.order, read::one_of(&[("roster", Order::Roster), ("name", Order::Name)]));
        section.take("query_ignore", &mut narrow.query_ignore, read::list);
        let directories = [("names", Directory::Names), ("groups", Directory::Groups), ("none", Directory::None)];
        section.take("directory", &mut narrow.directory, read::one_of(&directories));
        read_catalog(&mut section, &mut narrow.catalog);
        read_head(&mut section, narrow.catalog.as_ref(), &mut narrow.head);
        section.finish();
        narrow
    }

    /// What `auto` means for this embedder: the builtin one's scores say how sure it is; a remote one's are not measured,
    /// and twelve is the figure of gemini-embedding-001.
    pub(super) fn settle(&mut self, provider: Provider) {
        if self.max_retrieved_tools == Width::Auto && provider != Provider::Builtin {
            self.max_retrieved_tools = Width::Fixed(REMOTE);
        }
    }
}

/// `auto` for a remote embedder.
const REMOTE: usize = 12;

/// A number, or "auto".
fn width(node: &Node) -> Result<Width, String> {
    if read::text(node).is_ok_and(|text| text == "auto") {
        return Ok(Width::Auto);
    }
    read::count(0, usize::MAX)(node).map(Width::Fixed).map_err(|why| format!("{why}, or \"auto\""))
}

fn read_catalog(section: &mut Section<'_>, catalog: &mut Option<Arc<Catalog>>) {
    let given = section.has("catalog");
    let mut path: Option<PathBuf> = None;
    section.take_path("catalog", &mut path);
    match path.map(|path| Catalog::read(&path)) {
        Some(Ok(read)) => *catalog = Some(Arc::new(read)),
        Some(Err(problems)) => problems.into_iter().for_each(|problem| section.report("catalog", problem)),
        None if given => *catalog = None,
        None => {}
    }
}

/// All of these names and globs at once. Each was parsed with the configuration.
pub fn matching(globs: &[String]) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for glob in globs.iter().filter_map(|glob| Glob::new(glob).ok()) {
        set.add(glob);
    }
    set.build().unwrap_or_default()
}

fn read_head(section: &mut Section<'_>, catalog: Option<&Arc<Catalog>>, head: &mut Option<Arc<HeadFile>>) {
    let given = section.has("head") || section.has("catalog");
    // A catalog brings its head along; one that is set beats it.
    let mut path = catalog.filter(|_| section.has("catalog")).and_then(|catalog| catalog.head.clone());
    section.take_path("head", &mut path);
    match path.map(|path| HeadFile::read(&path)) {
        Some(Ok(read)) => *head = Some(Arc::new(read)),
        Some(Err(problem)) => section.report("head", problem),
        None if given => *head = None,
        None => {}
    }
}

fn percent(node: &Node) -> Result<u8, String> {
    read::count(0, 100)(node).map(|percent| u8::try_from(percent).unwrap_or(100))
}

fn globs(node: &Node) -> Result<Vec<String>, String> {
    let globs = read::list(node)?;
    for glob in &globs {
        Glob::new(glob).map_err(|error| format!("`{glob}` is not a glob: {}", error.kind()))?;
    }
    Ok(globs)
}

/// What every provider takes as a tool's name (Gemini is the strictest: 64 characters, not starting with a digit).
fn tool_name(node: &Node) -> Result<String, String> {
    let name = read::text(node)?;
    let start = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let rest = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if name == CALL_TOOL {
        Err(format!("`{CALL_TOOL}` is the tool that dispatch declares beside it, choose another name"))
    } else if start && rest && name.len() <= 64 {
        Ok(name)
    } else {
        Err(format!("`{name}` is not a name of at most 64 letters, digits, _ and - that starts with a letter or _"))
    }
}
