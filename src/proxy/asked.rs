//! What the head of a request says to Packlight: our own headers, who pays, which
//! group its conversation is in. NOT the body, NOT what follows from it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use http::HeaderMap;
use sha2::{Digest, Sha256};
use xxhash_rust::xxh3::Xxh3;

use crate::config::narrow::Mode;
use crate::turn::policy::Asked;

/// What this one request asks for.
pub fn asked(headers: &HeaderMap) -> Asked {
    let list = |name: &str| {
        let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).map(|part| part.trim().to_owned()).filter(|part| !part.is_empty())
    };
    Asked {
        keep: list("x-packlight-keep").collect(),
        connected: headers.contains_key("x-packlight-connected").then(|| list("x-packlight-connected").collect()),
        resume: headers.get("x-packlight-resume").is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true")),
        begins: false,
        payer: Vec::new(),
        conversation: String::new(),
    }
}

/// The mode that this one request asks for. Whoever asks for something wants other than what is configured, and a word
/// that is not known may be a misspelt `shadow`: the agent's own bytes are the safe answer to it.
pub fn mode(headers: &HeaderMap) -> Option<Mode> {
    static SAID: Once = Once::new();
    let mut values = headers.get_all("x-packlight-mode").iter();
    let value = values.next()?;
    let word = value.to_str().ok().filter(|_| values.next().is_none()).map(|word| word.trim().to_ascii_lowercase());
    Some(match word.as_deref() {
        Some("off") => Mode::Off,
        Some("shadow") => Mode::Shadow,
        Some("narrow") => Mode::Narrow,
        _ => {
            // Without the value: no header is logged.
            SAID.call_once(|| tracing::warn!("an x-packlight-mode is none of off, shadow, narrow: it is read as off"));
            Mode::Off
        }
    })
}

/// A digest of whoever pays: memories are never shared across credentials.
pub fn credential(headers: &HeaderMap, path: &str) -> Vec<u8> {
    let mut hash = Sha256::new();
    for name in ["authorization", "x-goog-api-key", "x-api-key", "api-key"] {
        for value in headers.get_all(name) {
            hash.update(name.as_bytes());
            hash.update((value.len() as u64).to_le_bytes());
            hash.update(value.as_bytes());
        }
    }
    let query = path.split_once('?').map_or("", |(_, query)| query);
    for pair in query.split('&').filter(|pair| pair.starts_with("key=")) {
        hash.update(pair.as_bytes());
    }
    hash.finalize().to_vec()
}

/// Whose prompt cache a request reads: a hash that stays in memory.
pub fn account(upstream: &str, model: &str, credential: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    (upstream, model, credential).hash(&mut hash);
    hash.finish()
}

/// Is this conversation narrowed, or in the comparison group? Stable across replicas and restarts: `conversation` is a
/// SHA-256 in hex.
pub fn is_narrowed(conversation: &str, percent: u8) -> bool {
    number(conversation.get(..8)) % 100 < u32::from(percent)
}

/// Is this conversation among the share that is narrowed only to be watched? As stable, and independent of
/// [`is_narrowed`].
pub fn is_explored(conversation: &str, share: f64) -> bool {
    f64::from(number(conversation.get(8..16))) < share * f64::from(u32::MAX)
}

fn number(hex: Option<&str>) -> u32 {
    hex.and_then(|hex| u32::from_str_radix(hex, 16).ok()).unwrap_or(u32::MAX)
}

/// Unique enough to find a request's record: time, process and a count.
pub fn request_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut hash = DefaultHasher::new();
    (SystemTime::now(), std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)).hash(&mut hash);
    format!("{:016x}", hash.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().expect("a value"));
        }
        headers
    }

    #[test]
    fn lists_may_stand_in_one_header_or_several() {
        let asked = asked(&headers(&[
            ("x-packlight-keep", "a, b,,"),
            ("x-packlight-keep", "c"),
            ("x-packlight-connected", ""),
        ]));
        assert_eq!(asked.keep, ["a", "b", "c"]);
        assert_eq!(asked.connected, Some(std::collections::BTreeSet::new()), "no connector at all");
        assert!(!asked.resume);
    }

    #[test]
    fn a_mode_is_heard_in_any_case_and_an_unknown_one_is_off() {
        let of = |value: &'static str| mode(&headers(&[("x-packlight-mode", value)]));
        assert_eq!(
            (of(" Shadow "), of("NARROW"), of("off")),
            (Some(Mode::Shadow), Some(Mode::Narrow), Some(Mode::Off))
        );
        for unknown in ["of", "shadow,narrow", "", "true"] {
            assert_eq!(of(unknown), Some(Mode::Off), "{unknown}");
        }
        let twice = headers(&[("x-packlight-mode", "narrow"), ("x-packlight-mode", "shadow")]);
        assert_eq!((mode(&twice), mode(&headers(&[]))), (Some(Mode::Off), None));
    }

    #[test]
    fn who_pays_is_told_apart_by_header_and_by_key_in_the_query() {
        let none = credential(&headers(&[]), "/v1");
        assert_ne!(none, credential(&headers(&[("authorization", "Bearer a")]), "/v1"));
        assert_ne!(none, credential(&headers(&[]), "/v1?alt=sse&key=a"));
        assert_eq!(none, credential(&headers(&[("x-other", "a")]), "/v1?alt=sse"));
    }

    #[test]
    fn about_that_many_conversations_are_narrowed_and_always_the_same_ones() {
        let digests: Vec<String> = (0u32..2000).map(|n| format!("{:08x}", n.wrapping_mul(2_654_435_761))).collect();
        let at = |percent| digests.iter().filter(|digest| is_narrowed(digest, percent)).count();
        assert_eq!((at(0), at(100)), (0, 2000));
        assert!((150..250).contains(&at(10)), "{}", at(10));
        let mixed = |n: u32| format!("{:08x}{:08x}", n.wrapping_mul(2_654_435_761), n.wrapping_mul(2_246_822_519));
        let explored: Vec<String> = (0..20_000).map(mixed).filter(|digest| is_explored(digest, 0.01)).collect();
        assert!((150..250).contains(&explored.len()), "{}", explored.len());
        let both = explored.iter().filter(|digest| is_narrowed(digest, 50)).count();
        assert!((explored.len() / 3..2 * explored.len() / 3).contains(&both), "one says nothing of the other: {both}");
        assert!(digests.iter().all(|digest| !is_narrowed(digest, 10) || is_narrowed(digest, 11)), "growing keeps them");
    }
}
