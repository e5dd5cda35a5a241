//! The leg that is being read: what it has told so far, and which of its parts the client may see.
//! NOT bytes, NOT framing.

use std::sync::Arc;

use crate::wire::dispatch::{Dispatch, Native};
use crate::wire::gemini::reply::chunk::{Chunk, FunctionCall, Part};
use crate::wire::gemini::reply::frame::Piece;
use crate::wire::gemini::reply::said::Said;
use crate::wire::gemini::reply::usage::Totals;
use crate::wire::json;
use crate::wire::reply::{Call, Leg, Search};

#[derive(Debug, Default)]
pub(super) struct Current {
    pub(super) told: Leg,
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) said: Said,
    /// JSON of the latest: within a leg each counts all so far.
    usage: Option<String>,
    /// Kept until the outcome is known.
    pub(super) held: Vec<Piece>,
    /// The signature of a hidden call, for the first call behind it.
    signature: Option<String>,
    /// Has a call of the agent's own been written?
    called: bool,
    /// Has usage been written?
    pub(super) counted: bool,
    /// A call of `call_tool` became the agent's own.
    unwraps: bool,
}

/// Names that the agent must not see.
#[derive(Debug, Default)]
pub(super) struct Hidden {
    /// Empty: searching is off.
    pub(super) find_tools: String,
    pub(super) dispatch: Option<Arc<Dispatch>>,
}

/// What the agent sees of a call.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    AsItIs,
    As(Native),
    Not,
}

impl Hidden {
    fn seen(&self, call: &FunctionCall<'_>) -> Seen {
        match &self.dispatch {
            _ if call.name == self.find_tools => Seen::Not,
            Some(dispatch) if call.name == dispatch.name => dispatch.unwrapped(call.args).map_or(Seen::Not, Seen::As),
            _ => Seen::AsItIs,
        }
    }

    /// Could JSON that broke off tell of a hidden name?
    pub(super) fn may_be_told(&self, bytes: &[u8]) -> bool {
        json::may_name(bytes, &self.find_tools)
            || self.dispatch.as_ref().is_some_and(|dispatch| json::may_name(bytes, &dispatch.name))
    }
}

/// What happens to a leg behind its end, and whether its text goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Ends,
    GoesOn,
    /// Goes on, and what it said is not for the client.
    GoesOnUnsaid,
}

impl Current {
    pub(super) fn searches(&self) -> bool {
        !self.told.searches.is_empty()
    }

    /// Its usage so far.
    pub(super) fn totals(&self) -> Totals {
        self.usage.as_deref().map(Totals::read).unwrap_or_default()
    }

    /// Notes what the chunk says.
    pub(super) fn observe(&mut self, chunk: &Chunk<'_>, hidden: &Hidden) {
        for part in &chunk.parts {
            self.said.push(part);
            if let Some(call) = &part.call {
                let id = call.id.to_string();
                match hidden.seen(call) {
                    Seen::AsItIs => {
                        self.told.calls.push(Call { id, name: call.name.to_string(), arguments: call.args.to_owned() });
                    }
                    Seen::As(Native { name, arguments }) => {
                        self.unwraps = true;
                        self.told.calls.push(Call { id, name, arguments });
                    }
                    Seen::Not => {
                        let searches = call.name == hidden.find_tools;
                        self.told.misled.extend((!searches).then_some(self.told.searches.len()));
                        let query = call.query().filter(|_| searches);
                        self.told.searches.push(Search { id, query });
                    }
                }
            } else if let Some(text) = &part.text {
                let heard = if part.thought { &mut self.reasoning } else { &mut self.text };
                heard.push_str(text);
                self.told.spoke |= !part.thought && !text.is_empty();
            }
        }
        if let Some(finish) = &chunk.finish {
            self.told.finish = Some(finish.to_string());
        }
        self.told.complete |= chunk.finish.is_some() || chunk.blocked;
        self.told.failed |= chunk.failed;
        if let Some(usage) = chunk.usage {
            self.usage = Some(usage.to_owned());
        }
    }

    /// The parts that the client may see; `None`: as they are. Each chunk is asked once, in order.
    ///
    /// Of parallel calls only the first is signed. When that one is hidden its signature goes to the first call that
    /// is not, so that the agent's echo is one of a signed step (not verified against the provider).
    pub(super) fn visible(&mut self, parts: &[Part<'_>], hidden: &Hidden, then: Then) -> Option<Vec<String>> {
        if then == Then::Ends && !self.searches() && !self.unwraps {
            self.called |= parts.iter().any(|part| part.call.is_some());
            return None;
        }
        let mut visible = Vec::with_capacity(parts.len());
        let mut changed = false;
        for part in parts {
            let Some(call) = &part.call else {
                let empty = part.text.as_ref().is_some_and(|text| text.is_empty());
                let unsaid = then == Then::GoesOnUnsaid && part.text.is_some() && !part.thought;
                match unsaid || (then != Then::Ends && empty) {
                    true => changed = true,
                    false => visible.push(part.raw.to_owned()),
                }
                continue;
            };
            let seen = hidden.seen(call);
            if seen == Seen::Not {
                changed = true;
                if !self.called && self.signature.is_none() {
                    self.signature = part.signature.map(str::to_owned);
                }
                continue;
            }
            let moved = self.signature.take().filter(|_| part.signature.is_none() && !self.called);
            self.called = true;
            changed |= moved.is_some() || seen != Seen::AsItIs;
            let mut shown = part.raw.to_owned();
            if let Seen::As(native) = &seen {
                shown = part.renamed(native);
            }
            visible.push(moved.map_or_else(|| shown.clone(), |signature| Part::signed(&shown, &signature)));
        }
        changed.then_some(visible)
    }
}
