//! The threads on which the builtin embedder computes, and the bounded queue before them.
//!
//! NOT on the event loop: one text takes 20 ms to a second of pure arithmetic. NOT joined on drop: the pool may be
//! dropped on an event loop's thread, so its threads end by themselves after the text they are at.
//!
//! Queries and documents wait in two lanes, each bounded by `queue`. Queries go first: a turn waits for its one query,
//! while a roster's build may take seconds. One lane for both would let a build of 256 tools refuse every turn.

use std::collections::VecDeque;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::Builtin;
use super::forward::Scratch;
use crate::retrieval::embedder::{EmbedError, Embedded, Embedder, Task};

/// Size of the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Threads, at least 1.
    pub threads: usize,
    /// Texts that may wait in a lane before callers are refused.
    pub queue: usize,
}

impl Default for Settings {
    /// Half of the cores: the other half is for relaying.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { threads: (cores / 2).max(1), queue: 256 }
    }
}

/// The builtin embedder on threads of its own.
pub struct Pool {
    model: String,
    dimensions: usize,
    shared: Arc<Shared>,
}

impl Pool {
    /// Starts the threads. They end when the pool is dropped. `builtin`: the model, or a share of it.
    ///
    /// # Errors
    /// The system refused a thread.
    pub fn start(builtin: impl Into<Arc<Builtin>>, settings: Settings) -> std::io::Result<Self> {
        let builtin = builtin.into();
        let (model, dimensions) = (builtin.model().to_owned(), builtin.dimensions());
        let engine = move |text: &str, scratch: &mut Scratch| {
            builtin.embed_with(text, scratch).map_err(|error| EmbedError::Failed(error.to_string()))
        };
        Self::over(model, dimensions, Box::new(engine), settings)
    }

    fn over(model: String, dimensions: usize, engine: Engine, settings: Settings) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            engine,
            capacity: settings.queue,
            lanes: Mutex::new(Lanes { open: true, ..Lanes::default() }),
            wake: Condvar::new(),
        });
        // Built before the threads: when one is refused, its drop ends those already started.
        let pool = Self { model, dimensions, shared };
        for number in 0..settings.threads.max(1) {
            let shared = Arc::clone(&pool.shared);
            std::thread::Builder::new().name(format!("embed-{number}")).spawn(move || shared.work())?;
        }
        Ok(pool)
    }

    /// Texts that wait, in both lanes.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let lanes = self.shared.lock();
        lanes.queries.len() + lanes.documents.len()
    }
}

