//! An upstream with its settings ready for use: configuration becomes the policy that
//! the lower floors know. NOT reading a file, NOT a socket.

use std::sync::Arc;
use std::time::Duration;

use globset::GlobSet;

use super::learnt::Learnt;
use crate::config::narrow::{self, Mode};
use crate::config::upstream::Upstream;
use crate::turn::policy::{Facts, Policy};

/// An upstream with its settings ready for use.
#[derive(Debug)]
pub struct Route {
    pub upstream: Upstream,
    pub policy: Policy,
    pub mode: Mode,
    /// Of conversations, narrowed.
    pub percent: u8,
    pub deadline: Duration,
    /// Of the provider's prompt cache.
    pub cache_life: Duration,
    /// Are past successes learnt and used?
    pub history: bool,
    /// As configured; `binding.rs` settles it.
    pub binding: narrow::Binding,
    /// Models that take tools in messages.
    pub append_models: GlobSet,
    /// What was learnt from requests before.
    pub learnt: Option<Arc<Learnt>>,
    always_on: GlobSet,
}

impl Route {
    pub fn new(upstream: Upstream) -> Self {
        let narrow = &upstream.narrow;
        let policy = narrow.policy(upstream.max_tools);
        Self {
            policy,
            mode: narrow.mode,
            percent: narrow.percent,
            deadline: narrow.deadline,
            cache_life: narrow.cache_life,
            history: narrow.history,
            binding: narrow.binding,
            append_models: narrow::matching(&narrow.append_models),
            always_on: narrow::matching(&narrow.always_on),
            learnt: narrow.head.as_ref().map(|file| Arc::new(Learnt::new(file))),
            upstream,
        }
    }

    /// What configuration and catalog say of a tool.
    pub fn facts(&self, name: &str) -> Facts {
        self.upstream.narrow.facts(name, &self.always_on)
    }
}
