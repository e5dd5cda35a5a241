//! What the conversations of a model are like, as this process has seen them: from
//! that `auto` tells what costs least. Numbers only, kept nowhere else. NOT the
//! formula (`cost::policy`), NOT the choice (`way.rs`).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use moka::sync::Cache;

use super::shape::{Shape, opens};
use crate::cost::policy::Traffic;
use crate::outcome::{Action, Outcome};
use crate::turn::bypass::Bypass;
use crate::turn::fold::Cause;

/// Narrowed conversations before the averages say anything.
const MEASURED: f64 = 50.0;
/// Above this many conversations both sides of an average are halved: traffic changes.
const FORGET: f64 = 5_000.0;
/// Pairs of upstream and model that are watched; model names come from outside.
const MODELS: usize = 256;
/// Rosters of which is known when they were sent last.
const ROSTERS: u64 = 4096;
/// As so many conversations that are narrowed to be watched counts what the others say of them: a first one alone says
/// little.
const PRIOR: f64 = 20.0;

/// Averages by upstream and model.
#[derive(Debug)]
pub struct Watch {
    models: Mutex<HashMap<(String, String), Sums>>,
    /// When a roster was sent last, by whose prompt cache it is. Seconds since the epoch.
    rosters: Cache<(u64, u64), f64>,
}

/// What is sent, whichever way: of every conversation. What narrowing meets with: of those that are narrowed. Who is
/// narrowed, held out, explored is a matter of the conversation's hash, so each of these groups stands for all, with one
/// exception: where rosters differ, some may cost less in full and others not. So what is explored stands for what is
/// sent in full, by its share.
#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    shape: Shape,
    narrowed: Searches,
    explored: Searches,
    /// Conversations sent in full because that costs less.
    full: f64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Searches {
    conversations: f64,
    /// Extra legs.
    searches: f64,
    /// Turns, not first, whose message needed tools that were not there.
    needs: f64,
}

impl Default for Watch {
    fn default() -> Self {
        Self { models: Mutex::default(), rosters: Cache::builder().max_capacity(ROSTERS).build() }
    }
}

impl Watch {
    /// Counts a request that is over. `life`: of the provider's prompt cache.
    pub fn observe(&self, outcome: &Outcome, life: Duration) {
        let in_full = outcome.action == Action::Full && outcome.reason == Bypass::Cost.label();
        let watched = in_full || matches!(outcome.action, Action::Narrowed | Action::Holdout);
        if !watched || outcome.turn == 0 {
            return;
        }
        let roster = (outcome.account, outcome.tools.as_ref().map_or(0, |tools| tools.sizes().digest()));
        let before = self.rosters.get(&roster).unwrap_or(f64::NEG_INFINITY);
        self.rosters.insert(roster, outcome.ts.max(before));
        let key = (outcome.upstream.clone(), outcome.model.clone());
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if models.len() >= MODELS && !models.contains_key(&key) {
            return;
        }
        let sums = models.entry(key).or_default();
        sums.shape.add(outcome, outcome.ts - before <= life.as_secs_f64());
        match outcome.action {
            Action::Narrowed if outcome.explored => sums.explored.add(outcome),
            Action::Narrowed => sums.narrowed.add(outcome),
            Action::Full => sums.full += f64::from(opens(outcome)),
            Action::Holdout | Action::Shadow | Action::Relayed => {}
        }
        sums.forget();
    }

    /// What a conversation of this model is expected to be, sizes of tools left as they are by default; `None`: too few
    /// have been seen. `price`: of a cached token, of a fresh one.
    pub fn expected(&self, upstream: &str, model: &str, price: f64) -> Option<Traffic> {
        let models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        let sums = models.get(&(upstream.to_owned(), model.to_owned()))?;
        let seen = sums.narrowed.conversations + sums.explored.conversations;
        if seen < MEASURED {
            return None;
        }
        let Shape { conversations, turns, warm, .. } = sums.shape;
        let (system, step) = sums.shape.growth();
        Some(Traffic {
            turns: (turns / conversations.max(1.0)).max(1.0),
            calls: sums.shape.calls(),
            system,
            step,
            expansions: sums.each(|of| of.searches),
            needs: sums.each(|of| of.needs),
            ratio: price + (1.0 - price) * (1.0 - sums.shape.hit(step)),
            warm: (warm / conversations.max(1.0)).min(1.0),
            ..Traffic::default()
        })
    }
}

