//! Nodes on one Postgres: who wins, what the others see and when, and what happens while the
//! database is gone.

mod copy;
mod crash;
mod files;
mod gone;
mod race;
mod schema;
