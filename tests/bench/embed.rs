//! What does a query cost, and what all else that is done for a turn? One text of 20 tokens, one thread.
//!
//! A time alone says little about the code: machines differ and neighbours disturb. So the same run times a yardstick,
//! round by round in turn with the embedding: the bare matrix products of a forward pass on the same `gemm` crate,
//! 12 layers x (20x384 by 384x1152, 384x384, 384x1536, and 20x1536 by 1536x384), each layer with its own weights,
//! plain row-major, so that the same 85 MB come from memory. What a disturbance does to one it does to the other, and
//!
//! ```text
//! ratio = p50 of the embedding / p50 of the products
//! ```
//!
//! is what all the rest costs (attention, norms, erf, softmax, tokens, reading words from the file): at most 1.2 is
//! asked. It can fall below 1: the embedder lays its weights out for `gemm`, the yardstick does not.
//!
//! Then, in rounds of their own, the embedding of a message against all that its turn's first request is kept waiting
//! for: the body read, the transcript, the question (negation, passages), the embedding on the pool's thread, the ranking
//! with words, names and width, the block. The demo's 44 tools, their vectors at hand, a new message each round:
//!
//! ```text
//! ratio = p50 of the turn / p50 of the embedding of the same messages
//! ```
//!
//! at most 1.3 is asked, of a conversation's first message and of a later one. A later one is read with the last sentence
//! of the reply before it, which was embedded when the reply had passed by; where it was not (another replica, a busy
//! pool), that costs a second embedding on the same thread: told, not judged.
//!
//! `cargo bench --bench embed [-- ROUNDS]`; needs `make model`. Exit code 1 when a ratio is missed.

mod turn;

use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use packlight::embed::builtin::forward::Scratch;
use packlight::embed::builtin::{Builtin, FILE_NAME};
use turn::Turns;

const TOKENS: usize = 20;
const QUERY: &str = "Move the meeting with the new supplier to Friday morning and tell the whole team";
const LAYERS: usize = 12;
/// Inputs and outputs of a layer's products.
const PRODUCTS: [(usize, usize); 4] = [(384, 1152), (384, 384), (384, 1536), (1536, 384)];
const ASKED_RATIO: f64 = 1.2;
/// Of a turn to its embedding.
const ASKED_TURN: f64 = 1.3;

