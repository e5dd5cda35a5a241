//! How many vectors were at hand, made, and not to be had. NOT the metrics endpoint.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(super) struct Counts {
    hit: AtomicU64,
    built: AtomicU64,
    failed: AtomicU64,
}

impl Counts {
    pub(super) fn hit(&self, vectors: usize) {
        add(&self.hit, vectors);
    }

    pub(super) fn built(&self, vectors: usize) {
        add(&self.built, vectors);
    }

    pub(super) fn failed(&self, vectors: usize) {
        add(&self.failed, vectors);
    }

    /// By the value of the metric's label.
    pub(super) fn read(&self) -> [(&'static str, u64); 3] {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [("hit", read(&self.hit)), ("built", read(&self.built)), ("failed", read(&self.failed))]
    }
}

fn add(count: &AtomicU64, vectors: usize) {
    count.fetch_add(vectors as u64, Ordering::Relaxed);
}
