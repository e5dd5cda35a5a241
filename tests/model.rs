//! The builtin embedder computes what its model says: ids and vectors of `tests/model/vectors.jsonl`, made by this code
//! after it had agreed with the official tokenizer (every id) and the official f32 embeddings (cosine 0.9999997 or
//! more) on 38 texts in 20 scripts.
//!
//! Without the model these tests FAIL: a green run must mean that it was tested. `PACKLIGHT_TEST_MODEL=absent` says that
//! its absence is meant.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use packlight::embed::builtin::{Builtin, FILE_NAME, LoadError, Pool, SHA256, Settings};
use packlight::retrieval::embedder::{Embedder, Task};
use serde::Deserialize;

/// Resident memory of a process with the model, at most.
const RESIDENT_KB: u64 = 160 * 1024;

#[derive(Deserialize)]
struct Line {
    text: String,
    ids: Vec<u32>,
    embedding: Vec<f32>,
}

fn lines() -> Vec<Line> {
    include_str!("model/vectors.jsonl").lines().map(|line| serde_json::from_str(line).expect("a line")).collect()
}

/// Where the model is, and a turn to load it: two in memory at once would spoil the figure of one.
fn model() -> Option<(PathBuf, MutexGuard<'static, ()>)> {
    static TURN: Mutex<()> = Mutex::new(());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models").join(FILE_NAME);
    if !path.is_file() {
        let meant = std::env::var("PACKLIGHT_TEST_MODEL").is_ok_and(|said| said == "absent");
        assert!(meant, "no model at {}: run `make model` (or set PACKLIGHT_TEST_MODEL=absent)", path.display());
        return None;
    }
    Some((path, TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)))
}

#[test]
fn ids_and_vectors_are_those_of_the_model() {
    let Some((path, _turn)) = model() else { return };
    let builtin = Builtin::load(&path).expect("the model");
    assert_eq!(builtin.model(), "builtin:multilingual-e5-small-q4:1571fc982750:384");
    assert_eq!(builtin.dimensions(), 384);
    let lines = lines();
    assert!(lines.len() >= 8);
    for Line { text, ids, embedding } in lines {
        assert_eq!(builtin.tokens(&text), ids, "{text}");
        let vector = builtin.embed(&text).expect("a vector");
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
        assert!((dot(&vector, &vector) - 1.0).abs() < 1e-5, "{text}: not of unit length");
        let cosine = dot(&vector, &embedding) / dot(&embedding, &embedding).sqrt();
        assert!(cosine >= 0.9999, "{text}: {cosine}");
    }
    #[cfg(target_os = "linux")]
    {
        let resident = resident_kb();
        assert!(resident <= RESIDENT_KB, "{resident} KB resident with the model");
    }
}

#[test]
fn a_text_longer_than_the_model_is_cut_at_512() {
    let Some((path, _turn)) = model() else { return };
    let builtin = Builtin::load(&path).expect("the model");
    let (long, longer) = ("Pay the open invoice. ".repeat(200), "Pay the open invoice. ".repeat(20_000));
    let ids = builtin.tokens(&long);
    assert_eq!((ids.len(), ids.first(), ids.last()), (512, Some(&0), Some(&2)));
    assert_eq!(builtin.tokens(&longer), ids);
}

#[tokio::test]
#[expect(clippy::await_holding_lock, reason = "a runtime of its own: no other task waits on this thread")]
async fn the_pool_answers_as_the_model_does() {
    let Some((path, _turn)) = model() else { return };
    let builtin = Builtin::load(&path).expect("the model");
    let texts: Vec<String> = lines().into_iter().map(|line| line.text).collect();
    let expected: Vec<Vec<f32>> = texts.iter().map(|text| builtin.embed(text).expect("a vector")).collect();
    let pool = Pool::start(builtin, Settings { threads: 2, ..Settings::default() }).expect("threads");
    assert_eq!(pool.dimensions(), 384);
    let documents = pool.embed(&texts, Task::Document).await.expect("vectors");
    assert_eq!(documents, expected);
}

#[test]
fn a_model_with_one_bit_turned_is_refused() {
    let Some((path, _turn)) = model() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join(FILE_NAME);
    let mut bytes = std::fs::read(&path).expect("the model");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&copy, bytes).expect("a copy");
    match Builtin::load(&copy) {
        Err(LoadError::WrongFile { found, .. }) => assert_ne!(found, SHA256),
        other => panic!("{other:?}"),
    }
}

#[cfg(target_os = "linux")]
fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("own status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
