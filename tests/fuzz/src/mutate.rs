//! Makes new inputs out of old ones. NOT what is done with them.

/// A deterministic source of numbers (xorshift).
pub struct Random(u64);

/// What the wire's grammar is made of: plain bytes rarely get past the first bracket.
const WORDS: [&str; 53] = [
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    "data: ",
    "data:",
    ": ping",
    "event: x\n",
    "[DONE]",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\ud83d",
    "\\u0000",
    "null",
    "true",
    "0",
    "-1",
    "9007199254740993001",
    "1e999",
    "\"tools\":",
    "\"messages\":[",
    "\"role\":\"assistant\"",
    "\"tool_calls\":[",
    "\"index\":0,",
    "\"id\":\"\",",
    "\"name\":\"find_tools\"",
    "\"find_tools\"",
    "\"arguments\":\"{}\"",
    "\"finish_reason\":\"stop\"",
    "\"usage\":{\"a\":1}",
    "\"choices\":[]",
    "\"contents\":[",
    "\"functionCall\":{}",
    "\"functionDeclarations\":[]",
    "\"parts\":[]",
    "\"type\":\"content_block_start\"",
    "\"type\":\"content_block_stop\"",
    "\"type\":\"message_delta\"",
    "\"type\":\"tool_use\"",
    "\"type\":\"text\"",
    "\"type\":\"thinking\"",
    "\"stop_reason\":\"tool_use\"",
    "\"cache_control\":{}",
    "\"content\":[",
    "你",
    "\u{feff}",
    "\0",
];

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`; 0 for an empty range.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() >> 11) as usize % end.max(1)
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        start..start + self.below((length - start).min(64) + 1)
    }
}

/// Another input like `input`; `other` lends a piece.
pub fn mutate(random: &mut Random, input: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..1 + random.below(6) {
        let at = random.below(bytes.len() + 1);
        match random.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 => drop(bytes.drain(random.range(bytes.len()))),
            2 => {
                let piece = bytes[random.range(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            3 => {
                let piece = other[random.range(other.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            4 if random.below(4) == 0 => bytes.truncate(at),
            5 => {
                let target = random.range(bytes.len());
                bytes.splice(target, WORDS[random.below(WORDS.len())].bytes());
            }
            _ => drop(bytes.splice(at..at, WORDS[random.below(WORDS.len())].bytes())),
        }
    }
    bytes.truncate(1 << 14);
    bytes
}
