//! Bytes with a life span, in memory or on Redis. NOT what the bytes mean, NOT a retry loop.
//! A store that is slow, gone or answers rubbish is a miss, counted, never an error.

mod memory;
mod redis;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use self::memory::Memory;
pub use self::redis::{BadUrl, Redis};

/// Fields that one map holds at most.
pub const MAX_FIELDS: usize = 64;

/// What a store answers with.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Which use of the store: the label of `packlight_store_errors_total{op}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    VectorsGet,
    VectorsPut,
    StashGet,
    StashPut,
    HistoryGet,
    HistoryPut,
}

impl Op {
    pub const ALL: [Self; 6] =
        [Self::VectorsGet, Self::VectorsPut, Self::StashGet, Self::StashPut, Self::HistoryGet, Self::HistoryPut];

    /// The value of the metric's label.
    pub fn label(self) -> &'static str {
        match self {
            Self::VectorsGet => "vectors_get",
            Self::VectorsPut => "vectors_put",
            Self::StashGet => "stash_get",
            Self::StashPut => "stash_put",
            Self::HistoryGet => "history_get",
            Self::HistoryPut => "history_put",
        }
    }
}

/// Bytes with a life span. Keys come without the configured prefix.
pub trait Store: Send + Sync {
    /// The bytes, or `None`: absent, expired, or the store failed (counted).
    fn get<'a>(&'a self, op: Op, key: &'a str) -> Answer<'a, Option<Vec<u8>>>;
    /// Keeps the bytes for `life` (`None`: as long as the store likes).
    fn put<'a>(&'a self, op: Op, key: &'a str, value: Vec<u8>, life: Option<Duration>) -> Answer<'a, ()>;
    /// All fields of the map at `key`. Empty: absent, expired or failed.
    fn fields<'a>(&'a self, op: Op, key: &'a str) -> Answer<'a, Vec<(String, Vec<u8>)>>;
    /// Sets one field of the map at `key`; the whole map then lives for `life`. Bounded by count: a map of more than
    /// [`MAX_FIELDS`] fields loses some.
    fn put_field<'a>(&'a self, op: Op, key: &'a str, field: &'a str, value: Vec<u8>, life: Duration) -> Answer<'a, ()>;
    /// Failures so far, by operation: read by the metrics.
    fn errors(&self) -> Vec<(Op, u64)>;

    /// Takes `key` for `life` unless another process has it. Only a courtesy between replicas that would do the same
    /// work: `true` also when nobody can tell, since doing it twice is better than not at all.
    fn claim<'a>(&'a self, _op: Op, _key: &'a str, _life: Duration) -> Answer<'a, bool> {
        Box::pin(std::future::ready(true))
    }
    /// Gives a claimed key back.
    fn release<'a>(&'a self, _op: Op, _key: &'a str) -> Answer<'a, ()> {
        Box::pin(std::future::ready(()))
    }
    /// Removes every key that begins so; how many there were, as far as the store can tell.
    fn forget<'a>(&'a self, op: Op, beginning: &'a str) -> Answer<'a, usize>;
    /// The caller found the bytes at a key to be rubbish: one more failure of `op`.
    fn count(&self, _op: Op) {}
}

/// Failures by operation.
#[derive(Debug, Default)]
struct Failures([AtomicU64; Op::ALL.len()]);

impl Failures {
    fn count(&self, op: Op) {
        let [a, b, c, d, e, f] = &self.0;
        let counter = match op {
            Op::VectorsGet => a,
            Op::VectorsPut => b,
            Op::StashGet => c,
            Op::StashPut => d,
            Op::HistoryGet => e,
            Op::HistoryPut => f,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn read(&self) -> Vec<(Op, u64)> {
        Op::ALL.into_iter().zip(&self.0).map(|(op, count)| (op, count.load(Ordering::Relaxed))).collect()
    }
}
