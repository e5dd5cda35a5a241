//! Transcript -> block: a fold over the turns. The block is a pure function of the
//! transcript (plus roster, policy and this request's own wishes, whose additions
//! stand last), so replicas agree without talking; within a turn it only grows, at
//! its end. NOT where selections come from, NOT declarations in messages (`append`).

use std::collections::HashSet;

pub use super::cause::Cause;
use super::past::{Past, What};
use super::policy::{Binding, Policy, Stability};
use super::roster::Roster;
use super::selection::Selection;
use crate::wire::request::{Declaration, Place, Slot};

/// A block as it grows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// In front of `find_tools`.
    first: Vec<usize>,
    /// Behind it.
    added: Vec<Added>,
    /// In messages of the agent's.
    placed: Vec<usize>,
    /// Where `added` stands when that is in the conversation and not in the block.
    declared: Option<Vec<Declaration>>,
    /// Why it is not what the request before had; `None`: it is.
    pub cause: Option<Cause>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Added {
    tool: usize,
    /// Found and not called yet: gone with the turn.
    passing: bool,
}

/// The block of a conversation whose turns were answered so. `None`: there is no turn.
pub fn block(past: &Past<'_>, policy: &Policy, selections: &[Selection]) -> Option<Block> {
    let roster = past.roster;
    let mut block: Option<Block> = None;
    for (turn, selection) in selections.iter().enumerate() {
        block = Some(match block {
            None => Block::begin(roster, policy, selection),
            Some(mut before) => {
                before.happened(past, turn - 1);
                let called = past.called(turn);
                let mut next = if past.expired.contains(&turn) && !selection.contentless {
                    before.renewed(roster, policy, selection, &called, Cause::Expired)
                } else {
                    before.turn(roster, policy, selection, &called)
                };
                let before = turn.checked_sub(1).and_then(|before| selections.get(before));
                if matches!(next.cause, Some(Cause::Needed | Cause::Full)) {
                    next.cause = before.and_then(|before| Cause::other_eyes(before, selection)).or(next.cause);
                }
                next
            }
        });
    }
    let mut block = block?;
    let moved = block.happened(past, selections.len() - 1);
    if !past.transcript.begins_turn() {
        block.cause = moved.then_some(Cause::Discovery);
    }
    Some(block)
}

impl Block {
    /// The core as a block that never changes: what is added to it stands in the conversation.
    pub fn core(roster: &Roster, policy: &Policy) -> Self {
        Self::constant(roster, policy, &Selection::default(), &[])
    }

    /// The same with a selection and what was called.
    pub fn constant(roster: &Roster, policy: &Policy, selection: &Selection, called: &[usize]) -> Self {
        let block = Self::anew(roster, policy, selection, called, Cause::First);
        Self { declared: Some(Vec::new()), cause: None, ..block }
    }

    /// The first block of a conversation.
    pub fn begin(roster: &Roster, policy: &Policy, selection: &Selection) -> Self {
        Self::anew(roster, policy, selection, &[], Cause::First)
    }

    /// The next turn's block. `called`: every tool called in the transcript so far, in order.
    pub fn turn(&self, roster: &Roster, policy: &Policy, selection: &Selection, called: &[usize]) -> Self {
        if policy.stability == Stability::Turn && !selection.contentless {
            return self.renewed(roster, policy, selection, called, Cause::Needed);
        }
        let mut block = self.clone();
        block.added.retain(|added| !added.passing);
        // Calls are appended in the order they were made: with or without the memory of a search the block is the same.
        for &tool in called {
            block.append(roster, tool, false);
        }
        let moved = !block.tools().eq(self.tools());
        block.cause = moved.then_some(Cause::Discovery);
        if selection.contentless {
            return block;
        }
        let need = policy.sticky_need.max(selection.named);
        if selection.best.iter().take(need).all(|tool| block.contains(*tool)) {
            return block;
        }
        for &tool in &selection.best {
            block.append(roster, tool, false);
        }
        if block.beyond_core(roster) > policy.max_bound_tools || block.count() + 1 > policy.max_tools {
            return Self::anew(roster, policy, selection, called, Cause::Full);
        }
        block.cause = Some(Cause::Needed);
        block
    }

    /// Adds to the current turn's end what was called, found or wished for; `false`: it was bound already. It is gone
    /// with the turn unless it was called: the next turn sorts calls in by their order.
    pub fn add(&mut self, roster: &Roster, tool: usize) -> bool {
        self.append(roster, tool, true)
    }

    /// Adds a tool that must be declared in the block, whatever that costs.
    pub fn insist(&mut self, roster: &Roster, tool: usize) {
        if self.declared.is_some() && !self.first.contains(&tool) && !self.placed.contains(&tool) {
            self.added.retain(|added| added.tool != tool);
            self.first.push(tool);
        } else {
            self.add(roster, tool);
        }
    }

