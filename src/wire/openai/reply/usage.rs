//! Usage as providers report it: kept raw where it stood, summed over legs field
//! by field, read into numbers for metrics only. NOT derived: a field that no
//! leg reports stays absent.

use crate::wire::json::Object;
use crate::wire::reply::Usage;
use crate::wire::sum::sum;

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

#[cfg(test)]
mod tests {
    use super::*;

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
