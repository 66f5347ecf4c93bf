//! The tables, each as several processes see it. The suite is written once and runs on both
//! databases: in the SQLite of a home, and in a Postgres where every process is a node with a
//! home of its own.

/// What only a home has: files, and databases of older versions.
mod home_only;
/// Shared by nodes.
mod on_postgres;
/// In the home.
mod on_sqlite;
