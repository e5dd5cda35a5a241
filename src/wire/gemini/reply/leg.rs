//! The leg that is being read: what it has told so far, and which of its parts the client may see.
//! NOT bytes, NOT framing.

use crate::wire::dispatch::Native;
use crate::wire::gemini::reply::chunk::{Chunk, FunctionCall, Part};
use crate::wire::gemini::reply::frame::Piece;
use crate::wire::gemini::reply::said::Said;
use crate::wire::gemini::reply::usage::Totals;
use crate::wire::hidden::{Hidden, Whose};
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

/// What the agent sees of a call.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    AsItIs,
    As(Native),
    Not,
}

impl Seen {
    fn of(call: &FunctionCall<'_>, hidden: &Hidden) -> Self {
        match hidden.whose(&call.name) {
            _ if hidden.searches(&call.name) => Self::Not,
            Whose::Wrapped => hidden.unwrapped(call.args).map_or(Self::Not, Self::As),
            Whose::Agents | Whose::Ours | Whose::Unknown => Self::AsItIs,
        }
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
                match Seen::of(call, hidden) {
                    Seen::AsItIs => {
                        self.told.calls.push(Call { id, name: call.name.to_string(), arguments: call.args.to_owned() });
                    }
                    Seen::As(Native { name, arguments }) => {
                        self.unwraps = true;
                        self.told.calls.push(Call { id, name, arguments });
                    }
                    Seen::Not => {
                        let searches = hidden.searches(&call.name);
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
            let seen = Seen::of(call, hidden);
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
