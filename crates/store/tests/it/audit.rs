//! The audit: its entries, its log, and what happens when writing fails.

mod crash;
mod database;
mod entry;
mod evidence;
mod full;
mod hostile;
mod nodes;
mod notices;
mod references;
mod retention;
mod ship;
mod syncer;
mod torn;
