//! What tokens cost, and what a provider's prompt cache makes of them. Pure arithmetic: tokens and times come in, USD
//! and tokens come out. NOT what was used (`outcome`), NOT where a price is configured (`config`).

pub mod cache;
pub mod prices;
