//! Each reason to send the agent's own bytes. Fail open is this type: whatever
//! goes wrong before the upstream call ends in a variant with its own label and test.

use crate::retrieval::embedder::EmbedError;
use crate::wire::WireError;
use crate::wire::view::Traits;

/// Why a chat request is not narrowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bypass {
    /// `mode = "off"`.
    Off,
    /// The request declares no plain function.
    NoTools,
    /// The roster minus the core is no larger than what retrieval may bind.
    SmallRoster,
    /// By what is known of this model's traffic, narrowing would cost more than the full roster (`binding = "auto"`).
    Cost,
    /// The last user message carries no text, or there is none.
    NoQuery,
    /// The agent resumes: by header, or calls are still unanswered.
    Resume,
    /// The body is not what its route says.
    Unreadable(WireError),
    /// The body is longer than `max_body`, or what must be bound is more than the upstream takes.
    TooLarge,
    /// A content encoding that is not known.
    Encoding,
    /// The agent has a tool named like `find_tools`.
    NameCollision,
    /// `n > 1`.
    Choices,
    /// The tools live in the provider's cache.
    CachedContent,
    /// Kimi's partial mode.
    Partial,
    /// The client narrows by itself.
    ClientSearch,
    /// The embedder failed, or answered nonsense.
    Embedder,
    /// Everything before the upstream call took longer than `deadline`.
    Deadline,
    /// The embedding queue is full.
    QueueFull,
    /// No model file.
    ModelAbsent,
    /// The request refers to a catalog that is not configured, or cannot be given its tools: it is answered, not sent.
    Catalog,
    /// The provider rejected the rewritten request and got the agent's own.
    Refused,
}

impl Bypass {
    /// The value of the header's and the metrics' `reason`.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::NoTools => "no_tools",
            Self::SmallRoster => "small_roster",
            Self::Cost => "cost",
            Self::NoQuery => "no_query",
            Self::Resume => "resume",
            Self::Unreadable(_) => "unreadable",
            Self::TooLarge => "too_large",
            Self::Encoding => "encoding",
            Self::NameCollision => "name_collision",
            Self::Choices => "choices",
            Self::CachedContent => "cached_content",
            Self::Partial => "partial",
            Self::ClientSearch => "client_search",
            Self::Embedder => "embedder",
            Self::Deadline => "deadline",
            Self::QueueFull => "queue_full",
            Self::ModelAbsent => "model_absent",
            Self::Catalog => "catalog",
            Self::Refused => "refused",
        }
    }

    /// What a request's features forbid, whatever its tools.
    pub fn of_traits(traits: Traits) -> Option<Self> {
        let Traits { several_choices, cached_content, partial, client_search, structured: _, usage_frame: _ } = traits;
        if several_choices {
            Some(Self::Choices)
        } else if cached_content {
            Some(Self::CachedContent)
        } else if partial {
            Some(Self::Partial)
        } else if client_search {
            Some(Self::ClientSearch)
        } else {
            None
        }
    }
}

impl From<EmbedError> for Bypass {
    fn from(error: EmbedError) -> Self {
        match error {
            EmbedError::Absent => Self::ModelAbsent,
            EmbedError::QueueFull => Self::QueueFull,
            EmbedError::Timeout => Self::Deadline,
            EmbedError::Failed(_) | EmbedError::Nonsense(_) => Self::Embedder,
        }
    }
}
