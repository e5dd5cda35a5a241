//! What conversations look like whichever way they are sent: turns, requests, growth, and what their provider does read
//! from its cache. NOT what narrowing meets with (`traffic.rs`).

use crate::cost::policy::Traffic;
use crate::outcome::{Action, Outcome};
use crate::turn::fold::Cause;
use crate::turn::policy::Binding;

/// Requests before a provider is believed not to cache.
const ASKED: f64 = 20.0;
/// Half a chunk of 256 tokens, which the end of a cached prefix loses on average.
const HALF_CHUNK: f64 = 128.0;

/// What the conversations of a model look like, whichever way they are sent: sums, from which the averages come.
#[derive(Debug, Default, Clone, Copy)]
pub struct Shape {
    pub conversations: f64,
    /// Of these, begun while the provider still knew their roster.
    pub warm: f64,
    pub turns: f64,
    requests: f64,
    /// Prompt tokens that are no tools, of first requests; and how many.
    openings: f64,
    opened: f64,
    /// The same of later ones, and how many steps they are behind the first, all together.
    history: f64,
    grown: f64,
    steps: f64,
    /// Of later requests that begin as the one before: prompt tokens, how many.
    prompt: f64,
    asked: f64,
    /// Of legs that begin as the one before: that one's prompt tokens, how many.
    again: f64,
    legs: f64,
    /// Tokens that all of these read from the cache.
    cached: f64,
}

impl Shape {
    /// `warm`: the same roster was sent a short while before.
    pub fn add(&mut self, outcome: &Outcome, warm: bool) {
        let opens = opens(outcome);
        self.conversations += f64::from(opens);
        self.warm += f64::from(opens && warm);
        self.turns += f64::from(outcome.call <= 1);
        self.requests += 1.0;
        if outcome.legs > 1 {
            return self.add_legs(outcome);
        }
        if !outcome.usage.reported {
            return;
        }
        let tools = if outcome.action == Action::Narrowed { outcome.bound_tokens } else { outcome.roster_tokens };
        let rest = outcome.usage.prompt.saturating_sub(tools) as f64;
        if opens {
            self.openings += rest;
            self.opened += 1.0;
            return;
        }
        self.history += rest;
        self.grown += 1.0;
        self.steps += (outcome.turn - 1) as f64 * self.calls() + outcome.call.saturating_sub(1) as f64;
        // A silence costs the full roster its cache, too.
        if outcome.causes.iter().all(|cause| *cause == Cause::Expired) {
            self.prompt += outcome.usage.prompt as f64;
            self.cached += outcome.usage.cached as f64;
            self.asked += 1.0;
        }
    }

    /// A conversation of one request shows nowhere else whether the provider caches.
    fn add_legs(&mut self, outcome: &Outcome) {
        let (Some(first), last) = (outcome.first, outcome.last) else { return };
        let constant = [Binding::Append, Binding::Dispatch].map(Binding::label).contains(&outcome.binding);
        if !constant || outcome.append_refused || !first.reported || !last.reported {
            return;
        }
        let before = match outcome.legs {
            2 => first.prompt,
            3 => outcome.usage.prompt.saturating_sub(first.prompt + last.prompt),
            _ => return,
        };
        self.again += before as f64;
        self.legs += 1.0;
        self.cached += last.cached as f64;
    }

    pub fn calls(&self) -> f64 {
        (self.requests / self.turns.max(1.0)).max(1.0)
    }

    /// Tokens of a first request besides tools, and by how much each request is longer than the one before.
    pub fn growth(&self) -> (f64, f64) {
        let usual = Traffic::default();
        let system = if self.opened > 0.0 { self.openings / self.opened } else { usual.system };
        let step = if self.steps > 0.0 { (self.history - self.grown * system) / self.steps } else { usual.step };
        (system, step.max(1.0))
    }

    /// How much of what the provider could read from its cache it does read.
    pub fn hit(&self, step: f64) -> f64 {
        let (asked, new) = (self.asked + self.legs, self.asked * step + (self.asked + self.legs) * HALF_CHUNK);
        let could = self.prompt + self.again - new;
        if asked < ASKED || could <= 0.0 { 1.0 } else { (self.cached / could).clamp(0.0, 1.0) }
    }

    pub fn halve(&mut self) {
        let Self { conversations, warm, turns, requests, openings, opened, .. } = self;
        for sum in [conversations, warm, turns, requests, openings, opened] {
            *sum /= 2.0;
        }
        let Self { history, grown, steps, prompt, asked, again, legs, cached, .. } = self;
        for sum in [history, grown, steps, prompt, asked, again, legs, cached] {
            *sum /= 2.0;
        }
    }
}

/// Is it the first of its conversation?
pub fn opens(outcome: &Outcome) -> bool {
    outcome.turn == 1 && outcome.call <= 1
}
