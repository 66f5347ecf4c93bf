//! What is kept in tables of the home's database. Each table has a type of its own
//! with a connection of its own; a change is one transaction, so of two processes
//! that want the same row one gets it.

/// Questions to people and their answers.
pub mod approvals;
/// Denials, pauses, trust levels and feedback of callers.
pub mod callers;
/// Background jobs of callers.
pub mod jobs;
/// The keys with which callers identify themselves.
pub mod keys;
/// Names, read without taking part in the home.
pub mod names;
/// Codes and sessions of people at the Studio.
pub mod people;
/// Test results, published documents and grants of tools.
pub mod publications;
/// Journals of scripts that wait for a person.
pub mod scripts;
/// How much of their quotas callers used.
pub mod usage;
/// Texts of scripts whose calls ask a person.
pub(crate) mod waiting_scripts;
/// The heads of other people's logs.
pub(crate) mod witnessed;
