//! Patterns that look around, tried in order and at bounded cost. NOT what they
//! mean.

use std::ops::Range;
use std::sync::OnceLock;

/// Patterns tried in order.
pub struct Family {
    patterns: Vec<Pattern>,
    /// The same without what looks around: it finds too much, but in linear time and all patterns at once. Patterns that
    /// look around take two milliseconds for a message, this takes microseconds, and mostly nothing is left to try.
    relaxed: regex::RegexSet,
}

impl Family {
    pub fn compile(patterns: &[&str], before: &str) -> Option<Self> {
        let full: Vec<String> = patterns.iter().map(|pattern| format!("{before}(?:{pattern})")).collect();
        let relaxed = full.iter().map(|pattern| relaxed(pattern));
        Some(Self {
            relaxed: regex::RegexSetBuilder::new(relaxed).case_insensitive(true).build().ok()?,
            patterns: full.into_iter().map(|source| Pattern { source, compiled: OnceLock::new() }).collect(),
        })
    }

    #[cfg(test)]
    pub fn compiles(&self) -> bool {
        self.patterns.iter().all(|pattern| pattern.compiled().is_some())
    }

    /// The first find that will do. The outer `None`: a pattern gave up.
    pub fn first(&self, text: &str, will_do: impl Fn(&str) -> bool) -> Option<Option<Range<usize>>> {
        for at in self.relaxed.matches(text) {
            if let Some(found) = self.patterns.get(at)?.compiled()?.find(text).ok()?
                && will_do(found.as_str())
            {
                return Some(Some(found.range()));
            }
        }
        Some(None)
    }
}

/// Compiled when its relaxed form first finds something: all of them at once take 150 ms and keep 20 MB, and a message
/// comes near one or two.
struct Pattern {
    source: String,
    /// `None` within: it does not compile, which a test rules out.
    compiled: OnceLock<Option<fancy_regex::Regex>>,
}

impl Pattern {
    fn compiled(&self) -> Option<&fancy_regex::Regex> {
        self.compiled.get_or_init(|| patient(&self.source)).as_ref()
    }
}

/// A pattern without look-around and word boundaries: it matches wherever the pattern does, and more.
fn relaxed(pattern: &str) -> String {
    let (mut out, mut depth, mut from) = (String::new(), 0usize, None);
    let mut rest = pattern;
    let mut in_class = false;
    while let Some(c) = rest.chars().next() {
        let escaped = rest.chars().nth(1).filter(|_| c == '\\').map_or(0, char::len_utf8);
        let (piece, tail) = rest.split_at(c.len_utf8() + escaped);
        let looks = ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|opening| rest.starts_with(opening));
        rest = tail;
        match c {
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => {
                if looks && from.is_none() {
                    from = Some(depth);
                }
                depth += 1;
            }
            ')' if !in_class => {
                depth = depth.saturating_sub(1);
                if from == Some(depth) {
                    from = None;
                    continue;
                }
            }
            _ => {}
        }
        if from.is_none() && piece != r"\b" {
            out.push_str(piece);
        }
    }
    out
}

/// A pattern that gives up rather than go back for ever.
pub fn patient(pattern: &str) -> Option<fancy_regex::Regex> {
    fancy_regex::RegexBuilder::new(pattern).case_insensitive(true).backtrack_limit(PATIENCE).build().ok()
}

/// Steps a pattern may go back before it gives up: a clause takes a few hundred.
const PATIENCE: usize = 20_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relaxed_pattern_has_lost_what_looks_around() {
        assert_eq!(relaxed(r"a\b(?!x|(y)[)])b[(?=]\)(?:c)(?<!d)"), r"ab[(?=]\)(?:c)");
    }

    #[test]
    fn a_pattern_that_goes_back_for_ever_gives_up() {
        let family = Family::compile(&["(?:a|a)*(?=b)c"], "").expect("a family");
        assert!(family.first(&format!("{}c", "a".repeat(60)), |_| true).is_none());
        assert_eq!(family.first("nothing", |_| true), Some(None));
    }
}
