//! What narrowing saved, request by request: what was billed against what the other way would have cost, with the
//! provider's prompt cache simulated for both. An estimate, and negative where narrowing lost. NOT what a policy would
//! do (`policy`), NOT what was used.
//!
//! The simulation says which part of a prompt each way could have read from the cache. What the provider reports of the
//! way that was taken corrects it: a provider that caches nothing gives nothing to the other way either.

use std::collections::HashMap;
use std::time::Duration;

use super::cache::{PrefixCache, Read, Rules, Segment};
use super::prices::{Billed, Price};

/// Prefixes remembered for each way and kind of cache, one a tool and message; half a megabyte.
const PREFIXES: usize = 14_000;
/// Kinds of caches: one for each distinct rule of a price table. More share the last.
const KINDS: usize = 8;
/// Models whose cache hits are remembered.
const MODELS: usize = 100;
/// What a search costs beside the tools: tokens that the model writes to ask, and that the hidden exchange adds.
const ASKING: u64 = 40;
const ANSWER: u64 = 150;

/// Which way a request was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Full,
    Narrow,
}

/// One request, both ways.
#[derive(Debug, Clone, Copy)]
pub struct Request<'r> {
    pub model: &'r str,
    pub price: Price,
    pub rules: Rules,
    /// Whose cache it is: upstream, model, credential.
    pub account: u64,
    /// Since the epoch.
    pub now: Duration,
    /// The tools, in order, as the agent sent them and as narrowed.
    pub full: &'r [Segment],
    pub narrow: &'r [Segment],
    /// System prompt and messages.
    pub history: &'r [Segment],
    /// Tools of the narrowed way that are declared in the conversation: each with the number of parts in front of it.
    pub declared: &'r [(usize, Segment)],
    pub sent: Way,
    /// The first leg as reported.
    pub first: Option<Billed>,
    /// All legs as reported.
    pub all: Option<Billed>,
    pub legs: u64,
    /// Output tokens of the last leg.
    pub last_completion: u64,
    /// Tools that a search added while the request ran, or in shadow would have had to.
    pub found: &'r [Segment],
    /// They are declared or described at the conversation's end, not in the block.
    pub found_last: bool,
    /// The provider's tokens for one of ours; 1 until that is known.
    pub factor: f64,
}

impl Request<'_> {
    /// The conversation with what is declared in it.
    fn talk(&self) -> Vec<Segment> {
        let mut talk = Vec::with_capacity(self.history.len() + self.declared.len());
        let declared = |at: usize| self.declared.iter().filter(move |(before, _)| *before == at).map(|(_, tool)| *tool);
        for (at, part) in self.history.iter().enumerate() {
            talk.extend(declared(at));
            talk.push(*part);
        }
        let behind = self.declared.iter().filter(|(before, _)| *before >= self.history.len());
        talk.extend(behind.map(|(_, tool)| *tool));
        talk
    }
}

/// Simulates both ways side by side.
#[derive(Debug, Default)]
pub struct Savings {
    caches: Vec<(Rules, PrefixCache, PrefixCache)>,
    hits: HashMap<String, Hits>,
}

/// Cached tokens that a provider should have reported, and did.
#[derive(Debug, Clone, Copy, Default)]
struct Hits {
    expected: f64,
    reported: f64,
}

impl Savings {
    /// USD that narrowing saved, or in shadow would have.
    pub fn saved(&mut self, request: &Request<'_>) -> f64 {
        let (full, narrow, again) = self.read(request);
        let sent = match request.sent {
            Way::Full => full,
            Way::Narrow => narrow,
        };
        let billed = request.first.filter(|billed| billed.prompt > 0);
        let scale = billed.map_or(request.factor, |billed| billed.prompt as f64 / (sent.prompt as f64).max(1.0));
        let taken = billed.map_or_else(
            || Tokens { prompt: sent.prompt as f64 * scale, cached: sent.cached as f64 * scale },
            |billed| Tokens { prompt: billed.prompt as f64, cached: billed.cached as f64 },
        );
        let (hit, known) = self.hit(request.model, sent.cached as f64 * scale, taken.cached, billed.is_some());
        let elsewhere = |read: Read| {
            let prompt = (taken.prompt + (read.prompt as f64 - sent.prompt as f64) * request.factor).max(0.0);
            // What the provider had in its cache before we were there, it would have had the other way, too.
            Tokens { prompt, cached: (read.cached as f64 * scale * hit + known).clamp(0.0, prompt) }
        };
        let completion = request.all.map_or(0, |all| all.completion);
        match request.sent {
            Way::Full => {
                let mut cost = elsewhere(narrow).cost(request.price, completion);
                if let Some(again) = again {
                    let mut leg = elsewhere(again);
                    leg.prompt += ANSWER as f64;
                    cost += leg.cost(request.price, ASKING);
                }
                taken.cost(request.price, completion) - cost
            }
            Way::Narrow => {
                let paid = match request.all.filter(|_| billed.is_some()) {
                    Some(all) => request.price.cost(all),
                    None => taken.cost(request.price, 0) * request.legs.max(1) as f64,
                };
                let completion = if billed.is_some() { request.last_completion } else { 0 };
                elsewhere(full).cost(request.price, completion) - paid
            }
        }
    }

