//! A conversation, request by request, as one policy would have sent it through a provider's prompt cache. Every token
//! that a policy adds is counted: answers of searches, extra legs, declarations that stay, the wrapper. NOT where the
//! requests come from, NOT the price.
//!
//! What a model would have done with other tools nobody knows. Assumed is: it calls what it called; what it did not have
//! it searches for first, and finds; it searches in vain as often as it did.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::cache::{PrefixCache, Read, Rules, Segment};
use super::policy::{ANSWER, ANSWER_LINE, CALL_TOOL, Policy, SEARCH, WRAP};

/// A tool of a roster; the name's digest says which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    pub id: u64,
    pub tokens: u64,
    /// Never withheld.
    pub always: bool,
}

/// What an agent sends.
#[derive(Debug, Clone, Default)]
pub struct Roster {
    /// In the agent's order, no two of one id.
    pub tools: Vec<Tool>,
    /// Tokens of the declaration of `find_tools` that goes with it.
    pub find_tools: u64,
}

/// One request of an agent's and its reply, whatever the policy.
#[derive(Debug, Clone, Default)]
pub struct Step {
    /// Since whenever.
    pub at: Duration,
    pub conversation: u64,
    pub begins_turn: bool,
    /// Tokens of everything but tools.
    pub history: u64,
    pub roster: Arc<Roster>,
    /// The turn's ranking, best first: with the turn's first request. Empty: it asks for nothing of its own.
    pub ranking: Vec<u64>,
    /// How many of it were selected; `None`: as many as the limits say.
    pub selected: Option<usize>,
    /// What the reply calls, in order.
    pub called: Vec<u64>,
    /// What searches of this reply found.
    pub found: Vec<u64>,
    /// Searches of this reply that found nothing.
    pub in_vain: u64,
}

impl Step {
    /// What of the ranking a block takes.
    pub fn best(&self, limits: &Limits) -> Vec<u64> {
        self.ranking.iter().copied().take(self.selected.unwrap_or(limits.retrieved)).collect()
    }
}

/// How much is bound, as configured.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub retrieved: usize,
    pub discovered: usize,
    /// Extra legs a request, at most.
    pub legs: usize,
    /// Beyond the core, before a block is chosen anew.
    pub bound: usize,
    pub need: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { retrieved: 12, discovered: 5, legs: 2, bound: 24, need: 5 }
    }
}

/// What a policy came to. The legs that searches add are in `input`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    pub input: Read,
    /// Upstream calls beyond one a request.
    pub extra_legs: u64,
    /// Output tokens of searches.
    pub output: u64,
    /// Requests that were narrowed.
    pub narrowed: u64,
    /// Turns that needed tools which were not bound, where that changed anything.
    pub needed: u64,
}

/// One policy and its provider.
#[derive(Debug)]
pub struct Player {
    policy: Policy,
    limits: Limits,
    life: Duration,
    cache: PrefixCache,
    open: HashMap<u64, Conversation>,
    sum: Sum,
}

/// Conversations in memory; of more, the oldest half is forgotten and begins anew.
const OPEN: usize = 4096;
/// Prefixes in memory.
const PREFIXES: usize = 400_000;

#[derive(Debug, Default)]
struct Conversation {
    last: Duration,
    history: u64,
    /// Segments so far, a name for the next.
    number: u64,
    messages: Vec<Message>,
    begun: bool,
    /// In front of `find_tools`, and behind it.
    first: Vec<u64>,
    added: Vec<u64>,
    /// Of `added`, what leaves with the turn.
    passing: Vec<u64>,
    /// Declared or described in messages.
    inside: Vec<u64>,
    called: Vec<u64>,
}

#[derive(Debug)]
struct Message {
    segment: Segment,
    /// The policy's, not the agent's.
    ours: bool,
}

impl Player {
    pub fn new(policy: Policy, limits: Limits, rules: Rules) -> Self {
        let cache = PrefixCache::new(rules, PREFIXES);
        Self { policy, limits, life: rules.life, cache, open: HashMap::new(), sum: Sum::default() }
    }

    pub fn policy(&self) -> Policy {
        self.policy
    }

    pub fn sum(&self) -> Sum {
        self.sum
    }

