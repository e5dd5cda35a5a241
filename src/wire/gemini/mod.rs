//! The gemini wire: `view` reads a request, `write` makes the one that is sent instead, `reply` assembles the answer.

mod dispatch;
mod history;
mod nest;
pub mod reply;
pub mod schema;
pub mod view;
pub mod write;
