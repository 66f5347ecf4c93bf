//! The protocol, independent of the transport: methods and replies. Transports are in
//! `http` and `stdio`; decisions are the engine's.

/// One engine behind both transports.
pub(crate) mod door;
/// Asking the person at the client.
pub(crate) mod elicit;
/// Instructions for the model before its first call.
mod instruction;
/// Prompts and resources as clients see them.
mod item;
/// Telling clients that their tools changed.
pub(crate) mod list_changed;
/// Questions of servers, and calls that wait for their answers.
pub(crate) mod parked;
/// Signs of life of a running call.
mod progress;
/// The result of a call, as clients read it.
mod reply;
/// The state modern clients carry between a question and its answer.
mod request_state;
/// Every method of the protocol.
pub mod server;
/// A tool as clients see it.
mod tool;
/// One request, whoever read it.
pub(crate) mod view;
