//! `fetch`, by what it promises.

mod body;
mod guard;
mod redirect;
mod request;
mod time;
mod tls;
