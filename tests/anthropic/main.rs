//! The Anthropic wire: golden files and any cut of a stream here below (`wire`), the
//! sidecar over sockets in `narrowing`, `find_tools`, `repairs` and `dialogue`. NOT whether SDKs
//! accept the result (sdk.rs).

#[path = "../support/mod.rs"]
mod support;

mod dialogue;
mod find_tools;
mod narrowing;
mod repairs;
mod wire;
