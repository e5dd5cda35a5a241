//! Names that the agent must not see, and what a call of one is. NOT the calls.

use std::sync::Arc;

use super::dispatch::{Dispatch, Native};
use super::json;

#[derive(Debug, Default, Clone)]
pub struct Hidden {
    /// Empty: searching is off.
    pub find_tools: String,
    dispatch: Option<Arc<Dispatch>>,
}

/// Whose call is it?
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Its name may still become a hidden one.
    #[default]
    Unknown,
    /// Or no call at all.
    Agents,
    /// A `call_tool` whose arguments are not whole: it becomes the agent's, or ours where they are broken.
    Wrapped,
    Ours,
}

impl Hidden {
    pub fn new(find_tools: &str) -> Self {
        Self { find_tools: find_tools.to_owned(), dispatch: None }
    }

    pub fn dispatching(&mut self, dispatch: Arc<Dispatch>) {
        self.dispatch = Some(dispatch);
    }

    /// May a name that starts so become a hidden one?
    pub fn may_start(&self, name: &str) -> bool {
        self.find_tools.starts_with(name) || self.call_tool().starts_with(name)
    }

    /// Whose is the call of this name? Custom calls have none.
    pub fn whose(&self, name: &str) -> Whose {
        match name {
            "" => Whose::Agents,
            _ if self.searches(name) => Whose::Ours,
            _ if name == self.call_tool() => Whose::Wrapped,
            _ => Whose::Agents,
        }
    }

    /// Is it the name of `find_tools`?
    pub fn searches(&self, name: &str) -> bool {
        name == self.find_tools
    }

    /// The agent's call in the arguments of a `call_tool`.
    pub fn unwrapped(&self, arguments: &str) -> Option<Native> {
        self.dispatch.as_ref()?.unwrapped(arguments)
    }

    /// Could JSON that broke off tell of a hidden name?
    pub fn may_be_told(&self, bytes: &[u8]) -> bool {
        json::may_name(bytes, &self.find_tools) || json::may_name(bytes, self.call_tool())
    }

    fn call_tool(&self) -> &str {
        self.dispatch.as_ref().map_or("", |dispatch| dispatch.name.as_str())
    }
}
