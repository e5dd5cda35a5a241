//! The commands of the binary, one file each. Part of `main.rs`, not of the library: NOT a decision about a request.

pub(crate) mod arguments;
pub(crate) mod demo;
pub(crate) mod eval;
pub(crate) mod explain;
pub(crate) mod failure;
pub(crate) mod health;
pub(crate) mod history;
pub(crate) mod lint;
mod logging;
pub(crate) mod replay;
pub(crate) mod report;
mod runtime;
pub(crate) mod serve;
mod sidecar;
pub(crate) mod tune;