    /// Adds what is not bound yet; where additions are declared in the conversation they stand at `place`, apart from
    /// what stands there already. Returns what is new.
    pub fn declare(&mut self, roster: &Roster, place: Place, tools: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let before = self.added.len();
        for tool in tools {
            self.append(roster, tool, true);
        }
        let new: Vec<usize> = self.added.iter().skip(before).map(|added| added.tool).collect();
        if let Some(declared) = self.declared.as_mut().filter(|_| !new.is_empty()) {
            declared.push(Declaration { place, tools: new.clone() });
        }
        new
    }

    /// The first of these tools, as many as fit with all of their names where `room` more may be declared.
    pub fn within(&self, roster: &Roster, tools: impl IntoIterator<Item = usize>, mut room: usize) -> Vec<usize> {
        let mut taken = HashSet::new();
        let fits = |tool: &usize| {
            let twins =
                roster.twins(*tool).iter().copied().filter(|twin| !self.contains(*twin) && !taken.contains(twin));
            let twins: Vec<usize> = twins.collect();
            let fits = twins.len() <= room;
            room = room.saturating_sub(twins.len());
            taken.extend(twins);
            fits
        };
        tools.into_iter().take_while(fits).collect()
    }

    /// What is declared in the conversation, in order.
    pub fn declared(&self) -> &[Declaration] {
        self.declared.as_deref().unwrap_or_default()
    }

    /// Is this tool bound?
    pub fn contains(&self, tool: usize) -> bool {
        self.first.contains(&tool) || self.placed.contains(&tool) || self.added.iter().any(|added| added.tool == tool)
    }

