//! Hidden exchanges: under which key they are remembered and where they go back.
//! A memory is an optimisation: its loss costs tokens, never correctness. It is
//! never shared across credentials. NOT where it is kept (`store`).

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use sha2::{Digest, Sha256};

use super::policy::Way;
use super::transcript::Transcript;
use crate::wire::anthropic::marks;
use crate::wire::reply::Call;
use crate::wire::request::{Exchange, Restored};
use crate::wire::view::{ChatView, MessageView, Role};

/// Bytes of one memory, at most: a longer one is not kept.
const LARGEST: usize = 256 * 1024;

/// The key of a conversation: the requests that share system prompt, first user message and credential.
pub fn conversation(upstream: &str, credential: &[u8], view: &ChatView<'_>) -> String {
    let mut hash = Sha256::new();
    put(&mut hash, b"packlight conversation 1");
    put(&mut hash, upstream.as_bytes());
    put(&mut hash, credential);
    for system in &view.system {
        put(&mut hash, system.as_bytes());
    }
    if let Some(first) = view.messages.iter().find(|message| message.role == Role::User) {
        put(&mut hash, first.texts.concat().trim().as_bytes());
    }
    hex(hash)
}

/// What is remembered of a conversation's last request.
#[derive(Debug, Default, PartialEq)]
pub struct Seen {
    /// Seconds since the epoch.
    at: Option<f64>,
    /// Digest of its block.
    pub block: Option<String>,
    pub way: Option<Way>,
    /// Digests of turns before which the provider had forgotten the conversation.
    anew: HashSet<String>,
}

const AT: &str = "at";
const ANEW: &str = "anew:";

impl Seen {
    /// Reads what [`written`](Self::written) wrote; rubbish is as good as forgotten.
    pub fn read(fields: &[(String, Vec<u8>)]) -> Self {
        let at = fields.iter().find(|(name, _)| name == AT).and_then(|(_, value)| std::str::from_utf8(value).ok());
        let at = at.and_then(|text| text.split_once(' '));
        let (block, way) = at.map_or(("", ""), |(_, rest)| rest.split_once(' ').unwrap_or((rest, "")));
        Self {
            at: at.and_then(|(seconds, _)| seconds.parse().ok()),
            block: Some(block).filter(|block| !block.is_empty()).map(str::to_owned),
            way: Way::read(way),
            anew: fields.iter().filter_map(|(name, _)| name.strip_prefix(ANEW)).map(str::to_owned).collect(),
        }
    }

    /// What is kept of a request. `anew`: the turn that it begins, when the provider had forgotten the conversation.
    pub fn written(now: f64, block: &str, way: Way, anew: Option<&str>) -> Vec<(String, Vec<u8>)> {
        let anew = anew.map(|turn| (format!("{ANEW}{turn}"), Vec::new()));
        anew.into_iter().chain([(AT.to_owned(), format!("{now} {block} {}", way.written()).into_bytes())]).collect()
    }

    /// Indices of the turns before which the provider had forgotten the conversation. `turns`: as [`turns`] gives them.
    pub fn expired(&self, turns: &[String]) -> BTreeSet<usize> {
        turns.iter().enumerate().filter(|(_, digest)| self.anew.contains(*digest)).map(|(turn, _)| turn).collect()
    }

    /// Seconds since the last request; `None`: nobody knows.
    pub fn silence(&self, now: f64) -> Option<f64> {
        self.at.map(|at| now - at)
    }
}

/// A digest of each turn with all that the user wrote before it.
pub fn turns(transcript: &Transcript) -> Vec<String> {
    let mut hash = Sha256::new();
    let turns = transcript.turns.iter().map(|turn| {
        put(&mut hash, turn.utterance.text.as_bytes());
        let mut digest = hex(hash.clone());
        digest.truncate(16);
        digest
    });
    turns.collect()
}

/// The reply an agent knows, as a place in its transcript.
#[derive(Debug, PartialEq, Eq)]
pub struct Place {
    /// Messages of the visible reply.
    pub run: Range<usize>,
    /// Digest of the transcript up to and including them.
    pub digest: String,
}

/// Every reply of the transcript, in order. `body`: the text that `view` was read from.
pub fn places(view: &ChatView<'_>, body: &str) -> Vec<Place> {
    walk(view, body).1
}

