//! The conversation as turns: what the user wrote, what the model called since.
//! NOT wire shapes, NOT what follows from it.

use std::collections::HashSet;

use crate::retrieval::question::Utterance;
use crate::wire::view::{AnswerView, ChatView, MessageView, Role};

/// A conversation as turns.
#[derive(Debug, Default, PartialEq)]
pub struct Transcript {
    /// Oldest first.
    pub turns: Vec<Turn>,
    /// The model's replies, oldest first.
    pub replies: Vec<Reply>,
    /// The last message of the user's that was no answer to a call carried no text (an image, blanks).
    pub silent: bool,
    /// Calls of the last reply that nobody has answered.
    pub unanswered: bool,
}

/// A run of the model's messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Indices of its messages.
    pub run: std::ops::Range<usize>,
    /// Index of the last message behind it that answers its calls; of its own last one if there is none.
    pub answered: usize,
}

/// From one user-authored message to the next.
#[derive(Debug, PartialEq)]
pub struct Turn {
    pub utterance: Utterance,
    /// Index of the user's message.
    pub message: usize,
    /// Tools that the model called in this turn (in the first, also before it), with the message of the call, in order.
    pub called: Vec<(usize, String)>,
}

impl Transcript {
    /// Reads a request's messages. `ignore`: elements that agents wrap around a message.
    pub fn of(view: &ChatView<'_>, ignore: &[String]) -> Self {
        let mut turns: Vec<Turn> = Vec::new();
        let mut reply_before = String::new();
        let mut silent = false;
        // Calls in front of the first words (they stand behind an image, or in a history that was cut): the first turn's.
        let mut before = Vec::new();
        for (index, message) in view.messages.iter().enumerate() {
            match message.role {
                Role::User => {
                    let written = message.texts.iter().any(|text| !text.trim().is_empty());
                    let text = authored(message, ignore);
                    if text.is_empty() {
                        // a message that is nothing but a wrapper is the agent's, not the user's
                        silent = if written { silent } else { message.answers.is_empty() };
                    } else {
                        silent = false;
                        let utterance = Utterance { text, reply_before: std::mem::take(&mut reply_before) };
                        turns.push(Turn { utterance, message: index, called: std::mem::take(&mut before) });
                    }
                }
                Role::Assistant => {
                    let text = message.texts.concat();
                    if !text.trim().is_empty() {
                        reply_before = text;
                    }
                    let called = turns.last_mut().map_or(&mut before, |turn| &mut turn.called);
                    called.extend(message.calls.iter().map(|call| (index, call.name.to_string())));
                }
                Role::System | Role::Tool => {}
            }
        }
        Self { turns, replies: replies(&view.messages), silent, unanswered: unanswered(&view.messages) }
    }

    /// The reply that this message is part of.
    pub fn reply_of(&self, message: usize) -> Option<&Reply> {
        self.replies.iter().rfind(|reply| reply.run.contains(&message))
    }

    /// Number of this request in its turn, from 1.
    pub fn call(&self) -> usize {
        let begun = self.turns.last().map_or(0, |turn| turn.message);
        1 + self.replies.iter().filter(|reply| reply.run.start > begun).count()
    }

    /// Is this the first request of its turn: has the model not replied to the user's last message yet?
    pub fn begins_turn(&self) -> bool {
        let begun = self.turns.last().map_or(0, |turn| turn.message);
        self.replies.last().is_none_or(|reply| reply.run.start < begun)
    }

    /// What the user wrote, oldest first.
    pub fn dialogue(&self) -> Vec<Utterance> {
        self.turns.iter().map(|turn| turn.utterance.clone()).collect()
    }
}

fn replies(messages: &[MessageView<'_>]) -> Vec<Reply> {
    let mut replies: Vec<Reply> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        match (message.role, replies.last_mut()) {
            (Role::Assistant, Some(reply)) if reply.run.end == index => {
                *reply = Reply { run: reply.run.start..index + 1, answered: index }
            }
            (Role::Assistant, _) => replies.push(Reply { run: index..index + 1, answered: index }),
            (Role::Tool, Some(reply)) if reply.answered + 1 == index => reply.answered = index,
            _ => {}
        }
    }
    replies
}

