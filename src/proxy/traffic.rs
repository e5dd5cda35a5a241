//! What the conversations of a model are like, as this process has seen them: from
//! that `auto` tells which binding costs least. Numbers only, kept nowhere else. NOT
//! the formula (`cost::policy`), NOT the choice (`binding.rs`).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::cost::policy::Traffic;
use crate::outcome::{Action, Outcome};
use crate::turn::fold::Cause;

/// Conversations before the averages say anything.
const MEASURED: f64 = 50.0;
/// Above this both sides of every average are halved: traffic changes.
const FORGET: f64 = 5_000.0;
/// Pairs of upstream and model that are watched; model names come from outside.
const MODELS: usize = 256;

/// Averages by upstream and model.
#[derive(Debug, Default)]
pub struct Watch {
    models: Mutex<HashMap<(String, String), Sums>>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    conversations: f64,
    turns: f64,
    requests: f64,
    /// Extra legs.
    searches: f64,
    /// Turns, not first, whose message needed tools that were not there.
    needs: f64,
    /// Prompt tokens that are no tools, and how many requests they took to gather.
    history: f64,
    steps: f64,
}

impl Watch {
    /// Counts a request that is over.
    pub fn observe(&self, outcome: &Outcome) {
        if outcome.action != Action::Narrowed || outcome.turn == 0 {
            return;
        }
        let key = (outcome.upstream.clone(), outcome.model.clone());
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if models.len() >= MODELS && !models.contains_key(&key) {
            return;
        }
        let sums = models.entry(key).or_default();
        let begins = outcome.call <= 1;
        sums.conversations += f64::from(begins && outcome.turn == 1);
        sums.turns += f64::from(begins);
        sums.requests += 1.0;
        sums.searches += outcome.legs.saturating_sub(1) as f64;
        sums.needs += f64::from(outcome.causes.contains(&Cause::Needed));
        if outcome.usage.reported && outcome.legs == 1 {
            sums.history += outcome.usage.prompt.saturating_sub(outcome.bound_tokens) as f64;
            sums.steps += (outcome.turn - 1) as f64 * sums.calls() + outcome.call as f64;
        }
        if sums.conversations > FORGET {
            sums.halve();
        }
    }

    /// What a conversation of this model is expected to be, sizes of tools and prices left as they are by default;
    /// `None`: too few have been seen.
    pub fn expected(&self, upstream: &str, model: &str) -> Option<Traffic> {
        let models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        let sums =
            models.get(&(upstream.to_owned(), model.to_owned())).filter(|sums| sums.conversations >= MEASURED)?;
        let a = |sum: f64| sum / sums.conversations;
        Some(Traffic {
            turns: a(sums.turns).max(1.0),
            calls: sums.calls(),
            step: if sums.steps > 0.0 { sums.history / sums.steps } else { Traffic::default().step },
            expansions: a(sums.searches),
            needs: a(sums.needs),
            ..Traffic::default()
        })
    }
}

impl Sums {
    fn calls(&self) -> f64 {
        (self.requests / self.turns.max(1.0)).max(1.0)
    }

    fn halve(&mut self) {
        let Self { conversations, turns, requests, searches, needs, history, steps } = self;
        for sum in [conversations, turns, requests, searches, needs, history, steps] {
            *sum /= 2.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::reply::Usage;

    fn request(turn: usize, call: usize, legs: usize, causes: Vec<Cause>) -> Outcome {
        let steps = ((turn - 1) * 2 + call) as u64;
        Outcome {
            upstream: "kimi".into(),
            model: "m".into(),
            action: Action::Narrowed,
            usage: Usage { reported: true, prompt: 1000 + 500 * steps, cached: 0, completion: 1 },
            bound_tokens: 1000,
            turn,
            call,
            legs,
            causes,
            ..Outcome::default()
        }
    }

    #[test]
    fn averages_need_conversations() {
        let watch = Watch::default();
        for n in 0..60 {
            let known = watch.expected("kimi", "m").is_some();
            assert_eq!(known, n >= 50, "after {n}");
            for turn in 1..=3 {
                let causes = if turn == 2 { vec![Cause::Needed] } else { Vec::new() };
                watch.observe(&request(turn, 1, 1, causes));
                watch.observe(&request(turn, 2, if turn == 3 { 2 } else { 1 }, Vec::new()));
            }
        }
        let traffic = watch.expected("kimi", "m").expect("measured");
        assert_eq!((traffic.turns, traffic.calls, traffic.expansions, traffic.needs), (3.0, 2.0, 1.0, 1.0));
        assert!((traffic.step - 500.0).abs() < 25.0, "{}", traffic.step);
        assert!(watch.expected("kimi", "other").is_none());
    }

    #[test]
    fn hostile_names_do_not_grow_it() {
        let watch = Watch::default();
        for n in 0..1000 {
            watch.observe(&Outcome { model: format!("m{n}"), ..request(1, 1, 1, Vec::new()) });
        }
        assert_eq!(watch.models.lock().expect("unbroken").len(), MODELS);
    }
}
