//! What the store remembers of a conversation: hidden exchanges with their places,
//! when it was last asked and with which block, and before which turns the provider
//! had forgotten it. Every loss costs tokens, never correctness. NOT what follows.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use xxhash_rust::xxh3::Xxh3;

use super::choose::Chosen;
use crate::store::{Op, Store};
use crate::turn::fold::Cause;
use crate::turn::memory::{self, Seen};
use crate::turn::policy::Way;
use crate::turn::transcript::Transcript;
use crate::wire::request::Restored;
use crate::wire::view::{ChatView, Role};

/// How long the last request of a conversation is remembered: who comes back the next day comes to a cold cache.
const SEEN_LIFE: Duration = Duration::from_secs(24 * 3600);

/// What is remembered of a conversation besides its transcript.
#[derive(Debug, Default)]
pub struct Remembered {
    /// Hidden exchanges, with their places.
    pub restored: Vec<Restored>,
    /// Turns before which the provider had forgotten it.
    pub expired: BTreeSet<usize>,
    seen: Seen,
    /// The last turn is one of `expired`, and nobody has noted that yet: its digest.
    news: Option<String>,
    /// Seconds since the epoch.
    now: f64,
}

impl Remembered {
    /// Asks the store. Costs nothing in a conversation's first request. `now`: seconds since the epoch; `life`: of the
    /// provider's prompt cache.
    pub async fn of(
        store: &dyn Store,
        conversation: &str,
        (view, text): (&ChatView<'_>, &str),
        transcript: &Transcript,
        now: f64,
        life: Duration,
    ) -> Self {
        if !view.messages.iter().any(|message| message.role == Role::Assistant) {
            return Self { now, ..Self::default() };
        }
        let (stash, seen) = (stash(conversation), seen(conversation));
        let (stash, seen) = tokio::join!(store.fields(Op::StashGet, &stash), store.fields(Op::StashGet, &seen));
        let restored = if stash.is_empty() { Vec::new() } else { memory::recall(memory::places(view, text), &stash) };
        let seen = Seen::read(&seen);
        let digests = memory::turns(transcript);
        let mut expired = seen.expired(&digests);
        let (last, begins) = (digests.len().saturating_sub(1), transcript.begins_turn());
        let forgotten = begins && last > 0 && seen.silence(now).is_some_and(|silence| silence > life.as_secs_f64());
        let news = digests.into_iter().next_back().filter(|_| forgotten && expired.insert(last));
        Self { restored, expired, seen, news, now }
    }

    /// How the conversation was sent so far.
    pub fn way(&self) -> Option<Way> {
        self.seen.way
    }

    /// Why the block is not the one of the request before; `None`: it is, or nobody knows better.
    pub fn cause(&self, chosen: &Chosen) -> Option<Cause> {
        match &self.seen.block {
            Some(before) if *before == digest(chosen) => None,
            Some(_) => chosen.block.cause.or(Some(Cause::Other)),
            None => chosen.block.cause,
        }
    }

    /// Notes this request for the next. `chosen`: its block; `None`: it was sent in full.
    pub async fn note(&self, store: &dyn Store, conversation: &str, way: Way, chosen: Option<&Chosen>) {
        let key = seen(conversation);
        let block = chosen.map_or_else(|| IN_FULL.to_owned(), digest);
        let fields = Seen::written(self.now, &block, way, self.news.as_deref());
        for (name, value) in fields {
            store.put_field(Op::StashPut, &key, &name, value, SEEN_LIFE).await;
        }
    }
}

/// Stands where the digest of a block would.
const IN_FULL: &str = "-";

/// The key of a conversation's hidden exchanges.
pub fn stash(conversation: &str) -> String {
    format!("stash:{conversation}")
}

fn seen(conversation: &str) -> String {
    format!("seen:{conversation}")
}

/// Two requests with one digest have the same tools at the same places.
fn digest(chosen: &Chosen) -> String {
    let Chosen { roster, block, .. } = chosen;
    let mut hash = Xxh3::new();
    (roster.fingerprint(), block.slots(), block.declared()).hash(&mut hash);
    format!("{:016x}", hash.finish())
}