/// Tools of the last reply whose answers stand behind it and do not say that the call failed, in order of the calls.
pub fn succeeded(messages: &[MessageView<'_>]) -> Vec<String> {
    let Some(last) = messages.iter().rposition(|message| message.role == Role::Assistant) else { return Vec::new() };
    let Some(reply) = messages.get(last) else { return Vec::new() };
    let answers: Vec<&AnswerView<'_>> = messages.iter().skip(last + 1).flat_map(|message| &message.answers).collect();
    let answer = |place: usize, id: &str| match id {
        "" => answers.get(place).copied(),
        id => answers.iter().copied().find(|answer| answer.id == id),
    };
    let calls = reply.calls.iter().enumerate();
    calls
        .filter(|(place, call)| answer(*place, &call.id).is_some_and(|answer| !answer.failed))
        .map(|(_, call)| call.name.to_string())
        .collect()
}

/// The user's own words in a message.
fn authored(message: &MessageView<'_>, ignore: &[String]) -> String {
    let texts: Vec<String> =
        message.texts.iter().map(|text| unwrapped(text, ignore)).filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

/// `text` without the named elements. Untouched when there are none; an element that is not closed stays.
fn unwrapped(text: &str, ignore: &[String]) -> String {
    let mut out = text.to_owned();
    for name in ignore {
        let (open, close) = (format!("<{name}"), format!("</{name}>"));
        let (mut kept, mut rest, mut from) = (String::new(), out.as_str(), 0);
        while let Some(start) = rest.get(from..).and_then(|ahead| ahead.find(&open)).map(|at| from + at) {
            let behind = rest.get(start + open.len()..).and_then(|ahead| ahead.chars().next());
            if !behind.is_some_and(|c| c == '>' || c.is_whitespace()) {
                from = start + open.len();
                continue;
            }
            // Nothing is closed any more: looking on from each of thousands of elements would take minutes.
            let Some(end) = rest.get(start..).and_then(|ahead| ahead.find(&close)) else { break };
            kept.push_str(rest.get(..start).unwrap_or_default());
            rest = rest.get(start + end + close.len()..).unwrap_or_default();
            from = 0;
        }
        kept.push_str(rest);
        out = kept;
    }
    out.trim().to_owned()
}

/// Are there calls in the last reply that nobody has answered? Ids are turn-scoped on some providers and absent on
/// others, so only the run of messages behind the calls counts, by id where there are ids and by number else.
fn unanswered(messages: &[MessageView<'_>]) -> bool {
    let Some(last) = messages.iter().rposition(|message| message.role == Role::Assistant) else { return false };
    let first = messages.iter().take(last).rposition(|message| message.role != Role::Assistant).map_or(0, |at| at + 1);
    let run = messages.get(first..=last).unwrap_or_default();
    let calls: Vec<&str> = run.iter().flat_map(|message| &message.calls).map(|call| call.id.as_ref()).collect();
    let answers: Vec<&str> =
        messages.iter().skip(last + 1).flat_map(|message| &message.answers).map(|answer| answer.id.as_ref()).collect();
    let known: HashSet<&str> = answers.iter().copied().collect();
    answers.len() < calls.len() || calls.iter().any(|id| !id.is_empty() && !known.contains(id) && !known.contains(""))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::wire::view::{CallView, Choice, Layout, Traits};
    use std::borrow::Cow;

    pub(crate) fn view<'a>(messages: Vec<MessageView<'a>>) -> ChatView<'a> {
        ChatView {
            model: Cow::Borrowed("m"),
            stream: false,
            tools: Vec::new(),
            system: Vec::new(),
            messages,
            choice: Choice::Auto,
            traits: Traits::default(),
            layout: Layout::default(),
        }
    }

    pub(crate) fn said<'a>(role: Role, texts: &[&'a str]) -> MessageView<'a> {
        MessageView {
            role,
            texts: texts.iter().map(|text| Cow::Borrowed(*text)).collect(),
            calls: Vec::new(),
            answers: Vec::new(),
            span: 0..0,
        }
    }

    pub(crate) fn calling<'a>(calls: &[(&'a str, &'a str)]) -> MessageView<'a> {
        let mut message = said(Role::Assistant, &[]);
        message.calls = calls
            .iter()
            .map(|(id, name)| CallView { id: (*id).into(), name: (*name).into(), arguments: "{}".into() })
            .collect();
        message
    }

    pub(crate) fn answering<'a>(ids: &[&'a str]) -> MessageView<'a> {
        let mut message = said(Role::Tool, &[]);
        message.answers =
            ids.iter().map(|id| AnswerView { id: (*id).into(), name: "".into(), failed: false }).collect();
        message
    }

    fn read(messages: Vec<MessageView<'_>>) -> Transcript {
        Transcript::of(&view(messages), &["system-reminder".to_owned()])
    }

    #[test]
    fn a_wrapper_is_not_what_the_user_wrote() {
        let transcript = read(vec![
            said(Role::User, &["<system-reminder>tools</system-reminder>\n find it ", "<system-reminders>x"]),
            said(Role::Assistant, &["ok"]),
            said(Role::User, &["<system-reminder a=1>only this</system-reminder>"]),
        ]);
        assert_eq!(transcript.turns.len(), 1);
        assert_eq!(transcript.turns[0].utterance.text, "find it\n<system-reminders>x");
        assert!(!transcript.silent);
    }

    #[test]
    fn an_image_only_message_is_silent_until_the_next_text() {
        assert!(read(vec![said(Role::User, &["hi"]), said(Role::User, &[])]).silent);
        assert!(read(vec![said(Role::User, &["  "])]).silent);
        assert!(!read(vec![said(Role::User, &[]), said(Role::User, &["hi"])]).silent);
    }

    #[test]
    fn a_turn_knows_what_was_called_and_what_was_said_before() {
        let transcript = read(vec![
            said(Role::User, &["a"]),
            calling(&[("x:0", "read")]),
            answering(&["x:0"]),
            said(Role::Assistant, &["done. More?"]),
            said(Role::User, &["b"]),
        ]);
        assert_eq!(transcript.turns[0].called, [(1, "read".to_owned())]);
        assert_eq!(transcript.turns[1].utterance.reply_before, "done. More?");
        assert!(!transcript.unanswered);
        let reply = |run, answered| Reply { run, answered };
        assert_eq!(transcript.replies, [reply(1..2, 2), reply(3..4, 3)]);
        assert!(transcript.begins_turn());
    }

    #[test]
    fn a_call_that_was_answered_without_an_error_succeeded() {
        let mut messages =
            vec![said(Role::User, &["a"]), calling(&[("1", "f"), ("2", "g"), ("3", "h")]), answering(&["2", "1"])];
        assert_eq!(succeeded(&messages), ["f", "g"]);
        messages[2].answers[0].failed = true;
        assert_eq!(succeeded(&messages), ["f"]);
        assert_eq!(succeeded(&[calling(&[("", "f"), ("", "g")]), answering(&[""])]), ["f"]);
        assert!(succeeded(&[said(Role::User, &["a"])]).is_empty());
    }

    #[test]
    fn calls_nobody_answered_are_seen() {
        assert!(read(vec![said(Role::User, &["a"]), calling(&[("1", "f"), ("2", "g")]), answering(&["1"])]).unanswered);
        assert!(read(vec![said(Role::User, &["a"]), calling(&[("", "f")])]).unanswered);
        assert!(!read(vec![said(Role::User, &["a"]), calling(&[("", "f")]), answering(&[""])]).unanswered);
    }
}
