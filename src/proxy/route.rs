//! An upstream with its settings ready for use: configuration becomes the policy that
//! the lower floors know. NOT reading a file, NOT a socket.

use std::sync::Arc;
use std::time::Duration;

use globset::{Glob, GlobSet, GlobSetBuilder};

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
        let policy = Policy {
            max_retrieved_tools: narrow.max_retrieved_tools,
            max_discovered_tools: narrow.max_discovered_tools,
            max_discovery_legs: narrow.max_discovery_legs,
            max_bound_tools: narrow.max_bound_tools,
            sticky_need: narrow.sticky_need,
            stability: narrow.stability,
            order: narrow.order,
            directory: narrow.directory,
            find_tools_name: narrow.find_tools_name.clone(),
            query_ignore: narrow.query_ignore.clone(),
            max_tools: upstream.max_tools,
        };
        Self {
            policy,
            mode: narrow.mode,
            percent: narrow.percent,
            deadline: narrow.deadline,
            cache_life: narrow.cache_life,
            history: narrow.history,
            binding: narrow.binding,
            append_models: globs(&narrow.append_models),
            always_on: globs(&narrow.always_on),
            learnt: narrow.head.as_ref().map(|file| Arc::new(Learnt::new(file))),
            upstream,
        }
    }

    /// What configuration and catalog say of a tool.
    pub fn facts(&self, name: &str) -> Facts {
        let core = self.always_on.is_match(name);
        let Some(catalog) = &self.upstream.narrow.catalog else { return Facts { core, ..Facts::default() } };
        match catalog.find(name) {
            None => Facts { core, domain: catalog.domain_rank(""), ..Facts::default() },
            Some(entry) => Facts {
                core: core || entry.always_on,
                category: entry.category.clone(),
                keywords: entry.keywords.clone(),
                search_text: entry.search_text.clone(),
                connector: entry.connector.clone(),
                domain: catalog.domain_rank(&entry.category),
                standing: entry.standing(),
            },
        }
    }
}

fn globs(names: &[String]) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for glob in names.iter().filter_map(|glob| Glob::new(glob).ok()) {
        set.add(glob);
    }
    set.build().unwrap_or_default()
}
