//! The OpenAI wire: `view` reads a request, `write` makes the one that is sent instead, `reply` assembles the answer.
//! NOT policy, NOT sockets.

mod dispatch;
pub mod reply;
pub mod view;
pub mod write;
