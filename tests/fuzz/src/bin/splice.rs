//! Any edits of any text: what no edit covers stays, in its order; edits that cannot be are dropped.

use packlight_fuzz::run;
use packlight_fuzz::wire::splice::Edits;

/// The input is the text; its first bytes are also the ranges.
fn target(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let (mut edits, mut ranges) = (Edits::new(), Vec::new());
    let (mut wild, mut at) = (Edits::new(), 0);
    for pair in bytes.chunks(2).take(12) {
        let (skip, length) = (usize::from(pair[0]) % 23, usize::from(pair[pair.len() - 1]) % 17);
        // Anything goes in: overlaps, the middle of characters, beyond the end.
        wild.replace(skip * 7..(skip * 7 + length).saturating_sub(3), "x");
        let Some(start) = boundary(&text, at + skip) else { break };
        let Some(end) = boundary(&text, start + length) else { break };
        at = end + 1;
        edits.replace(start..end, "<>");
        ranges.push(start..end);
    }
    wild.apply(&text);
    let (mut expected, mut from) = (String::new(), 0);
    for range in &ranges {
        expected.push_str(&text[from..range.start]);
        expected.push_str("<>");
        from = range.end;
    }
    expected.push_str(&text[from..]);
    assert_eq!(edits.apply(&text), expected);
    ranges.len() > 3
}

fn boundary(text: &str, at: usize) -> Option<usize> {
    (at..=text.len()).find(|at| text.is_char_boundary(*at))
}

fn main() {
    run::run("splice", &[("openai", &[".json"]), ("gemini", &[".json"]), ("anthropic", &[".json"])], target);
}
