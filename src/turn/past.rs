//! What happened in a conversation besides what the user wrote: which tools were
//! called, and what searches found that are remembered, turn by turn. NOT what
//! follows from it for the block (`fold`, `append`).

use std::collections::BTreeSet;

use super::roster::Roster;
use super::transcript::Transcript;
use crate::wire::request::Restored;

/// A conversation so far.
#[derive(Debug, Clone, Copy)]
pub struct Past<'p> {
    pub roster: &'p Roster,
    pub transcript: &'p Transcript,
    /// Hidden exchanges, with their places.
    pub restored: &'p [Restored],
    /// Turns before whose start the provider had forgotten the conversation: choosing anew cost nothing there.
    pub expired: &'p BTreeSet<usize>,
}

/// One thing that happened.
#[derive(Debug, Clone, Copy)]
pub struct Event<'p> {
    /// Index of the message; of a find: of the first message of the reply that it led to.
    pub message: usize,
    pub what: What<'p>,
}

#[derive(Debug, Clone, Copy)]
pub enum What<'p> {
    /// A search found these. `reply`, `exchange`: indices into [`Past::restored`] and its exchanges.
    Found { reply: usize, exchange: usize, mixed: bool, names: &'p [String] },
    /// The model called this tool.
    Called(&'p str),
}

impl<'p> Past<'p> {
    /// What happened in a turn, in order. The first turn's begin with what happened in front of it.
    pub fn events(&self, turn: usize) -> Vec<Event<'p>> {
        let Some(begun) = self.transcript.turns.get(turn) else { return Vec::new() };
        let until = self.transcript.turns.get(turn + 1).map_or(usize::MAX, |next| next.message);
        let mut events = Vec::new();
        for (reply, restored) in self.restored.iter().enumerate() {
            if restored.run.start < begun.message || restored.run.start >= until {
                continue;
            }
            events.extend(restored.exchanges.iter().enumerate().map(|(at, exchange)| Event {
                message: restored.run.start,
                what: What::Found { reply, exchange: at, mixed: exchange.mixed, names: &exchange.found },
            }));
        }
        events.extend(begun.called.iter().map(|(message, name)| Event { message: *message, what: What::Called(name) }));
        // Finds led to the calls of the reply; those of a search beside calls come behind them. The sort is stable.
        events.sort_by_key(|event| match event.what {
            What::Found { mixed: false, .. } => (event.message, 0),
            What::Called(_) => (event.message, 1),
            What::Found { mixed: true, .. } => {
                (self.transcript.reply_of(event.message).map_or(event.message, |reply| reply.answered), 2)
            }
        });
        events
    }

    /// Every tool called before this turn, in order.
    pub fn called(&self, turn: usize) -> Vec<usize> {
        let names = self.transcript.turns.iter().take(turn).flat_map(|turn| &turn.called);
        names.flat_map(|(_, name)| self.roster.named(name)).copied().collect()
    }

    /// What searches of the last turn found.
    pub fn found(&self) -> BTreeSet<usize> {
        let Some(last) = self.transcript.turns.len().checked_sub(1) else { return BTreeSet::new() };
        let events = self.events(last).into_iter();
        let names = events.filter_map(|event| match event.what {
            What::Found { names, .. } => Some(names),
            What::Called(_) => None,
        });
        names.flatten().flat_map(|name| self.roster.named(name)).copied().collect()
    }

    /// Did this happen in the reply that the request before this one got?
    pub fn is_news(&self, event: &Event<'_>) -> bool {
        self.transcript.replies.last().is_some_and(|last| event.message >= last.run.start)
    }
}
