//! `usageMetadata` of several legs as one: every count and every count per modality is added where it stands.
//! NOT what tokens cost. A count that is 0 is left out by Google, so an absent one may have to be put in.

use crate::wire::json::{Object, elements, quoted, span, string};
use crate::wire::member;
use crate::wire::reply::Usage;
use crate::wire::splice::Edits;

/// The counts of one leg, or of several.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Totals {
    counts: Vec<(String, u64)>,
    /// `…TokensDetails`: name, then modality and count.
    details: Vec<(String, Vec<(String, u64)>)>,
}

impl Totals {
    /// The counts of a `usageMetadata` object; none when it is none.
    pub(super) fn read(raw: &str) -> Self {
        let mut totals = Self::default();
        for (key, value) in Object::parse(raw).map(|object| object.0).unwrap_or_default() {
            if let Ok(count) = value.get().parse() {
                totals.counts.push((key.into_owned(), count));
            } else if let Some(list) = elements(value) {
                let of_modalities = list.into_iter().filter_map(|raw| detail(raw.get())).collect();
                totals.details.push((key.into_owned(), of_modalities));
            }
        }
        totals
    }

    pub(super) fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.details.is_empty()
    }

    pub(super) fn add(&mut self, other: &Self) {
        add(&mut self.counts, &other.counts);
        for (key, list) in &other.details {
            match self.details.iter_mut().find(|(own, _)| own == key) {
                Some((_, own)) => add(own, list),
                None => self.details.push((key.clone(), list.clone())),
            }
        }
    }

    /// A `usageMetadata` object with these counts added; what it holds beside counts stays as it was written.
    pub(super) fn added_to(&self, raw: &str) -> String {
        let Some(object) = Object::parse(raw) else { return raw.to_owned() };
        let mut edits = Edits::new();
        let mut absent = Vec::new();
        for (key, count) in self.counts.iter().filter(|(_, count)| *count > 0) {
            match object.find(key) {
                Some(value) => {
                    let own: u64 = value.get().parse().unwrap_or(0);
                    edits.replace(span(raw, value.get()), own.saturating_add(*count).to_string());
                }
                None => absent.push(format!("{}:{count}", quoted(key))),
            }
        }
        for (key, list) in self.details.iter().filter(|(_, list)| !list.is_empty()) {
            match object.find(key) {
                Some(value) => {
                    let mut sum: Vec<_> =
                        elements(value).unwrap_or_default().into_iter().filter_map(|raw| detail(raw.get())).collect();
                    add(&mut sum, list);
                    edits.replace(span(raw, value.get()), written(&sum));
                }
                None => absent.push(format!("{}:{}", quoted(key), written(list))),
            }
        }
        if let (Some((at, comma)), false) = (member::end(raw), absent.is_empty()) {
            edits.insert(at, format!("{}{}", if comma { "," } else { "" }, absent.join(",")));
        }
        edits.apply(raw)
    }

    /// The same normalised, for metrics.
    pub(super) fn usage(&self) -> Usage {
        let count = |camel: &str, snake: &str| {
            self.counts.iter().find(|(key, _)| key == camel || key == snake).map_or(0, |(_, count)| *count)
        };
        let tool_use = count("toolUsePromptTokenCount", "tool_use_prompt_token_count");
        let thoughts = count("thoughtsTokenCount", "thoughts_token_count");
        Usage {
            reported: !self.is_empty(),
            prompt: count("promptTokenCount", "prompt_token_count").saturating_add(tool_use),
            cached: count("cachedContentTokenCount", "cached_content_token_count"),
            completion: count("candidatesTokenCount", "candidates_token_count").saturating_add(thoughts),
        }
    }
}

fn add(own: &mut Vec<(String, u64)>, other: &[(String, u64)]) {
    for (key, count) in other {
        match own.iter_mut().find(|(known, _)| known == key) {
            Some((_, sum)) => *sum = sum.saturating_add(*count),
            None => own.push((key.clone(), *count)),
        }
    }
}

fn detail(raw: &str) -> Option<(String, u64)> {
    let object = Object::parse(raw)?;
    let count = object.either("tokenCount", "token_count").and_then(|count| count.get().parse().ok()).unwrap_or(0);
    Some((string(object.find("modality")?)?.into_owned(), count))
}

fn written(details: &[(String, u64)]) -> String {
    let entry =
        |(modality, count): &(String, u64)| format!(r#"{{"modality":{},"tokenCount":{count}}}"#, quoted(modality));
    format!("[{}]", details.iter().map(entry).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_added_in_place_and_absent_ones_put_in() {
        let first = Totals::read(
            r#"{"promptTokenCount":100,"candidatesTokenCount":7,"thoughtsTokenCount":30,"totalTokenCount":137,"cachedContentTokenCount":0,"promptTokensDetails":[{"modality":"TEXT","tokenCount":100}],"serviceTier":"standard"}"#,
        );
        let second = r#"{ "promptTokenCount": 150, "totalTokenCount":160, "serviceTier":"standard", "promptTokensDetails":[{"modality":"AUDIO","tokenCount":1},{"modality":"TEXT","tokenCount":149}] }"#;
        let expected = r#"{ "promptTokenCount": 250, "totalTokenCount":297, "serviceTier":"standard", "promptTokensDetails":[{"modality":"AUDIO","tokenCount":1},{"modality":"TEXT","tokenCount":249}] ,"candidatesTokenCount":7,"thoughtsTokenCount":30}"#;
        assert_eq!(first.added_to(second), expected);
        assert_eq!(Totals::default().added_to(second), second);
        let mut sum = first.clone();
        sum.add(&Totals::read(second));
        assert_eq!(sum.usage(), Usage { reported: true, prompt: 250, cached: 0, completion: 37 });
        assert_eq!(Totals::read(&sum.added_to("{}")).usage(), sum.usage());
    }

    #[test]
    fn tool_use_counts_as_prompt() {
        let usage = Totals::read(
            r#"{"prompt_token_count":10,"tool_use_prompt_token_count":5,"cached_content_token_count":4,"candidates_token_count":2}"#,
        )
        .usage();
        assert_eq!(usage, Usage { reported: true, prompt: 15, cached: 4, completion: 2 });
        assert!(!Totals::read("null").usage().reported);
    }
}