impl Sums {
    /// How often a conversation meets with this when it is narrowed.
    fn each(&self, of: fn(&Searches) -> f64) -> f64 {
        let share = |sum: f64, conversations: f64| if conversations > 0.0 { sum / conversations } else { 0.0 };
        let Self { narrowed, explored, full, .. } = self;
        let prior = PRIOR.min(narrowed.conversations);
        let usual = share(of(narrowed), narrowed.conversations);
        let rest = share(of(explored) + usual * prior, explored.conversations + prior);
        let others = explored.conversations + full;
        share(of(narrowed) + rest * others, narrowed.conversations + others)
    }

    fn forget(&mut self) {
        if self.shape.conversations > FORGET {
            self.shape.halve();
        }
        let sample = self.narrowed.conversations + self.explored.conversations;
        // Where nearly all goes in full the sample is small: it must not fall below what is needed.
        if sample > FORGET || sample + self.full > 8.0 * FORGET {
            self.narrowed.halve();
            self.explored.halve();
            self.full /= 2.0;
        }
    }
}

impl Searches {
    fn add(&mut self, outcome: &Outcome) {
        self.conversations += f64::from(opens(outcome));
        self.searches += outcome.legs.saturating_sub(1) as f64;
        self.needs += f64::from(outcome.causes.contains(&Cause::Needed));
    }

