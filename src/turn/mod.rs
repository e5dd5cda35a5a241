//! Decides, never waits: what is bound for a transcript, what `find_tools` is
//! told, when to touch nothing. Pure: NOT an embedding call, NOT a socket, NOT a clock.
//!
//! * [`bypass`]: each reason to touch nothing.
//! * [`policy`]: the settings that decide.
//! * [`roster`]: what the agent sent, read once per distinct `tools` value.
//! * [`transcript`]: the conversation as turns.
//! * [`past`]: calls and finds, turn by turn.
//! * [`selection`]: what retrieval says of one turn.
//! * [`fold`]: transcript -> block.
//! * [`append`]: the same where additions are declared in the conversation.
//! * [`script`]: in which script a message is written.
//! * [`dispatch`]: the same where nothing can be declared later: `call_tool`.
//! * [`search`]: what `find_tools` is told and when searching is over.
//! * [`sizes`]: what a roster's tools weigh.
//! * [`tokens`]: how large a text is, about.
//! * [`whole`]: all of a roster, where that is more than the provider takes.
//! * [`memory`]: hidden exchanges, their keys, and where they go back.

pub mod append;
pub mod bypass;
pub mod cause;
pub mod dispatch;
pub mod fold;
pub mod memory;
pub mod past;
pub mod policy;
pub mod roster;
pub mod script;
pub mod search;
pub mod selection;
pub mod sizes;
pub mod tokens;
pub mod transcript;
pub mod whole;
