//! What a request shall become: which tools, in what order, which hidden
//! exchanges stand in it again. Said once for all formats; each format's writer
//! turns it into [`Edits`](super::splice::Edits). NOT how it was decided.

use super::dispatch::Dispatch;
use serde::{Deserialize, Serialize};

/// One place in the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slot {
    /// The tool at this index of `ChatView::tools`.
    Roster(usize),
    /// The declaration of `find_tools`; only its place where [`Rewrite::find_tools`] is `None`.
    FindTools,
}

/// Tools declared in a message of their own (Kimi K3): a system message without content, at its place in the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Declaration {
    pub place: Place,
    /// Indices of `ChatView::tools`.
    pub tools: Vec<usize>,
}

/// Where a declaration stands; messages by their index in `ChatView::messages`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// Right behind this message.
    Behind(usize),
    /// Right in front of it, behind the hidden exchanges that stand there.
    Before(usize),
    /// Right behind the answers of a hidden exchange: `restored[reply].exchanges[exchange]`.
    Restored { reply: usize, exchange: usize },
    /// Right behind the answers of `appended[.0]`.
    Appended(usize),
}

/// The tool that Packlight adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindTools {
    pub name: String,
    /// What it does and what can be found, byte-stable within a conversation.
    pub description: String,
}

/// The request that the provider gets instead.
#[derive(Debug, Default)]
pub struct Rewrite<'r> {
    /// The block in order. Entries of kind `Fixed` are all in it. Gemini: a `Roster` slot before `FindTools` stays in
    /// its own `Tool` object; `FindTools` and all behind it go to the end of the last object that has declarations.
    pub block: &'r [Slot],
    /// Named by `Slot::FindTools`. `None`: it is not declared.
    pub find_tools: Option<&'r FindTools>,
    /// Declared right behind `find_tools`' place; calls in the history are wrapped as it says.
    pub dispatch: Option<&'r Dispatch>,
    /// Declared in the conversation instead of in the block, in the order of their places. OpenAI wire only.
    pub declared: &'r [Declaration],
    /// Hidden exchanges of earlier requests, put back where they happened. Ordered by place, runs disjoint.
    pub restored: &'r [Restored],
    /// Hidden exchanges of this request, behind the last message.
    pub appended: &'r [Exchange],
    /// A new cap on the reply's tokens.
    pub max_tokens: Option<u64>,
}

/// Hidden exchanges and the visible reply that they led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The run of assistant messages (indices of `ChatView::messages`) that the agent knows as that reply.
    pub run: std::ops::Range<usize>,
    pub exchanges: Vec<Exchange>,
}

/// One hidden exchange: a leg in which the model asked `find_tools`, and what it was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// The model's whole message as the provider must see it again: raw JSON of an OpenAI message or a Gemini
    /// `Content`, with reasoning, signatures and all calls in their order.
    pub said: String,
    /// The answers, one per `find_tools` call, in order.
    pub answers: Vec<Answer>,
    /// Text of this leg that the agent has seen, in front of what followed.
    pub text: String,
    /// Reasoning of this leg that the agent has seen, likewise.
    pub reasoning: String,
    /// Real calls stood beside the search: `said` is then the agent's own visible message plus the hidden calls.
    pub mixed: bool,
    /// Names of the tools that were found.
    pub found: Vec<String>,
}

/// One answer of `find_tools`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The call's id; `""` where the format gave none.
    pub id: String,
    /// The name under which it was called.
    pub name: String,
    pub text: String,
}
