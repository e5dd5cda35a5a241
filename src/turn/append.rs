//! Transcript -> a block that never changes, and what is declared in the
//! conversation instead (Kimi K3 takes tools in system messages without content).
//! Nothing in front of the conversation moves, and every earlier declaration
//! stands again where it stood, so the provider's prompt cache holds: an addition
//! costs its own tokens and no more. NOT how it is written (wire).

use super::fold::{Block, Cause};
use super::past::{Event, Past, What};
use super::policy::{Policy, Stability};
use super::selection::Selection;
use crate::wire::request::Place;

/// The block and the declarations of a conversation whose turns were answered so. `None`: there is no turn.
///
/// What was declared stays declared. Only where the provider has forgotten the conversation anyway, or would take no
/// more tools, are the turns before that left with what they called.
pub fn block(past: &Past<'_>, policy: &Policy, selections: &[Selection]) -> Option<Block> {
    let last = selections.len().checked_sub(1)?;
    let expired = |turn: &&usize| selections.get(**turn).is_some_and(|selection| !selection.contentless);
    let mut from = past.expired.iter().filter(|turn| **turn > 0).rfind(expired).copied().unwrap_or(0);
    let mut why = Cause::Expired;
    let (mut block, news) = loop {
        match walk(past, policy, selections, from) {
            Ok(walked) => break walked,
            Err(turn) => (from, why) = (turn, Cause::Full),
        }
    };
    block.cause = match news {
        _ if !past.transcript.begins_turn() => news.called.then_some(Cause::Discovery),
        _ if last == 0 => Some(Cause::First),
        _ if from == last => Some(why),
        News { declared: true, .. } => {
            let eyes = |before: &Selection| Cause::other_eyes(before, selections.get(last)?);
            Some(selections.get(last - 1).and_then(eyes).unwrap_or(Cause::Needed))
        }
        News { called, .. } => called.then_some(Cause::Discovery),
    };
    Some(block)
}

/// What is new since the request before.
#[derive(Debug, Default, Clone, Copy)]
struct News {
    /// The last turn's selection declared something.
    declared: bool,
    /// The last reply called something that had not been declared.
    called: bool,
}

/// Walks the conversation; selections count from the turn `from` on. `Err`: at this later turn the provider's cap is
/// reached.
fn walk(past: &Past<'_>, policy: &Policy, selections: &[Selection], from: usize) -> Result<(Block, News), usize> {
    let mut block = Block::core(past.roster, policy);
    let mut news = News::default();
    for (turn, selection) in selections.iter().enumerate() {
        let begun = past.transcript.turns.get(turn).map_or(0, |turn| turn.message);
        let events = past.events(turn);
        let (before, since): (Vec<Event<'_>>, Vec<Event<'_>>) =
            events.into_iter().partition(|event| event.message < begun);
        for event in before {
            news.called |= mention(&mut block, past, &event);
        }
        if turn >= from && !(selection.contentless && turn > 0) {
            let needed = needed(&block, policy, selection, turn > from);
            // One place is for find_tools.
            let room = policy.max_tools.saturating_sub(block.count() + 1);
            if needed.len() > room && turn > from {
                return Err(turn);
            }
            let fits = block.within(past.roster, needed, room);
            news.declared = !block.declare(past.roster, Place::Behind(begun), fits).is_empty();
        } else {
            news.declared = false;
        }
        for event in since {
            match event.what {
                What::Found { reply, exchange, mixed, names } if turn >= from => {
                    let place = found_at(past, reply, exchange, mixed);
                    let tools: Vec<usize> = names.iter().flat_map(|name| past.roster.named(name)).copied().collect();
                    block.declare(past.roster, place, tools);
                }
                What::Found { .. } => {}
                What::Called(_) => news.called |= mention(&mut block, past, &event),
            }
        }
    }
    Ok((block, news))
}

/// What a turn's selection adds. `kept`: a block that has the best of it stays.
fn needed(block: &Block, policy: &Policy, selection: &Selection, kept: bool) -> Vec<usize> {
    let need = policy.sticky_need.max(selection.named);
    let served = selection.best.iter().take(need).all(|tool| block.contains(*tool));
    if kept && served && policy.stability == Stability::Sticky {
        return Vec::new();
    }
    selection.best.iter().copied().filter(|tool| !block.contains(*tool)).collect()
}

/// A tool that is called and nowhere declared is declared in front of the reply that calls it. Is that reply the last?
fn mention(block: &mut Block, past: &Past<'_>, event: &Event<'_>) -> bool {
    let What::Called(name) = event.what else { return false };
    let at = past.transcript.reply_of(event.message).map_or(event.message, |reply| reply.run.start);
    let tools = past.roster.named(name).iter().copied();
    !block.declare(past.roster, Place::Before(at), tools).is_empty() && past.is_news(event)
}

