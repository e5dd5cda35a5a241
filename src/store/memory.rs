//! The store of a single process: bounded by bytes and by count, least used goes first. NOT shared, NOT kept on disk.

use std::sync::Arc;
use std::time::{Duration, Instant};

use moka::Expiry;
use moka::ops::compute::Op as Change;
use moka::sync::Cache;

use super::{Answer, Failures, MAX_FIELDS, Op, Store};

/// Bytes in memory.
#[derive(Debug)]
pub struct Memory {
    kept: Cache<String, Entry>,
    failures: Failures,
}

#[derive(Debug, Clone)]
struct Entry {
    value: Value,
    life: Option<Duration>,
}

#[derive(Debug, Clone)]
enum Value {
    Bytes(Arc<[u8]>),
    /// Oldest field first.
    Fields(Arc<Vec<(String, Vec<u8>)>>),
}

impl Memory {
    /// Holds at most `bytes` and at most about `count` entries. Both bounds are one: each entry weighs at least its
    /// share of the bytes.
    pub fn new(bytes: u64, count: u64) -> Self {
        let least = u32::try_from(bytes / count.max(1)).unwrap_or(u32::MAX).max(1);
        let kept = Cache::builder()
            .max_capacity(bytes)
            .weigher(move |key: &String, entry: &Entry| {
                u32::try_from(key.len() + entry.value.weight()).unwrap_or(u32::MAX).max(least)
            })
            .expire_after(PerEntry)
            .build();
        Self { kept, failures: Failures::default() }
    }
}

impl Default for Memory {
    /// 64 MiB, 16,384 entries: some thousand conversations, or a hundred rosters of 100 tools.
    fn default() -> Self {
        Self::new(64 << 20, 16_384)
    }
}

impl Store for Memory {
    fn get<'a>(&'a self, op: Op, key: &'a str) -> Answer<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            match self.kept.get(key)?.value {
                Value::Bytes(bytes) => Some(bytes.to_vec()),
                Value::Fields(_) => {
                    self.failures.count(op);
                    None
                }
            }
        })
    }

    fn put<'a>(&'a self, _op: Op, key: &'a str, value: Vec<u8>, life: Option<Duration>) -> Answer<'a, ()> {
        Box::pin(async move {
            self.kept.insert(key.to_owned(), Entry { value: Value::Bytes(value.into()), life });
        })
    }

    fn fields<'a>(&'a self, op: Op, key: &'a str) -> Answer<'a, Vec<(String, Vec<u8>)>> {
        Box::pin(async move {
            match self.kept.get(key).map(|entry| entry.value) {
                Some(Value::Fields(fields)) => fields.to_vec(),
                Some(Value::Bytes(_)) => {
                    self.failures.count(op);
                    Vec::new()
                }
                None => Vec::new(),
            }
        })
    }

    fn put_field<'a>(&'a self, op: Op, key: &'a str, field: &'a str, value: Vec<u8>, life: Duration) -> Answer<'a, ()> {
        Box::pin(async move {
            self.kept.entry_by_ref(key).and_compute_with(|old| {
                let mut fields = match old.map(|entry| entry.into_value().value) {
                    Some(Value::Fields(fields)) => Arc::unwrap_or_clone(fields),
                    Some(Value::Bytes(_)) => {
                        self.failures.count(op);
                        return Change::Nop;
                    }
                    None => Vec::new(),
                };
                fields.retain(|(name, _)| name != field);
                fields.push((field.to_owned(), value));
                let over = fields.len().saturating_sub(MAX_FIELDS);
                fields.drain(..over);
                Change::Put(Entry { value: Value::Fields(fields.into()), life: Some(life) })
            });
        })
    }

    fn forget<'a>(&'a self, _op: Op, beginning: &'a str) -> Answer<'a, usize> {
        Box::pin(async move {
            let keys: Vec<Arc<String>> =
                self.kept.iter().map(|(key, _)| key).filter(|key| key.starts_with(beginning)).collect();
            keys.iter().for_each(|key| self.kept.invalidate(key.as_str()));
            keys.len()
        })
    }

    fn errors(&self) -> Vec<(Op, u64)> {
        self.failures.read()
    }

    fn count(&self, op: Op) {
        self.failures.count(op);
    }
}

