//! What decision logs say: which calls a selection would have held, what narrowing saved against the holdout, and what
//! to change. Reads logs of any length with bounded memory: names beyond a cap are counted as one, conversations beyond
//! a cap are sampled by their hash. NOT a judgement without its figures: every verdict stands beside what it is made of.

pub mod advice;
pub mod arms;
pub mod compare;
pub mod conversations;
pub mod html;
pub mod names;
pub mod ranks;
pub mod read;
pub mod recall;
pub mod summary;
pub mod tally;
pub mod text;
pub mod verdict;
