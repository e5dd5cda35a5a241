//! Why the provider's cache of a block is broken. NOT when it is: that is where blocks are made.

use super::selection::Selection;

/// Why a block is not the one of the request before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The conversation's first block.
    First,
    /// The turn needs tools that were not in it.
    Needed,
    /// A search or a call to a withheld tool added some, or a search's finds ran out.
    Discovery,
    /// It had grown too large.
    Full,
    /// The provider had forgotten the conversation anyway: choosing anew was free.
    Expired,
    /// The turn needs other tools in the eyes of another embedder than the turn before: one failed, or is back.
    Fallback,
    /// The same in the eyes of another head, or of one where there was none.
    Head,
    /// Nothing in the conversation: the agent changed its tools or its branch, or a search was forgotten.
    Other,
}

impl Cause {
    /// The cause, where a selection was made with other eyes than the one before it.
    pub(super) fn other_eyes(before: &Selection, now: &Selection) -> Option<Self> {
        match before.model == now.model {
            false => Some(Self::Fallback),
            true => (before.head != now.head).then_some(Self::Head),
        }
    }

    pub fn label(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Needed => "needed",
            Self::Discovery => "discovery",
            Self::Full => "full",
            Self::Expired => "expired",
            Self::Fallback => "fallback",
            Self::Head => "head",
            Self::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_eyes_are_told_apart() {
        let by = |model: &str, head: Option<&str>| Selection {
            model: Some(model.into()),
            head: head.map(Into::into),
            ..Selection::default()
        };
        assert_eq!(Cause::other_eyes(&by("m", None), &by("m", None)), None);
        assert_eq!(Cause::other_eyes(&by("m", None), &by("m", Some("h"))), Some(Cause::Head));
        assert_eq!(Cause::other_eyes(&by("m", Some("g")), &by("m", Some("h"))), Some(Cause::Head));
        assert_eq!(Cause::other_eyes(&by("m", Some("h")), &by("n", None)), Some(Cause::Fallback));
    }
}
