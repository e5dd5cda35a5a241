//! What the agent sent, read once per distinct `tools` value: who is core, what
//! retrieval reads, in which order they are bound. NOT the bytes of the tools.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::policy::{Directory, Facts, Order, Policy};
use super::search;
use super::sizes::Sizes;
use crate::decision::ToolTokens;
use crate::retrieval::document::{Document, parameters};
use crate::retrieval::prior::{self, Standing};
use crate::wire::view::{ToolKind, ToolView};

/// Names in the directory of `find_tools`, at most; beyond that groups.
const DIRECTORY_NAMES: usize = 64;
/// Groups in the directory, at most: it stands in every request.
const DIRECTORY_GROUPS: usize = 40;
/// Characters of a description that an answer of `find_tools` repeats.
const SUMMARY: usize = 160;

/// One distinct `tools` value under one policy. Indices are those of `ChatView::tools`.
#[derive(Debug)]
pub struct Roster {
    entries: Vec<Entry>,
    by_name: HashMap<String, Vec<usize>>,
    /// What retrieval ranks: the tools that may be withheld, one per name.
    documents: Arc<Vec<Document>>,
    /// For each document the first tool of that name.
    tool_of: Vec<usize>,
    /// What the documents' standings add to their scores.
    standings: Vec<f32>,
    directory: String,
    /// Identity within this process: tools, facts and policy.
    fingerprint: u64,
    sizes: Sizes,
}

#[derive(Debug)]
struct Entry {
    name: String,
    summary: String,
    fixed: bool,
    /// Stands in a message of the agent's, not in the block.
    placed: bool,
    core: bool,
    connector: Option<String>,
    /// Its document.
    document: Option<usize>,
    domain: usize,
    group: usize,
}

