//! What was done with a request, and which group its usage counts for. NOT why.

/// What was done with a request; the header's and the metrics' `action`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Action {
    /// The rewritten request was sent.
    Narrowed,
    /// The agent's own bytes were sent, for a reason.
    #[default]
    Full,
    /// The agent's own bytes were sent, watched.
    Shadow,
    /// The agent's own bytes were sent: this conversation is in the comparison group.
    Holdout,
    /// Packlight did not look at it.
    Relayed,
}

impl Action {
    pub fn label(self) -> &'static str {
        match self {
            Self::Narrowed => "narrowed",
            Self::Full => "full",
            Self::Shadow => "shadow",
            Self::Holdout => "holdout",
            Self::Relayed => "relayed",
        }
    }

    /// Which group its usage counts for.
    pub(super) fn arm(self) -> &'static str {
        match self {
            Self::Narrowed => "narrow",
            Self::Full => "bypass",
            Self::Shadow => "shadow",
            Self::Holdout => "holdout",
            Self::Relayed => "off",
        }
    }
}
