//! The powers of tool code: fetch, files, parsers, crypto, time zones, secrets.
//!
//! Each power is a handle made from a grant; without one there is nothing to
//! call. A power takes and gives plain data ([`ask::Ask`], [`ask::Answer`]) and knows
//! nothing of sandboxes: whoever runs the tool carries the data across.

pub use model::network::address;
pub mod ask;
pub mod compute;
pub mod crypto;
pub mod data;
pub mod fetch;
pub mod files;
pub mod intl;
pub mod parser;
pub mod secrets;
pub mod url;

pub use ask::{Answer, Ask, Fault, FaultKind};
