//! What a model's traffic is like, as far as it was seen: sums that fade, so that the choice of a policy knows more than
//! price and roster. An optimisation: it may be lost, differ between replicas, or be wrong, and costs tokens at most. NOT
//! where it is kept, NOT the choice.

use super::policy::Traffic;

/// Sums over requests; older ones weigh less.
#[derive(Debug, Clone, Copy, Default)]
pub struct Watch {
    conversations: f64,
    turns: f64,
    requests: f64,
    /// Tokens of all but tools: of first requests, and of all.
    first: f64,
    history: f64,
    /// Of requests that were narrowed.
    narrowed: f64,
    searches: f64,
    /// As reported, of requests that could have been read from the cache.
    prompt: f64,
    cached: f64,
}

/// One request and its reply.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen {
    /// Number of its turn in the conversation, and of the request in the turn, from 1.
    pub turn: usize,
    pub call: usize,
    /// Estimated tokens of everything but tools.
    pub history: u64,
    pub narrowed: bool,
    /// Extra legs.
    pub searches: u64,
    /// Reported input tokens; 0: none were reported.
    pub prompt: u64,
    pub cached: u64,
}

/// So many conversations the expectation counts as.
const EXPECTED: f64 = 4.0;
/// When so many conversations were seen, all sums are halved.
const MOST: f64 = 64.0;
/// Reported prompts that say whether a provider caches, in tokens.
const ENOUGH: f64 = 50_000.0;
/// A cache that reads less than this share of later requests is none.
const LEAST_SHARE: f64 = 0.05;

impl Watch {
    pub fn see(&mut self, seen: Seen) {
        if seen.turn == 0 || seen.call == 0 {
            return;
        }
        let first = seen.turn == 1 && seen.call == 1;
        self.conversations += f64::from(u8::from(first));
        self.turns += f64::from(u8::from(seen.call == 1));
        self.requests += 1.0;
        self.history += seen.history as f64;
        if first {
            self.first += seen.history as f64;
        }
        if seen.narrowed {
            self.narrowed += 1.0;
            self.searches += seen.searches as f64;
        }
        if seen.call > 1 {
            self.prompt += seen.prompt as f64;
            self.cached += seen.cached as f64;
        }
        if self.conversations >= MOST {
            self.fade();
        }
    }

    /// What is expected of the next conversation. `known`: its roster, its block and the price; the rest of it is the
    /// expectation that what was seen is weighed against.
    pub fn traffic(&self, known: Traffic) -> Traffic {
        let weight = self.conversations + EXPECTED;
        let blend = |seen: f64, expected: f64| (seen + expected * EXPECTED) / weight;
        let turns = blend(self.turns, known.turns).max(1.0);
        let requests = blend(self.requests, known.turns * known.calls).max(1.0);
        let system = blend(self.first, known.system);
        // Requests of a conversation grow in even steps: the mean of their histories lies in the middle.
        let own = self.requests / self.conversations.max(1.0);
        let step = if self.requests > self.conversations && own > 1.0 {
            let mean = self.history / self.requests - self.first / self.conversations.max(1.0);
            let seen = (2.0 * mean / (own - 1.0)).max(0.0);
            (seen * self.conversations + known.step * EXPECTED) / weight
        } else {
            known.step
        };
        // Of requests, since only the narrowed ones can search.
        let expected = known.expansions / (known.turns * known.calls).max(1.0);
        let prior = EXPECTED * known.turns * known.calls;
        let searches = (self.searches + expected * prior) / (self.narrowed + prior);
        let cold = self.prompt > ENOUGH && self.cached < self.prompt * LEAST_SHARE;
        Traffic {
            turns,
            calls: (requests / turns).max(1.0),
            system,
            step,
            expansions: searches * requests,
            ratio: if cold { 1.0 } else { known.ratio },
            ..known
        }
    }