    fn halve(&mut self) {
        let Self { conversations, searches, needs } = self;
        for sum in [conversations, searches, needs] {
            *sum /= 2.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::reply::Usage;

    const LIFE: Duration = Duration::from_secs(300);

    fn request(turn: usize, call: usize, legs: usize, causes: Vec<Cause>) -> Outcome {
        let steps = ((turn - 1) * 2 + call) as u64;
        let usage =
            Usage { reported: true, prompt: 2000 + 500 * steps, cached: 1872 + 500 * (steps - 1), completion: 1 };
        Outcome {
            upstream: "kimi".into(),
            model: "m".into(),
            action: Action::Narrowed,
            usage,
            bound_tokens: 1000,
            turn,
            call,
            legs,
            causes,
            ..Outcome::default()
        }
    }

    /// The same in full.
    fn full(outcome: Outcome) -> Outcome {
        let usage = Usage { prompt: outcome.usage.prompt + 3000, ..outcome.usage };
        Outcome { action: Action::Full, reason: "cost", roster_tokens: 4000, usage, ..outcome }
    }

    fn known(watch: &Watch) -> Traffic {
        watch.expected("kimi", "m", 0.1).expect("measured")
    }

    #[test]
    fn averages_need_conversations() {
        let watch = Watch::default();
        for n in 0..60 {
            assert_eq!(watch.expected("kimi", "m", 0.1).is_some(), n >= 50, "after {n}");
            for turn in 1..=3 {
                let causes = if turn == 2 { vec![Cause::Needed] } else { Vec::new() };
                watch.observe(&request(turn, 1, 1, causes), LIFE);
                watch.observe(&request(turn, 2, if turn == 3 { 2 } else { 1 }, Vec::new()), LIFE);
            }
        }
        let traffic = known(&watch);
        assert_eq!((traffic.turns, traffic.calls, traffic.expansions, traffic.needs), (3.0, 2.0, 1.0, 1.0));
        assert!((traffic.step - 500.0).abs() < 5.0 && traffic.system == 1500.0, "{traffic:?}");
        assert!((traffic.ratio - 0.1).abs() < 0.03, "all that can be is read from the cache: {traffic:?}");
        assert!(watch.expected("kimi", "other", 0.1).is_none());
    }

    #[test]
    fn a_provider_that_does_not_cache_is_found_out() {
        let watch = Watch::default();
        for _ in 0..60 {
            for call in 1..=4 {
                let mut outcome = request(1, call, 1, Vec::new());
                outcome.usage.cached = 0;
                watch.observe(&outcome, LIFE);
            }
        }
        assert_eq!(known(&watch).ratio, 1.0);
        for (cached, ratio) in [(0, 1.0), (2400, 0.1)] {
            let watch = Watch::default();
            let usage = |prompt, cached| Usage { reported: true, prompt, cached, completion: 1 };
            for _ in 0..60 {
                let (first, last) = (Some(usage(2500, 0)), usage(4000, cached));
                let searching = Outcome { binding: "dispatch", first, last, ..request(1, 1, 2, Vec::new()) };
                watch.observe(&searching, LIFE);
            }
            assert_eq!(known(&watch).ratio, ratio, "one request each, and a search");
        }
    }

    #[test]
    fn conversations_begin_warm_where_the_last_was_a_short_while_ago() {
        for (gap, warm) in [(60.0, 59.0 / 60.0), (600.0, 0.0)] {
            let watch = Watch::default();
            for n in 0..60 {
                watch.observe(&Outcome { ts: f64::from(n) * gap, ..request(1, 1, 1, Vec::new()) }, LIFE);
            }
            assert_eq!(known(&watch).warm, warm);
        }
    }

    #[test]
    fn conversations_in_full_and_held_out_do_not_dilute_what_searches_cost() {
        let watch = Watch::default();
        for n in 0..4000 {
            let outcome = |legs| request(1, 1, legs, Vec::new());
            match n {
                0..60 => watch.observe(&outcome(3), LIFE),
                _ if n % 50 == 0 => watch.observe(&Outcome { explored: true, ..outcome(3) }, LIFE),
                _ if n % 3 == 0 => watch.observe(&Outcome { action: Action::Holdout, ..full(outcome(1)) }, LIFE),
                _ => watch.observe(&full(outcome(1)), LIFE),
            }
        }
        let traffic = known(&watch);
        assert!((traffic.expansions - 2.0).abs() < 1e-9, "{traffic:?}");
        assert!((traffic.system - 1500.0).abs() < 1.0, "whichever way, without the tools: {traffic:?}");
    }

    /// Half of the conversations have a roster that costs less in full, and search twice; the others never.
    #[test]
    fn what_is_explored_stands_for_what_is_sent_in_full() {
        let watch = Watch::default();
        for n in 0..4000 {
            match (n % 2, n % 100) {
                (0, _) => watch.observe(&request(1, 1, 1, Vec::new()), LIFE),
                (_, 1) => watch.observe(&Outcome { explored: true, ..request(1, 1, 3, Vec::new()) }, LIFE),
                _ => watch.observe(&full(request(1, 1, 1, Vec::new())), LIFE),
            }
        }
        let expansions = known(&watch).expansions;
        assert!((0.6..=1.0).contains(&expansions), "one a conversation, told a little late: {expansions}");
    }

    /// What searches cost may change while all goes in full: the explored ones tell.
    #[test]
    fn what_is_explored_brings_narrowing_back() {
        let watch = Watch::default();
        (0..60).for_each(|_| watch.observe(&request(1, 1, 3, Vec::new()), LIFE));
        for n in 0..4000 {
            match n % 50 {
                0 => watch.observe(&Outcome { explored: true, ..request(1, 1, 1, Vec::new()) }, LIFE),
                _ => watch.observe(&full(request(1, 1, 1, Vec::new())), LIFE),
            }
        }
        assert!(known(&watch).expansions < 0.5, "{:?}", known(&watch));
    }

    #[test]
    fn averages_outlive_what_is_forgotten() {
        let watch = Watch::default();
        for n in 0..200_000 {
            match n % 100 {
                _ if n < 60 => watch.observe(&request(1, 1, 2, Vec::new()), LIFE),
                0 => watch.observe(&Outcome { explored: true, ..request(1, 1, 2, Vec::new()) }, LIFE),
                _ => watch.observe(&full(request(1, 1, 1, Vec::new())), LIFE),
            }
            assert!(n < 60 || watch.expected("kimi", "m", 0.1).is_some(), "after {n}");
        }
        assert!((known(&watch).expansions - 1.0).abs() < 1e-6);
    }

    #[test]
    fn hostile_names_do_not_grow_it() {
        let watch = Watch::default();
        for n in 0..1000 {
            watch.observe(&Outcome { model: format!("m{n}"), ..request(1, 1, 1, Vec::new()) }, LIFE);
        }
        assert_eq!(watch.models.lock().expect("unbroken").len(), MODELS);
    }
}
