//! An object of a reply that must be written anew: its members in their order,
//! each value in its own bytes. NOT for requests (they are edited by spans).

use std::borrow::Cow;

use crate::wire::json::{self, Object};

/// The members of one object, in order.
#[derive(Debug)]
pub struct Members<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Members<'a> {
    pub fn of(object: &Object<'a>) -> Self {
        Self(object.0.iter().map(|(key, raw)| (key.clone(), Cow::Borrowed(raw.get()))).collect())
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| &**value)
    }

    /// A member that is there and says something.
    pub fn said(&self, key: &str) -> Option<&str> {
        self.get(key).filter(|value| !matches!(*value, "null" | "\"\""))
    }

    /// `value` in place of the member's own, or at the end.
    pub fn set(&mut self, key: &'static str, value: String) {
        match self.0.iter_mut().find(|(name, _)| name == key) {
            Some((_, own)) => *own = Cow::Owned(value),
            None => self.0.push((Cow::Borrowed(key), Cow::Owned(value))),
        }
    }

    /// `value` in place of the member's own, if there is such a member.
    pub fn replace(&mut self, key: &'static str, value: String) {
        if self.get(key).is_some() {
            self.set(key, value);
        }
    }

    /// Was there something to remove?
    pub fn remove(&mut self, key: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|(name, _)| name != key);
        self.0.len() < before
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }

    pub fn json(&self) -> String {
        let members: Vec<String> = self.0.iter().map(|(key, value)| format!("{}:{value}", json::quoted(key))).collect();
        format!("{{{}}}", members.join(","))
    }
}
