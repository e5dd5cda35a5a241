//! The ways to send a conversation's tools, what each is expected to cost, and which to take. A closed formula, a few
//! dozen additions, for the way of a request; [`super::play`] is the simulation that it is tested against. NOT how a
//! policy is carried out (`turn`), NOT who watches the traffic.

/// A way to send a conversation's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Policy {
    /// The agent's whole roster, every time.
    Full,
    /// Chosen for the first message and kept; what is missing must be searched for.
    FirstTurn,
    /// Chosen anew for every user message (`stability = "turn"`).
    EveryTurn,
    /// Chosen anew for every request: what narrowing without a memory does.
    EveryCall,
    /// Kept while it serves, changed in place where it does not (`binding = "replace"`, `stability = "sticky"`). What a
    /// search found leaves with its turn unless it was called.
    Sticky,
    /// The same, and what was found stays: the block only grows.
    Growing,
    /// A constant block; additions are declared in the conversation (`binding = "append"`).
    Append,
    /// A constant block; what is found is described in the search's answer and called through one constant tool
    /// (`binding = "dispatch"`).
    Dispatch,
}

/// All of them, in the order of a report.
pub const ALL: [Policy; 8] = [
    Policy::Full,
    Policy::EveryCall,
    Policy::EveryTurn,
    Policy::FirstTurn,
    Policy::Sticky,
    Policy::Growing,
    Policy::Append,
    Policy::Dispatch,
];

impl Policy {
    pub fn label(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::FirstTurn => "first-turn",
            Self::EveryTurn => "every-turn",
            Self::EveryCall => "every-call",
            Self::Sticky => "sticky",
            Self::Growing => "growing",
            Self::Append => "append",
            Self::Dispatch => "dispatch",
        }
    }
}

/// Tokens of a call of `find_tools` in the history: the message around it and its query.
pub const SEARCH: u64 = 40;
/// Tokens of an answer that names what was found, beside the lines.
pub const ANSWER: u64 = 40;
/// Tokens of a line of that answer: a name and up to 160 characters.
pub const ANSWER_LINE: u64 = 40;
/// Tokens of the declaration of `call_tool`.
pub const CALL_TOOL: u64 = 110;
/// Tokens that wrapping adds to each call in the history: the outer name and a nested object.
pub const WRAP: u64 = 14;

/// What a conversation is expected to be. Tokens, or numbers per conversation; fractions are fine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traffic {
    /// User messages.
    pub turns: f64,
    /// Requests a turn.
    pub calls: f64,
    /// Tools that the agent sends.
    pub roster: f64,
    /// Tools of the first block: core, selection, `find_tools`.
    pub bound: f64,
    /// Of these, what is the same in every conversation: core and `find_tools`.
    pub core: f64,
    /// What stands in the first request besides tools.
    pub system: f64,
    /// By how much each request is longer than the one before.
    pub step: f64,
    /// Searches of the model that lead to an extra leg.
    pub expansions: f64,
    /// Tools that a search adds.
    pub found: f64,
    /// Turns, after the first, whose message needs tools that no earlier one needed.
    pub needs: f64,
    /// What a cached token costs of a fresh one; 1: the provider does not cache.
    pub ratio: f64,
    /// Share of conversations that begin while the provider still remembers another one with this roster: the whole
    /// roster is then cached from the first request on, a selection of it is not.
    pub warm: f64,
}

impl Default for Traffic {
    /// The shape that most figures of the documentation are for.
    fn default() -> Self {
        Self {
            turns: 6.0,
            calls: 8.0,
            roster: 12_000.0,
            bound: 4_700.0,
            core: 1_460.0,
            system: 1_500.0,
            step: 400.0,
            expansions: 0.0,
            found: 1_350.0,
            needs: 0.0,
            ratio: 0.1,
            warm: 0.0,
        }
    }
}

/// What a model and its wire can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Able {
    /// It takes declarations of tools in messages.
    pub append: bool,
    /// Its calls can be unwrapped and wrapped again.
    pub dispatch: bool,
}

