//! Which binding a request gets, and what is remembered of providers that refused
//! one. NOT what a binding does (turn).

use std::time::{Duration, Instant};

use moka::sync::Cache;

use super::route::Route;
use crate::config::narrow::Binding as Configured;
use crate::turn::dispatch::CALL_TOOL;
use crate::turn::policy::Binding;
use crate::turn::roster::Roster;
use crate::wire::Format;

/// Models of which a refusal is remembered.
const MODELS: u64 = 1024;
/// How long a model is not asked again after its first refusal; each further one doubles it.
const REST: Duration = Duration::from_secs(600);
const LONGEST_REST: Duration = Duration::from_secs(24 * 3600);

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
    /// The binding of a request for this model.
    pub fn of(&self, route: &Route, format: Format, model: &str, roster: &Roster) -> Binding {
        match route.binding {
            Configured::Auto | Configured::Append if self.takes_declarations(route, format, model) => Binding::Append,
            Configured::Dispatch if takes_call_tool(route, format, roster) => Binding::Dispatch,
            Configured::Auto | Configured::Append | Configured::Replace | Configured::Dispatch => Binding::Replace,
        }
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
fn takes_call_tool(route: &Route, format: Format, roster: &Roster) -> bool {
    let known = match format {
        Format::OpenAi | Format::Gemini => true,
        Format::Anthropic => false,
    };
    known && route.policy.max_discovery_legs > 0 && roster.named(CALL_TOOL).is_empty()
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
