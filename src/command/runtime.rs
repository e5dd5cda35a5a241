//! The one place that starts tokio. NOT what runs on it.

use std::time::Duration;

use super::failure::Failure;

/// Runs a command to its end.
pub(crate) fn run(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Run(format!("cannot start the runtime: {error}")))?;
    let ended = runtime.block_on(command);
    // A name lookup that hangs must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(100));
    ended
}