impl Roster {
    /// Reads a roster. `facts`: what configuration and catalog say of a name.
    pub fn new(tools: &[ToolView<'_>], policy: &Policy, facts: &dyn Fn(&str) -> Facts) -> Self {
        let mut entries = Vec::with_capacity(tools.len());
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        let mut documents = Vec::new();
        let mut tool_of = Vec::new();
        let mut categories = Vec::new();
        let mut standings = Vec::new();
        let mut hasher = Xxh3::new();
        policy.hash(&mut hasher);
        for (index, tool) in tools.iter().enumerate() {
            let facts = facts(&tool.name);
            let placed = tool.kind == ToolKind::Placed;
            let fixed = tool.kind != ToolKind::Function;
            (&tool.name, &tool.description, &tool.parameters, fixed, tool.group).hash(&mut hasher);
            (facts.core, &facts.category, &facts.keywords, &facts.search_text, facts.domain).hash(&mut hasher);
            let Standing { tier, cost, latency } = facts.standing;
            (tier, cost.to_bits(), latency.to_bits()).hash(&mut hasher);
            let first = by_name.get(tool.name.as_ref()).and_then(|same: &Vec<usize>| same.first());
            let mut document = first.and_then(|first| entries.get(*first)).and_then(|entry: &Entry| entry.document);
            if !fixed && !facts.core && document.is_none() {
                document = Some(documents.len());
                tool_of.push(index);
                categories.push(facts.category.clone());
                standings.push(facts.standing);
                documents.push(Document {
                    name: tool.name.to_string(),
                    description: facts.search_text.unwrap_or_else(|| tool.description.to_string()),
                    keywords: facts.keywords,
                    category: facts.category,
                    parameters: tool.parameters.as_deref().map(parameters).unwrap_or_default(),
                });
            }
            if tool.kind != ToolKind::Fixed {
                by_name.entry(tool.name.to_string()).or_default().push(index);
            }
            entries.push(Entry {
                name: tool.name.to_string(),
                summary: summary(&tool.description),
                fixed,
                placed,
                core: facts.core,
                connector: facts.connector,
                document: if fixed || facts.core { None } else { document },
                domain: facts.domain,
                group: tool.group,
            });
        }
        let directory = directory(policy, &documents, &categories);
        let texts = tools.iter().map(|tool| &*tool.text);
        Self {
            standings: prior::standings(&standings),
            sizes: Sizes::guess(texts, &search::written(&policy.find_tools_name, &directory)),
            entries,
            by_name,
            documents: Arc::new(documents),
            tool_of,
            directory,
            fingerprint: hasher.finish(),
        }
    }

    /// What its tools weigh.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// What retrieval ranks.
    pub fn documents(&self) -> &Arc<Vec<Document>> {
        &self.documents
    }

    /// What the documents' standings (tier, cost, latency) add to their scores.
    pub fn standings(&self) -> &[f32] {
        &self.standings
    }

    /// The first tool of a document.
    pub fn tool_of(&self, document: usize) -> Option<usize> {
        self.tool_of.get(document).copied()
    }

    /// The document of a tool; `None`: it is never withheld.
    pub fn document_of(&self, tool: usize) -> Option<usize> {
        self.entries.get(tool)?.document
    }

    /// The size of each tool, for a record. A name is cut as records cut it.
    pub fn tool_tokens(&self) -> Vec<ToolTokens> {
        let size = |(tool, entry): (usize, &Entry)| ToolTokens {
            name: entry.name.get(..entry.name.floor_char_boundary(256)).unwrap_or_default().to_owned(),
            tokens: self.sizes.tokens(tool),
            always: self.always(tool),
        };
        self.entries.iter().enumerate().map(size).collect()
    }

    /// Entries, all of them.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Is there no entry at all?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Is there a plain function at all?
    pub fn has_functions(&self) -> bool {
        !self.by_name.is_empty()
    }

    /// Names of all functions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// Every tool of that name, in request order.
    pub fn named(&self, name: &str) -> &[usize] {
        self.by_name.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// The tools of the same name as this one, itself included.
    pub fn twins(&self, tool: usize) -> &[usize] {
        self.entries.get(tool).map(|entry| self.named(&entry.name)).unwrap_or_default()
    }

    pub fn name(&self, tool: usize) -> &str {
        self.entries.get(tool).map(|entry| entry.name.as_str()).unwrap_or_default()
    }

    /// The first sentence of the description, on one line.
    pub fn summary(&self, tool: usize) -> &str {
        self.entries.get(tool).map(|entry| entry.summary.as_str()).unwrap_or_default()
    }

    /// Is it bound whatever happens: core, or not a plain function?
    pub fn always(&self, tool: usize) -> bool {
        self.entries.get(tool).is_some_and(|entry| entry.fixed || entry.core)
    }

    /// Tools that stand in messages of the agent's: bound wherever the block ends.
    pub fn placed(&self) -> Vec<usize> {
        self.entries.iter().enumerate().filter(|(_, entry)| entry.placed).map(|(tool, _)| tool).collect()
    }

    /// May this tool be offered to an agent with these connectors?
    pub fn is_connected(&self, tool: usize, connected: Option<&std::collections::BTreeSet<String>>) -> bool {
        let connector = self.entries.get(tool).and_then(|entry| entry.connector.as_ref());
        match (connected, connector) {
            (Some(connected), Some(connector)) => connected.contains(connector),
            _ => true,
        }
    }

    fn in_block(&self, tool: usize) -> bool {
        self.entries.get(tool).is_some_and(|entry| !entry.placed)
    }

    /// What can be found, for the description of `find_tools`.
    pub fn directory(&self) -> &str {
        &self.directory
    }

    /// Bytes in memory, roughly.
    pub fn weight(&self) -> usize {
        let entries = self.entries.iter().map(|entry| 300 + 2 * entry.name.len() + entry.summary.len());
        let documents = self.documents.iter().map(Document::weight);
        entries.sum::<usize>() + documents.sum::<usize>() + self.directory.len()
    }

    /// Identity within this process.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The tools in `set`, plus all that are always bound, as a block's first part stands: within each Gemini `Tool`
    /// object functions by domain and then roster or name; entries that are not plain functions keep their place.
    pub fn arranged(&self, set: &HashSet<usize>, order: Order) -> Vec<usize> {
        let kept: Vec<usize> = (0..self.entries.len())
            .filter(|tool| self.in_block(*tool) && (self.always(*tool) || set.contains(tool)))
            .collect();
        let mut functions: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &tool in &kept {
            if let Some(entry) = self.entries.get(tool).filter(|entry| !entry.fixed) {
                functions.entry(entry.group).or_default().push(tool);
            }
        }
        for group in functions.values_mut() {
            group.sort_by(|&a, &b| {
                let domain = |tool: usize| self.entries.get(tool).map(|entry| entry.domain);
                domain(a).cmp(&domain(b)).then_with(|| match order {
                    Order::Roster => a.cmp(&b),
                    Order::Name => self.name(a).cmp(self.name(b)).then(a.cmp(&b)),
                })
            });
            group.reverse();
        }
        kept.into_iter()
            .filter_map(|tool| {
                let entry = self.entries.get(tool)?;
                if entry.fixed { Some(tool) } else { functions.get_mut(&entry.group)?.pop() }
            })
            .collect()
    }
}

/// One line of what a tool does: its first sentence, cut at a word.
fn summary(description: &str) -> String {
    let line = description.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = line.split_inclusive(['.', '。', '؟', '!']).next().unwrap_or_default();
    let text = if sentence.chars().count() >= 20 { sentence } else { &line };
    match text.char_indices().nth(SUMMARY) {
        None => text.trim().to_owned(),
        Some((end, _)) => {
            let cut = text.get(..end).unwrap_or(text);
            let cut = cut.rsplit_once(' ').map_or(cut, |(head, _)| head);
            format!("{cut}…")
        }
    }
}

/// What can be found, compactly. A function of roster and policy alone, so that it is byte-stable in a conversation.
fn directory(policy: &Policy, documents: &[Document], categories: &[String]) -> String {
    match policy.directory {
        Directory::None => String::new(),
        Directory::Names if documents.len() <= DIRECTORY_NAMES => {
            let mut names: Vec<&str> = documents.iter().map(|document| document.name.as_str()).collect();
            if policy.order == Order::Name {
                // A shuffled roster must not change a byte of the block.
                names.sort_unstable();
            }
            format!("Tools that can be found: {}.", names.join(", "))
        }
        Directory::Names | Directory::Groups => {
            let mut groups: BTreeMap<String, usize> = BTreeMap::new();
            for (document, category) in documents.iter().zip(categories) {
                let group = if category.is_empty() { prefix(&document.name) } else { category.clone() };
                *groups.entry(group).or_default() += 1;
            }
            let mut groups: Vec<(String, usize)> = groups.into_iter().collect();
            groups.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            let more = groups.len().saturating_sub(DIRECTORY_GROUPS);
            groups.truncate(DIRECTORY_GROUPS);
            let shown: Vec<String> = groups.iter().map(|(group, count)| format!("{group} ({count})")).collect();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{} tools can be found, by group: {}{more}.", documents.len(), shown.join(", "))
        }
    }
}

/// The first word of an identifier: `github` of `github_list_issues`, `drive` of `driveFiles`.
fn prefix(name: &str) -> String {
    let mut end = name.len();
    let mut previous_lower = false;
    for (at, c) in name.char_indices() {
        if at > 0 && (!c.is_alphanumeric() || (previous_lower && c.is_uppercase())) {
            end = at;
            break;
        }
        previous_lower = c.is_lowercase();
    }
    name.get(..end).unwrap_or(name).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::policy::test_policy;
    use std::borrow::Cow;

    fn tool(name: &'static str, group: usize, kind: ToolKind) -> ToolView<'static> {
        ToolView {
            kind,
            name: Cow::Borrowed(name),
            description: Cow::Borrowed("Does a thing. And more."),
            parameters: None,
            text: Cow::Borrowed(""),
            group,
        }
    }

    fn facts(name: &str) -> Facts {
        Facts { core: name == "core", domain: usize::from(name != "late"), ..Facts::default() }
    }

    #[test]
    fn fixed_entries_keep_their_place_and_functions_are_ordered_by_domain_within_their_group() {
        let tools = [
            tool("a", 0, ToolKind::Function),
            tool("$web", 0, ToolKind::Fixed),
            tool("late", 0, ToolKind::Function),
            tool("core", 1, ToolKind::Function),
        ];
        let policy = test_policy();
        let roster = Roster::new(&tools, &policy, &facts);
        let all: HashSet<usize> = [0, 2].into();
        assert_eq!(roster.arranged(&all, Order::Roster), [2, 1, 0, 3]);
        assert_eq!(roster.arranged(&HashSet::new(), Order::Roster), [1, 3]);
        assert_eq!(roster.documents().len(), 2);
    }

    #[test]
    fn tools_of_one_name_share_a_document() {
        let tools = [tool("a", 0, ToolKind::Function), tool("a", 1, ToolKind::Function)];
        let roster = Roster::new(&tools, &test_policy(), &facts);
        assert_eq!(roster.documents().len(), 1);
        assert_eq!(roster.twins(1), [0, 1]);
        assert_eq!(roster.document_of(1), Some(0));
    }

    #[test]
    fn a_large_directory_lists_groups_with_counts() {
        let names: Vec<String> =
            (0..70).map(|n| format!("{}_{n}", if n % 2 == 0 { "git" } else { "driveFile" })).collect();
        let documents: Vec<Document> =
            names.iter().map(|name| Document { name: name.clone(), ..Document::default() }).collect();
        let text = directory(&test_policy(), &documents, &vec![String::new(); 70]);
        assert_eq!(text, "70 tools can be found, by group: drive (35), git (35).");
    }

    #[test]
    fn a_summary_is_one_short_line() {
        assert_eq!(summary("Deletes a record\nfor good. Use with care."), "Deletes a record for good.");
        assert!(summary(&"word ".repeat(100)).chars().count() <= SUMMARY + 1);
    }
}
