//! What does choosing among very many tools cost, the message's vector at hand? One core, no index, no cache.
//!
//! 10,000 tools of about 40 words each, names among them, rows of 384 numbers; a message of 20 words. Random vectors
//! and words from a vocabulary whose frequencies fall as those of a language do: what is counted is work, not quality.
//! Asked: at most 5 ms at the median.
//!
//! `cargo bench --bench select [-- TOOLS]`

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use packlight::retrieval::document::{Document, Parameter};
use packlight::retrieval::index::Index;
use packlight::retrieval::question::Question;

const DIMENSIONS: usize = 384;
const WORDS: usize = 20_000;
const ROUNDS: usize = 101;
const ASKED: Duration = Duration::from_millis(5);

fn main() -> ExitCode {
    let tools = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(10_000);
    let mut chance = Chance(7);
    let documents: Vec<Document> = (0..tools).map(|n| document(n, &mut chance)).collect();
    let matrix: Vec<f32> = (0..tools * DIMENSIONS).map(|_| chance.number() * 0.05).collect();
    let bank: Vec<Vec<f32>> = (0..50).map(|_| (0..DIMENSIONS).map(|_| chance.number() * 0.05).collect()).collect();
    let before = resident();
    let begun = Instant::now();
    let index = Index::build(documents, matrix, &bank).expect("an index");
    let (built, grown) = (begun.elapsed(), resident().saturating_sub(before));
    let vector: Arc<[f32]> = (0..DIMENSIONS).map(|_| chance.number() * 0.05).collect();
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let message = chance.words(20);
            let begun = Instant::now();
            let question = index.focus(Question::bare(&message));
            black_box(index.rank(&question, std::slice::from_ref(&vector)));
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    let at = |percent: usize| times.get((times.len() - 1) * percent / 100).copied().unwrap_or_default();
    println!("tools        {tools}, {DIMENSIONS} numbers each");
    println!("index        {built:.1?}, {} bytes a tool beside its row of {}", grown / tools.max(1), DIMENSIONS * 4);
    println!("select       {:.2?} p50, {:.2?} p99 (asked: {ASKED:.0?} for 10,000)", at(50), at(99));
    if at(50) <= ASKED { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn document(n: usize, chance: &mut Chance) -> Document {
    Document {
        name: format!("{}_{n}", chance.words(2).replace(' ', "_")),
        description: chance.words(20),
        parameters: (0..3)
            .map(|_| Parameter { name: chance.words(1), description: chance.words(5), values: Vec::new() })
            .collect(),
        ..Document::default()
    }
}

/// Splitmix: the same numbers each time.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// -1 to 1.
    fn number(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    /// Frequent words are short, as in any language.
    fn words(&mut self, count: usize) -> String {
        let mut word = || {
            let rank = ((WORDS as f64).powf((self.next() >> 11) as f64 / (1u64 << 53) as f64)) as usize;
            let mut letters = Chance(rank as u64 + 1);
            let length = 2 + (rank as f64).log2().max(0.0) as usize / 2 + rank % 3;
            (0..length).map(|_| char::from(b'a' + (letters.next() % 26) as u8)).collect::<String>()
        };
        (0..count).map(|_| word()).collect::<Vec<_>>().join(" ")
    }
}

/// Bytes of this process in memory; 0 where nobody says.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap_or_default() * 1024
}
