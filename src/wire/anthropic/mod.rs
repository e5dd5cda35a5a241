//! The Anthropic wire, as Kimi serves it too: `view` reads a Messages request, `write` and `history` make the one that
//! is sent instead, `dispatch` wraps calls of what is not declared, `reply` assembles the answer, `thinking` is the last resort when a provider refuses merged
//! thinking, `marks` knows of cache marks. NOT policy, NOT sockets.

mod dispatch;
mod history;
pub mod marks;
pub mod reply;
pub mod thinking;
pub mod view;
pub mod write;
