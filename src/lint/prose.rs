//! Descriptions as prose: whom they speak to, and where the words are that people would use. NOT vectors. Lists of
//! words are English, as most descriptions are; what is written in another language passes.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{ADVICE, Finding, Kind};
use crate::chart::html::cut;
use crate::eval::measure::Measured;
use crate::retrieval::document::{self, Document};
use crate::retrieval::lexical;

/// Words of machinery. One may be needed, several are about calling, not about use.
const MACHINERY: &[&str] = &[
    "api",
    "apis",
    "endpoint",
    "endpoints",
    "rest",
    "restful",
    "graphql",
    "http",
    "https",
    "json",
    "xml",
    "payload",
    "uuid",
    "guid",
    "schema",
    "param",
    "params",
    "boolean",
    "enum",
    "nullable",
    "deserialize",
    "serialize",
    "serialized",
    "idempotent",
    "async",
    "asynchronous",
    "synchronous",
    "callback",
    "webhook",
    "invoke",
    "invokes",
    "invocation",
    "instantiate",
    "instantiates",
    "paginated",
    "pagination",
    "cursor",
    "cursors",
    "crud",
    "sdk",
    "wrapper",
    "rpc",
    "query_params",
    "foreign",
    "fk",
    "pk",
    "dto",
    "struct",
    "array",
    "arrays",
    "tuple",
    "iterator",
    "mutation",
    "upsert",
];

/// How descriptions of endpoints begin.
const OPENINGS: &[&str] = &[
    "this endpoint",
    "this api",
    "this method",
    "this function",
    "endpoint to",
    "endpoint for",
    "api to",
    "api for",
    "wrapper for",
    "wrapper around",
    "calls the",
    "invokes the",
    "get /",
    "post /",
    "put /",
    "patch /",
    "delete /",
    "sends a get",
    "sends a post",
    "makes a request",
    "performs a get",
    "performs a post",
    "executes a",
];

/// Words that are written and never said.
const STIFF: &[&str] = &[
    "utilize",
    "utilizes",
    "utilise",
    "facilitate",
    "facilitates",
    "leverage",
    "leverages",
    "pertaining",
    "herein",
    "aforementioned",
    "thereof",
    "therein",
    "aforesaid",
    "subsequently",
    "ascertain",
    "commence",
    "commences",
    "terminate",
    "terminates",
    "effectuate",
    "remittance",
    "procure",
    "procures",
    "furnish",
    "furnishes",
    "rendition",
    "enumerate",
    "enumerates",
    "instantiation",
    "provisioning",
    "provisions",
    "functionality",
    "capability",
    "capabilities",
    "aggregation",
    "remediate",
    "remediation",
    "orchestrate",
    "orchestrates",
    "persist",
    "persists",
];

/// Share of a description's words that are machinery or identifiers, from which it speaks to programmers.
const MUCH: f32 = 0.15;

/// Words and spellings that speak to programmers, where there are too many; `None`: not so.
pub(super) fn api_speak(description: &str) -> Option<Vec<String>> {
    let lower = description.trim().to_lowercase();
    let mut found: Vec<String> = OPENINGS
        .iter()
        .filter(|opening| lower.starts_with(*opening))
        .map(|opening| format!("\"{opening} …\""))
        .collect();
    let opens = !found.is_empty();
    let words: Vec<&str> = description.split_whitespace().collect();
    let strange = |word: &&&str| is_machinery(word) || is_identifier(word);
    let strangers: Vec<&str> = words.iter().filter(strange).copied().collect();
    let many = strangers.len() >= 3 && strangers.len() as f32 >= MUCH * words.len() as f32;
    found.extend(strangers.iter().map(|word| format!("\"{}\"", bare(word))));
    found.dedup();
    found.truncate(6);
    (opens || many).then_some(found)
}

/// Stiff words, where there are at least two; `None`: not so.
pub(super) fn formal(description: &str) -> Option<Vec<String>> {
    let mut found: Vec<String> =
        lexical::words(description).into_iter().filter(|word| STIFF.contains(&word.as_str())).collect();
    found.sort_unstable();
    found.dedup();
    (found.len() >= 2).then(|| found.into_iter().map(|word| format!("\"{word}\"")).collect())
}

