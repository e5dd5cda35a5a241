//! Tools that say in their parameters what they do not say of themselves. NOT what is wrong with what they say.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::prose::of_itself;
use super::{ADVICE, Finding, Kind};
use crate::eval::measure::Measured;
use crate::retrieval::document::{self, Document};
use crate::retrieval::lexical;

/// Tools whose parameters say more than they do: by names and values, in words that few other tools have. What is
/// explained of a parameter is how to fill it in, and no evidence.
pub(super) fn buried(documents: &[Document]) -> Vec<Finding> {
    let mut tools_with: HashMap<String, usize> = HashMap::new();
    for document in documents {
        let words: HashSet<String> = of_choices(document).into_iter().chain(of_itself(document)).collect();
        words.into_iter().for_each(|word| *tools_with.entry(word).or_default() += 1);
    }
    let rare = |word: &String| tools_with.get(word).is_some_and(|count| *count <= (documents.len() / 20).max(2));
    let mut findings = Vec::new();
    for document in documents {
        let own: HashSet<String> = of_itself(document).into_iter().collect();
        let said = own.iter().filter(|word| rare(word)).count();
        let mut only: Vec<String> =
            of_choices(document).into_iter().filter(|word| !own.contains(word) && rare(word)).collect();
        only.sort_by_key(|word| (tools_with.get(word).copied(), word.clone()));
        only.dedup();
        let many = only.len() >= MANY && only.len() >= MANY_TIMES * said;
        if many && lexical::words(&document.description).len() < SHORT {
            only.truncate(10);
            findings.push(Finding {
                tool: document.name.clone(),
                kind: Kind::Parameters,
                why: "the words that tell it from others stand in its parameters only".to_owned(),
                evidence: vec![only.join(", ")],
                suggestion: format!("take the useful ones into the description, or into `search_text`: {ADVICE}"),
            });
        }
    }
    findings
}

/// A description of fewer words than this may leave the telling to its parameters. Of 1,334 tools (14 public servers, four
/// evaluation sets, the demo) 27 are found, of which four are wrong by inspection ("token, display, expand"); with the
/// words of explanations 52 of the 893 of servers were, most of them wrongly ("accepted, guarantees, observed").
const SHORT: usize = 12;
/// Telling words in parameters: so many, and so many for one outside.
const MANY: usize = 5;
const MANY_TIMES: usize = 2;

/// Tools that requests meet, in their own words, in parameters only.
pub(super) fn known_by_parameters(measured: &Measured, documents: &[Document]) -> Vec<Finding> {
    let mut met: BTreeMap<usize, BTreeMap<String, usize>> = BTreeMap::new();
    let mut asked: HashMap<usize, usize> = HashMap::new();
    let places: HashMap<&str, usize> =
        documents.iter().enumerate().rev().map(|(at, document)| (document.name.as_str(), at)).collect();
    for ranked in &measured.ranked {
        let said: HashSet<String> =
            lexical::words(ranked.case.dialogue.last().map_or("", |last| last.text.as_str())).into_iter().collect();
        for (name, _) in &ranked.places {
            let Some((at, document)) = places.get(name.as_str()).and_then(|at| Some((*at, documents.get(*at)?))) else {
                continue;
            };
            let own: HashSet<String> = of_itself(document).into_iter().collect();
            let parameters: HashSet<String> = of_parameters(document).into_iter().collect();
            let telling =
                |word: &&String| word.chars().count() > 3 && !own.contains(*word) && parameters.contains(*word);
            let words: Vec<&String> = said.iter().filter(telling).collect();
            let outside = said.iter().any(|word| word.chars().count() > 3 && own.contains(word));
            *asked.entry(at).or_default() += 1;
            if !outside {
                words.into_iter().for_each(|word| *met.entry(at).or_default().entry(word.clone()).or_default() += 1);
            }
        }
    }
    let finding = |(at, words): (usize, BTreeMap<String, usize>)| {
        let document = documents.get(at)?;
        let mut words: Vec<(usize, String)> = words.into_iter().map(|(word, count)| (count, word)).collect();
        words.sort_by(|a, b| b.cmp(a));
        let cases: usize = words.iter().map(|(count, _)| count).sum();
        let of = asked.get(&at).copied().unwrap_or_default();
        let shown: Vec<String> = words.iter().take(8).map(|(count, word)| format!("{word} ({count})")).collect();
        (cases >= 3 && cases * 4 >= of).then(|| Finding {
            tool: document.name.clone(),
            kind: Kind::Parameters,
            why: format!("of {of} requests, words that only its parameters have are all that meets it"),
            evidence: vec![shown.join(", ")],
            suggestion: format!("take these words into the description, or into `search_text`: {ADVICE}"),
        })
    };
    met.into_iter().filter_map(finding).collect()
}

fn of_parameters(document: &Document) -> Vec<String> {
    let mut words = Vec::new();
    for parameter in &document.parameters {
        words.extend(lexical::words(&document::words(&parameter.name)));
        words.extend(lexical::words(&parameter.description));
        parameter.values.iter().for_each(|value| words.extend(lexical::words(value)));
    }
    words.retain(|word| word.chars().count() > 2);
    words
}

/// What its parameters are called and may be, in words that somebody might say.
fn of_choices(document: &Document) -> Vec<String> {
    let mut words = Vec::new();
    for parameter in &document.parameters {
        words.extend(lexical::words(&document::words(&parameter.name)));
        parameter.values.iter().for_each(|value| words.extend(lexical::words(&document::words(value))));
    }
    let said = |word: &String| word.chars().all(char::is_alphabetic) && (word.len() > 3 || !word.is_ascii());
    words.retain(said);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retrieval::document::Parameter;

    #[test]
    fn words_that_only_parameters_have() {
        let parameter = |name: &str, description: &str, values: &[&str]| Parameter {
            name: name.into(),
            description: description.into(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let mut documents: Vec<Document> = (0..30)
            .map(|i| Document {
                name: format!("tool{i}"),
                description: "Gets some of the data there is".into(),
                parameters: vec![parameter("page", "which page", &[])],
                ..Document::default()
            })
            .collect();
        let topics = ["weather_forecast", "stock_quotes", "football", "horoscope", "lottery", "v2"];
        documents[3].parameters.push(parameter("topic", "", &topics));
        let how = "an opaque cursor, previously returned, guaranteed idempotent, omitted otherwise";
        documents[4].parameters.push(parameter("after", how, &[]));
        let found = buried(&documents);
        let [finding] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(finding.tool, "tool3");
        assert!(finding.evidence[0].contains("horoscope") && !finding.evidence[0].contains("page"), "{finding:?}");
    }
}
