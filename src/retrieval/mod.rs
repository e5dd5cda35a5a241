//! Texts and numbers: which tools does a message need? Pure: NOT JSON of
//! agents, NOT HTTP, NOT a clock. An embedder's vectors come in as arguments.
//!
//! A tool becomes a [`document`], its texts become one row of a [`matrix`], its words [`lexical`] counts; both make
//! an [`index`]. A dialogue becomes a [`question`]: [`negation`] removed, long messages cut into [`passages`]. Tools that
//! a message [`names`] come first whatever their score; a [`prior`] breaks ties, and [`width`] says how many are taken.

pub mod contentless;
pub mod document;
pub mod embedder;
pub mod head;
pub mod index;
pub mod lexical;
pub mod matrix;
pub mod names;
pub mod negation;
pub mod passages;
pub mod prior;
pub mod question;
pub mod width;
