//! The home folder: who may write it, and the operator's files.

mod permission;
mod serving;
mod settings;