/// Through `call_tool` the model does not see a schema where it is used to: dispatch must save this much more.
pub const WORTH_A_DETOUR: f64 = 0.98;
/// Searches cost more when they come late or in a cold cache, and nothing when they do not come: what they are expected
/// to cost is taken with this much to spare, so that an error does not make narrowing dearer than the full roster.
const CAUTION: f64 = 1.1;
/// Searches that a turn may hold (`max_discovery_legs`).
const SEARCHES: f64 = 2.0;
/// Of the conversations that cost less in full, the share that is narrowed all the same: searches are only seen where
/// tools are withheld. So small that it costs no more than 2 % where each of them costs three times as much, which is
/// what two searches in every turn and no cache come to.
pub const EXPLORED: f64 = 1.0 / 100.0;
/// What a cached token costs of a fresh one where nobody said: what most providers ask, see `config/prices.toml`.
pub const UNKNOWN_RATIO: f64 = 0.1;
/// Half a chunk of 256 tokens: what the end of a cached prefix loses on average.
const HALF_CHUNK: f64 = 128.0;

/// The policy to take for conversations like this: the cheapest of those that are carried out, and [`Policy::Full`] where
/// no narrowing saves anything.
pub fn choose(traffic: &Traffic, able: Able) -> Policy {
    let (best, cost) = cheapest(traffic, able);
    if estimate(Policy::Full, traffic) <= cost { Policy::Full } else { best }
}

/// The cheapest way to narrow them ([`Policy::Sticky`] for `replace`).
pub fn narrowing(traffic: &Traffic, able: Able) -> Policy {
    cheapest(traffic, able).0
}

/// The policy for conversations that nobody has watched: `append` where the model takes it, for it never costs what it
/// does not save, else `replace`. Not the full roster: what searches cost only narrowed conversations tell. Not dispatch:
/// a model that is shown schemas where it is not used to them must be known to save by it.
pub fn guess(able: Able) -> Policy {
    if able.append { Policy::Append } else { Policy::Sticky }
}

fn cheapest(traffic: &Traffic, able: Able) -> (Policy, f64) {
    let careful = Traffic { expansions: traffic.expansions * CAUTION, needs: traffic.needs * CAUTION, ..*traffic };
    let cost = |policy| estimate(policy, &careful);
    let mut best = (Policy::Sticky, cost(Policy::Sticky));
    let mut take = |policy: Policy, handicap: f64| {
        let cost = cost(policy);
        if cost <= best.1 * handicap {
            best = (policy, cost);
        }
    };
    if able.append {
        take(Policy::Append, 1.0);
    }
    if able.dispatch {
        take(Policy::Dispatch, WORTH_A_DETOUR);
    }
    best
}