/// The digest under which the next request will show the reply that is on its way.
pub fn digest(view: &ChatView<'_>, body: &str, text: &str, calls: &[Call]) -> String {
    let mut hash = walk(view, body).0;
    reply(&mut hash, text, calls.iter().map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str())));
    hex(hash)
}

/// A digest by which a message is found again without being shown.
pub fn fingerprint(text: &str) -> String {
    let mut digest = hex(Sha256::new_with_prefix(text.as_bytes()));
    digest.truncate(16);
    digest
}

/// What is kept of the exchanges of one reply; `None`: too long to keep.
pub fn written(exchanges: &[Exchange]) -> Option<Vec<u8>> {
    serde_json::to_vec(exchanges).ok().filter(|bytes| bytes.len() <= LARGEST)
}

/// Puts what is remembered back to its places; what cannot be read is as good as forgotten.
pub fn recall(places: Vec<Place>, remembered: &[(String, Vec<u8>)]) -> Vec<Restored> {
    places
        .into_iter()
        .filter_map(|place| {
            let (_, bytes) = remembered.iter().find(|(digest, _)| *digest == place.digest)?;
            let exchanges: Vec<Exchange> = serde_json::from_slice(bytes).ok()?;
            Some(Restored { run: place.run, exchanges })
        })
        .collect()
}

/// The digest of the whole transcript, and the places it passes.
fn walk(view: &ChatView<'_>, body: &str) -> (Sha256, Vec<Place>) {
    let mut hash = Sha256::new();
    put(&mut hash, b"packlight transcript 1");
    let mut places = Vec::new();
    let mut at = 0;
    while let Some(message) = view.messages.get(at) {
        if message.role != Role::Assistant {
            other(&mut hash, message, body);
            at += 1;
            continue;
        }
        let run: Vec<&MessageView<'_>> =
            view.messages.iter().skip(at).take_while(|message| message.role == Role::Assistant).collect();
        let text: String = run.iter().flat_map(|message| &message.texts).map(AsRef::as_ref).collect();
        let calls = run.iter().flat_map(|message| &message.calls);
        reply(&mut hash, &text, calls.map(|call| (call.id.as_ref(), call.name.as_ref(), call.arguments.as_ref())));
        let end = at + run.len();
        places.push(Place { run: at..end, digest: hex(hash.clone()) });
        at = end;
    }
    (hash, places)
}

/// Length first, so that no two lists of parts read the same.
fn put(hash: &mut Sha256, part: &[u8]) {
    hash.update((part.len() as u64).to_le_bytes());
    hash.update(part);
}

/// Answers to calls count with their bytes: branches of a conversation differ in them. Not with cache marks, which
/// clients move about; of what the user and the system say only the text counts.
fn other(hash: &mut Sha256, message: &MessageView<'_>, body: &str) {
    match message.role {
        Role::Tool => put(hash, marks::without(body.get(message.span.clone()).unwrap_or_default()).as_bytes()),
        Role::System | Role::User | Role::Assistant => {
            put(hash, b"said");
            put(hash, message.texts.concat().trim().as_bytes());
            for answer in &message.answers {
                put(hash, answer.id.as_bytes());
            }
        }
    }
}

/// A reply as every client echoes it, whatever its JSON library does to it.
fn reply<'c>(hash: &mut Sha256, text: &str, calls: impl Iterator<Item = (&'c str, &'c str, &'c str)>) {
    put(hash, b"reply");
    put(hash, text.trim().as_bytes());
    for (id, name, arguments) in calls {
        put(hash, id.as_bytes());
        put(hash, name.as_bytes());
        let arguments = serde_json::from_str(arguments).map(canonical).unwrap_or_else(|_| arguments.trim().to_owned());
        put(hash, arguments.as_bytes());
    }
}

