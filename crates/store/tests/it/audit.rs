//! The audit: its entries, its log, and what happens when writing fails.

mod crash;
mod entry;
mod evidence;
mod full;
mod hostile;
mod notices;
mod retention;
mod syncer;
mod torn;
