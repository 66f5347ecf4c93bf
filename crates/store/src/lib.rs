//! What outlives a process: the audit, what is remembered about tools and callers,
//! and the tools' files. All SQL is here, and no decision: the engine decides, the
//! store writes.
//!
//! Everything belongs to one *home*, a folder that several processes share.

/// The audit: a hash-chained log of every call, its index, its writer and readers.
mod audit;
/// The wall clock, in milliseconds.
pub mod clock;
/// Why the store could not do what it was asked.
mod error;
/// Where nodes find each other's heads.
mod exchange;
/// How far a long reading of the log is.
pub mod gauge;
/// The home folder: its database, its live processes, its settings, who may write it.
mod home;
/// Every bound of this crate.
pub mod limit;
/// A parallel map for short pieces of work.
pub mod parallel;
/// A Postgres that several homes share.
mod postgres;
/// Settings, rules and tool documents that nodes share.
mod share;
/// What an operator does with a shared store.
pub mod shared;
/// Copying records to a database that nodes share.
mod ship;
/// Statements for both databases.
mod sql;
/// The store of one home: opens all parts and ends their threads.
mod store;
/// What is kept in tables of the database.
mod tables;
/// Faults that tests ask for. Never in a release.
#[cfg(feature = "testing")]
pub mod testing;
/// The folder of tool documents, and whether anything in the home changed.
pub mod tools;

pub use audit::Audit;
pub use audit::entry::{AuditEntry, AuditItem, Filter, FoundEntry, Link, NoticeEntry, Rows};
pub use audit::evidence::conflicts::KeptConflict;
pub use audit::evidence::head_file::read_file as read_heads;
pub use audit::evidence::key::{is_sound as is_signature_sound, public_key};
pub use audit::evidence::nodes::{NodePath, VerifiedNode, VerifiedNodes, verify_nodes};
pub use audit::evidence::offline::{Expectation, ExportScope, VerifiedExport, verify_export};
pub use audit::evidence::signer::SigningStatus;
pub use audit::retention::{Removed, Retention};
pub use audit::settings::{Durability, Room, StoreSettings};
pub use audit::shipped::{ShipStatus, shipped_through};
pub use audit::write::queue::OpenRow;
pub use error::{OtherUsers, StoreError};
pub use exchange::HeadExchange;
pub use home::{serving, settings};
pub use postgres::address::{SecretReader, set_secret_reader};
pub use postgres::schema::SchemaStatus;
pub use share::{OWN_TABLES, SettingsEdit, SharedFiles, SyncedFiles};
pub use ship::{NodeItem, ShipDatabase, ShippedLog, Shipper};
pub use store::{LocalAudit, Store, StoreStatus};
pub use tables::approvals::{Approval, Approvals};
pub use tables::callers::CallerRecords;
pub use tables::jobs::{JobEnd, JobRow, Jobs, NewJob, WithOrphans};
pub use tables::keys::Keys;
pub use tables::people::{People, PersonSession};
pub use tables::publications::{
    Pass, PublicationSnapshot, Publications, ServerRecord, ServerRecords, ToolGrants,
};
pub use tables::scripts::{JournalSave, ScriptJournal, Scripts, TakenJournal};
pub use tables::usage::QuotaUsage;
pub use tables::waiting_scripts::WaitingScripts;
pub use tables::witnessed::{WitnessedHead, WitnessedHeads};
pub use tables::{approvals, callers, jobs, keys, names, people, publications, scripts, usage};
pub use tools::{ToolFile, ToolFolder};
