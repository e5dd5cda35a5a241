//! What a roster's tools weigh, by identity: guessed by length when the roster is read, counted once by whoever claims
//! that, off the way of a request. NOT names, NOT who is bound.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use xxhash_rust::xxh3::xxh3_64;

use super::tokens;

/// The sizes of one roster's tools, and of the `find_tools` declaration that goes with it.
#[derive(Debug)]
pub struct Sizes {
    tools: Vec<Content>,
    find_tools: Content,
    /// Identity of the tools' bytes in every process.
    digest: u64,
    /// Somebody counts, or has.
    claimed: AtomicBool,
    counted: OnceLock<Counted>,
}

/// A text by its hash, with its tokens as they are guessed.
#[derive(Debug, Clone, Copy)]
struct Content {
    hash: u64,
    tokens: u64,
}

/// o200k tokens.
#[derive(Debug)]
struct Counted {
    tools: Vec<u64>,
    find_tools: u64,
}

impl Sizes {
    /// `tools`: their own bytes, in order. `find_tools`: the declaration as text.
    pub fn guess<'t>(tools: impl Iterator<Item = &'t str>, find_tools: &str) -> Self {
        let tools: Vec<Content> = tools.map(Content::of).collect();
        let hashes: Vec<u8> = tools.iter().flat_map(|tool| tool.hash.to_le_bytes()).collect();
        let (claimed, counted) = (AtomicBool::new(false), OnceLock::new());
        Self { tools, find_tools: Content::of(find_tools), digest: xxh3_64(&hashes), claimed, counted }
    }

    /// Is it the caller's to [`Sizes::count`]? To one caller it says yes; [`Sizes::unclaim`] takes that back.
    pub fn claim(&self) -> bool {
        !self.claimed.load(Ordering::Relaxed) && !self.claimed.swap(true, Ordering::Relaxed)
    }

    pub fn unclaim(&self) {
        self.claimed.store(false, Ordering::Relaxed);
    }

    /// Counts. `tools`: as they were guessed by. `count`: tokens of a text, given with its hash.
    pub fn count<'t>(
        &self,
        tools: impl Iterator<Item = &'t str>,
        find_tools: &str,
        mut count: impl FnMut(u64, &str) -> u64,
    ) {
        let tools = self.tools.iter().zip(tools).map(|(tool, text)| count(tool.hash, text)).collect();
        let find_tools = count(self.find_tools.hash, find_tools);
        // Who is second counted the same.
        let _ = self.counted.set(Counted { tools, find_tools });
    }

    /// Identity of the tools' bytes, the same in every process.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Hash of a tool's bytes.
    pub fn content(&self, tool: usize) -> u64 {
        self.tools.get(tool).map_or(0, |tool| tool.hash)
    }

    /// Tokens of a tool: o200k once it is counted, guessed by its length before.
    pub fn tokens(&self, tool: usize) -> u64 {
        let counted = self.counted.get().and_then(|counted| counted.tools.get(tool).copied());
        counted.unwrap_or_else(|| self.tools.get(tool).map_or(0, |tool| tool.tokens))
    }

    /// Tokens of all tools, likewise.
    pub fn all_tokens(&self) -> u64 {
        (0..self.tools.len()).map(|tool| self.tokens(tool)).sum()
    }

    /// Hash and tokens of the `find_tools` declaration.
    pub fn find_tools(&self) -> (u64, u64) {
        let tokens = self.counted.get().map_or(self.find_tools.tokens, |counted| counted.find_tools);
        (self.find_tools.hash, tokens)
    }
}

impl Content {
    fn of(text: &str) -> Self {
        Self { hash: xxh3_64(text.as_bytes()), tokens: tokens::quick(text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guess_stands_until_one_has_counted() {
        let body = "abcdefgh".repeat(40);
        let texts = || [&body[..160], &body[160..]].into_iter();
        let sizes = Sizes::guess(texts(), "find");
        assert_eq!((sizes.tokens(0), sizes.all_tokens()), (36, 72));
        assert!(sizes.claim() && !sizes.claim());
        sizes.unclaim();
        assert!(sizes.claim());
        let mut seen = Vec::new();
        sizes.count(texts(), "find", |hash, text| {
            seen.push(hash);
            text.len() as u64
        });
        assert_eq!((sizes.tokens(1), sizes.all_tokens(), sizes.find_tools().1), (160, 320, 4));
        assert_eq!(seen[0], seen[1], "the same bytes are the same text");
        assert_eq!(sizes.tokens(2), 0);
    }
}
