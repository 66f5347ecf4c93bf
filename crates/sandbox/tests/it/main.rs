//! The sandbox from outside: one binary for every integration test.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise, also in the functions that tests share"
)]

mod wall_help;
mod wall_pool;

mod cell_attack;
mod cell_cache;
mod cell_contract;
mod cell_ending;
mod cell_isolation;
mod cell_language;
mod cell_limits;
mod cell_run;
mod cell_sealed;
mod cell_surface;
mod wall_cases;
mod wall_hostile;
mod wall_walls;