/// Behind the answers of the search; where real calls stood beside it, behind the answers to these: nothing may stand
/// between a call and its answer.
fn found_at(past: &Past<'_>, reply: usize, exchange: usize, mixed: bool) -> Place {
    let run = past.restored.get(reply).map(|restored| restored.run.start).filter(|_| mixed);
    match run.and_then(|start| past.transcript.reply_of(start)) {
        Some(reply) => Place::Behind(reply.answered),
        None => Place::Restored { reply, exchange },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::turn::policy::{test_best as best, test_policy, test_roster};
    use crate::turn::transcript::Transcript;
    use crate::turn::transcript::tests::{answering, calling, said, view};
    use crate::wire::request::{Declaration, Exchange, Restored};
    use crate::wire::view::{MessageView, Role};

    fn blocked(
        policy: &Policy,
        messages: Vec<MessageView<'_>>,
        restored: &[Restored],
        expired: &[usize],
        selections: &[Selection],
    ) -> (Vec<(Place, Vec<usize>)>, Option<Cause>) {
        let roster = test_roster(policy);
        let transcript = Transcript::of(&view(messages), &[]);
        let expired: BTreeSet<usize> = expired.iter().copied().collect();
        let past = Past { roster: &roster, transcript: &transcript, restored, expired: &expired };
        let block = block(&past, policy, selections).expect("a turn");
        assert_eq!(block.slots(), Block::core(&roster, policy).slots(), "the block itself never changes");
        let mut names = BTreeSet::new();
        assert!(block.tools().all(|tool| names.insert(tool)), "names are unique over the whole request");
        (block.declared().iter().map(|Declaration { place, tools }| (*place, tools.clone())).collect(), block.cause)
    }

    fn user(text: &str) -> MessageView<'_> {
        said(Role::User, std::slice::from_ref(Box::leak(Box::new(text))))
    }

    #[test]
    fn each_turn_declares_what_is_new_behind_its_message() {
        let policy = test_policy();
        let one = || vec![user("a")];
        let selections = [best(&[1, 2, 3]), best(&[7, 1, 5]), best(&[5, 7, 9])];
        let (first, cause) = blocked(&policy, one(), &[], &[], &selections[..1]);
        assert_eq!((&first[..], cause), (&[(Place::Behind(0), vec![1, 2, 3])][..], Some(Cause::First)));
        let two = || one().into_iter().chain([said(Role::Assistant, &["x"]), user("b")]).collect::<Vec<_>>();
        let (second, cause) = blocked(&policy, two(), &[], &[], &selections[..2]);
        assert_eq!((&second[..1], cause), (&first[..], Some(Cause::Needed)), "what stood there stands there");
        assert_eq!(second[1..], [(Place::Behind(2), vec![7, 5])]);
        let three = two().into_iter().chain([said(Role::Assistant, &["x"]), user("c")]).collect();
        assert_eq!(blocked(&policy, three, &[], &[], &selections), (second, None), "its best are there: kept");
    }

    #[test]
    fn what_was_called_and_never_declared_is_declared_before_its_mention() {
        let policy = test_policy();
        let messages = vec![user("a"), calling(&[("1", "t1"), ("2", "t8")]), answering(&["1"]), answering(&["2"])];
        let (declared, cause) = blocked(&policy, messages, &[], &[], &[best(&[1, 2, 3])]);
        assert_eq!(declared, [(Place::Behind(0), vec![1, 2, 3]), (Place::Before(1), vec![8])]);
        assert_eq!(cause, Some(Cause::Discovery));
    }

    #[test]
    fn finds_are_declared_behind_their_search_and_never_between_a_call_and_its_answer() {
        let policy = test_policy();
        let exchange = |mixed| Exchange {
            said: "{}".into(),
            answers: Vec::new(),
            text: String::new(),
            reasoning: String::new(),
            mixed,
            found: vec!["t8".into(), "t9".into()],
        };
        let messages = || vec![user("a"), calling(&[("1", "t8")]), answering(&["1"]), user("b")];
        let selections = [best(&[1, 2, 3]), best(&[8, 1, 9])];
        for (mixed, place) in [(false, Place::Restored { reply: 0, exchange: 0 }), (true, Place::Behind(2))] {
            let restored = [Restored { run: 1..2, exchanges: vec![exchange(mixed)] }];
            let (declared, cause) = blocked(&policy, messages(), &restored, &[], &selections);
            let before = if mixed { Place::Before(1) } else { place };
            let expected = if mixed { vec![(before, vec![8]), (place, vec![9])] } else { vec![(place, vec![8, 9])] };
            let mut sorted = declared[1..].to_vec();
            sorted.sort_by_key(|(place, _)| matches!(place, Place::Behind(_)));
            assert_eq!(sorted, expected, "{mixed}");
            assert_eq!(cause, mixed.then_some(Cause::Discovery), "a call of what was not declared");
        }
    }

    #[test]
    fn a_forgotten_conversation_begins_again_with_what_it_called() {
        let policy = test_policy();
        let messages =
            vec![user("a"), calling(&[("1", "t2")]), answering(&["1"]), said(Role::Assistant, &["x"]), user("b")];
        let selections = [best(&[1, 2, 3]), best(&[7, 1, 5])];
        let (declared, cause) = blocked(&policy, messages, &[], &[1], &selections);
        assert_eq!(declared, [(Place::Before(1), vec![2]), (Place::Behind(4), vec![7, 1, 5])]);
        assert_eq!(cause, Some(Cause::Expired));
    }

    #[test]
    fn the_cap_of_the_provider_begins_again_too() {
        let policy = Policy { max_tools: 6, ..test_policy() };
        let messages = vec![user("a"), said(Role::Assistant, &["x"]), user("b")];
        let (declared, cause) = blocked(&policy, messages, &[], &[], &[best(&[1, 2, 3]), best(&[7, 1, 5])]);
        assert_eq!(declared, [(Place::Behind(2), vec![7, 1, 5])]);
        assert_eq!(cause, Some(Cause::Full));
    }
}
