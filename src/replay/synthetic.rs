//! Made-up traffic: `turns=6,calls=8,…` becomes requests, for those who have no log yet, and the grid on which the
//! choice of a policy is measured. NOT what a policy makes of it (`cost::play`).

use std::sync::Arc;
use std::time::Duration;

use crate::cost::cache::Rules;
use crate::cost::play::{Limits, Player, Roster, Step, Sum, Tool};
use crate::cost::policy::{Policy, Traffic};

/// Traffic as a text says it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Synthetic {
    pub traffic: Traffic,
    /// Conversations that follow one another.
    pub conversations: usize,
    /// Between two of them.
    pub pause: Duration,
}

impl Default for Synthetic {
    fn default() -> Self {
        Self { traffic: Traffic::default(), conversations: 1, pause: Duration::from_secs(3600) }
    }
}

/// Why a text is no traffic, in words.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SyntheticError {
    #[error("`{0}` is no `key=number`, such as turns=6")]
    Part(String),
    #[error(
        "there is no `{0}`, only turns, calls, roster, bound, core, system, step, expansions, found, needs, ratio, cache (on or off), conversations, pause (seconds)"
    )]
    Key(String),
    #[error("{0} must be between {1} and {2}")]
    Range(&'static str, u64, u64),
}

impl Synthetic {
    /// `turns=6,calls=8,cache=off`; what is not said is as by default.
    pub fn read(text: &str) -> Result<Self, SyntheticError> {
        let mut read = Self::default();
        let mut cached = true;
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let wrong = || SyntheticError::Part(part.to_owned());
            let (key, value) = part.split_once('=').ok_or_else(wrong)?;
            if key == "cache" {
                cached = match value {
                    "on" => true,
                    "off" => false,
                    _ => return Err(wrong()),
                };
                continue;
            }
            let number: f64 = value.parse().map_err(|_| wrong())?;
            let traffic = &mut read.traffic;
            match key {
                "turns" => traffic.turns = within("turns", number, 1, 1000)?,
                "calls" => traffic.calls = within("calls", number, 1, 1000)?,
                "roster" => traffic.roster = within("roster", number, 0, 10_000_000)?,
                "bound" => traffic.bound = within("bound", number, 0, 10_000_000)?,
                "core" => traffic.core = within("core", number, 0, 10_000_000)?,
                "system" => traffic.system = within("system", number, 0, 10_000_000)?,
                "step" => traffic.step = within("step", number, 0, 1_000_000)?,
                "expansions" => traffic.expansions = within("expansions", number, 0, 1000)?,
                "found" => traffic.found = within("found", number, 0, 1_000_000)?,
                "needs" => traffic.needs = within("needs", number, 0, 1000)?,
                "ratio" => traffic.ratio = within("ratio", number, 0, 1)?,
                "conversations" => read.conversations = within("conversations", number, 1, 1000)? as usize,
                "pause" => read.pause = Duration::from_secs(within("pause", number, 0, 1_000_000)? as u64),
                _ => return Err(SyntheticError::Key(key.to_owned())),
            }
        }
        if !cached {
            read.traffic.ratio = 1.0;
        }
        Ok(read)
    }

    /// The requests, in the order of time.
    pub fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut at = Duration::ZERO;
        for conversation in 0..self.conversations {
            at = self.talk(conversation as u64, at, &mut steps) + self.pause;
        }
        steps
    }

    /// What this policy costs on it.
    pub fn play(&self, policy: Policy) -> Sum {
        let mut player = Player::new(policy, Limits::default(), Rules::default());
        self.steps().iter().for_each(|step| player.step(step));
        player.sum()
    }

    fn talk(&self, conversation: u64, start: Duration, steps: &mut Vec<Step>) -> Duration {
        let Traffic { turns, calls, system, step, expansions, needs, .. } = self.traffic;
        let (turns, calls) = (turns as usize, calls as usize);
        let parts = self.roster();
        let mut history = system as u64;
        let mut at = start;
        // Spread evenly; a turn holds as many as one reply may search.
        let spread = |count: f64, first: usize| -> Vec<usize> {
            let (count, room) = (count as usize, turns.saturating_sub(first));
            (0..count).map(|k| first + (k + 1) * room / (count + 1)).map(|turn| turn.min(turns - 1)).collect()
        };
        let (searches, news) = (spread(expansions, 0), spread(needs, 1));
        // The last ones first: what a search brings along comes from the front.
        let mut hidden = parts.rest.iter().rev().copied();
        for turn in 0..turns {
            let searching = searches.iter().filter(|at| **at == turn).count().min(Limits::default().legs);
            let mut ranking = parts.base.clone();
            let mut needed = None;
            if turn > 0 && news.contains(&turn) {
                // Five others are the best, and one of them is called: who does not bind them must search.
                let others: Vec<u64> = hidden.by_ref().take(Limits::default().need).collect();
                needed = others.first().copied();
                ranking.splice(0..0, others);
            } else if let Some(last) = ranking.get_mut(Limits::default().retrieved - 1) {
                // Its end is another in each turn, so that a block that is chosen anew is another block.
                *last = parts.varying.get(turn % parts.varying.len().max(1)).copied().unwrap_or(*last);
            }
            for call in 0..calls {
                let mut called = Vec::new();
                if call == calls / 2 {
                    called.extend(needed);
                    called.extend(hidden.by_ref().take(searching));
                }
                steps.push(Step {
                    at,
                    conversation,
                    begins_turn: call == 0,
                    history,
                    roster: Arc::clone(&parts.roster),
                    ranking: if call == 0 { ranking.clone() } else { Vec::new() },
                    called,
                    ..Step::default()
                });
                history += step as u64;
                at += Duration::from_secs(5);
            }
        }
        at
    }

    fn roster(&self) -> Parts {
        let Traffic { roster, bound, core, found, .. } = self.traffic;
        let size = (found / Limits::default().discovered as f64).max(1.0);
        let selected = Limits::default().retrieved as u64;
        let find_tools = FIND_TOOLS.min(core as u64);
        let core = core as u64 - find_tools;
        let block = (bound as u64).saturating_sub(core + find_tools).max(selected);
        // A selection of twelve; each of the tools that vary is as long as the one it stands for.
        let share = block / selected;
        let pool = 12;
        let mut tools = Vec::new();
        let mut add = |tokens: u64, always: bool| {
            let id = 1000 + tools.len() as u64;
            tools.push(Tool { id, tokens, always });
            id
        };
        let rest = (roster as u64).saturating_sub(core + block + share * (pool - 1));
        // Those that vary stand in front: a block that is chosen anew has no beginning in common with the one before.
        let varying: Vec<u64> = (0..pool).map(|_| add(share, false)).collect();
        let mut base: Vec<u64> =
            (1..selected).map(|n| add(if n == 1 { block - share * (selected - 1) } else { share }, false)).collect();
        base.push(varying.first().copied().unwrap_or_default());
        add(core, true);
        let count = (rest as f64 / size).round().max(1.0) as u64;
        let mut left = rest;
        let rest = (0..count)
            .map(|n| {
                let tokens = left / (count - n);
                left -= tokens;
                add(tokens, false)
            })
            .collect();
        Parts { roster: Arc::new(Roster { tools, find_tools }), varying, base, rest }
    }
}

/// Tokens of the declaration of `find_tools`; part of the core here.
const FIND_TOOLS: u64 = 250;

struct Parts {
    roster: Arc<Roster>,
    varying: Vec<u64>,
    /// The selection of a turn that needs nothing new.
    base: Vec<u64>,
    rest: Vec<u64>,
}

fn within(name: &'static str, number: f64, least: u64, most: u64) -> Result<f64, SyntheticError> {
    if (least as f64..=most as f64).contains(&number) {
        Ok(number)
    } else {
        Err(SyntheticError::Range(name, least, most))
    }
}
