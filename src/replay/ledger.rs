//! One model's traffic, played under every policy at once. Bounded: sums, a thinned curve, the players' own bounds.
//! NOT how it is shown.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::cost::cache::Rules;
use crate::cost::play::{Limits, Player, Step};
use crate::cost::policy::{ALL, Able, Policy, Traffic, UNKNOWN_RATIO};
use crate::cost::prices::{Billed, Price};
use crate::decision::Used;

/// What a run needs to know of a model.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// `None`: nobody said; tokens are then weighed with [`UNKNOWN_RATIO`].
    pub price: Option<Price>,
    pub rules: Rules,
    /// Does the provider cache at all?
    pub cached: bool,
    pub able: Able,
    pub limits: Limits,
}

/// Points of a curve, at most.
const POINTS: usize = 256;
/// Conversations and rosters that are told apart.
const SEEN: usize = 100_000;

/// The requests of one model.
#[derive(Debug)]
pub struct Ledger {
    pub terms: Terms,
    players: Vec<Player>,
    /// For each player: requests so far and what they cost.
    curves: Vec<Vec<(f64, f64)>>,
    stride: u64,
    pub requests: u64,
    /// As the provider reported it.
    pub reported: Used,
    pub reported_requests: u64,
    watched: Watched,
}

/// The shape of the traffic, summed.
#[derive(Debug, Default)]
struct Watched {
    seen: HashSet<u64>,
    last: HashMap<u64, u64>,
    /// When a roster was last sent.
    rosters: HashMap<usize, Duration>,
    warm: u64,
    turns: u64,
    system: u64,
    growth: u64,
    grown: u64,
    roster: f64,
    core: f64,
    selected: f64,
    selections: u64,
    tools: u64,
}

impl Ledger {
    pub fn new(terms: Terms) -> Self {
        let players: Vec<Player> =
            ALL.into_iter().map(|policy| Player::new(policy, terms.limits, terms.rules)).collect();
        Self {
            curves: vec![Vec::new(); players.len()],
            players,
            terms,
            stride: 1,
            requests: 0,
            reported: Used::default(),
            reported_requests: 0,
            watched: Watched::default(),
        }
    }

    /// Plays one request. `used`: as reported.
    pub fn add(&mut self, step: &Step, used: Option<Used>) {
        self.requests += 1;
        if let Some(used) = used {
            self.reported_requests += 1;
            self.reported.prompt += used.prompt;
            self.reported.cached += used.cached;
            self.reported.completion += used.completion;
        }
        self.watched.see(step, &self.terms);
        self.players.iter_mut().for_each(|player| player.step(step));
        if self.requests.is_multiple_of(self.stride) {
            self.point();
        }
    }

    /// Policies in the order of [`ALL`], each with its player and curve.
    pub fn played(&self) -> impl Iterator<Item = (&Player, &[(f64, f64)])> {
        self.players.iter().zip(self.curves.iter().map(Vec::as_slice))
    }

    pub fn conversations(&self) -> u64 {
        self.watched.seen.len() as u64
    }

    /// What a cached token costs of a fresh one.
    pub fn ratio(&self) -> f64 {
        if self.terms.cached { self.terms.price.map_or(UNKNOWN_RATIO, |price| price.ratio()) } else { 1.0 }
    }

    /// Fresh-token equivalents of the input.
    pub fn weighed(&self, player: &Player) -> f64 {
        player.sum().input.weighed(self.ratio())
    }

    /// Input and output. `None`: there is no price.
    pub fn usd(&self, player: &Player) -> Option<f64> {
        let sum = player.sum();
        let cached = if self.terms.cached { sum.input.cached } else { 0 };
        let completion = self.reported.completion + sum.output;
        self.terms.price.map(|price| price.cost(Billed { prompt: sum.input.prompt, cached, completion }))
    }

    /// The shape of this traffic, as the choice of a policy asks for it.
    pub fn traffic(&self) -> Traffic {
        let watched = &self.watched;
        let each = |sum: f64, count: u64, other: f64| if count > 0 { sum / count as f64 } else { other };
        let usual = Traffic::default();
        let conversations = self.conversations();
        let turns = each(watched.turns as f64, conversations, 1.0).max(1.0);
        let of = |policy: Policy| self.players.iter().find(|player| player.policy() == policy).map(Player::sum);
        let growing = of(Policy::Growing).unwrap_or_default();
        let core = each(watched.core, self.requests, usual.core);
        Traffic {
            turns,
            calls: (each(self.requests as f64, conversations, 1.0) / turns).max(1.0),
            roster: each(watched.roster, self.requests, usual.roster),
            bound: core + each(watched.selected, watched.selections, usual.bound - usual.core),
            core,
            system: each(watched.system as f64, conversations, usual.system),
            step: each(watched.growth as f64, watched.grown, 0.0),
            expansions: each(growing.extra_legs as f64, conversations, 0.0),
            found: each(watched.roster, watched.tools, usual.found / 5.0) * self.terms.limits.discovered as f64,
            needs: each(growing.needed as f64, conversations, 0.0),
            ratio: self.ratio(),
            warm: each(watched.warm as f64, conversations, 0.0),
        }
    }

    fn point(&mut self) {
        let ratio = self.ratio();
        let price = self.terms.price.map_or(1.0, |price| price.input / 1e6);
        for (player, curve) in self.players.iter().zip(&mut self.curves) {
            curve.push((self.requests as f64, player.sum().input.weighed(ratio) * price));
        }
        if self.curves.first().is_some_and(|curve| curve.len() >= POINTS) {
            self.stride *= 2;
            for curve in &mut self.curves {
                let mut odd = false;
                curve.retain(|_| {
                    odd = !odd;
                    !odd
                });
            }
        }
    }
}

impl Watched {
    fn see(&mut self, step: &Step, terms: &Terms) {
        let tokens = |always: bool| -> u64 {
            step.roster.tools.iter().filter(|tool| tool.always || !always).map(|tool| tool.tokens).sum()
        };
        self.roster += tokens(false) as f64;
        self.core += (tokens(true) + step.roster.find_tools) as f64;
        self.tools += step.roster.tools.len() as u64;
        self.turns += u64::from(step.begins_turn);
        if !step.ranking.is_empty() {
            let best = step.best(&terms.limits);
            let chosen = step.roster.tools.iter().filter(|tool| !tool.always && best.contains(&tool.id));
            self.selected += chosen.map(|tool| tool.tokens).sum::<u64>() as f64;
            self.selections += 1;
        }
        // The roster's address is its identity: the reader keeps one of each.
        let roster = std::sync::Arc::as_ptr(&step.roster) as usize;
        let before = self.rosters.insert(roster, step.at);
        if self.seen.len() < SEEN && self.seen.insert(step.conversation) {
            self.system += step.history;
            let life = terms.rules.life;
            self.warm += u64::from(before.is_some_and(|before| step.at.saturating_sub(before) <= life));
        } else if let Some(last) = self.last.get(&step.conversation) {
            self.growth += step.history.saturating_sub(*last);
            self.grown += 1;
        }
        if self.last.len() > SEEN {
            self.last.clear();
        }
        self.last.insert(step.conversation, step.history);
    }
}