    /// Sends the request and what its reply leads to. Steps come in the order of time.
    pub fn step(&mut self, step: &Step) {
        self.forget();
        let mut talk = self.open.remove(&step.conversation).unwrap_or_default();
        let expired = talk.begun && step.at.saturating_sub(talk.last) > self.life;
        talk.last = step.at;
        talk.grow(step);
        if step.begins_turn || !talk.begun || expired {
            self.turn(&mut talk, step, expired);
        }
        self.send(&talk, step);
        if talk.begun {
            self.sum.narrowed += u64::from(self.policy != Policy::Full);
            if self.policy != Policy::Full {
                self.answer(&mut talk, step);
            }
        }
        self.open.insert(step.conversation, talk);
    }

    /// Chooses what is bound in this turn.
    fn turn(&mut self, talk: &mut Conversation, step: &Step, expired: bool) {
        if self.policy == Policy::Full || (step.ranking.is_empty() && !talk.begun) {
            return;
        }
        let best = step.best(&self.limits);
        let need = self.limits.need;
        let served = |talk: &Conversation| best.iter().take(need).all(|tool| talk.has(*tool));
        if !talk.begun || (expired && !best.is_empty() && self.policy != Policy::FirstTurn) {
            talk.begin(self.policy, &best, &step.roster);
            return;
        }
        match self.policy {
            Policy::Full | Policy::FirstTurn | Policy::Dispatch => {}
            Policy::EveryTurn | Policy::EveryCall => {
                if !best.is_empty() {
                    talk.begin(self.policy, &best, &step.roster);
                }
            }
            Policy::Sticky => {
                let (called, passing) = (talk.called.clone(), std::mem::take(&mut talk.passing));
                talk.added.retain(|tool| !passing.contains(tool));
                talk.append(&called);
                if !served(talk) {
                    self.sum.needed += 1;
                    talk.append(&best);
                }
                let always =
                    step.roster.tools.iter().filter(|tool| tool.always && talk.first.contains(&tool.id)).count();
                if talk.first.len() + talk.added.len() > always + self.limits.bound {
                    talk.begin(self.policy, &best, &step.roster);
                }
            }
            Policy::Growing => {
                if !served(talk) {
                    self.sum.needed += 1;
                    talk.append(&best);
                }
            }
            Policy::Append => {
                if !served(talk) {
                    self.sum.needed += 1;
                    talk.declare(&best, 0, &step.roster);
                }
            }
        }
    }

    /// The searches that this reply takes under this policy, each an exchange in the history and one more leg.
    fn answer(&mut self, talk: &mut Conversation, step: &Step) {
        let known = |id: &u64| step.roster.tools.iter().any(|tool| tool.id == *id);
        let mut legs = 0;
        let missing = step.called.iter().copied().filter(known);
        let wanted = missing.chain(step.found.iter().copied().take(usize::from(step.called.is_empty()))).filter(known);
        for wanted in wanted.collect::<Vec<_>>() {
            if talk.has(wanted) {
                continue;
            }
            if legs == self.limits.legs {
                // Searching is over: a call of a withheld tool is relayed, and the tool is bound from then on.
                talk.take(self.policy, &[wanted], 0, &step.roster);
                continue;
            }
            let near =
                step.found.iter().chain(&step.ranking).copied().chain(step.roster.tools.iter().map(|tool| tool.id));
            let mut found = vec![wanted];
            for tool in near {
                if found.len() < self.limits.discovered && !found.contains(&tool) && !talk.has(tool) && known(&tool) {
                    found.push(tool);
                }
            }
            let lines = if self.policy == Policy::Dispatch { 0 } else { ANSWER_LINE * found.len() as u64 };
            talk.take(self.policy, &found, SEARCH + ANSWER + lines, &step.roster);
            self.search(talk, step);
            legs += 1;
        }
        for _ in 0..step.in_vain {
            if legs < self.limits.legs {
                talk.say(SEARCH + ANSWER);
                self.search(talk, step);
                legs += 1;
            }
        }
        for &tool in step.called.iter().filter(|tool| known(tool)) {
            if !talk.called.contains(&tool) {
                talk.called.push(tool);
            }
            if self.policy == Policy::Dispatch && talk.inside.contains(&tool) {
                talk.say(WRAP);
            }
        }
    }

    fn search(&mut self, talk: &Conversation, step: &Step) {
        self.sum.extra_legs += 1;
        self.sum.output += SEARCH;
        self.send(talk, step);
    }

