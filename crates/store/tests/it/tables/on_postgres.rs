//! The suite in a Postgres that nodes share.

pub(crate) use crate::lab::SharedHome as Home;

#[path = "approvals.rs"]
pub(crate) mod approvals;
#[path = "callers.rs"]
pub(crate) mod callers;
#[path = "jobs.rs"]
pub(crate) mod jobs;
#[path = "keys.rs"]
pub(crate) mod keys;
#[path = "people.rs"]
pub(crate) mod people;
#[path = "publications.rs"]
pub(crate) mod publications;
#[path = "scripts.rs"]
pub(crate) mod scripts;
#[path = "usage.rs"]
pub(crate) mod usage;
#[path = "waiting_scripts.rs"]
pub(crate) mod waiting_scripts;
