//! Names that the agent must not see, and what a call of one is. NOT the calls.

use std::sync::Arc;

use super::heard::Whose;
use crate::wire::dispatch::{Dispatch, Native};
use crate::wire::json;

#[derive(Debug, Default, Clone)]
pub(super) struct Hidden {
    /// Empty: searching is off.
    pub(super) find_tools: String,
    pub(super) dispatch: Option<Arc<Dispatch>>,
}

impl Hidden {
    pub(super) fn new(find_tools: &str) -> Self {
        Self { find_tools: find_tools.to_owned(), dispatch: None }
    }

    /// May a name that starts so become a hidden one?
    pub(super) fn may_start(&self, name: &str) -> bool {
        self.find_tools.starts_with(name) || self.call_tool().starts_with(name)
    }

    /// Whose is the call of this name? Custom calls have none.
    pub(super) fn whose(&self, name: &str) -> Whose {
        match name {
            "" => Whose::Agents,
            _ if name == self.find_tools => Whose::Ours,
            _ if name == self.call_tool() => Whose::Wrapped,
            _ => Whose::Agents,
        }
    }

    /// The agent's call in the arguments of a `call_tool`.
    pub(super) fn unwrapped(&self, arguments: &str) -> Option<Native> {
        self.dispatch.as_ref()?.unwrapped(arguments)
    }

    /// Could JSON that broke off tell of a hidden name?
    pub(super) fn may_be_told(&self, bytes: &[u8]) -> bool {
        json::may_name(bytes, &self.find_tools) || json::may_name(bytes, self.call_tool())
    }

    fn call_tool(&self) -> &str {
        self.dispatch.as_ref().map_or("", |dispatch| dispatch.name.as_str())
    }
}
