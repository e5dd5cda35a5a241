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
//! 5    metrics.rs
//! 4    outcome.rs      eval.rs      demo/
//! 3    shadow.rs       config/
//! 2  turn/ (pure)                   embed/ ......... model, HTTP out, shared build
//! 1  wire/ (pure)   retrieval/ (pure)   store/ ..... redis
//! ```
//!
//! * [`wire`]: bytes in, bytes out. The only place that knows a provider's shapes.
//! * [`retrieval`]: texts and numbers. Which tools does a message need?
//! * [`store`]: bytes with a life span, in memory or on Redis.
//! * [`turn`]: decides. What is bound, what was asked for, when to touch nothing.
//! * [`embed`]: texts become vectors, once.
//! * [`config`]: a file becomes settings, or a list of problems.
//! * [`proxy`]: the sockets. Read `proxy/handle.rs` first: one request, top to bottom.

pub mod config;
pub mod demo;
pub mod embed;
pub mod eval;
pub mod metrics;
pub mod outcome;
pub mod proxy;
pub mod retrieval;
pub mod store;
pub mod turn;
pub mod wire;