    /// Every bound tool in order.
    pub fn tools(&self) -> impl Iterator<Item = usize> + '_ {
        let (first, placed) = (self.first.iter().copied(), self.placed.iter().copied());
        first.chain(self.added.iter().map(|added| added.tool)).chain(placed)
    }

    /// How many tools are bound, `find_tools` not counted.
    pub fn count(&self) -> usize {
        self.first.len() + self.added.len() + self.placed.len()
    }

    /// How many tools a request with this block declares, wherever and on whichever leg, ours included.
    pub fn declarations(&self, binding: Binding) -> usize {
        match binding {
            // Also what is declared in the conversation.
            Binding::Replace | Binding::Append => self.count() + 1,
            // `find_tools` and `call_tool` beside the block; on a leg without the one, what was found beside the other.
            Binding::Dispatch => (self.first.len() + self.placed.len() + 2).max(self.count() + 1),
        }
    }

    /// The block as it is written; `find_tools` stands behind the first part so that its place never moves. Its slot is
    /// there also where it is not declared: it tells what was added from what was there.
    pub fn slots(&self) -> Vec<Slot> {
        let added = self.added.iter().filter(|_| self.declared.is_none());
        let added = added.map(|added| Slot::Roster(added.tool));
        self.first.iter().map(|tool| Slot::Roster(*tool)).chain([Slot::FindTools]).chain(added).collect()
    }

    /// The same with nothing declared in the conversation.
    pub fn gathered(&self) -> Vec<Slot> {
        Self { declared: None, ..self.clone() }.slots()
    }

    /// Adds a turn's finds and calls, in order. Did the last reply's calls bring something new?
    fn happened(&mut self, past: &Past<'_>, turn: usize) -> bool {
        let mut news = false;
        for event in past.events(turn) {
            match event.what {
                What::Found { names, .. } => {
                    for &tool in names.iter().flat_map(|name| past.roster.named(name)) {
                        self.add(past.roster, tool);
                    }
                }
                What::Called(name) => {
                    for &tool in past.roster.named(name) {
                        news |= self.add(past.roster, tool) && past.is_news(&event);
                    }
                }
            }
        }
        news
    }

    /// Chosen anew, for this reason if it comes out another one.
    fn renewed(&self, roster: &Roster, policy: &Policy, selection: &Selection, called: &[usize], cause: Cause) -> Self {
        let mut block = Self::anew(roster, policy, selection, called, cause);
        block.cause = block.cause.filter(|_| block.first != self.first || !block.tools().eq(self.tools()));
        block
    }

    /// Core, the selection, and all that was called; the cap of the provider takes from the selection's end.
    fn anew(roster: &Roster, policy: &Policy, selection: &Selection, called: &[usize], cause: Cause) -> Self {
        let mut set: HashSet<usize> = HashSet::new();
        for &tool in called {
            set.extend(roster.twins(tool));
        }
        let always = (0..roster.len()).filter(|tool| roster.always(*tool) && !set.contains(tool)).count();
        let mut room = policy.max_tools.saturating_sub(1 + always + set.len());
        for &tool in &selection.best {
            let new = roster.twins(tool).iter().filter(|twin| !set.contains(twin)).count();
            if new > room {
                break;
            }
            room -= new;
            set.extend(roster.twins(tool));
        }
        Self {
            first: roster.arranged(&set, policy.order),
            added: Vec::new(),
            placed: roster.placed(),
            declared: None,
            cause: Some(cause),
        }
    }

    /// Appends a tool with its twins.
    fn append(&mut self, roster: &Roster, tool: usize, passing: bool) -> bool {
        if self.contains(tool) {
            return false;
        }
        let twins: Vec<usize> = roster.twins(tool).iter().copied().filter(|twin| !self.contains(*twin)).collect();
        self.added.extend(twins.into_iter().map(|tool| Added { tool, passing }));
        true
    }

    fn beyond_core(&self, roster: &Roster) -> usize {
        self.tools().filter(|tool| !roster.always(*tool)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::policy::{test_best as best, test_policy, test_roster};

    fn bound(block: &Block) -> Vec<usize> {
        block.tools().collect()
    }

    #[test]
    fn a_turn_that_needs_nothing_new_keeps_the_block() {
        let policy = test_policy();
        let roster = test_roster(&policy);
        let block = Block::begin(&roster, &policy, &best(&[3, 1, 2]));
        assert_eq!(bound(&block), [0, 1, 2, 3]);
        assert_eq!(block.slots().last(), Some(&Slot::FindTools));
        let next = block.turn(&roster, &policy, &best(&[1, 2, 7]), &[]);
        assert_eq!(next.slots(), block.slots());
        assert_eq!(next.cause, None);
    }

    #[test]
    fn what_a_turn_misses_goes_to_the_end_behind_find_tools_until_the_block_is_full() {
        let policy = test_policy();
        let roster = test_roster(&policy);
        let block = Block::begin(&roster, &policy, &best(&[1, 2, 3]));
        let next = block.turn(&roster, &policy, &best(&[7, 1, 5]), &[]);
        assert_eq!(next.slots()[4..], [Slot::FindTools, Slot::Roster(7), Slot::Roster(5)]);
        assert_eq!(next.cause, Some(Cause::Needed));
        let full = next.turn(&roster, &policy, &best(&[9, 10, 11]), &[2]);
        assert_eq!(full.cause, Some(Cause::Full));
        assert_eq!(bound(&full), [0, 2, 9, 10, 11], "core, called and the selection");
    }

    #[test]
    fn a_tool_that_the_message_names_is_bound_beyond_the_need() {
        let policy = test_policy();
        let roster = test_roster(&policy);
        let block = Block::begin(&roster, &policy, &best(&[1, 2, 3]));
        let named = Selection { best: vec![1, 2, 9, 3], named: 3, ..Selection::default() };
        assert_eq!(bound(&block.turn(&roster, &policy, &named, &[])), [0, 1, 2, 3, 9]);
    }

    #[test]
    fn finds_last_one_turn_unless_called() {
        let policy = test_policy();
        let roster = test_roster(&policy);
        let mut block = Block::begin(&roster, &policy, &best(&[1, 2, 3]));
        assert!(block.add(&roster, 8) && block.add(&roster, 9) && !block.add(&roster, 1));
        assert!(!block.add(&roster, 9), "its call changes nothing within the turn");
        assert_eq!(bound(&block), [0, 1, 2, 3, 8, 9]);
        let next = block.turn(&roster, &policy, &best(&[1, 2, 3]), &[9]);
        assert_eq!(bound(&next), [0, 1, 2, 3, 9]);
        assert_eq!(next.cause, Some(Cause::Discovery));
    }

    #[test]
    fn a_turn_does_not_depend_on_the_memory_of_a_search() {
        let policy = test_policy();
        let roster = test_roster(&policy);
        let begun = Block::begin(&roster, &policy, &best(&[1, 2, 3]));
        let (mut with, mut without) = (begun.clone(), begun);
        for tool in [7, 8, 9] {
            with.add(&roster, tool);
        }
        for tool in [9, 7] {
            with.add(&roster, tool);
            without.add(&roster, tool);
        }
        let next = best(&[1, 2, 3]);
        assert_eq!(
            bound(&with.turn(&roster, &policy, &next, &[9, 7])),
            bound(&without.turn(&roster, &policy, &next, &[9, 7]))
        );
    }

    #[test]
    fn a_message_without_content_never_grows_the_block() {
        let policy = Policy { stability: Stability::Turn, ..test_policy() };
        let roster = test_roster(&policy);
        let block = Block::begin(&roster, &policy, &best(&[1, 2, 3]));
        let yes = Selection { best: vec![7, 8, 9], contentless: true, ..Selection::default() };
        assert_eq!(bound(&block.turn(&roster, &policy, &yes, &[])), bound(&block));
        assert_eq!(bound(&block.turn(&roster, &policy, &best(&[7, 8, 9]), &[])), [0, 7, 8, 9]);
    }

    #[test]
    fn the_cap_of_the_provider_takes_from_the_selections_end() {
        let policy = Policy { max_tools: 4, ..test_policy() };
        let roster = test_roster(&policy);
        let block = Block::begin(&roster, &policy, &best(&[5, 6, 7]));
        assert_eq!(bound(&block), [0, 5, 6], "with find_tools that is four");
    }
}
