//! Which bindings a request may get, and what is remembered of providers that
//! refused one. NOT which it gets (`way.rs`), NOT what a binding does (turn).

use std::time::{Duration, Instant};

use moka::sync::Cache;

use super::route::Route;
use crate::cost::policy::Able;
use crate::turn::dispatch::CALL_TOOL;
use crate::turn::roster::Roster;
use crate::wire::Format;

/// Models of which a refusal is remembered.
const MODELS: u64 = 1024;
/// How long a model is not asked again after its first refusal; each further one doubles it.
const REST: Duration = Duration::from_secs(600);
const LONGEST_REST: Duration = Duration::from_secs(24 * 3600);

/// Whose binding is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Request<'r> {
    pub route: &'r Route,
    pub format: Format,
    pub model: &'r str,
    pub roster: &'r Roster,
    /// The provider takes fewer tools than there are: sent in full, some of them would be missing.
    pub cut: bool,
}

/// Models that refused tools in messages, by upstream.
#[derive(Debug)]
pub struct Bindings {
    refused: Cache<(String, String), Refusal>,
}

#[derive(Debug, Clone, Copy)]
struct Refusal {
    until: Instant,
    rest: Duration,
}

impl Default for Bindings {
    fn default() -> Self {
        Self { refused: Cache::builder().max_capacity(MODELS).time_to_live(2 * LONGEST_REST).build() }
    }
}

impl Bindings {
    /// What such a request's model and its wire can do.
    pub fn able(&self, request: &Request<'_>) -> Able {
        let Request { route, format, model, roster, .. } = *request;
        Able { append: self.takes_declarations(route, format, model), dispatch: takes_call_tool(route, roster) }
    }

    /// The provider refused a request because of its message-level tools.
    pub fn refused(&self, route: &Route, model: &str) {
        let key = (route.upstream.name.clone(), model.to_owned());
        let rest = self.refused.get(&key).map_or(REST, |before| (before.rest * 2).min(LONGEST_REST));
        self.refused.insert(key, Refusal { until: Instant::now() + rest, rest });
    }

    fn takes_declarations(&self, route: &Route, format: Format, model: &str) -> bool {
        let known = || self.refused.get(&(route.upstream.name.clone(), model.to_owned()));
        format == Format::OpenAi
            && route.append_models.is_match(model)
            && known().is_none_or(|refusal| refusal.until <= Instant::now())
    }
}

/// Without a search nothing is ever described, and an agent's own tool of that name is its own.
fn takes_call_tool(route: &Route, roster: &Roster) -> bool {
    route.policy.max_discovery_legs > 0 && roster.named(CALL_TOOL).is_empty()
}

/// Does a refusal speak of tools in messages? Kimi says `tokenization failed` for a model that does not take them and
/// `cannot be used with content`; servers that check a schema name the path.
pub fn is_about_declarations(error: &[u8]) -> bool {
    let text = String::from_utf8_lossy(error).to_lowercase();
    let of_messages = ["messages[", "messages.", "message-level", "messages/"].iter().any(|path| text.contains(path));
    text.contains("tokenization failed")
        || text.contains("cannot be used with content")
        || (of_messages && (text.contains("tools") || text.contains("content")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complaints_about_tools_in_messages_count() {
        for text in ["Tokenization failed", "tools cannot be used with content", "Extra inputs: messages.2.tools"] {
            assert!(is_about_declarations(text.as_bytes()), "{text}");
        }
        for text in ["tool `x`: type is not defined", "function name a is duplicated", "context too long"] {
            assert!(!is_about_declarations(text.as_bytes()), "{text}");
        }
    }
}
