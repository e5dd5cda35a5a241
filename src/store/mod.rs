//! Bytes with a life span, in memory or on Redis. NOT what the bytes mean, NOT a retry loop.
//! A store that is slow, gone or answers rubbish is a miss, counted, never an error.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// What a store answers with.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Which use of the store; the label of `packlight_store_errors_total{op}` and the part of the key behind the prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    VectorsGet,
    VectorsPut,
    StashGet,
    StashPut,
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
    /// 64 fields loses some.
    fn put_field<'a>(&'a self, op: Op, key: &'a str, field: &'a str, value: Vec<u8>, life: Duration) -> Answer<'a, ()>;
    /// Failures so far, by operation: read by the metrics.
    fn errors(&self) -> Vec<(Op, u64)>;
}
