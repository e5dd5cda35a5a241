//! Single flight: of many who want the same thing at once, one leads and the others wait for what it lands. NOT a
//! cache: what has landed is forgotten here.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::retrieval::embedder::EmbedError;

/// What lands.
pub(super) type Landed<V> = Result<V, EmbedError>;

/// All that is under way, by key.
#[derive(Debug)]
pub(super) struct Flights<K, V> {
    under_way: Arc<Mutex<HashMap<K, Waiting<V>>>>,
    most: usize,
}

/// A place among those who wait.
#[derive(Debug, Clone)]
pub(super) struct Waiting<V>(watch::Receiver<Option<Landed<V>>>);

/// A place to wait and, for the first, the lead.
pub(super) type Joined<K, V> = (Waiting<V>, Option<Lead<K, V>>);

/// The obligation to land. Dropped without landing (a panic, a shutdown), it lands a failure.
#[derive(Debug)]
pub(super) struct Lead<K: Hash + Eq, V> {
    key: K,
    landing: watch::Sender<Option<Landed<V>>>,
    under_way: Arc<Mutex<HashMap<K, Waiting<V>>>>,
}

impl<K: Hash + Eq + Clone, V: Clone> Flights<K, V> {
    /// At most `most` at once.
    pub(super) fn new(most: usize) -> Self {
        Self { under_way: Arc::default(), most }
    }

    /// A place to wait, and the lead when nobody has it.
    ///
    /// # Errors
    /// `QueueFull`: too much is under way.
    pub(super) fn join(&self, key: &K) -> Result<Joined<K, V>, EmbedError> {
        let mut under_way = lock(&self.under_way);
        if let Some(waiting) = under_way.get(key) {
            return Ok((waiting.clone(), None));
        }
        if under_way.len() >= self.most {
            return Err(EmbedError::QueueFull);
        }
        let (landing, waiting) = watch::channel(None);
        under_way.insert(key.clone(), Waiting(waiting.clone()));
        let lead = Lead { key: key.clone(), landing, under_way: Arc::clone(&self.under_way) };
        Ok((Waiting(waiting), Some(lead)))
    }
}

impl<V: Clone> Waiting<V> {
    /// What the leader landed.
    pub(super) async fn landed(mut self) -> Landed<V> {
        match self.0.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(landed)) => landed.clone(),
            Ok(None) | Err(_) => Err(broken_off()),
        }
    }
}

impl<K: Hash + Eq, V> Lead<K, V> {
    /// Those who wait get it; who comes later leads anew, so a memo must hold it before.
    pub(super) fn land(self, landed: Landed<V>) {
        self.landing.send_replace(Some(landed));
    }
}

impl<K: Hash + Eq, V> Drop for Lead<K, V> {
    fn drop(&mut self) {
        lock(&self.under_way).remove(&self.key);
        self.landing.send_if_modified(|landed| {
            let nothing = landed.is_none();
            if nothing {
                *landed = Some(Err(broken_off()));
            }
            nothing
        });
    }
}

fn broken_off() -> EmbedError {
    EmbedError::Failed("the work was broken off".to_owned())
}

/// Nothing panics under this lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_leads_and_all_hear() {
        let flights = Flights::<u8, u8>::new(1);
        let (first, lead) = flights.join(&1).unwrap();
        let (second, none) = flights.join(&1).unwrap();
        assert!(none.is_none());
        assert_eq!(flights.join(&2).unwrap_err(), EmbedError::QueueFull);
        lead.unwrap().land(Ok(7));
        assert_eq!((first.landed().await, second.landed().await), (Ok(7), Ok(7)));
        assert!(flights.join(&2).unwrap().1.is_some());
    }

    #[tokio::test]
    async fn a_leader_that_vanishes_lands_a_failure_and_frees_the_key() {
        let flights = Flights::<u8, u8>::new(1);
        let (waiting, lead) = flights.join(&1).unwrap();
        drop(lead);
        assert_eq!(waiting.landed().await, Err(broken_off()));
        assert!(flights.join(&1).unwrap().1.is_some());
    }
}