    fn send(&mut self, talk: &Conversation, step: &Step) {
        let mut prompt = Vec::with_capacity(step.roster.tools.len() + talk.messages.len() + 3);
        let tools = &step.roster.tools;
        if talk.begun && self.policy != Policy::Full {
            if self.policy == Policy::EveryCall {
                // Whatever is chosen, it is chosen anew: no two blocks are the same.
                prompt.push(Segment { hash: own(step.conversation, talk.number), tokens: 0 });
            }
            let of = |ids: &Vec<u64>| -> Vec<Segment> {
                ids.iter().filter_map(|id| tools.iter().find(|tool| tool.id == *id)).map(segment).collect()
            };
            prompt.extend(of(&talk.first));
            prompt.push(Segment { hash: FIND_TOOLS, tokens: step.roster.find_tools });
            if self.policy == Policy::Dispatch {
                prompt.push(Segment { hash: DISPATCHER, tokens: CALL_TOOL });
            }
            prompt.extend(of(&talk.added));
        } else {
            prompt.extend(tools.iter().map(segment));
        }
        prompt.extend(talk.messages.iter().map(|message| message.segment));
        self.sum.input += self.cache.send(&prompt, step.at);
    }

    fn forget(&mut self) {
        if self.open.len() < OPEN {
            return;
        }
        let mut times: Vec<Duration> = self.open.values().map(|talk| talk.last).collect();
        times.sort_unstable();
        let middle = times.get(times.len() / 2).copied().unwrap_or_default();
        self.open.retain(|_, talk| talk.last > middle);
    }
}

impl Conversation {
    /// What the agent added since its last request; a history that shrank was written anew.
    fn grow(&mut self, step: &Step) {
        if step.history < self.history {
            self.messages.clear();
            self.inside.clear();
            self.history = 0;
            // Nothing of what was declared in it is left: the turn chooses again.
            self.begun = false;
        }
        let more = step.history - self.history;
        self.history = step.history;
        if more > 0 {
            self.number += 1;
            let hash = own(step.conversation, self.number);
            self.messages.push(Message { segment: Segment { hash, tokens: more }, ours: false });
        }
    }

    /// The block of a conversation that begins, or begins again.
    fn begin(&mut self, policy: Policy, best: &[u64], roster: &Roster) {
        self.begun = true;
        self.messages.retain(|message| !message.ours);
        self.added.clear();
        self.passing.clear();
        self.inside.clear();
        let bound = |tool: &Tool| tool.always || best.contains(&tool.id) || self.called.contains(&tool.id);
        let constant = policy == Policy::Append;
        let first = roster.tools.iter().filter(|tool| if constant { tool.always } else { bound(tool) });
        self.first = first.map(|tool| tool.id).collect();
        if constant {
            let wanted: Vec<u64> = self.called.iter().chain(best).copied().collect();
            self.declare(&wanted, 0, roster);
        }
    }

    fn has(&self, tool: u64) -> bool {
        [&self.first, &self.added, &self.inside].iter().any(|list| list.contains(&tool))
    }

    fn append(&mut self, tools: &[u64]) {
        for &tool in tools {
            if !self.has(tool) {
                self.added.push(tool);
            }
        }
    }

    /// Puts the schemas of these tools, and `beside` tokens, into the conversation.
    fn declare(&mut self, tools: &[u64], beside: u64, roster: &Roster) {
        let mut tokens = beside;
        for &id in tools {
            if let Some(tool) = roster.tools.iter().find(|tool| tool.id == id && !self.has(id)) {
                tokens += tool.tokens;
                self.inside.push(id);
            }
        }
        self.say(tokens);
    }

    /// What a search found, under this policy. `exchange`: tokens of the call and its answer.
    fn take(&mut self, policy: Policy, found: &[u64], exchange: u64, roster: &Roster) {
        match policy {
            Policy::Append | Policy::Dispatch => self.declare(found, exchange, roster),
            _ => {
                self.say(exchange);
                let new: Vec<u64> = found.iter().copied().filter(|tool| !self.has(*tool)).collect();
                self.append(&new);
                self.passing.extend(new);
            }
        }
    }

    fn say(&mut self, tokens: u64) {
        if tokens > 0 {
            self.number += 1;
            let hash = own(OURS, self.number);
            self.messages.push(Message { segment: Segment { hash, tokens }, ours: true });
        }
    }
}

const FIND_TOOLS: u64 = 1;
const DISPATCHER: u64 = 2;
const OURS: u64 = 3;

fn segment(tool: &Tool) -> Segment {
    Segment { hash: tool.id, tokens: tool.tokens }
}

/// The name of a conversation's segment.
fn own(conversation: u64, number: u64) -> u64 {
    Segment::new(&[conversation.to_le_bytes(), number.to_le_bytes()].concat(), 0).hash
}
