//! How the process ends: stop accepting, let what is open finish, cut the rest. Owns every task of the sockets.
//! NOT signals.

use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Handles are alike; each sees the same shutdown.
#[derive(Debug, Clone)]
pub struct Shutdown {
    begun: CancellationToken,
    cut: CancellationToken,
    tasks: TaskTracker,
    grace: Duration,
}

impl Shutdown {
    /// `grace`: how long what is open may go on after [`Shutdown::begin`].
    pub fn new(grace: Duration) -> Self {
        Self { begun: CancellationToken::new(), cut: CancellationToken::new(), tasks: TaskTracker::new(), grace }
    }

    /// Nothing more is accepted.
    pub fn begin(&self) {
        self.begun.cancel();
    }

    /// Ends when shutdown has begun.
    pub async fn begun(&self) {
        self.begun.cancelled().await;
    }

    pub fn has_begun(&self) -> bool {
        self.begun.is_cancelled()
    }

    /// Ends when the grace is over: whoever waits here drops what it holds.
    pub async fn cut(&self) {
        self.cut.cancelled().await;
    }

    /// Ends the grace, whoever still needs it.
    pub fn cut_now(&self) {
        self.cut.cancel();
    }

    /// Runs a task that shutdown waits for. It must end by itself or at [`Shutdown::cut`].
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Waits for every task, for `grace` gladly and then by cutting.
    pub async fn drained(&self) {
        self.tasks.close();
        if tokio::time::timeout(self.grace, self.tasks.wait()).await.is_err() {
            tracing::warn!(open = self.tasks.len(), "cutting what is still open after shutdown_grace");
            self.cut.cancel();
            self.tasks.wait().await;
        }
    }
}
