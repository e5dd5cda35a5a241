//! Writes the o200k vocabulary as one compact table for `src/turn/tokens/vocabulary.rs`: `include_bytes!` of 2 MB of
//! which only the pages that are looked at become resident, where the crate's own table costs 67 MB.
//!
//! Layout, little-endian: for each length from 1 to 128 bytes the number of tokens (u32); then for each length their
//! bytes, sorted; then for each length their ranks (u24) in the same order.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

const LONGEST: usize = 128;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    let table = tiktoken_rs::o200k_base()?;
    let special = table.special_tokens().len() as u32;
    let mut by_length: BTreeMap<usize, Vec<(Vec<u8>, u32)>> = BTreeMap::new();
    let mut rank = 0;
    let mut missing = 0;
    // Ranks are dense but for a gap before the special tokens, which are no part of the vocabulary of ordinary text.
    while missing <= special {
        match table.decode_bytes(&[rank]) {
            Ok(bytes) if !bytes.starts_with(b"<|") || !bytes.ends_with(b"|>") => {
                if bytes.len() > LONGEST {
                    return Err(format!("token {rank} has {} bytes", bytes.len()).into());
                }
                by_length.entry(bytes.len()).or_default().push((bytes, rank));
            }
            Ok(_) => {}
            Err(_) => missing += 1,
        }
        rank += 1;
    }
    let mut blob = Vec::with_capacity(3 << 20);
    for tokens in by_length.values_mut() {
        tokens.sort();
    }
    for length in 1..=LONGEST {
        let count = by_length.get(&length).map_or(0, Vec::len) as u32;
        blob.extend(count.to_le_bytes());
    }
    for tokens in by_length.values() {
        blob.extend(tokens.iter().flat_map(|(bytes, _)| bytes));
    }
    for tokens in by_length.values() {
        blob.extend(tokens.iter().flat_map(|(_, rank)| rank.to_le_bytes().into_iter().take(3)));
    }
    std::fs::write(Path::new(&std::env::var("OUT_DIR")?).join("o200k.bin"), blob)?;
    Ok(())
}
