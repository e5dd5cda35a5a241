//! A provider's prompt cache, simulated. NOT a cache of ours: nothing is kept but hashes, token counts and times.
//!
//! As measured at Kimi (and said of Gemini's implicit cache): the identity is the content of the prefix in the provider's
//! order (tools, system, messages); matches are cut to whole chunks of 256 tokens; an exact repetition reads everything;
//! a change before a token makes that token new. A read renews what it read.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// How a provider caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Matches are cut to a multiple of so many tokens.
    pub chunk: u64,
    /// How long a prefix is kept after it was last used.
    pub life: Duration,
    /// Shorter matches are not read at all (Gemini), in tokens.
    pub minimum: u64,
}

impl Default for Rules {
    fn default() -> Self {
        Self { chunk: 256, life: Duration::from_secs(300), minimum: 0 }
    }
}

/// A piece of a prompt that is either the same as another or not: a tool, a message. The same content must be cut the
/// same way in every request, and what may change alone must stand alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    pub hash: u64,
    pub tokens: u64,
}

impl Segment {
    pub fn new(content: &[u8], tokens: u64) -> Self {
        Self { hash: xxh3_64_with_seed(content, 0), tokens }
    }
}

/// What one request cost, in tokens. `cached` is part of `prompt`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Read {
    pub prompt: u64,
    pub cached: u64,
}

impl Read {
    /// Input tokens at full price: a cached one counts `ratio`.
    pub fn weighed(&self, ratio: f64) -> f64 {
        (self.prompt - self.cached) as f64 + self.cached as f64 * ratio
    }
}

impl std::ops::AddAssign for Read {
    fn add_assign(&mut self, other: Self) {
        self.prompt += other.prompt;
        self.cached += other.cached;
    }
}

/// The prefixes that a provider remembers for one credential. Bounded: at `most` prefixes the least recently used half
/// is forgotten, in one sweep.
#[derive(Debug)]
pub struct PrefixCache {
    rules: Rules,
    most: usize,
    /// When the prefix with this hash was last used.
    used: HashMap<u64, Duration, BuildHasherDefault<Pass>>,
}

/// Keys are mixed already.
#[derive(Debug, Default)]
struct Pass(u64);

impl Hasher for Pass {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

/// The prefix that ends with this segment, by the one before it. One multiplication of 128 bits, folded.
fn chained(before: u64, segment: Segment) -> u64 {
    let left = before ^ 0x9e37_79b9_7f4a_7c15;
    let right = segment.hash ^ segment.tokens.rotate_left(40) ^ 0xd1b5_4a32_d192_ed03;
    let product = u128::from(left) * u128::from(right);
    (product as u64) ^ ((product >> 64) as u64) ^ right.rotate_left(17)
}

impl PrefixCache {
    /// `most`: prefixes, one a segment; about 50 bytes each.
    pub fn new(rules: Rules, most: usize) -> Self {
        Self { rules, most: most.max(2), used: HashMap::default() }
    }

    /// Sends this prompt at `now` (since whenever; it never goes back). The order of the segments is the provider's.
    pub fn send(&mut self, prompt: &[Segment], now: Duration) -> Read {
        let mut read = Read::default();
        let (mut chain, mut matching, mut matched) = (0, true, 0);
        for segment in prompt {
            chain = chained(chain, *segment);
            let before = self.used.insert(chain, now);
            matching &= before.is_some_and(|used| now.saturating_sub(used) <= self.rules.life);
            read.prompt += segment.tokens;
            if matching {
                matched = read.prompt;
            }
        }
        read.cached = if matched == read.prompt { matched } else { matched - matched % self.rules.chunk.max(1) };
        if read.cached < self.rules.minimum {
            read.cached = 0;
        }
        self.shrink(now);
        read
    }

    fn shrink(&mut self, now: Duration) {
        if self.used.len() <= self.most {
            return;
        }
        let life = self.rules.life;
        self.used.retain(|_, used| now.saturating_sub(*used) <= life);
        if self.used.len() <= self.most {
            return;
        }
        let mut times: Vec<Duration> = self.used.values().copied().collect();
        let middle = times.len() / 2;
        let (_, median, _) = times.select_nth_unstable(middle);
        let median = *median;
        // All of one instant: the one prompt is longer than the bound, and is as well forgotten.
        self.used.retain(|_, used| *used > median);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn segments(parts: &[(&str, u64)]) -> Vec<Segment> {
        parts.iter().map(|(content, tokens)| Segment::new(content.as_bytes(), *tokens)).collect()
    }

    fn cache(minimum: u64) -> PrefixCache {
        PrefixCache::new(Rules { minimum, ..Rules::default() }, 1000)
    }

    #[test]
    fn what_stands_before_a_change_is_read_in_chunks() {
        let mut cache = cache(0);
        let first = segments(&[("tools", 1000), ("system", 500), ("hello", 100)]);
        assert_eq!(cache.send(&first, at(0)), Read { prompt: 1600, cached: 0 });
        assert_eq!(cache.send(&first, at(1)), Read { prompt: 1600, cached: 1600 });
        let longer = segments(&[("tools", 1000), ("system", 500), ("hello", 100), ("answer", 300)]);
        assert_eq!(cache.send(&longer, at(2)), Read { prompt: 1900, cached: 1536 });
        let changed = segments(&[("tools!", 1000), ("system", 500), ("hello", 100)]);
        assert_eq!(cache.send(&changed, at(3)), Read { prompt: 1600, cached: 0 });
        let half = segments(&[("tools", 1000), ("other system", 500), ("hello", 100)]);
        assert_eq!(cache.send(&half, at(4)), Read { prompt: 1600, cached: 768 });
    }

    #[test]
    fn a_prefix_lives_from_its_last_use() {
        let mut cache = cache(0);
        let prompt = segments(&[("tools", 1024)]);
        for (now, cached) in [(0, 0), (299, 1024), (599, 1024), (900, 0), (901, 1024)] {
            assert_eq!(cache.send(&prompt, at(now)).cached, cached, "at {now} s");
        }
    }

    #[test]
    fn a_short_match_is_not_read_where_a_minimum_is_set() {
        let mut cache = cache(4096);
        let prompt = segments(&[("tools", 4000)]);
        cache.send(&prompt, at(0));
        assert_eq!(cache.send(&prompt, at(1)).cached, 0);
        let prompt = segments(&[("tools", 4000), ("system", 200)]);
        cache.send(&prompt, at(2));
        assert_eq!(cache.send(&prompt, at(3)).cached, 4200);
    }

    #[test]
    fn it_stays_within_its_bound_and_keeps_what_was_used_last() {
        let mut cache = PrefixCache::new(Rules::default(), 100);
        for number in 0..1000_u64 {
            cache.send(&[Segment { hash: number, tokens: 256 }], at(number / 10));
            assert!(cache.used.len() <= 100);
        }
        assert_eq!(cache.send(&[Segment { hash: 999, tokens: 256 }], at(100)).cached, 256);
        assert_eq!(cache.send(&[Segment { hash: 0, tokens: 256 }], at(100)).cached, 0);
    }

    #[test]
    fn cached_tokens_weigh_their_ratio() {
        assert!((Read { prompt: 100, cached: 50 }.weighed(0.1) - 55.0).abs() < 1e-9);
    }
}
