//! The settings that decide, as this floor needs them. NOT how a file says them (`config`).

use std::collections::BTreeSet;

use crate::retrieval::index::Scored;
use crate::retrieval::prior::Standing;
use crate::retrieval::width::{Taken, Width};

/// How tools that a conversation comes to need reach the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Binding {
    /// The block itself changes.
    #[default]
    Replace,
    /// The block is constant: what is added is declared in the conversation (Kimi K3).
    Append,
    /// The block is constant: what is added is described in an answer and called through `call_tool`.
    Dispatch,
}

impl Binding {
    /// The value of the header's and the records' `binding`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Replace => "replace",
            Self::Append => "append",
            Self::Dispatch => "dispatch",
        }
    }

    /// Reads such a label.
    pub fn of_label(label: &str) -> Option<Self> {
        [Self::Replace, Self::Append, Self::Dispatch].into_iter().find(|binding| binding.label() == label)
    }
}

/// How a conversation is sent, from its first request to its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Narrowed(Binding),
    /// In full would cost less: it is narrowed so that what searches cost goes on being seen.
    Explored(Binding),
    /// In full, which costs less than narrowing with this binding.
    Full(Binding),
}

impl Way {
    /// With which binding it is narrowed, or would be.
    pub fn binding(self) -> Binding {
        match self {
            Self::Narrowed(binding) | Self::Explored(binding) | Self::Full(binding) => binding,
        }
    }

    /// The same with another binding.
    pub fn with(self, binding: Binding) -> Self {
        match self {
            Self::Narrowed(_) => Self::Narrowed(binding),
            Self::Explored(_) => Self::Explored(binding),
            Self::Full(_) => Self::Full(binding),
        }
    }

    /// Words by which [`read`](Self::read) knows it again.
    pub fn written(self) -> String {
        let what = match self {
            Self::Narrowed(_) => "",
            Self::Explored(_) => " explored",
            Self::Full(_) => " full",
        };
        format!("{}{what}", self.binding().label())
    }

    /// `None`: nothing that was written so.
    pub fn read(words: &str) -> Option<Self> {
        let mut words = words.split_whitespace();
        let binding = Binding::of_label(words.next()?)?;
        match words.next() {
            None => Some(Self::Narrowed(binding)),
            Some("explored") => Some(Self::Explored(binding)),
            Some("full") => Some(Self::Full(binding)),
            Some(_) => None,
        }
    }
}

/// When a block may change across turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stability {
    /// Kept while it serves: a changed block is a prompt cache lost.
    Sticky,
    /// Chosen anew each turn.
    Turn,
}

/// The order of a block's first tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Domain rank, then as the agent declared them.
    Roster,
    /// Domain rank, then by name: for agents that shuffle their roster.
    Name,
}

/// What `find_tools` says it can find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Directory {
    /// Names, up to 64 of them; groups beyond.
    Names,
    /// Groups with counts.
    Groups,
    /// Nothing.
    None,
}

/// The settings of one upstream.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Policy {
    /// How many tools retrieval selects.
    pub max_retrieved_tools: Width,
    pub max_discovered_tools: usize,
    /// Extra legs, at most.
    pub max_discovery_legs: usize,
    /// Beyond the core, before a sticky block is chosen anew.
    pub max_bound_tools: usize,
    /// A later turn keeps the block if this many of its best are in it.
    pub sticky_need: usize,
    pub stability: Stability,
    pub order: Order,
    pub directory: Directory,
    pub find_tools_name: String,
    /// Names of elements that agents wrap around a message.
    pub query_ignore: Vec<String>,
    /// The most tools that the provider takes.
    pub max_tools: usize,
}

/// What this one request asks for by its headers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Asked {
    /// Bound for this request.
    pub keep: Vec<String>,
    /// Only tools of these connectors, or of none.
    pub connected: Option<BTreeSet<String>>,
    /// The agent resumes: full roster.
    pub resume: bool,
    /// It is the first of its last turn, and has not been answered yet.
    pub begins: bool,
    /// A digest of whoever pays: what was learnt is never shared across credentials.
    pub payer: Vec<u8>,
    /// The conversation's key: what a turn selected in the light of history is its own.
    pub conversation: String,
}

/// What a catalog says of one tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// By glob or catalog: never withheld.
    pub core: bool,
    pub category: String,
    pub keywords: Vec<String>,
    /// Replaces the description for retrieval.
    pub search_text: Option<String>,
    pub connector: Option<String>,
    /// Place of its category in the domain order; categories that are not in it come last.
    pub domain: usize,
    /// Tier, cost, latency.
    pub standing: Standing,
}

impl Policy {
    /// What is selected of a ranking: no more than a block may hold, but for what the message names. `named`: as for
    /// [`Width::taken`].
    pub fn selects(&self, ranked: &[Scored], named: &[usize]) -> Taken {
        let taken = self.max_retrieved_tools.taken(ranked, named);
        Taken { count: taken.count.min(self.max_bound_tools).max(taken.named), ..taken }
    }
}

#[cfg(test)]
pub(crate) fn test_policy() -> Policy {
    Policy {
        max_retrieved_tools: Width::Fixed(3),
        max_discovered_tools: 2,
        max_discovery_legs: 2,
        max_bound_tools: 5,
        sticky_need: 2,
        stability: Stability::Sticky,
        order: Order::Roster,
        directory: Directory::Names,
        find_tools_name: "find_tools".into(),
        query_ignore: vec!["system-reminder".into()],
        max_tools: 128,
    }
}

/// Twelve functions `t0` to `t11`; `t0` is the core.
#[cfg(test)]
pub(crate) fn test_roster(policy: &Policy) -> crate::turn::roster::Roster {
    use crate::wire::view::{ToolKind, ToolView};
    let tool = |n: usize| ToolView {
        kind: ToolKind::Function,
        name: format!("t{n}").into(),
        description: "".into(),
        parameters: None,
        text: "".into(),
        group: 0,
    };
    let tools: Vec<ToolView<'_>> = (0..12).map(tool).collect();
    crate::turn::roster::Roster::new(&tools, policy, &|name| Facts { core: name == "t0", ..Facts::default() })
}

/// What retrieval found, best first.
#[cfg(test)]
pub(crate) fn test_best(tools: &[usize]) -> crate::turn::selection::Selection {
    crate::turn::selection::Selection { best: tools.to_vec(), ..Default::default() }
}