    /// What each way reads, and the leg behind a search.
    fn read(&mut self, request: &Request<'_>) -> (Read, Read, Option<Read>) {
        let at = self.caches.iter().position(|(rules, ..)| *rules == request.rules).unwrap_or(self.caches.len());
        if at == self.caches.len() && at < KINDS {
            let new = || PrefixCache::new(request.rules, PREFIXES);
            self.caches.push((request.rules, new(), new()));
        }
        let at = at.min(KINDS - 1);
        let Some((_, full, narrow)) = self.caches.get_mut(at) else { return Default::default() };
        let account = Segment { hash: request.account, tokens: 0 };
        let account = [account];
        let whole = full.send(&[&account, request.full, request.history].concat(), request.now);
        let talk = request.talk();
        let bound = narrow.send(&[&account, request.narrow, &talk].concat(), request.now);
        let again = (!request.found.is_empty()).then(|| {
            let (in_block, last) = if request.found_last { (&[][..], request.found) } else { (request.found, &[][..]) };
            narrow.send(&[&account, request.narrow, in_block, &talk, last].concat(), request.now)
        });
        (whole, bound, again)
    }

    /// The part of a simulated hit that this provider grants, and what it grants beside.
    fn hit(&mut self, model: &str, expected: f64, reported: f64, billed: bool) -> (f64, f64) {
        if self.hits.len() >= MODELS && !self.hits.contains_key(model) {
            return (1.0, 0.0);
        }
        let hits = self.hits.entry(model.to_owned()).or_default();
        if billed {
            hits.expected += expected;
            hits.reported += reported.min(expected);
        }
        if billed && expected > 0.0 {
            ((reported / expected).min(1.0), (reported - expected).max(0.0))
        } else {
            let usual = if hits.expected > 0.0 { hits.reported / hits.expected } else { 1.0 };
            (usual, if billed { reported } else { 0.0 })
        }
    }
}

/// Input tokens in a sum.
#[derive(Debug, Clone, Copy)]
struct Tokens {
    prompt: f64,
    cached: f64,
}

impl Tokens {
    fn cost(self, price: Price, completion: u64) -> f64 {
        let input = (self.prompt - self.cached) * price.input + self.cached * price.cached_input;
        (input + completion as f64 * price.output) / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price { input: 1.0, cached_input: 0.1, output: 4.0 };
    const FULL: [Segment; 2] = [Segment { hash: 1, tokens: 2560 }, Segment { hash: 2, tokens: 2560 }];

    fn request<'r>(narrow: &'r [Segment], history: &'r [Segment], sent: Way, first: Option<Billed>) -> Request<'r> {
        Request {
            model: "m",
            price: PRICE,
            rules: Rules::default(),
            account: 7,
            now: Duration::from_secs(1),
            full: &FULL,
            narrow,
            history,
            declared: &[],
            sent,
            first,
            all: first,
            legs: 1,
            last_completion: first.map_or(0, |billed| billed.completion),
            found: &[],
            found_last: false,
            factor: 1.0,
        }
    }

    fn billed(prompt: u64, cached: u64) -> Option<Billed> {
        Some(Billed { prompt, cached, completion: 10 })
    }

    fn micro(usd: f64) -> i64 {
        (usd * 1e6).round() as i64
    }

    const HISTORY: [Segment; 1] = [Segment { hash: 9, tokens: 512 }];

    #[test]
    fn the_first_request_saves_the_tools_that_were_not_sent() {
        let mut savings = Savings::default();
        let request = request(&FULL[..1], &HISTORY, Way::Narrow, billed(3072, 0));
        assert_eq!(micro(savings.saved(&request)), 2560);
    }

    #[test]
    fn a_cached_roster_is_worth_a_tenth_and_a_changed_block_loses() {
        let mut savings = Savings::default();
        let mut sent = request(&FULL[..1], &HISTORY, Way::Narrow, billed(3072, 0));
        savings.saved(&sent);
        sent.first = billed(3072, 3072);
        sent.all = sent.first;
        assert_eq!(micro(savings.saved(&sent)), 256, "both ways read from the cache");
        // another block: billed anew, where the whole roster would have been read
        let other = [Segment { hash: 3, tokens: 2560 }];
        let lost = request(&other, &HISTORY, Way::Narrow, billed(3072, 0));
        assert_eq!(micro(savings.saved(&lost)), 563 - 3072);
    }

    #[test]
    fn a_provider_that_caches_nothing_gives_nothing_to_the_other_way() {
        let mut savings = Savings::default();
        let sent = request(&FULL[..1], &HISTORY, Way::Narrow, billed(3072, 0));
        savings.saved(&sent);
        assert_eq!(micro(savings.saved(&sent)), 2560);
    }

    #[test]
    fn shadow_says_what_would_have_been_and_counts_the_search_for_a_missed_tool() {
        let mut savings = Savings::default();
        let full = request(&FULL[..1], &HISTORY, Way::Full, billed(5632, 0));
        assert_eq!(micro(savings.saved(&full)), 2560);
        let found = [FULL[1]];
        let mut missed = request(&FULL[..1], &HISTORY, Way::Full, billed(5632, 5632));
        missed.found = &found;
        // The first leg is read from the cache (307 for 563); the one behind the search has a longer block: 2560 of its
        // 5782 tokens are read, and 40 are written to ask.
        assert_eq!(micro(savings.saved(&missed)), 256 - (256 + 3222 + 160));
    }
}