/// Tools whose parameters say more than they do: several times the words, words that few other tools have.
pub(super) fn buried(documents: &[Document]) -> Vec<Finding> {
    let mut tools_with: HashMap<String, usize> = HashMap::new();
    for document in documents {
        let words: HashSet<String> = of_parameters(document).into_iter().chain(of_itself(document)).collect();
        words.into_iter().for_each(|word| *tools_with.entry(word).or_default() += 1);
    }
    let rare = |word: &String| tools_with.get(word).is_some_and(|count| *count <= (documents.len() / 20).max(2));
    let mut findings = Vec::new();
    for document in documents {
        let own: HashSet<String> = of_itself(document).into_iter().collect();
        let said = own.iter().filter(|word| rare(word)).count();
        let mut only: Vec<String> =
            of_parameters(document).into_iter().filter(|word| !own.contains(word) && rare(word)).collect();
        only.sort_by_key(|word| (tools_with.get(word).copied(), word.clone()));
        only.dedup();
        if lexical::words(&document.description).len() < SHORT && only.len() >= MANY_TIMES * said.max(2) {
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

/// A description of fewer words than this may leave the telling to its parameters.
const SHORT: usize = 12;
/// So many telling words in parameters for one outside.
const MANY_TIMES: usize = 4;

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

/// Words that people use for a tool and that it does not have, most used first.
pub(super) fn unheard(measured: &Measured, document: &Document) -> Vec<String> {
    let own: HashSet<String> = of_itself(document).into_iter().collect();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut elsewhere: BTreeMap<String, usize> = BTreeMap::new();
    for ranked in &measured.ranked {
        let words: HashSet<String> =
            lexical::words(ranked.case.dialogue.last().map_or("", |last| last.text.as_str())).into_iter().collect();
        let mine = ranked.places.iter().any(|(name, _)| *name == document.name);
        let into = if mine { &mut counts } else { &mut elsewhere };
        words.into_iter().for_each(|word| *into.entry(word).or_default() += 1);
    }
    let telling = |word: &String, count: usize| {
        word.chars().count() > 2
            && !own.contains(word)
            && count >= 2
            && elsewhere.get(word).copied().unwrap_or_default() <= count
    };
    let mut words: Vec<(usize, String)> =
        counts.into_iter().filter(|(word, count)| telling(word, *count)).map(|(word, count)| (count, word)).collect();
    words.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    words.into_iter().take(8).map(|(_, word)| word).collect()
}

fn of_itself(document: &Document) -> Vec<String> {
    let mut words = lexical::words(&document::words(&document.name));
    words.extend(lexical::words(&document.description));
    document.keywords.iter().for_each(|keyword| words.extend(lexical::words(keyword)));
    words
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

fn is_machinery(word: &str) -> bool {
    MACHINERY.contains(&bare(word).to_lowercase().as_str())
}

/// `issue_id`, `pageToken`, `/v1/users`: not a word that is said.
fn is_identifier(word: &str) -> bool {
    let word = bare(word);
    let path = word.starts_with('/') && word.len() > 2;
    let joined = word.contains('_') || word.contains("::");
    let humped = word.chars().zip(word.chars().skip(1)).filter(|(a, b)| a.is_lowercase() && b.is_uppercase()).count()
        > 0
        && !word.starts_with(char::is_uppercase);
    path || joined || humped
}

fn bare(word: &str) -> String {
    cut(word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/' && c != '_'), 40)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retrieval::document::Parameter;

    #[test]
    fn whom_a_description_speaks_to() {
        for spoken in [
            "Send an e-mail to someone, with attachments",
            "Finds a person by name or phone number; use it when somebody calls",
            "Rename a GitHub repository",
            "Verschickt eine E-Mail an jemanden",
            "删除一条记录",
        ] {
            assert_eq!((api_speak(spoken), formal(spoken)), (None, None), "{spoken}");
        }
        for machinery in [
            "This endpoint returns a list of records",
            "GET /v1/users/{id} with the user_id",
            "Returns a paginated JSON array of issue_id and nodeId for the given schema",
        ] {
            assert!(api_speak(machinery).is_some(), "{machinery}");
        }
        assert_eq!(
            formal("Utilize it to facilitate remittance"),
            Some(vec!["\"facilitate\"".into(), "\"remittance\"".into(), "\"utilize\"".into()])
        );
    }

    #[test]
    fn words_that_only_parameters_have() {
        let parameter = |name: &str, description: &str| Parameter {
            name: name.into(),
            description: description.into(),
            values: Vec::new(),
        };
        let mut documents: Vec<Document> = (0..30)
            .map(|i| Document {
                name: format!("tool{i}"),
                description: "Gets some of the data there is".into(),
                parameters: vec![parameter("page", "which page")],
                ..Document::default()
            })
            .collect();
        documents[3]
            .parameters
            .push(parameter("topic", "weather forecast, stock quotes, football results, horoscope or lottery numbers"));
        let found = buried(&documents);
        let [finding] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(finding.tool, "tool3");
        assert!(finding.evidence[0].contains("horoscope") && !finding.evidence[0].contains("page"), "{finding:?}");
    }
}