impl Embedder for Pool {
    fn model(&self) -> &str {
        &self.model
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// All texts are taken, or none (`QueueFull`). A future that is dropped takes its waiting texts with it.
    fn embed<'a>(&'a self, texts: &'a [String], task: Task) -> Embedded<'a> {
        Box::pin(async move {
            let answers = self.shared.enqueue(texts, task)?;
            let mut vectors = Vec::with_capacity(answers.len());
            for answer in answers {
                let vector = answer.await.map_err(|_| EmbedError::Failed("the computation broke off".to_owned()))?;
                vectors.push(vector?);
            }
            Ok(vectors)
        })
    }

    fn is_idle(&self) -> bool {
        self.waiting() == 0
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut lanes = self.shared.lock();
        *lanes = Lanes::default();
        self.shared.wake.notify_all();
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("model", &self.model).field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

type Engine = Box<dyn Fn(&str, &mut Scratch) -> Result<Vec<f32>, EmbedError> + Send + Sync>;

struct Shared {
    engine: Engine,
    capacity: usize,
    lanes: Mutex<Lanes>,
    wake: Condvar,
}

#[derive(Default)]
struct Lanes {
    queries: VecDeque<Job>,
    documents: VecDeque<Job>,
    /// False: the pool is gone, threads end.
    open: bool,
}

struct Job {
    text: String,
    answer: oneshot::Sender<Result<Vec<f32>, EmbedError>>,
}

impl Shared {
    #[expect(clippy::type_complexity, reason = "one receiver a text, named nowhere else")]
    fn enqueue(
        &self,
        texts: &[String],
        task: Task,
    ) -> Result<Vec<oneshot::Receiver<Result<Vec<f32>, EmbedError>>>, EmbedError> {
        let mut lanes = self.lock();
        let lane = match task {
            Task::Query => &mut lanes.queries,
            Task::Document => &mut lanes.documents,
        };
        if lane.len() + texts.len() > self.capacity {
            // What nobody waits for any more must not refuse those who do.
            lane.retain(|job| !job.answer.is_closed());
        }
        // A roster longer than the whole queue is taken by an empty lane, or it could never be embedded.
        if !lane.is_empty() && lane.len() + texts.len() > self.capacity {
            return Err(EmbedError::QueueFull);
        }
        let mut answers = Vec::with_capacity(texts.len());
        for text in texts {
            let (answer, receiver) = oneshot::channel();
            lane.push_back(Job { text: text.clone(), answer });
            answers.push(receiver);
        }
        drop(lanes);
        self.wake.notify_all();
        Ok(answers)
    }

    /// A thread's life.
    fn work(&self) {
        let mut scratch = Scratch::default();
        while let Some(job) = self.next() {
            if job.answer.is_closed() {
                continue;
            }
            // A panic would cost the thread and, one by one, the whole pool; so it costs one text.
            let computed = std::panic::catch_unwind(AssertUnwindSafe(|| (self.engine)(&job.text, &mut scratch)));
            let answer = computed.unwrap_or_else(|_| Err(EmbedError::Failed("the computation panicked".to_owned())));
            // The caller may have gone meanwhile.
            let _ = job.answer.send(answer);
        }
    }

    /// The next text, queries first; waits for one. `None`: the pool is gone.
    fn next(&self) -> Option<Job> {
        let mut lanes = self.lock();
        loop {
            if !lanes.open {
                return None;
            }
            if let Some(job) = lanes.queries.pop_front() {
                return Some(job);
            }
            if let Some(job) = lanes.documents.pop_front() {
                return Some(job);
            }
            lanes = self.wake.wait(lanes).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Nothing panics under this lock, and a queue has no half-made state.
    fn lock(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use futures_util::FutureExt;

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(10);

    /// An engine that reports each text it begins and goes on when it is told to.
    struct Gate {
        begun: Receiver<String>,
        go: Sender<()>,
    }

    fn gated(settings: Settings) -> (Pool, Gate) {
        let ((begin, begun), (go, may_go)) = (channel(), channel::<()>());
        let may_go = Mutex::new(may_go);
        let pool = pool(settings, move |text| {
            begin.send(text.to_owned()).unwrap();
            may_go.lock().unwrap().recv_timeout(DEADLINE).unwrap();
            vec![text.parse().unwrap()]
        });
        (pool, Gate { begun, go })
    }

    fn pool(settings: Settings, compute: impl Fn(&str) -> Vec<f32> + Send + Sync + 'static) -> Pool {
        let engine = move |text: &str, _: &mut Scratch| Ok(compute(text));
        Pool::over("model".to_owned(), 1, Box::new(engine), settings).unwrap()
    }

    fn texts(numbers: std::ops::Range<u32>) -> Vec<String> {
        numbers.map(|number| number.to_string()).collect()
    }

    #[tokio::test]
    async fn answers_keep_the_order_of_their_texts() {
        let pool = pool(Settings { threads: 4, queue: 256 }, |text| vec![text.parse().unwrap()]);
        let texts = texts(0..200);
        let vectors = pool.embed(&texts, Task::Document).await.unwrap();
        assert_eq!(vectors, (0..200).map(|number| vec![number as f32]).collect::<Vec<_>>());
        assert_eq!(pool.embed(&[], Task::Query).await, Ok(vec![]));
    }

    #[tokio::test]
    async fn a_query_goes_ahead_of_waiting_documents() {
        let (pool, gate) = gated(Settings { threads: 1, queue: 8 });
        let (documents, query) = (texts(0..3), texts(9..10));
        let mut build = pool.embed(&documents, Task::Document);
        assert!((&mut build).now_or_never().is_none());
        assert_eq!(gate.begun.recv_timeout(DEADLINE).unwrap(), "0");
        let mut asked = pool.embed(&query, Task::Query);
        assert!((&mut asked).now_or_never().is_none());
        (0..4).for_each(|_| gate.go.send(()).unwrap());
        assert_eq!(asked.await, Ok(vec![vec![9.0]]));
        assert_eq!(build.await, Ok(vec![vec![0.0], vec![1.0], vec![2.0]]));
        assert_eq!(gate.begun.iter().take(3).collect::<Vec<_>>(), ["9", "1", "2"]);
    }

    #[tokio::test]
    async fn a_full_lane_refuses_and_the_other_lane_does_not() {
        let (pool, gate) = gated(Settings { threads: 1, queue: 4 });
        let (first, long, one) = (texts(0..1), texts(1..10), texts(10..11));
        let mut busy = pool.embed(&first, Task::Document);
        assert!((&mut busy).now_or_never().is_none());
        gate.begun.recv_timeout(DEADLINE).unwrap();
        // Longer than the queue, but nothing waits before it.
        let mut build = pool.embed(&long, Task::Document);
        assert!((&mut build).now_or_never().is_none());
        assert_eq!(pool.waiting(), 9);
        assert_eq!(pool.embed(&one, Task::Document).await, Err(EmbedError::QueueFull));
        let mut asked = pool.embed(&one, Task::Query);
        assert!((&mut asked).now_or_never().is_none());
        assert_eq!(pool.waiting(), 10);
        // Nobody waits for the build any more: its place is free again.
        drop(build);
        assert!(pool.embed(&one, Task::Document).now_or_never().is_none());
        assert_eq!(pool.waiting(), 2);
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_not_computed() {
        let (pool, gate) = gated(Settings { threads: 1, queue: 8 });
        let (gone, kept) = (texts(0..3), texts(7..8));
        let mut dropped = pool.embed(&gone, Task::Query);
        assert!((&mut dropped).now_or_never().is_none());
        assert_eq!(gate.begun.recv_timeout(DEADLINE).unwrap(), "0");
        drop(dropped);
        (0..2).for_each(|_| gate.go.send(()).unwrap());
        assert_eq!(pool.embed(&kept, Task::Query).await, Ok(vec![vec![7.0]]));
        assert_eq!(gate.begun.recv_timeout(DEADLINE).unwrap(), "7");
    }

    #[tokio::test]
    async fn a_panic_costs_one_text_not_the_thread() {
        let pool = pool(Settings { threads: 1, queue: 8 }, |text| vec![text.parse().unwrap()]);
        let (bad, good) = (vec!["not a number".to_owned()], texts(1..2));
        assert!(matches!(pool.embed(&bad, Task::Query).await, Err(EmbedError::Failed(_))));
        assert_eq!(pool.embed(&good, Task::Query).await, Ok(vec![vec![1.0]]));
    }

    #[test]
    fn threads_end_with_their_pool() {
        struct Last(Sender<()>);
        impl Drop for Last {
            fn drop(&mut self) {
                self.0.send(()).unwrap();
            }
        }
        let (ended, end) = channel();
        let last = Mutex::new(Last(ended));
        let pool = pool(Settings { threads: 3, queue: 8 }, move |_| {
            drop(last.lock());
            vec![]
        });
        drop(pool);
        // The engine is the threads' last common thing.
        end.recv_timeout(DEADLINE).unwrap();
    }
}
