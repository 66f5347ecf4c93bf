//! The tables, each as several processes see it.

mod approvals;
mod callers;
mod jobs;
mod keys;
mod publications;
mod scripts;
mod usage;
