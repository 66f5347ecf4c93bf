//! The spine: the one path of a call.
//!
//! So far it holds [`powers`], which joins the sandbox's host calls to the powers
//! of `host`. The path itself, with its gates and its audit row, comes next and
//! will be the only caller of what is here.

pub mod powers;
