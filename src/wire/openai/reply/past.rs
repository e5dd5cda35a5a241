//! What the legs before the current one leave behind: identity, usage, and what
//! the client has seen. NOT the current leg.

use super::heard::Heard;
use super::usage::Usages;
use crate::wire::hidden::Hidden;
use crate::wire::json::Object;
use crate::wire::members::Members;
use crate::wire::reply::{Call, Leg};
use crate::wire::sum::sum;
use crate::wire::text;

#[derive(Debug, Default)]
pub(super) struct Past {
    /// Legs that are over, and were followed by another.
    pub(super) legs: usize,
    identity: [Option<String>; IDENTITY.len()],
    usage: Usages,
    /// Spelt as in JSON strings.
    pub(super) content: String,
    pub(super) reasoning: String,
    visible_text: String,
    visible_calls: Vec<Call>,
    named: usize,
}

/// What makes the frames of one reply one reply.
const IDENTITY: [&str; 3] = ["id", "created", "model"];

impl Past {
    /// The first leg's identity, from the first document that has it.
    pub(super) fn learn(&mut self, document: &Object<'_>) {
        if self.legs > 0 {
            return;
        }
        for (key, known) in IDENTITY.into_iter().zip(&mut self.identity) {
            if known.is_none() {
                let raw = document.find(key).filter(|raw| !matches!(raw.get(), "null" | "\"\"" | "0"));
                *known = raw.map(|raw| raw.get().to_owned());
            }
        }
    }

    /// Gives a document of a later leg the first one's identity.
    pub(super) fn identify(&self, document: &mut Members<'_>) {
        for (key, known) in IDENTITY.into_iter().zip(&self.identity) {
            if let Some(known) = known.as_ref().filter(|_| self.legs > 0) {
                document.replace(key, known.clone());
            }
        }
    }

    /// Adds the earlier legs' usage to what stands in a document.
    pub(super) fn add_usage(&self, document: &mut Members<'_>) {
        add(self.usage.top.as_deref(), document);
    }

    /// The same for a choice.
    pub(super) fn add_choice_usage(&self, choice: &mut Members<'_>) {
        add(self.usage.choice.as_deref(), choice);
    }

    /// The current leg is over.
    pub(super) fn end(&mut self, heard: &mut Heard, hidden: &Hidden) -> Leg {
        heard.name_searches(&mut self.named);
        self.visible_text.push_str(&text::decoded(&heard.shown_content));
        self.visible_calls.extend(heard.own_calls());
        heard.leg(hidden)
    }

    /// Another leg follows the one that ended.
    pub(super) fn pass(&mut self, heard: &Heard) {
        self.legs += 1;
        self.usage.add(&heard.usage);
        self.content.push_str(&heard.shown_content);
        self.reasoning.push_str(&heard.shown_reasoning);
    }

    pub(super) fn visible(&self) -> (&str, &[Call]) {
        (&self.visible_text, &self.visible_calls)
    }
}

fn add(earlier: Option<&str>, members: &mut Members<'_>) {
    let total = earlier.and_then(|earlier| Some(sum(earlier, members.said("usage")?)));
    if let Some(total) = total {
        members.set("usage", total);
    }
}
