//! The Studio: the page for people, its front door and its JSON API. It translates and
//! never decides: every effect is a function of the engine that the command line calls too.
//!
//! Invariant 18: a person's session and an agent's key are different things. Nothing here
//! reads a key, and no session opens an agent's door.

/// What the API promises, as an OpenAPI document.
mod api;
/// The files of the page.
mod asset;
/// Every route, in one table.
mod door;
/// What a page is told when something cannot be done.
mod error;
/// What pages are told without asking.
mod event;
/// Which requests are looked at, and the headers of every answer.
mod guard;
/// The events of one server.
mod hub;
/// Every bound of the Studio.
pub mod limit;
/// Signing in with an issuer's account.
mod oauth;
/// The API, part by part.
mod page;
/// One request as a part of the API sees it.
mod request;
/// One route: its front door, then its work.
mod route;
/// Signing in and out, and whose request it is.
mod session;
/// The Studio of one server.
mod studio;
/// How often codes are tried.
mod tries;

pub use asset::missing;
pub use door::openapi;
pub use studio::{Studio, StudioSettings};
