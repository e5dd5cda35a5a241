//! What the legs before the current one leave behind: identity, usage, and what
//! the client has seen. NOT the current leg.

use super::heard::Heard;
use super::usage::Usages;
use crate::wire::hidden::Hidden;
use crate::wire::json::Object;
use crate::wire::members::Members;
use crate::wire::reply::{Call, Leg};

#[derive(Debug, Default)]
pub(super) struct Past {
    /// Legs that are over, and were followed by another.
    pub(super) legs: usize,
    identity: [Option<String>; IDENTITY.len()],
    pub(super) usage: Usages,
    visible_text: String,
    visible_calls: Vec<Call>,
    named: usize,
}

/// What makes the messages of several legs one message.
const IDENTITY: [&str; 2] = ["id", "model"];

impl Past {
    /// The first leg's identity.
    pub(super) fn learn(&mut self, message: &Object<'_>) {
        if self.legs == 0 {
            for (key, known) in IDENTITY.into_iter().zip(&mut self.identity) {
                *known = message.find(key).map(|raw| raw.get().to_owned());
            }
        }
    }

    /// Gives a message of a later leg the first one's identity.
    pub(super) fn identify(&self, message: &mut Members<'_>) {
        for (key, known) in IDENTITY.into_iter().zip(&self.identity) {
            if let Some(known) = known {
                message.replace(key, known.clone());
            }
        }
    }

    /// The current leg is over.
    pub(super) fn end(&mut self, heard: &mut Heard, hidden: &Hidden) -> Leg {
        let [id, _] = &self.identity;
        heard.name_searches(id.as_deref().unwrap_or("packlight").trim_matches('"'), &mut self.named);
        self.visible_text.push_str(&heard.shown_text());
        self.visible_calls.extend(heard.own_calls());
        heard.leg(hidden)
    }

    /// Another leg follows the one that ended.
    pub(super) fn pass(&mut self, heard: &Heard) {
        self.legs += 1;
        self.usage.add(&heard.usage);
    }

    pub(super) fn visible(&self) -> (&str, &[Call]) {
        (&self.visible_text, &self.visible_calls)
    }
}
