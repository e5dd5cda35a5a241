//! Fuzz targets of the wire: what must hold for any bytes, and a small mutator
//! that throws bytes at it. Plain binaries on stable Rust; no coverage feedback,
//! so the seeds are the golden files of `tests/wire`, which reach every branch.
//!
//! ```text
//! tests/fuzz/smoke 20                                                     every target for 20 s
//! cargo run --manifest-path tests/fuzz/Cargo.toml --bin sse -- --seconds 20 [--seed 7]
//! cargo run --manifest-path tests/fuzz/Cargo.toml --bin sse -- tests/fuzz/artifacts/sse-1f…   one input again
//! ```

pub mod mutate;
pub mod run;
pub mod view;
#[path = "../../../src/wire/mod.rs"]
pub mod wire;

/// `bytes` in chunks whose sizes `bytes` itself decides: the same input is always cut alike.
pub fn cut(bytes: &[u8]) -> Vec<&[u8]> {
    let mut random = mutate::Random::new(bytes.iter().fold(7, |hash, byte| hash * 31 % 1_000_003 + u64::from(*byte)));
    let (mut rest, mut chunks) = (bytes, Vec::new());
    while !rest.is_empty() {
        let (chunk, next) = rest.split_at(rest.len().min(1 + random.below(40)));
        chunks.push(chunk);
        rest = next;
    }
    chunks
}
