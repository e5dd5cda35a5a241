//! What a reply turns out to be, whatever its format; the words in which an
//! adapter's reader reports. NOT reading (each adapter does), NOT deciding (turn/expand.rs).

use serde::{Deserialize, Serialize};

/// How the reply's body is cut into pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// `text/event-stream`.
    Sse,
    /// One JSON array, sent in pieces (Gemini without `alt=sse`).
    Array,
    /// One JSON document.
    Whole,
}

/// Has the leg more to say?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    More,
    /// Its terminal marker was read: nothing that follows matters.
    Ended,
}

/// One leg, once it is over.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Leg {
    /// Was the terminal marker of the format (finish reason) seen?
    pub complete: bool,
    /// The provider put an error into the stream.
    pub failed: bool,
    /// As the provider wrote it (`tool_calls`, `stop`, `STOP`, `length`, …).
    pub finish: Option<String>,
    /// Calls of `find_tools`, in order.
    pub searches: Vec<Search>,
    /// Which of these (by index) are no searches but calls of `call_tool` that are broken or name no tool.
    pub misled: Vec<usize>,
    /// The agent's own calls, in order.
    pub calls: Vec<Call>,
    /// Was there visible text?
    pub spoke: bool,
    /// Bytes of it are kept from the client for good: they cannot be read, and may tell of what is hidden.
    pub withheld: bool,
    /// This leg's own usage.
    pub usage: Usage,
}

/// One call of `find_tools`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    pub id: String,
    /// What the model looks for; `None` when its arguments cannot be read.
    pub query: Option<String>,
}

/// One call of the agent's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    pub id: String,
    pub name: String,
    /// OpenAI: the text of the arguments string. Gemini: the raw object.
    pub arguments: String,
}

/// Tokens as the provider reports them, normalised for metrics only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Did the provider report any?
    pub reported: bool,
    /// All input tokens, cached ones included.
    pub prompt: u64,
    pub cached: u64,
    /// Output tokens, thoughts included.
    pub completion: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.reported |= other.reported;
        self.prompt += other.prompt;
        self.cached += other.cached;
        self.completion += other.completion;
    }
}
