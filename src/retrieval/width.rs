//! How many of a ranking are selected: the one rule, for what is served and for what measures it. NOT the ranking.
//!
//! A fixed number takes as many where one tool stands out as where twenty are level. `auto` keeps what stands within
//! [`WITHIN`] units of the best, so it spends tools where the ranker is unsure. All needed tools selected, and how many
//! are, on nine groups of public sets (each counting once) and on 615 own requests in five languages; behind the stroke,
//! selected or found by one search (`packlight eval --k …`, and the same with other constants):
//!
//! | | public sets | tools | own requests | tools of 39 |
//! |---|---|---|---|---|
//! | 12 | 87.2 | 12 | 88.0 / 93.0 | 12 |
//! | auto, within 2.5 | 87.9 | 11.0 | 92.7 / 95.8 | 14.5 |
//! | auto, within 3 | 88.7 | 11.9 | 94.1 / 96.6 | 16.5 |
//! | **auto, within 3.2** | 88.9 | 12.3 | 94.6 / 96.9 | 17.2 |
//! | auto, within 3.5 | 89.3 | 12.7 | 95.0 / 97.2 | 17.9 |
//!
//! Where the ranker is sure and wrong, eight are fewer than twelve: acebench's dialogues have 97.3 with 12, 96.1 with
//! `auto` at a mean of 8.7, and no other group loses more than .3.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::index::Scored;

/// How many tools are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Width {
    /// As many, or all there are.
    Fixed(usize),
    /// As many as stand close to the best: [`LEAST`] to [`MOST`].
    Auto,
}

impl Width {
    /// A roster of no more candidates is sent whole: by what is usually selected, so that a roster just above it is
    /// narrowed as far as its scores allow.
    pub fn bypass(self) -> usize {
        self.usual()
    }

    /// The most that are ever selected.
    pub fn most(self) -> usize {
        match self {
            Self::Fixed(count) => count,
            Self::Auto => MOST,
        }
    }

    /// How many are selected on average.
    pub fn usual(self) -> usize {
        match self {
            Self::Fixed(count) => count,
            Self::Auto => USUAL,
        }
    }

    /// What is selected of a ranking: as many as the width says, and every tool that the message names, for those stand
    /// first. `named`: of [`super::index::Index::named`], documents in order.
    pub fn taken(self, ranked: &[Scored], named: &[usize]) -> Taken {
        let named = ranked.iter().take_while(|scored| named.binary_search(&scored.tool).is_ok()).count();
        Taken { count: self.of(ranked.iter().map(|scored| scored.score)).max(named), named }
    }

    /// How many of these are selected. `scores`: best first, in units of the roster's spread.
    fn of(self, scores: impl Iterator<Item = f32>) -> usize {
        match self {
            Self::Fixed(count) => count,
            Self::Auto => {
                let mut scores = scores.take(MOST);
                let Some(top) = scores.next() else { return LEAST };
                (1 + scores.take_while(|score| *score >= top - WITHIN).count()).max(LEAST)
            }
        }
    }
}

/// How much of a ranking is selected, from its front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    pub count: usize,
    /// Of them because the message names them.
    pub named: usize,
}

/// What the embedder's own scores say. Where they are not measured, a configuration settles for a number.
impl Default for Width {
    fn default() -> Self {
        Self::Auto
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(count) => write!(f, "{count}"),
            Self::Auto => f.write_str(AUTO),
        }
    }
}

/// As a configuration says it.
impl FromStr for Width {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == AUTO {
            return Ok(Self::Auto);
        }
        text.parse().map(Self::Fixed).map_err(|_| format!("`{text}` is not a number, and not \"{AUTO}\""))
    }
}

/// A number, or "auto".
impl Serialize for Width {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(count) => serializer.serialize_u64(*count as u64),
            Self::Auto => serializer.serialize_str(AUTO),
        }
    }
}

/// What a configuration calls [`Width::Auto`].
pub const AUTO: &str = "auto";

/// Fewer are never selected: below eight the curve is steep for every embedder.
pub const LEAST: usize = 8;

/// More are never selected: what a tool costs in tokens outweighs what the twenty-first finds.
const MOST: usize = 20;

/// The mean over the labelled requests that [`WITHIN`] was fitted on.
const USUAL: usize = 12;

/// Units of the roster's spread (see [`super::index`]).
const WITHIN: f32 = 3.2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_width_reads_as_it_is_written() {
        for text in ["12", "auto"] {
            assert_eq!(text.parse::<Width>().map(|width| width.to_string()), Ok(text.to_owned()));
        }
        assert!("many".parse::<Width>().is_err());
        assert_eq!(serde_json::json!([Width::Auto, Width::Fixed(3)]).to_string(), r#"["auto",3]"#);
    }

    #[test]
    fn a_fixed_number_is_that_number() {
        assert_eq!(Width::Fixed(12).of([1.0].into_iter()), 12);
        assert_eq!((Width::Fixed(9).bypass(), Width::Fixed(9).usual(), Width::Fixed(9).most()), (9, 9, 9));
    }

    #[test]
    fn what_the_message_names_is_taken_in_any_case() {
        let ranked: Vec<Scored> = [4, 2, 0, 1, 3].map(|tool| Scored { tool, score: 1.0 }).into();
        let taken = |named: &[usize]| Width::Fixed(2).taken(&ranked, named);
        assert_eq!(taken(&[]), Taken { count: 2, named: 0 });
        assert_eq!(taken(&[4]), Taken { count: 2, named: 1 });
        assert_eq!(taken(&[0, 2, 4]), Taken { count: 3, named: 3 });
        assert_eq!(taken(&[4, 9]), Taken { count: 2, named: 1 }, "one that is not in the ranking");
    }

    #[test]
    fn auto_takes_more_where_more_are_level() {
        let alone = (0..40).map(|n| if n == 0 { 9.0 } else { 1.0 });
        let level = (0..40).map(|n| 2.0 - n as f32 * 0.01);
        let some = (0..40).map(|n| -(n as f32) * 0.3);
        assert_eq!([Width::Auto.of(alone), Width::Auto.of(some), Width::Auto.of(level)], [8, 11, 20]);
        assert_eq!(Width::Auto.of(std::iter::empty()), 8);
        assert_eq!((Width::Auto.bypass(), Width::Auto.most()), (12, 20), "a roster of 13 is narrowed");
    }
}
