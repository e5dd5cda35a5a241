//! What tokens cost, and what a provider's prompt cache makes of them. Pure arithmetic: tokens and times come in, USD
//! and tokens come out. NOT what was used (`outcome`), NOT where a price is configured (`config`).
//!
//! * [`prices`]: USD by model.
//! * [`cache`]: a provider's prompt cache, simulated on segments.
//! * [`play`]: a conversation, request by request, as each policy would have sent it through that cache.
//! * [`saving`]: what narrowing saved, request by request.
//! * [`correction`]: the provider's tokens for one of ours.
//! * [`policy`]: the policies, what each is expected to cost, and which one to take.

pub mod cache;
pub mod correction;
pub mod play;
pub mod policy;
pub mod prices;
pub mod saving;
