//! Packlight sits between an agent and its model and sends the model only the
//! tools a message needs.
//!
//! # The house
//!
//! Imports point down only; the wings of a floor do not know each other
//! (`tests/architecture.rs` is the law).
//!
//! ```text
//! 7  main.rs
//! 6  proxy/ ........................................ sockets, time, tasks
//! 5    metrics.rs      page/        tune/  lint/  explain/
//! 4    outcome.rs      eval.rs      demo/      report/      replay/
//! 3    config/
//! 2  turn/ (pure)                   embed/ ......... model, HTTP out, shared build
//! 1  wire/ (pure)   retrieval/ (pure)   cost/ (pure)   decision.rs (pure)   chart/ (pure)   store/ ..... redis
//! ```
//!
//! * [`wire`]: bytes in, bytes out. The only place that knows a provider's shapes.
//! * [`retrieval`]: texts and numbers. Which tools does a message need?
//! * [`decision`]: the record of one request, as written and as read.
//! * [`cost`]: tokens become USD; a provider's prompt cache, simulated.
//! * [`store`]: bytes with a life span, in memory or on Redis.
//! * [`chart`]: figures as text, HTML and SVG.
//! * [`turn`]: decides. What is bound, what was asked for, when to touch nothing.
//! * [`embed`]: texts become vectors, once.
//! * [`report`]: what decision logs come to.
//! * [`page`]: the status page of the admin port.
//! * [`config`]: a file becomes settings, or a list of problems.
//! * [`eval`]: labelled requests, counted. [`tune`]: learning from them.
//! * [`lint`], [`explain`]: what makes a roster hard to search; why a message gets its tools.
//! * [`proxy`]: the sockets. Read `proxy/handle.rs` first: one request, top to bottom.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::todo,
    clippy::unimplemented,
    reason = "a fault of ours must end in the agent's own bytes being sent, not in a dead task"
)]
#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a library says nothing; commands print, the rest is logged"
)]

#[deny(clippy::disallowed_types, clippy::disallowed_methods, reason = "a pure floor")]
pub mod chart;
pub mod config;
#[deny(clippy::disallowed_types, clippy::disallowed_methods, reason = "a pure floor")]
pub mod cost;
#[deny(clippy::disallowed_types, clippy::disallowed_methods, reason = "a pure floor")]
pub mod decision;
pub mod demo;
pub mod embed;
pub mod eval;
pub mod explain;
pub mod lint;
pub mod metrics;
pub mod outcome;
pub mod page;
pub mod proxy;
pub mod replay;
pub mod report;
#[deny(clippy::disallowed_types, clippy::disallowed_methods, reason = "a pure floor")]
pub mod retrieval;
pub mod store;
pub mod tune;
#[deny(clippy::disallowed_types, clippy::disallowed_methods, reason = "a pure floor")]
pub mod turn;
#[deny(clippy::disallowed_types, clippy::disallowed_methods, reason = "a pure floor")]
pub mod wire;
