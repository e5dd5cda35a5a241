//! The Anthropic wire: golden files and any cut of a stream here below (`wire`), the
//! sidecar over sockets in `narrowing`, `find_tools`, `dispatch`, `repairs` and `dialogue`. NOT whether SDKs
//! accept the result (sdk.rs).

#[path = "../support/mod.rs"]
mod support;

mod dialogue;
mod dispatch;
mod find_tools;
mod narrowing;
mod repairs;
mod wire;