impl Value {
    /// Bytes, with what a heap block costs beside them.
    fn weight(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len() + 64,
            Self::Fields(fields) => fields.iter().map(|(name, value)| name.len() + value.len() + 96).sum(),
        }
    }
}

struct PerEntry;

impl Expiry<String, Entry> for PerEntry {
    fn expire_after_create(&self, _: &String, entry: &Entry, _: Instant) -> Option<Duration> {
        entry.life
    }

    fn expire_after_update(&self, _: &String, entry: &Entry, _: Instant, _: Option<Duration>) -> Option<Duration> {
        entry.life
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn bytes_and_fields_come_back() {
        let store = Memory::default();
        store.put(Op::VectorsPut, "v", vec![1, 2], None).await;
        assert_eq!(store.get(Op::VectorsGet, "v").await, Some(vec![1, 2]));
        store.put_field(Op::StashPut, "s", "a", vec![1], HOUR).await;
        store.put_field(Op::StashPut, "s", "b", vec![2], HOUR).await;
        store.put_field(Op::StashPut, "s", "a", vec![3], HOUR).await;
        let fields = store.fields(Op::StashGet, "s").await;
        assert_eq!(fields, [("b".to_owned(), vec![2]), ("a".to_owned(), vec![3])]);
        assert!(store.errors().iter().all(|(_, count)| *count == 0));
    }

    #[tokio::test]
    async fn a_wrong_shape_is_a_counted_miss() {
        let store = Memory::default();
        store.put(Op::VectorsPut, "v", vec![1], None).await;
        store.put_field(Op::StashPut, "s", "a", vec![1], HOUR).await;
        assert_eq!(store.get(Op::VectorsGet, "s").await, None);
        assert!(store.fields(Op::StashGet, "v").await.is_empty());
        let failures: Vec<(Op, u64)> = store.errors().into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(failures, [(Op::VectorsGet, 1), (Op::StashGet, 1)]);
    }

    #[tokio::test]
    async fn what_begins_so_is_forgotten() {
        let store = Memory::default();
        for key in ["history:a", "history:b", "stash:a"] {
            store.put(Op::HistoryPut, key, vec![1], None).await;
        }
        assert_eq!(store.forget(Op::HistoryPut, "history:").await, 2);
        assert_eq!(store.get(Op::HistoryGet, "history:a").await, None);
        assert_eq!(store.get(Op::StashGet, "stash:a").await, Some(vec![1]));
    }

    #[tokio::test]
    async fn life_spans_end() {
        let store = Memory::default();
        store.put(Op::VectorsPut, "v", vec![1], Some(Duration::ZERO)).await;
        store.put_field(Op::StashPut, "s", "a", vec![1], HOUR).await;
        store.put_field(Op::StashPut, "s", "a", vec![1], Duration::ZERO).await;
        assert_eq!(store.get(Op::VectorsGet, "v").await, None);
        assert!(store.fields(Op::StashGet, "s").await.is_empty());
    }

    #[tokio::test]
    async fn bounds_hold() {
        let store = Memory::new(10_000, 10);
        for i in 0..1000 {
            store.put(Op::VectorsPut, &format!("k{i}"), vec![0; 10], None).await;
        }
        store.put(Op::VectorsPut, "large", vec![0; 20_000], None).await;
        store.kept.run_pending_tasks();
        assert!(store.kept.entry_count() <= 10, "{}", store.kept.entry_count());
        assert_eq!(store.get(Op::VectorsGet, "large").await, None);
        for i in 0..200 {
            store.put_field(Op::StashPut, "s", &format!("f{i}"), vec![0], HOUR).await;
        }
        let fields = store.fields(Op::StashGet, "s").await;
        assert_eq!(fields.len(), MAX_FIELDS);
        assert!(fields.iter().any(|(name, _)| name == "f199"));
    }
}
