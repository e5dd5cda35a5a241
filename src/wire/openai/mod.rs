//! The OpenAI wire: `view` reads a request, `write` makes the one that is sent instead, `reply` assembles the answer.
//! `text` knows how JSON spells a string. NOT policy, NOT sockets.

pub mod reply;
mod text;
pub mod view;
pub mod write;
