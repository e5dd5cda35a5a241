//! What each policy would have cost on traffic that was recorded, or is made up: requests in, a table and a page out. NOT
//! the simulation (`cost`), NOT a request on its way.

pub mod captured;
pub mod findings;
pub mod grid;
pub mod ledger;
pub mod models;
pub mod page;
pub mod read;
pub mod synthetic;
