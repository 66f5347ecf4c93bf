//! What our own tools do. Each body gets a `Work` and leaves a result, or a refusal
//! for what its own check of the arguments does not take. `script` has the body of
//! `codecall_execute`.

pub(crate) mod describe;
pub(crate) mod invoke;
pub(crate) mod listing;
pub(crate) mod search;
pub(crate) mod server;
pub(crate) mod toolbox;
