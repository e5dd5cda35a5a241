//! Text -> the pieces within which tokens are made, as o200k's pattern cuts them:
//!
//! ```text
//! [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! \p{N}{1,3} | ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
//! ```
//!
//! Written out by hand: a regex of these classes would keep megabytes resident, and linear time is plain to see here.

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// The pieces in order; together they are the text.
pub fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, behind) = rest.split_at_checked(first(rest))?;
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Where the first piece ends; 0 only for an empty text.
fn first(text: &str) -> usize {
    let mut chars = text.chars();
    let Some(c) = chars.next() else { return 0 };
    let kind = Kind::of(c);
    let behind = chars.as_str();
    // A word may carry one character in front that is neither letter nor number: a blank, a quote, also a mark.
    let may_lead = !matches!(kind, Kind::Upper | Kind::Lower | Kind::Letter | Kind::Number) && c != '\r' && c != '\n';
    if may_lead && let Some(word) = lowered(behind) {
        return suffixed(text, c.len_utf8() + word);
    }
    if let Some(word) = lowered(text) {
        return suffixed(text, word);
    }
    if may_lead && let Some(word) = capitals(behind) {
        return suffixed(text, c.len_utf8() + word);
    }
    if let Some(word) = capitals(text) {
        return suffixed(text, word);
    }
    if kind == Kind::Number {
        return run(text, |c| Kind::of(c) == Kind::Number, 3);
    }
    let sign = |c: char| matches!(Kind::of(c), Kind::Sign | Kind::Mark);
    let blank = usize::from(c == ' ');
    let signs = run(text.get(blank..).unwrap_or_default(), sign, usize::MAX);
    if signs > 0 {
        let end = blank + signs;
        return end + run(text.get(end..).unwrap_or_default(), |c| matches!(c, '\r' | '\n' | '/'), usize::MAX);
    }
    let blanks = run(text, char::is_whitespace, usize::MAX);
    let blanks_text = text.get(..blanks).unwrap_or_default();
    if let Some(line_end) = blanks_text.rfind(['\r', '\n']) {
        return line_end + 1;
    }
    // Before a word the last blank is the word's.
    match blanks_text.char_indices().next_back() {
        Some((last, _)) if last > 0 && blanks < text.len() => last,
        _ => blanks.max(c.len_utf8()),
    }
}

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` at the start of `text`.
fn lowered(text: &str) -> Option<usize> {
    let upper = run(text, |c| matches!(Kind::of(c), Kind::Upper | Kind::Letter | Kind::Mark), usize::MAX);
    let lower = |c: char| matches!(Kind::of(c), Kind::Lower | Kind::Letter | Kind::Mark);
    let low = run(text.get(upper..).unwrap_or_default(), lower, usize::MAX);
    if low > 0 {
        return Some(upper + low);
    }
    // The capitals give back their last character that may count as small.
    let mut given = text.get(..upper)?.char_indices().rev();
    given.find(|(_, c)| lower(*c)).map(|(at, c)| at + c.len_utf8())
}

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+` at the start of `text`, where [`lowered`] found nothing.
fn capitals(text: &str) -> Option<usize> {
    Some(run(text, |c| Kind::of(c) == Kind::Upper, usize::MAX)).filter(|length| *length > 0)
}

/// `end`, and behind an English suffix if one stands there.
fn suffixed(text: &str, end: usize) -> usize {
    let mut chars = text.get(end..).unwrap_or_default().chars();
    if chars.next() != Some('\'') {
        return end;
    }
    // `ſ` (a long s) is an `s` whatever its case.
    let mut letter = || chars.next().map(|c| if c == 'ſ' { 's' } else { c.to_ascii_lowercase() });
    let (first, second) = (letter(), letter());
    let long = if first == Some('s') && text.get(end + 1..).is_some_and(|rest| rest.starts_with('ſ')) { 2 } else { 1 };
    match (first, second) {
        (Some('r' | 'v'), Some('e')) | (Some('l'), Some('l')) => end + 3,
        (Some('s' | 't' | 'm' | 'd'), _) => end + 1 + long,
        _ => end,
    }
}

/// Bytes of the characters at the start of `text` that are such, at most `most` of them.
fn run(text: &str, such: impl Fn(char) -> bool, most: usize) -> usize {
    text.chars().take(most).take_while(|c| such(*c)).map(char::len_utf8).sum()
}

/// What the pattern tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Lu, Lt.
    Upper,
    /// Ll.
    Lower,
    /// Lm, Lo: both.
    Letter,
    /// M: both, and no letter.
    Mark,
    Number,
    Blank,
    Sign,
}

impl Kind {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' => return Self::Lower,
            'A'..='Z' => return Self::Upper,
            '0'..='9' => return Self::Number,
            _ if c.is_whitespace() => return Self::Blank,
            _ if c.is_ascii() => return Self::Sign,
            _ => {}
        }
        use GeneralCategory as G;
        match c.general_category() {
            G::UppercaseLetter | G::TitlecaseLetter => Self::Upper,
            G::LowercaseLetter => Self::Lower,
            G::ModifierLetter | G::OtherLetter => Self::Letter,
            G::NonspacingMark | G::SpacingMark | G::EnclosingMark => Self::Mark,
            G::DecimalNumber | G::LetterNumber | G::OtherNumber => Self::Number,
            _ => Self::Sign,
        }
    }
}