    fn fade(&mut self) {
        let all = [
            &mut self.conversations,
            &mut self.turns,
            &mut self.requests,
            &mut self.first,
            &mut self.history,
            &mut self.narrowed,
            &mut self.searches,
            &mut self.prompt,
            &mut self.cached,
        ];
        all.into_iter().for_each(|sum| *sum /= 2.0);
    }
}

impl Traffic {
    /// What is known when a conversation begins. `core`: tokens of tools that are never withheld, `find_tools` included;
    /// `candidates`: number and tokens of the others; `retrieved`, `discovered`: how many a turn and a search bind;
    /// `ratio`: what a cached token costs of a fresh one, `None` where there is no price.
    pub fn begun(core: u64, candidates: (usize, u64), retrieved: usize, discovered: usize, ratio: Option<f64>) -> Self {
        let (count, tokens) = candidates;
        let size = tokens as f64 / count.max(1) as f64;
        let usual = Self::expected();
        Self {
            roster: core as f64 + tokens as f64,
            bound: core as f64 + size * retrieved.min(count) as f64,
            core: core as f64,
            found: size * discovered as f64,
            ratio: ratio.unwrap_or(usual.ratio),
            ..usual
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::policy::{Able, Policy, choose};

    fn watched(turns: usize, calls: usize, step: u64, searches: u64, share: f64) -> Watch {
        let mut watch = Watch::default();
        for _ in 0..60 {
            let mut history = 1000;
            for turn in 1..=turns {
                for call in 1..=calls {
                    let last = turn == turns && call == calls;
                    let searches = if last { searches } else { 0 };
                    let (prompt, cached) = (6000, (6000.0 * share) as u64);
                    watch.see(Seen { turn, call, history, narrowed: true, searches, prompt, cached });
                    history += step;
                }
            }
        }
        watch
    }

    #[test]
    fn what_was_seen_outweighs_what_was_expected() {
        let traffic = watched(2, 5, 700, 1, 0.9).traffic(Traffic::expected());
        assert!((traffic.turns - 2.0).abs() < 0.3 && (traffic.calls - 5.0).abs() < 1.0, "{traffic:?}");
        assert!((traffic.step - 700.0).abs() < 50.0 && (traffic.system - 1000.0).abs() < 100.0, "{traffic:?}");
        assert!((traffic.expansions - 1.0).abs() < 0.2 && traffic.ratio < 0.2, "{traffic:?}");
        let unseen = Watch::default().traffic(Traffic::expected());
        let expected = Traffic::expected();
        assert!((unseen.expansions - expected.expansions).abs() < 1e-9 && (unseen.calls - expected.calls).abs() < 1e-9);
        assert!((unseen.step - expected.step).abs() < 1e-9 && (unseen.turns - expected.turns).abs() < 1e-9);
    }

    #[test]
    fn the_choice_follows_the_traffic() {
        let able = Able { append: false, dispatch: true };
        let choice = |watch: Watch| choose(&watch.traffic(Traffic::expected()), able);
        assert_eq!(choose(&Traffic::expected(), able), Policy::Dispatch);
        assert_eq!(
            choice(watched(1, 1, 0, 2, 0.0)),
            Policy::Full,
            "each conversation is one request that searches twice"
        );
        assert_eq!(choice(watched(4, 6, 400, 0, 0.0)), Policy::Sticky, "nothing is ever cached");
        assert_eq!(choice(watched(4, 6, 400, 1, 0.9)), Policy::Dispatch);
    }

    #[test]
    fn a_conversation_that_begins_is_known_by_its_roster_and_price() {
        let begun = Traffic::begun(1000, (40, 10_000), 12, 5, Some(0.05));
        assert_eq!((begun.roster, begun.bound, begun.found, begun.ratio), (11_000.0, 4000.0, 1250.0, 0.05));
        assert_eq!(Traffic::begun(0, (0, 0), 12, 5, None).bound, 0.0);
    }
}