/// One text for every way to write the same value: keys sorted (as `Map` does), numbers as doubles.
fn canonical(value: serde_json::Value) -> String {
    fn settle(value: &mut serde_json::Value) {
        match value {
            // Not every library keeps `1.0`, `1e16` or integers over 2^53 apart from what they are near to.
            serde_json::Value::Number(number) => {
                if let Some(near) = number.as_f64() {
                    *value = serde_json::Value::from(near);
                }
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(settle),
            serde_json::Value::Object(members) => members.values_mut().for_each(settle),
            _ => {}
        }
    }
    let mut value = value;
    settle(&mut value);
    value.to_string()
}

fn hex(hash: Sha256) -> String {
    hex::encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::policy::Binding;
    use crate::turn::transcript::tests::{answering, calling, said, view};

    fn call(arguments: &str) -> Call {
        Call { id: "f:0".into(), name: "f".into(), arguments: arguments.into() }
    }

    #[test]
    fn the_next_request_shows_the_reply_under_the_same_digest_however_it_is_written() {
        let before = view(vec![said(Role::User, &["a"])]);
        let promised = digest(&before, "", "ok ", &[call(r#"{"a":1.0,"b":[2]}"#)]);
        let mut echoed = calling(&[("f:0", "f")]);
        echoed.texts = vec!["ok".into()];
        echoed.calls[0].arguments = r#"{ "b": [2], "a": 1 }"#.into();
        let after = view(vec![said(Role::User, &["a"]), echoed, answering(&["f:0"])]);
        let places = places(&after, "");
        assert_eq!(places, [Place { run: 1..2, digest: promised }]);
    }

    #[test]
    fn a_reply_in_several_pieces_is_one_place() {
        let after = view(vec![said(Role::User, &["a"]), said(Role::Assistant, &["o"]), said(Role::Assistant, &["k"])]);
        let before = view(vec![said(Role::User, &["a"])]);
        assert_eq!(places(&after, ""), [Place { run: 1..3, digest: digest(&before, "", "ok", &[]) }]);
    }

    #[test]
    fn conversations_are_kept_apart_by_credential_and_upstream() {
        let chat = view(vec![said(Role::User, &["a"])]);
        let key = conversation("kimi", b"one", &chat);
        assert_ne!(key, conversation("kimi", b"two", &chat));
        assert_ne!(key, conversation("kim", b"ione", &chat));
        assert_eq!(key, conversation("kimi", b"one", &view(vec![said(Role::User, &[" a"]), said(Role::User, &["b"])])));
    }

    #[test]
    fn a_turn_that_began_after_a_silence_is_found_again() {
        let (now, block) = (1_790_000_000.25, "ab12");
        let transcript = |texts: &[&'static str]| {
            Transcript::of(&view(texts.iter().map(|text| said(Role::User, std::slice::from_ref(text))).collect()), &[])
        };
        let digests = turns(&transcript(&["a", "b"]));
        let seen = Seen::read(&Seen::written(now, block, Way::Explored(Binding::Dispatch), Some(&digests[1])));
        assert_eq!((seen.silence(now + 400.0), seen.block.as_deref()), (Some(400.0), Some(block)));
        assert_eq!(seen.way, Some(Way::Explored(Binding::Dispatch)));
        for way in [Way::Narrowed(Binding::Append), Way::Full(Binding::Replace)] {
            assert_eq!(Seen::read(&Seen::written(now, block, way, None)).way, Some(way));
        }
        assert_eq!(seen.expired(&turns(&transcript(&["a", "b", "c"]))), BTreeSet::from([1]));
        assert!(seen.expired(&turns(&transcript(&["other", "b"]))).is_empty(), "another conversation's turn");
        assert_eq!(Seen::read(&[("at".to_owned(), b"\xff".to_vec())]), Seen::default());
    }

    #[test]
    fn rubbish_is_as_good_as_forgotten() {
        let exchange = Exchange {
            said: "{}".into(),
            answers: Vec::new(),
            text: String::new(),
            reasoning: String::new(),
            mixed: false,
            found: vec!["f".into()],
        };
        let kept = written(std::slice::from_ref(&exchange)).expect("short enough");
        let place = |digest: &str| Place { run: 0..1, digest: digest.into() };
        let remembered = [("good".to_owned(), kept), ("bad".to_owned(), b"\x00rubbish".to_vec())];
        let restored = recall(vec![place("good"), place("bad"), place("gone")], &remembered);
        assert_eq!(restored, [Restored { run: 0..1, exchanges: vec![exchange.clone()] }]);
        assert_eq!(written(&[Exchange { said: "x".repeat(LARGEST), ..exchange }]), None);
    }
}
