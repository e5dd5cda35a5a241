//! Bytes in, bytes out: the only floor that knows a provider's shapes. This file
//! dispatches to an adapter by `match`; the shared words live in `view`, `request`
//! and `reply` (a mod.rs that defines AND dispatches is a circle).
//! Pure: no sockets, no time, no policy.

pub mod anthropic;
pub mod count;
pub mod dispatch;
mod document;
pub mod gemini;
mod hidden;
pub mod json;
pub mod known;
pub mod lent;
pub mod listing;
mod member;
mod members;
pub mod openai;
mod query;
pub mod reply;
pub mod request;
pub mod signature;
pub mod splice;
pub mod sse;
mod sum;
mod text;
mod verdict;
pub mod view;

use std::sync::Arc;

use dispatch::Dispatch;
use known::Recall;
use reply::{Framing, Leg, Progress};
use request::{Answer, Exchange, Rewrite};
use view::ChatView;

/// The wire format of a chat route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// OpenAI chat completions: Kimi, Gemini's compatible endpoint, any compatible server.
    OpenAi,
    /// Gemini's `generateContent` and `streamGenerateContent`.
    Gemini,
    /// Anthropic messages, as Kimi serves them under `/anthropic`.
    Anthropic,
}

/// Why a body cannot be read as its format. The agent's bytes are then sent as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("the body is not UTF-8")]
    Utf8,
    #[error("the body starts with a byte order mark")]
    Bom,
    #[error("the body is not one JSON document")]
    Json,
    #[error("`{0}` stands twice")]
    Duplicate(&'static str),
    #[error("`{0}` is not what the format says")]
    Shape(&'static str),
}

impl Format {
    /// The format of a path below an upstream's prefix, by method-less route; `None`: relayed.
    pub fn of_path(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        if path.ends_with("/chat/completions") {
            return Some(Self::OpenAi);
        }
        // Counting tokens and batches stand below it and are relayed.
        if path.ends_with("/v1/messages") {
            return Some(Self::Anthropic);
        }
        let action = path.rsplit('/').next()?;
        let models = path.contains("/models/") || path.contains("/tunedModels/");
        (models && (action.ends_with(":generateContent") || action.ends_with(":streamGenerateContent")))
            .then_some(Self::Gemini)
    }

    /// The label of metrics and records.
    pub fn label(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
            Self::Anthropic => "anthropic",
        }
    }

    /// Reads a request. `path` (with query) carries what Gemini keeps outside the body: model, method, `alt=sse`.
    pub fn view<'a>(self, body: &'a [u8], path: &'a str) -> Result<ChatView<'a>, WireError> {
        let text = std::str::from_utf8(body).map_err(|_| WireError::Utf8)?;
        self.view_recalling(text, path, &known::nothing)
    }

    /// The same; tools that are known are not read again. What is said of a request does not depend on it.
    pub fn view_recalling<'a>(
        self,
        body: &'a str,
        path: &'a str,
        recall: &Recall<'_>,
    ) -> Result<ChatView<'a>, WireError> {
        if body.starts_with('\u{feff}') {
            return Err(WireError::Bom);
        }
        match self {
            Self::OpenAi => openai::view::read(body, recall),
            Self::Gemini => gemini::view::read(body, path, recall),
            Self::Anthropic => anthropic::view::read(body, recall),
        }
    }

    /// The body that the provider gets instead. `body` and `view` must be of one parse.
    pub fn rewrite(self, body: &str, view: &ChatView<'_>, rewrite: &Rewrite<'_>) -> String {
        match self {
            Self::OpenAi => openai::write::rewrite(body, view, rewrite),
            Self::Gemini => gemini::write::rewrite(body, view, rewrite),
            Self::Anthropic => anthropic::write::rewrite(body, view, rewrite),
        }
    }

    /// May another body fare better, see [`Self::mended`]? `error`: the body of the provider's 400.
    pub fn may_mend(self, error: &[u8]) -> bool {
        match self {
            Self::OpenAi | Self::Gemini => signature::is_missed(error),
            Self::Anthropic => anthropic::thinking::is_refused(error),
        }
    }

    /// `body` without what a lost memory of hidden exchanges leaves in a transcript and a provider may refuse: calls
    /// whose signature stood on a hidden one, thinking of several legs in one message. `None`: there is no such thing.
    pub fn mended(self, body: &str) -> Option<String> {
        match self {
            Self::OpenAi | Self::Gemini => signature::skipped(self, body),
            Self::Anthropic => anthropic::thinking::without_first(body),
        }
    }

    /// Does the last leg of a search go without its hidden exchange? Gemini refuses a history that calls a function
    /// which is not declared (`find_tools` is not, on the last leg).
    pub fn last_leg_forgets(self) -> bool {
        self == Self::Gemini
    }
}

