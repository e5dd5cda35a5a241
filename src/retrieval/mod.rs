//! Texts and numbers: which tools does a message need? Pure: NOT JSON, NOT HTTP,
//! NOT a clock. An embedder's vectors come in as arguments.

pub mod document;
pub mod embedder;
pub mod index;
pub mod question;
