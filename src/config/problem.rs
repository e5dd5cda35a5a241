//! What is wrong with a configuration, where, and the way out. NOT a panic, NOT the first problem only.

use std::collections::BTreeSet;
use std::fmt;

/// Where a key was given.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Nowhere: the problem is with the file as a whole, or with what is missing.
    Whole,
    /// Line of the file, from 1.
    Line(usize),
    /// An environment variable.
    Variable(String),
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Dotted: `upstream.kimi.url`. Empty: the file as a whole.
    pub key: String,
    /// Lower-case, without a full stop; names the way out.
    pub text: String,
    pub place: Place,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Whole => {}
            Place::Line(line) => write!(f, "line {line}: ")?,
            Place::Variable(name) => write!(f, "{name}: ")?,
        }
        match self.key.as_str() {
            "" => f.write_str(&self.text),
            key => write!(f, "{key}: {}", self.text),
        }
    }
}

/// Sorted by place: lines in order, then variables, by name.
pub(super) fn sort(problems: &mut [Problem]) {
    problems.sort_by(|a, b| (&a.place, &a.key, &a.text).cmp(&(&b.place, &b.key, &b.text)));
}

/// What to say about an unknown key: the nearest known one, else the siblings it could have been.
///
/// A key that stands in the wrong table is found by its last part; a sibling is preferred to it.
pub(super) fn unknown(key: &str, known: &BTreeSet<String>) -> String {
    let (table, last) = split(key);
    let score = |candidate: &str| {
        let (home, name) = split(candidate);
        let sibling = if home == table { 0.15 } else { 0.0 };
        strsim::normalized_damerau_levenshtein(last, name) + sibling
    };
    let nearest = known.iter().map(|candidate| (score(candidate), candidate)).max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((score, candidate)) if score >= NEAR => format!("unknown key, did you mean {candidate}?"),
        _ => {
            let siblings: Vec<&str> = known.iter().map(|k| split(k)).filter(|k| k.0 == table).map(|k| k.1).collect();
            format!("unknown key, known here are {}", siblings.join(", "))
        }
    }
}

/// Below it a proposal is a guess: `foo` is not a misspelt `prefix`.
const NEAR: f64 = 0.6;

fn split(key: &str) -> (&str, &str) {
    key.rsplit_once('.').unwrap_or(("", key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> BTreeSet<String> {
        ["narrow.percent", "narrow.mode", "server.listen", "server.admin_listen", "server", "narrow"]
            .into_iter()
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn names_the_nearest_key() {
        assert_eq!(unknown("narrow.percnt", &known()), "unknown key, did you mean narrow.percent?");
        assert_eq!(unknown("sever", &known()), "unknown key, did you mean server?");
    }

    #[test]
    fn finds_a_key_in_another_table() {
        assert_eq!(unknown("listen", &known()), "unknown key, did you mean server.listen?");
    }

    #[test]
    fn lists_the_siblings_of_a_key_like_none() {
        assert_eq!(unknown("narrow.zzz", &known()), "unknown key, known here are mode, percent");
    }
}
