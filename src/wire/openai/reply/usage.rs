//! Usage as providers report it: kept raw where it stood, summed over legs field
//! by field, read into numbers for metrics only. NOT derived: a field that no
//! leg reports stays absent.

use crate::wire::json::{self, Object};
use crate::wire::reply::Usage;

/// The two places where usage stands.
#[derive(Debug, Default, Clone)]
pub(super) struct Usages {
    /// `usage` of the body or of a frame.
    pub(super) top: Option<String>,
    /// `choices[0].usage` of Kimi's last frame.
    pub(super) choice: Option<String>,
}

impl Usages {
    /// Adds a leg.
    pub(super) fn add(&mut self, leg: &Self) {
        for (total, own) in [(&mut self.top, &leg.top), (&mut self.choice, &leg.choice)] {
            if let Some(own) = own {
                *total = Some(total.as_deref().map_or_else(|| own.clone(), |total| sum(total, own)));
            }
        }
    }

    /// One place is enough: where both stand they say the same.
    pub(super) fn normalised(&self) -> Usage {
        let Some(usage) = self.top.as_deref().or(self.choice.as_deref()).and_then(Object::parse) else {
            return Usage::default();
        };
        let number = |object: &Object<'_>, key: &str| object.find(key).and_then(|raw| raw.get().parse::<u64>().ok());
        let details = usage.find("prompt_tokens_details").and_then(Object::of);
        let cached = details.and_then(|details| number(&details, "cached_tokens"));
        let prompt = number(&usage, "prompt_tokens").unwrap_or_default();
        let completion = number(&usage, "completion_tokens").unwrap_or_default();
        // Gemini's compatible endpoint counts thoughts in the total only.
        let rest = number(&usage, "total_tokens").unwrap_or_default().saturating_sub(prompt);
        Usage {
            reported: true,
            prompt,
            cached: cached.or_else(|| number(&usage, "cached_tokens")).unwrap_or_default(),
            completion: completion.max(rest),
        }
    }
}

/// Levels of an object that are added up; deeper ones are the later leg's. No provider has more than three.
const LEVELS: usize = 8;

/// `later` with every integer of `earlier` added, recursively; what only `earlier` has stands behind.
pub(super) fn sum(earlier: &str, later: &str) -> String {
    summed(earlier, later, LEVELS)
}

fn summed(earlier: &str, later: &str, levels: usize) -> String {
    if levels == 0 {
        return later.to_owned();
    }
    let (Some(a), Some(b)) = (Object::parse(earlier), Object::parse(later)) else {
        let both = earlier.parse::<u64>().ok().zip(later.parse::<u64>().ok());
        return match both.and_then(|(a, b)| a.checked_add(b)) {
            Some(total) => total.to_string(),
            None if later == "null" => earlier.to_owned(),
            None => later.to_owned(),
        };
    };
    let own = b.0.iter().map(|(key, raw)| {
        let add = |other: &serde_json::value::RawValue| summed(other.get(), raw.get(), levels - 1);
        (key, a.find(key).map_or_else(|| raw.get().to_owned(), add))
    });
    let gone = a.0.iter().filter(|(key, _)| b.find(key).is_none()).map(|(key, raw)| (key, raw.get().to_owned()));
    let members: Vec<String> = own.chain(gone).map(|(key, value)| format!("{}:{value}", json::quoted(key))).collect();
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_add_up_in_place_and_absent_fields_stay_absent() {
        let leg1 = r#"{"prompt_tokens":10,"cached_tokens":4,"prompt_tokens_details":{"cached_tokens":4},"cost":0.5}"#;
        let leg2 = r#"{"prompt_tokens":20,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8,"x":null},"cost":1.5}"#;
        assert_eq!(
            sum(leg1, leg2),
            r#"{"prompt_tokens":30,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":12,"x":null},"cost":1.5,"cached_tokens":4}"#
        );
        assert_eq!(sum(r#"{"a":{"b":1}}"#, r#"{"a":null}"#), r#"{"a":{"b":1}}"#);
    }

    #[test]
    fn cached_tokens_are_read_in_two_spellings() {
        let read = |usage: &str| Usages { top: None, choice: Some(usage.into()) }.normalised();
        let kimi = read(r#"{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"cached_tokens":4}"#);
        assert_eq!(kimi, Usage { reported: true, prompt: 9, cached: 4, completion: 2 });
        assert_eq!(read(r#"{"prompt_tokens_details":{"cached_tokens":5}}"#).cached, 5);
        assert_eq!(read(r#"{"prompt_tokens":9,"completion_tokens":2,"total_tokens":40}"#).completion, 31);
        assert!(!Usages::default().normalised().reported);
    }
}
