//! What black-box tests stand on: a strict scripted provider, the real binary
//! before it, and a client that shows raw bytes. NOT assertions about Packlight.
//!
//! ```ignore
//! mod support;
//! use support::{provider::Provider, reply::Reply, sidecar::Sidecar};
//!
//! let provider = Provider::new().reply(Reply::text("done")).start();
//! let sidecar = Sidecar::over(&provider).set("narrow.max_retrieved_tools", "3").start();
//! let answer = sidecar.post("/kimi/v1/chat/completions", &roster::ask("send a mail").to_string());
//! assert_eq!(answer.status, 200);
//! assert!(provider.chats()[0].declares("find_tools"));
//! ```
//!
//! Everything blocks: plain sockets and threads, so that no behaviour of an HTTP
//! library stands between a test and the bytes.
#![allow(
    clippy::allow_attributes,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    dead_code,
    reason = "test code: a failure must stop the test, and no test file uses all of it"
)]

pub mod anthropic;
pub mod assembled;
pub mod cache;
pub mod client;
pub mod embeddings;
pub mod gemini;
pub mod model;
pub mod openai;
pub mod provider;
pub mod received;
pub mod redis;
pub mod reply;
pub mod roster;
pub mod sidecar;
pub mod wiring;

use std::time::{Duration, Instant};

/// No wait of a test is longer. Generous: the machine may be compiling meanwhile.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Polls until `ready` gives something; panics with `what` when it never does.
pub fn eventually<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = ready() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
