//! The one place that starts tokio. NOT what runs on it.

use std::time::Duration;

use super::failure::Failure;

/// Runs a command to its end.
pub(crate) fn run(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    // Half of the cores: a request hops between tasks, and a hop within a thread costs a tenth of one between threads
    // (a relayed request on two cores: 0.25 ms with one thread, 0.5 ms with two). The embedder has threads of its own.
    // Where that is one thread, a runtime that knows no other saves some 30 us a request.
    let threads = std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1));
    let mut builder = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder
        .worker_threads(threads)
        .enable_all()
        .build()
        .map_err(|error| Failure::Run(format!("cannot start the runtime: {error}")))?;
    let ended = runtime.block_on(command);
    // A name lookup that hangs must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(100));
    ended
}
