//! The owner of every task of the service: work goes on when its callers stop waiting, and ends with the service.
//! NOT what the work is.

use std::future::Future;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

#[derive(Debug, Clone, Default)]
pub(super) struct Tasks {
    tracker: TaskTracker,
    ended: CancellationToken,
}

impl Tasks {
    /// Runs it in the background until it is done or the service ends.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let ended = self.ended.clone();
        self.tracker.spawn(async move {
            ended.run_until_cancelled(work).await;
        });
    }

    /// Runs what is short to its end, also when the service ends. Without a runtime there is nothing left to do it.
    pub(super) fn finish(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Ok(runtime) = Handle::try_current() {
            self.tracker.spawn_on(work, &runtime);
        }
    }

    /// Tells all to end; they do at their next wait.
    pub(super) fn end(&self) {
        self.ended.cancel();
        self.tracker.close();
    }

    /// Until all have ended.
    pub(super) async fn ended(&self) {
        self.tracker.wait().await;
    }
}
