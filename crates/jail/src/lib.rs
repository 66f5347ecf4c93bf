//! Starts other people's programs as children behind a fence, and ends them
//! with everything they started.

mod bound;
mod child;
mod child_parts;
mod connect_answer;
mod control_group;
mod disk_use;
mod egress;
mod entry;
mod environment;
/// What can go wrong before a child runs.
pub mod fault;
mod file_rule;
mod file_rules;
mod file_wall;
mod filter;
mod hand_over;
mod identity;
mod inside;
mod launcher;
/// Every bound of this crate.
pub mod limit;
mod line;
mod message;
mod name_files;
mod new_root;
mod order;
mod place;
mod probe;
mod process_tree;
mod program;
mod reaper;
mod role;
mod seccomp;
/// What a child may use.
pub mod settings;
mod start;
mod starter;
mod supervisor;
mod supervisor_process;
/// The layers of the fence, each up or missing with its reason.
pub mod wall;

pub use child::{JailGrace, JailTrial, JailedChild, running_count, spawn, try_out};
pub use egress::JailEgress;
pub use entry::jail_main;
pub use fault::JailFault;
pub use message::{JailExit, JailUsage};
pub use probe::probe;
pub use program::resolve_program;
pub use sandbox::pool::WorkerProgram;
pub use settings::{JailLimits, JailNetwork, JailOverlay, JailRung, JailSettings};
pub use starter::JailStarter;
pub use wall::{JailLayer, Wall};
