//! JSON strings as they are spelt in a body: joined without being decoded,
//! decoded even when a surrogate stands alone, cut at a decoded prefix.
//! NOT the members they belong to.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::wire::json;

/// The spelling between the quotes, if `raw` is a string.
pub fn inner(raw: &RawValue) -> Option<&str> {
    raw.get().strip_prefix('"')?.strip_suffix('"')
}

/// The text of `raw` if it is a string. Surrogates that stand alone become U+FFFD: an agent that cut an emoji in two
/// must not lose its whole message over it.
pub fn of(raw: &RawValue) -> Option<Cow<'_, str>> {
    json::string(raw).or_else(|| inner(raw).map(decoded))
}

/// What a spelling says.
pub fn decoded(spelling: &str) -> Cow<'_, str> {
    if spelling.contains('\\') {
        Cow::Owned(Spelt(spelling).map(|(char, _)| char).collect())
    } else {
        Cow::Borrowed(spelling)
    }
}

/// Bytes of `spelling` that say `prefix`; `None` when it does not start so.
pub fn prefix_len(spelling: &str, prefix: &str) -> Option<usize> {
    let mut spelt = Spelt(spelling);
    let mut length = 0;
    for wanted in prefix.chars() {
        let (char, bytes) = spelt.next()?;
        if char != wanted {
            return None;
        }
        length += bytes;
    }
    Some(length)
}

/// The characters of a spelling, each with the bytes it takes.
struct Spelt<'a>(&'a str);

impl Iterator for Spelt<'_> {
    type Item = (char, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let first = self.0.chars().next()?;
        let (char, bytes) = if first == '\\' { escape(self.0) } else { (first, first.len_utf8()) };
        self.0 = self.0.get(bytes..).unwrap_or_default();
        Some((char, bytes))
    }
}

/// The escape that `text` starts with.
fn escape(text: &str) -> (char, usize) {
    let plain = match text.as_bytes().get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'u') => return unicode(text),
        Some(&other) if other.is_ascii() => char::from(other),
        _ => return ('\\', 1),
    };
    (plain, 2)
}

/// A `\u` escape, or the pair of them that makes one character.
fn unicode(text: &str) -> (char, usize) {
    let unit = |from: usize| {
        let escape = text.get(from..from + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(escape, 16).ok()
    };
    let units: Vec<u16> = [unit(0), unit(6)].into_iter().map_while(|unit| unit).collect();
    match char::decode_utf16(units).next() {
        Some(Ok(char)) => (char, 6 * char.len_utf16()),
        _ => (char::REPLACEMENT_CHARACTER, 6.min(text.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_lone_surrogate_costs_one_character() {
        assert_eq!(decoded(r"a\ud83d b\ud83d\ude00\u00e9"), "a\u{fffd} b😀é");
        assert_eq!(decoded(r"\ud83d\n"), "\u{fffd}\n");
    }

    #[test]
    fn a_prefix_matches_however_it_is_spelt() {
        assert_eq!(prefix_len(r"\u4f60\u597d\n!", "你好\n"), Some(14));
        assert_eq!(prefix_len("你好!", "你好"), Some(6));
        assert_eq!(prefix_len("你", "你好"), None);
        assert_eq!(prefix_len(r"\ud83d\ude00x", "😀"), Some(12));
    }

    proptest! {
        #[test]
        fn a_spelling_says_its_text(text in "\\PC{0,30}|[\u{0}-\u{20}\"\\\\/]{0,9}") {
            let quoted = json::quoted(&text);
            let spelling = &quoted[1..quoted.len() - 1];
            prop_assert_eq!(decoded(spelling), text.as_str());
            prop_assert_eq!(prefix_len(spelling, &text), Some(spelling.len()));
        }

        #[test]
        fn no_spelling_breaks_the_reader(spelling in "(\\\\|u|d|8|3|\\PC){0,30}") {
            decoded(&spelling);
        }
    }
}