fn main() -> ExitCode {
    let rounds = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(100);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models").join(FILE_NAME);
    let before = resident_mb();
    let begun = Instant::now();
    let builtin = match Builtin::load(&path) {
        Ok(builtin) => Arc::new(builtin),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let loaded = begun.elapsed();
    let tokens = builtin.tokens(QUERY).len();
    assert_eq!(tokens, TOKENS, "the query's length in tokens");

    let mut scratch = Scratch::default();
    embed(&builtin, &mut scratch);
    let with_model = resident_mb();
    let mut yardstick = Yardstick::new();
    yardstick.run();

    let (mut embeddings, mut products) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        embeddings.push(timed(|| embed(&builtin, &mut scratch)));
        products.push(timed(|| yardstick.run()));
    }
    embeddings.sort_unstable();
    products.sort_unstable();
    let ratio = at(&embeddings, 50).as_secs_f64() / at(&products, 50).as_secs_f64();
    println!("load           {:8.1} ms (hash included)", ms(loaded));
    println!("resident       {with_model:8.1} MB with the model, {before:.1} before");
    println!(
        "embedding      {:8.1} ms p50, {:.1} p99, {:.1} best",
        ms(at(&embeddings, 50)),
        ms(at(&embeddings, 99)),
        ms(at(&embeddings, 0))
    );
    println!(
        "bare products  {:8.1} ms p50, {:.1} p99, {:.1} best",
        ms(at(&products, 50)),
        ms(at(&products, 99)),
        ms(at(&products, 0))
    );
    println!(
        "ratio          {ratio:8.3} of p50 (asked: at most {ASKED_RATIO}), {TOKENS} tokens, 1 thread, {rounds} rounds"
    );
    drop(yardstick);
    let turn = turns(&builtin, rounds);
    if ratio <= ASKED_RATIO && turn <= ASKED_TURN { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Messages alone, as whole turns, and as later turns, round by round; the greater ratio of those that are judged.
fn turns(builtin: &Arc<Builtin>, rounds: usize) -> f64 {
    let mut scratch = Scratch::default();
    let turns = Turns::over(Arc::clone(builtin));
    let (mut alone, mut first, mut later, mut unseen) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let messages = turn::messages(builtin, TOKENS);
    // One of each that is not counted: memory is taken, the roster is read.
    for (round, three) in messages.chunks_exact(3).take(rounds + 1).enumerate() {
        let [(message, _), (next, reply), (last, missed)] = three else { continue };
        let mut embedding = || {
            timed(|| {
                black_box(builtin.embed_with(black_box(message), &mut scratch).expect("a vector"));
            })
        };
        // Neither is always the one behind the other.
        let before = (round % 2 == 0).then(&mut embedding);
        let turn = turns.first(message);
        let embedding = before.unwrap_or_else(embedding);
        let follows = turns.later(next, reply, true);
        let unprepared = turns.later(last, missed, false);
        if round > 0 {
            alone.push(embedding);
            first.push(turn);
            later.push(follows);
            unseen.push(unprepared);
        }
    }
    let rounds = alone.len();
    let [alone, first, later, unseen] = [alone, first, later, unseen].map(|mut times: Vec<Duration>| {
        times.sort_unstable();
        (at(&times, 50), at(&times, 99))
    });
    let of_alone = |times: (Duration, Duration)| times.0.as_secs_f64() / alone.0.as_secs_f64();
    let line = |what: &str, (p50, p99): (Duration, Duration)| {
        println!("{what:14} {:8.1} ms p50, {:.1} p99", ms(p50), ms(p99));
    };
    line("message alone", alone);
    line("whole turn", first);
    line("a later turn", later);
    line("  reply unseen", unseen);
    println!(
        "ratio          {:8.3} of p50, a later turn {:.3} (asked: at most {ASKED_TURN}), its reply unseen {:.3}; \
         {TOKENS} tokens, 44 tools, {rounds} rounds",
        of_alone(first),
        of_alone(later),
        of_alone(unseen)
    );
    of_alone(first).max(of_alone(later))
}

fn embed(builtin: &Builtin, scratch: &mut Scratch) {
    black_box(builtin.embed_with(black_box(QUERY), scratch).expect("a vector"));
}

/// The products and nothing else.
struct Yardstick {
    weights: Vec<Vec<f32>>,
    input: Vec<f32>,
    output: Vec<f32>,
}

impl Yardstick {
    fn new() -> Self {
        let shapes = (0..LAYERS).flat_map(|_| PRODUCTS);
        // Some numbers: zeros and denormals would be another speed.
        let numbers = |count| (0..count).map(|n| (n % 17) as f32 * 0.01 - 0.08).collect();
        Self {
            weights: shapes.map(|(inputs, outputs)| numbers(inputs * outputs)).collect(),
            input: numbers(TOKENS * 1536),
            output: vec![0.0; TOKENS * 1536],
        }
    }

    fn run(&mut self) {
        for (weights, (inputs, outputs)) in self.weights.iter().zip(PRODUCTS.iter().cycle()) {
            let (inputs, outputs) = (*inputs, *outputs);
            assert!(self.input.len() >= TOKENS * inputs && self.output.len() >= TOKENS * outputs);
            assert!(weights.len() == inputs * outputs);
            // SAFETY: rows of `inputs` and `outputs` numbers, TOKENS and `inputs` of them, all inside their vectors
            // (asserted), which are three different ones.
            unsafe {
                gemm::gemm(
                    TOKENS,
                    outputs,
                    inputs,
                    self.output.as_mut_ptr(),
                    1,
                    outputs as isize,
                    false,
                    self.input.as_ptr(),
                    1,
                    inputs as isize,
                    weights.as_ptr(),
                    1,
                    outputs as isize,
                    0.0,
                    1.0,
                    false,
                    false,
                    false,
                    gemm::Parallelism::None,
                );
            }
            black_box(&mut self.output);
        }
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

/// Of sorted times.
fn at(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() - 1) * percent / 100]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// 0 where there is no /proc.
fn resident_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kb = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().trim_end_matches(" kB").parse().ok());
    kb.unwrap_or(0.0) / 1024.0
}
