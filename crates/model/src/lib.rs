//! The words of Ringfence: the tool document, its validation, policy, risk,
//! masking, and the names of everything that can be refused.
//!
//! Invariant 1: nothing here reads a file, a clock, a variable or the network.
//! What such things say comes in as an argument, so that every answer can be
//! asked for again and comes out the same.

pub mod access;
pub mod action;
pub mod address;
pub mod approval;
pub mod assessment;
pub mod audit;
pub mod autonomy;
pub mod caller;
pub mod canonical;
pub mod codecall;
pub mod config;
pub mod consent;
pub mod digest;
pub mod disclosure;
pub mod document;
pub mod environment;
pub mod example;
pub mod exposure;
pub mod finding;
pub mod grant;
pub mod host_bound;
pub mod host_pattern;
pub mod json;
pub mod key;
pub mod lifecycle;
pub mod limits;
pub mod mask;
pub mod nearest;
pub mod outcome;
pub mod params;
pub mod pattern;
pub mod placeholder;
pub mod policy;
pub mod reason;
pub mod risk;
pub mod rules;
pub mod safety;
pub mod sanitise;
pub mod search;
pub mod text;
pub mod tool_policy;
pub mod trust;
pub mod unseen;

pub use document::Document;
pub use environment::Environment;
pub use finding::{Code, Finding, Severity};
pub use policy::EffectivePolicy;
pub use risk::{Level, Risk};