/// Assembles one client's reply from the legs' bytes.
///
/// `feed` → `end_leg` → either `close`, or `exchange` + `next_leg` and `feed` again.
/// A reply in which nothing was hidden leaves byte for byte as it came.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one for a request, moved once: a box would only cost")]
pub enum Assembler {
    OpenAi(openai::reply::Reader),
    Gemini(gemini::reply::Reader),
    Anthropic(anthropic::reply::Reader),
}

impl Assembler {
    /// `find_tools`: the name to hide. `hold_text`: keep a leg's text until its outcome is known (structured output).
    pub fn new(format: Format, framing: Framing, find_tools: &str, hold_text: bool) -> Self {
        match format {
            Format::OpenAi => Self::OpenAi(openai::reply::Reader::new(framing, find_tools, hold_text)),
            Format::Gemini => Self::Gemini(gemini::reply::Reader::new(framing, find_tools, hold_text)),
            Format::Anthropic => Self::Anthropic(anthropic::reply::Reader::new(framing, find_tools, hold_text)),
        }
    }

    /// Calls of `call_tool` in the reply become the agent's own.
    pub fn dispatching(self, dispatch: Arc<Dispatch>) -> Self {
        match self {
            Self::OpenAi(reader) => Self::OpenAi(reader.dispatching(dispatch)),
            Self::Gemini(reader) => Self::Gemini(reader.dispatching(dispatch)),
            Self::Anthropic(reader) => Self::Anthropic(reader.dispatching(dispatch)),
        }
    }

    /// Takes the next bytes of the current leg, cut anywhere; appends to `out` what the client may see now.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Progress {
        match self {
            Self::OpenAi(reader) => reader.feed(bytes, out),
            Self::Gemini(reader) => reader.feed(bytes, out),
            Self::Anthropic(reader) => reader.feed(bytes, out),
        }
    }

    /// The leg's body is over (terminal marker or end of the body). Terminal frames of a leg that searched stay held;
    /// of a leg with nothing to hide they have left already, or leave with `close`.
    pub fn end_leg(&mut self) -> Leg {
        match self {
            Self::OpenAi(reader) => reader.end_leg(),
            Self::Gemini(reader) => reader.end_leg(),
            Self::Anthropic(reader) => reader.end_leg(),
        }
    }

    /// The hidden exchange of the leg that just ended, with these answers (one per search, in order).
    pub fn exchange(&self, answers: Vec<Answer>, found: Vec<String>) -> Exchange {
        match self {
            Self::OpenAi(reader) => reader.exchange(answers, found),
            Self::Gemini(reader) => reader.exchange(answers, found),
            Self::Anthropic(reader) => reader.exchange(answers, found),
        }
    }

    /// Another leg follows: its identity becomes the first leg's, its indices go on, its usage is added.
    /// `forget`: what the ended leg said was not sent on with it, yet what the client has seen stays seen.
    pub fn next_leg(&mut self) {
        match self {
            Self::OpenAi(reader) => reader.next_leg(),
            Self::Gemini(reader) => reader.next_leg(),
            Self::Anthropic(reader) => reader.next_leg(),
        }
    }

    /// The reply ends with the leg that just ended: held frames, one terminal, usage of all legs, `[DONE]` if the
    /// provider sent one. For [`Framing::Whole`] this is the whole body.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::OpenAi(reader) => reader.close(out),
            Self::Gemini(reader) => reader.close(out),
            Self::Anthropic(reader) => reader.close(out),
        }
    }

    /// A later leg failed after bytes have left: the format's in-stream error. For [`Framing::Whole`] an error body.
    pub fn fail(&mut self, message: &str, out: &mut Vec<u8>) {
        match self {
            Self::OpenAi(reader) => reader.fail(message, out),
            Self::Gemini(reader) => reader.fail(message, out),
            Self::Anthropic(reader) => reader.fail(message, out),
        }
    }

    /// What may be written while nothing moves, without harm to any SDK of this format; empty: nothing may.
    pub fn keep_alive(&self) -> &'static [u8] {
        match self {
            Self::OpenAi(reader) => reader.keep_alive(),
            Self::Gemini(_) => b"",
            Self::Anthropic(reader) => reader.keep_alive(),
        }
    }

    /// The text and the calls of the reply as the client has seen them over all legs.
    pub fn visible(&self) -> (&str, &[reply::Call]) {
        match self {
            Self::OpenAi(reader) => reader.visible(),
            Self::Gemini(reader) => reader.visible(),
            Self::Anthropic(reader) => reader.visible(),
        }
    }
}
