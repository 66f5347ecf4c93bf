//! The protocol, whatever the transport: the methods clients call and what they are
//! told. Transports are in `http` and `stdio`; decisions are the engine's.

/// One engine behind both transports.
pub(crate) mod door;
/// Asking the person at the client.
pub(crate) mod elicit;
/// What a model is told before its first call.
mod instruction;
/// Telling clients that their tools changed.
pub(crate) mod list_changed;
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
