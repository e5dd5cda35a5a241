//! Transcript -> a block that never changes, where nothing can be declared later
//! either: what a search finds is described in its answer and called through
//! `call_tool` (`wire::dispatch`). NOT how a call is wrapped.

use super::fold::{Block, Cause};
use super::past::{Past, What};
use super::policy::Policy;
use super::roster::Roster;
use super::selection::Selection;
use crate::wire::dispatch::Dispatch;
use crate::wire::request::{Place, Slot};

/// The name of the tool that calls others.
pub const CALL_TOOL: &str = "call_tool";

/// The block of a conversation whose turns were answered so: the first turn's, or the last one's before which the
/// provider had forgotten the conversation. `None`: there is no turn.
pub fn block(past: &Past<'_>, policy: &Policy, selections: &[Selection]) -> Option<Block> {
    let last = selections.len().checked_sub(1)?;
    let expired = |turn: &&usize| selections.get(**turn).is_some_and(|selection| !selection.contentless);
    let from = past.expired.iter().filter(|turn| **turn > 0).rfind(expired).copied().unwrap_or(0);
    // One more place is for call_tool.
    let policy = Policy { max_tools: policy.max_tools.saturating_sub(1), ..policy.clone() };
    let mut block = Block::constant(past.roster, &policy, selections.get(from)?, &past.called(from));
    let why = if last == 0 { Cause::First } else { Cause::Expired };
    block.cause = (past.transcript.begins_turn() && from == last).then_some(why);
    // What this turn's searches have described is not found again.
    for event in past.events(last) {
        if let What::Found { reply, exchange, names, .. } = event.what {
            let tools: Vec<usize> = names.iter().flat_map(|name| past.roster.named(name)).copied().collect();
            block.declare(past.roster, Place::Restored { reply, exchange }, tools);
        }
    }
    Some(block)
}

/// `call_tool` beside this block.
pub fn call_tool(roster: &Roster, block: &[Slot]) -> Dispatch {
    let declared = block.iter().filter_map(|slot| match slot {
        Slot::Roster(tool) => Some(roster.name(*tool).to_owned()),
        Slot::FindTools => None,
    });
    Dispatch {
        name: CALL_TOOL.to_owned(),
        description: "Calls a tool that find_tools has described: by its name, with its arguments. Tools that are \
                      listed here are called directly."
            .to_owned(),
        declared: declared.chain(roster.placed().into_iter().map(|tool| roster.name(tool).to_owned())).collect(),
        known: roster.names().map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::turn::policy::{test_best as best, test_policy, test_roster};
    use crate::turn::transcript::Transcript;
    use crate::turn::transcript::tests::{answering, calling, said, view};
    use crate::wire::view::Role;

    #[test]
    fn the_block_is_the_first_turns_until_the_provider_forgets_it() {
        let policy = test_policy();
        let roster = test_roster(&policy);
        let selections = [best(&[1, 2, 3]), best(&[7, 8, 9])];
        let messages =
            || vec![said(Role::User, &["a"]), calling(&[("1", "t5")]), answering(&["1"]), said(Role::User, &["b"])];
        let transcript = Transcript::of(&view(messages()), &[]);
        let blocked = |expired: &[usize]| {
            let expired: BTreeSet<usize> = expired.iter().copied().collect();
            let past = Past { roster: &roster, transcript: &transcript, restored: &[], expired: &expired };
            block(&past, &policy, &selections).expect("a turn")
        };
        let kept = blocked(&[]);
        assert_eq!((kept.tools().collect::<Vec<_>>(), kept.cause), (vec![0, 1, 2, 3], None));
        let anew = blocked(&[1]);
        assert_eq!((anew.tools().collect::<Vec<_>>(), anew.cause), (vec![0, 5, 7, 8, 9], Some(Cause::Expired)));
        let dispatch = call_tool(&roster, &kept.slots());
        assert!(dispatch.wraps("t5") && !dispatch.wraps("t1") && !dispatch.wraps("t99"));
    }
}
