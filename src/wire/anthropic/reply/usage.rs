//! Usage as this shape reports it: at the start what went in, at the end (cumulative)
//! what came out. Summed over legs field by field, read into numbers for metrics only.
//! NOT derived: a field that no leg reports stays absent.

use serde_json::value::RawValue;

use crate::wire::json::{self, Object};
use crate::wire::reply::Usage;
use crate::wire::sum::sum;

/// What clients add up to what a request cost. Cached tokens are not in `input_tokens`.
const INPUTS: [&str; 3] = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];

/// Usage of one leg.
#[derive(Debug, Default, Clone)]
pub(super) struct Usages {
    /// The members that are not null, in order; later ones overwrite earlier ones.
    members: Vec<(String, String)>,
    reported: bool,
}

impl Usages {
    /// Takes what a message or a delta says.
    pub(super) fn take(&mut self, usage: &RawValue) {
        let Some(usage) = Object::of(usage) else { return };
        self.reported = true;
        for (key, raw) in usage.0.iter().filter(|(_, raw)| !json::is_null(raw)) {
            match self.members.iter_mut().find(|(name, _)| name == key) {
                Some((_, own)) => *own = raw.get().to_owned(),
                None => self.members.push((key.clone().into_owned(), raw.get().to_owned())),
            }
        }
    }

    /// Adds a leg that is over.
    pub(super) fn add(&mut self, leg: &Self) {
        self.reported |= leg.reported;
        for (key, own) in &leg.members {
            match self.members.iter_mut().find(|(name, _)| name == key) {
                Some((_, total)) => *total = sum(total, own),
                None => self.members.push((key.clone(), own.clone())),
            }
        }
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.members.iter().find(|(name, _)| name == key).map(|(_, raw)| raw.as_str())
    }

    /// What a document of the last leg says of usage, made to say it of all legs: its own members with the totals, and
    /// the counts of input even if it leaves them to the message's start, which was the first leg's.
    pub(super) fn total(&self, leg: &Self, own: Option<&RawValue>) -> Option<String> {
        let own = own.and_then(Object::of).unwrap_or(Object(Vec::new()));
        let of_all = |key: &str| match (self.get(key), leg.get(key)) {
            (Some(earlier), Some(later)) => Some(sum(earlier, later)),
            (one, other) => one.or(other).map(str::to_owned),
        };
        let mut members: Vec<String> = Vec::new();
        for (key, raw) in &own.0 {
            let value = of_all(key).unwrap_or_else(|| raw.get().to_owned());
            members.push(format!("{}:{value}", json::quoted(key)));
        }
        for key in INPUTS.into_iter().filter(|key| own.find(key).is_none()) {
            members.extend(of_all(key).map(|value| format!("\"{key}\":{value}")));
        }
        (!members.is_empty()).then(|| format!("{{{}}}", members.join(",")))
    }

    pub(super) fn normalised(&self) -> Usage {
        let number = |key: &str| self.get(key).and_then(|raw| raw.parse::<u64>().ok()).unwrap_or_default();
        Usage {
            reported: self.reported,
            prompt: INPUTS.into_iter().map(number).fold(0, u64::saturating_add),
            cached: number("cache_read_input_tokens"),
            completion: number("output_tokens"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usages(parts: &[&str]) -> Usages {
        let mut usages = Usages::default();
        for part in parts {
            usages.take(serde_json::from_str(part).expect("JSON"));
        }
        usages
    }

    #[test]
    fn cached_tokens_are_not_in_the_input_and_the_end_overwrites_the_start() {
        let start =
            r#"{"input_tokens":10,"cache_creation_input_tokens":100,"cache_read_input_tokens":1000,"output_tokens":1}"#;
        let read =
            usages(&[start, r#"{"output_tokens":7,"input_tokens":12,"cache_read_input_tokens":null}"#]).normalised();
        assert_eq!(read, Usage { reported: true, prompt: 1112, cached: 1000, completion: 7 });
        assert!(!Usages::default().normalised().reported);
    }

    #[test]
    fn the_last_delta_says_what_all_legs_took() {
        let mut past = Usages::default();
        past.add(&usages(&[
            r#"{"input_tokens":10,"cache_read_input_tokens":1000,"cache_creation":{"ephemeral_5m_input_tokens":5},"service_tier":"standard","output_tokens":1}"#,
            r#"{"output_tokens":7}"#,
        ]));
        let last = r#"{"output_tokens":20,"server_tool_use":{"web_search_requests":1}}"#;
        let leg = usages(&[r#"{"input_tokens":30,"cache_read_input_tokens":1100,"output_tokens":1}"#, last]);
        assert_eq!(
            past.total(&leg, Some(serde_json::from_str(last).expect("JSON"))).as_deref(),
            Some(
                r#"{"output_tokens":27,"server_tool_use":{"web_search_requests":1},"input_tokens":40,"cache_read_input_tokens":2100}"#
            )
        );
        assert_eq!(Usages::default().total(&Usages::default(), None), None);
    }
}
