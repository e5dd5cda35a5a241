//! Descriptions as prose: whom they speak to, and which words of people's they lack. NOT parameters, NOT vectors. Lists of
//! words are English, as most descriptions are; what is written in another language passes.

use std::collections::{BTreeMap, HashSet};

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

/// How descriptions of endpoints begin. Of 4,973 tools (14 public servers and six evaluation sets) 14 do, each of them
/// rightly found by inspection. "Executes a" is none: all nine that begin so say what for.
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
    "calls the api",
    "calls an api",
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

/// Share of a description's words that are machinery or identifiers, from which it speaks to programmers. Of the same
/// 4,973 tools ten are at or above it: parameters, fields of the answer or older tools in the place of a purpose, in
/// each of them. Below, from .11 on, stand those that also say when to use them.
const MUCH: f32 = 0.12;
/// Fewer such words may be needed: "a cookie (httpOnly, sameSite)" is how its users speak.
const STRANGERS: usize = 3;

/// Where a description begins to show calls.
const EXAMPLES: [&str; 2] = ["```", "<example"];

/// Words and spellings that speak to programmers, where there are too many; `None`: not so.
pub(super) fn api_speak(description: &str) -> Option<Vec<String>> {
    let lower = description.trim().to_lowercase();
    let mut found: Vec<String> = OPENINGS
        .iter()
        .filter(|opening| lower.starts_with(*opening))
        .map(|opening| format!("\"{opening} …\""))
        .collect();
    let opens = !found.is_empty();
    // What an example call looks like is not what the description says.
    let said = EXAMPLES.iter().filter_map(|mark| description.find(mark)).min().unwrap_or(description.len());
    let words: Vec<&str> = description.get(..said).unwrap_or_default().split_whitespace().collect();
    let strange = |word: &&&str| is_machinery(word) || is_identifier(word);
    let strangers: Vec<&str> = words.iter().filter(strange).copied().collect();
    let many = strangers.len() >= STRANGERS && strangers.len() as f32 >= MUCH * words.len() as f32;
    found.extend(strangers.iter().map(|word| format!("\"{}\"", bare(word))));
    found.dedup();
    found.truncate(6);
    (opens || many).then_some(found)
}

/// Stiff words, where there are at least two or the first word is one; `None`: not so. One further in is mostly the
/// right word (an aggregation, a phone's capabilities): 48 of the same 4,973 tools have one there. The ten that are found
/// begin with one, mostly "facilitates", in the place of what the tool does.
pub(super) fn formal(description: &str) -> Option<Vec<String>> {
    let words = lexical::words(description);
    let begins = words.first().is_some_and(|word| STIFF.contains(&word.as_str()));
    let mut found: Vec<String> = words.into_iter().filter(|word| STIFF.contains(&word.as_str())).collect();
    found.sort_unstable();
    found.dedup();
    (begins || found.len() >= 2).then(|| found.into_iter().map(|word| format!("\"{word}\"")).collect())
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

/// What it is called and says, keywords included.
pub(super) fn of_itself(document: &Document) -> Vec<String> {
    let mut words = lexical::words(&document::words(&document.name));
    words.extend(lexical::words(&document.description));
    document.keywords.iter().for_each(|keyword| words.extend(lexical::words(keyword)));
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
        for plain in
            ["Runs an aggregation over a collection", "Executes a series of tests on a mouse", "Calls the contact"]
        {
            assert_eq!((api_speak(plain), formal(plain)), (None, None), "{plain}");
        }
        assert_eq!(formal("Facilitates partnerships between schools"), Some(vec!["\"facilitates\"".into()]));
        assert_eq!(
            formal("Utilize it to facilitate remittance"),
            Some(vec!["\"facilitate\"".into(), "\"remittance\"".into(), "\"utilize\"".into()])
        );
    }
}