/// Input tokens at full price of one such conversation, extra legs included.
pub fn estimate(policy: Policy, traffic: &Traffic) -> f64 {
    let t = traffic;
    let ratio = t.ratio.clamp(0.0, 1.0);
    let expansions = t.expansions.min(t.turns * SEARCHES);
    let new = 1.0 - ratio;
    let legs = (t.turns * t.calls).max(1.0);
    let later = legs - 1.0;
    // A conversation through a cache that never loses anything: what is new is fresh, all before it is read.
    let constant = |block: f64, shared: f64| {
        let first = block - shared * t.warm * new + t.system;
        let read = ratio * (later * (block + t.system) + t.step * later * (later - 1.0).max(0.0) / 2.0);
        first + read + later * (t.step + HALF_CHUNK * new)
    };
    // Events are spread evenly: half of the requests are still to come, half of the steps were made.
    let rest = legs / 2.0;
    let messages = t.system + t.step * rest;
    let carried = |tokens: f64| tokens * (1.0 + ratio * rest);
    let exchange = SEARCH as f64 + ANSWER as f64;
    let lines = ANSWER_LINE as f64 * t.found / t.size();
    let searched = |searches: f64, each: f64| {
        let prompt = t.bound + messages + HALF_CHUNK;
        searches * (ratio * prompt + HALF_CHUNK * new + carried(exchange + each))
    };
    let narrowed = constant(t.bound, 0.0);
    let broken = new * messages;
    // A search that changes the block: the messages are billed anew. What it found is read until its turn ends, or to the
    // end of the conversation; a tool that was called stays in any case.
    let (leaving, staying) = (t.found * ratio * t.calls / 2.0 + carried(t.size()), carried(t.found));
    let changed = |searches: f64, kept: f64| searched(searches, lines) + searches * (broken + kept);
    let needed = t.needs * (broken + staying);
    match policy {
        Policy::Full => constant(t.roster, t.roster),
        Policy::EveryCall => {
            let all = legs * (t.bound + t.system) + t.step * legs * later / 2.0;
            all + expansions * (t.bound + t.found + messages)
        }
        Policy::EveryTurn => {
            let changes = (t.turns - 1.0).max(0.0);
            narrowed + changes * (new * t.bound + broken) + changed(expansions, leaving)
        }
        Policy::Sticky => {
            // Once when it is found, once when it leaves; in the last turn nothing leaves.
            let leaves = ((t.turns - 1.0) / t.turns).clamp(0.0, 1.0) * (broken + new * t.step * t.calls / 2.0);
            narrowed + changed(expansions, leaving + leaves) + needed
        }
        Policy::Growing => narrowed + changed(expansions, staying) + needed,
        Policy::FirstTurn => narrowed + changed(expansions + t.needs, staying),
        Policy::Append => {
            let declared = searched(expansions, lines + t.found) + t.needs * carried(t.found);
            constant(t.bound, t.core.min(t.bound)) + declared
        }
        Policy::Dispatch => {
            let wrapper = CALL_TOOL as f64 * (1.0 + ratio * later);
            narrowed + wrapper + searched(expansions + t.needs, t.found + WRAP as f64)
        }
    }
}

impl Traffic {
    /// What is expected of traffic that nobody has watched yet: some searches, for a policy that bears them costs little
    /// when they do not come, and the other way round it costs much.
    pub fn expected() -> Self {
        Self { turns: 4.0, calls: 6.0, expansions: 1.0, needs: 1.0, ..Self::default() }
    }

    /// Tokens of one tool, as a search finds five.
    fn size(&self) -> f64 {
        (self.found / 5.0).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Able = Able { append: true, dispatch: true };

    #[test]
    fn narrowing_is_chosen_by_what_it_costs() {
        let usual = Traffic::default();
        assert_eq!(choose(&usual, Able::default()), Policy::Sticky);
        assert_eq!(choose(&usual, Able { dispatch: true, ..Able::default() }), Policy::Sticky, "not worth a detour");
        let searching = Traffic { expansions: 2.0, ..usual };
        assert_eq!(choose(&searching, BOTH), Policy::Append);
        assert_eq!(choose(&searching, Able { dispatch: true, ..Able::default() }), Policy::Dispatch);
        let no_cache = Traffic { ratio: 1.0, expansions: 2.0, ..usual };
        assert_eq!(choose(&no_cache, Able { dispatch: true, ..Able::default() }), Policy::Sticky);
    }

    #[test]
    fn nothing_is_narrowed_where_it_would_not_pay() {
        let short = Traffic { turns: 1.0, calls: 1.0, expansions: 1.0, ratio: 1.0, ..Traffic::default() };
        assert_eq!(choose(&short, BOTH), Policy::Full);
        let warm = Traffic { turns: 1.0, calls: 1.0, warm: 1.0, ..Traffic::default() };
        assert_eq!(choose(&warm, BOTH), Policy::Full, "the roster is cached already, a selection is not");
        let small = Traffic { roster: 4_600.0, ..Traffic::default() };
        assert_eq!(choose(&small, BOTH), Policy::Full);
    }

    #[test]
    fn unwatched_traffic_is_narrowed_in_the_way_that_cannot_surprise() {
        assert_eq!(guess(BOTH), Policy::Append);
        assert_eq!(guess(Able { dispatch: true, ..Able::default() }), Policy::Sticky);
    }

    #[test]
    fn odd_numbers_choose_something() {
        for odd in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let traffic = Traffic { turns: odd, calls: odd, roster: odd, found: odd, ratio: odd, ..Traffic::default() };
            assert!(ALL.contains(&choose(&traffic, BOTH)));
        }
    }
}
