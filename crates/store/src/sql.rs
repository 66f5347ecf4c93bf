//! One set of statements for two databases: SQLite in the home, or a Postgres that several
//! homes share. A statement is written once where both understand it, else in both forms
//! side by side (`either`). Nothing is generated: what runs is what is written here.
//!
//! Parameters are `?1`, `?2`; for Postgres they become `$1`, `$2`.

/// Which other processes are alive, in the home or in the cluster.
pub(crate) mod peers;
/// Where the rows of a table are, and how a change begins and ends.
pub(crate) mod tables;
/// Versions that every call checks, of the home or of the cluster.
pub(crate) mod version;

use std::fmt;

use tokio_postgres::types::{FromSqlOwned, ToSql as PostgresValue};

pub(crate) use crate::error::{SqlError, SqlResult as Result};
use crate::postgres::session::Session;

/// A word that is not one of a closed set is an error, never a default (invariant 8).
pub(crate) fn unknown(what: impl fmt::Display) -> SqlError {
    SqlError::Unknown(what.to_string())
}

/// A statement, in the words of both databases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sql<'a> {
    sqlite: &'a str,
    postgres: &'a str,
}

/// A statement that the two databases spell differently.
pub(crate) fn either<'a>(sqlite: &'a str, postgres: &'a str) -> Sql<'a> {
    Sql { sqlite, postgres }
}

impl<'a> From<&'a str> for Sql<'a> {
    fn from(both: &'a str) -> Sql<'a> {
        either(both, both)
    }
}

impl<'a> From<&'a String> for Sql<'a> {
    fn from(both: &'a String) -> Sql<'a> {
        either(both, both)
    }
}

/// What can be a parameter: whole numbers as `i64`, texts, bytes, truth values.
pub(crate) trait SqlValue: rusqlite::ToSql + PostgresValue + Sync {}

impl<T: rusqlite::ToSql + PostgresValue + Sync> SqlValue for T {}

/// What can be read from a column.
pub(crate) trait SqlColumn: rusqlite::types::FromSql + FromSqlOwned {}

impl<T: rusqlite::types::FromSql + FromSqlOwned> SqlColumn for T {}

/// How a column is named: by its place or its name.
pub(crate) trait SqlIndex:
    rusqlite::RowIndex + tokio_postgres::row::RowIndex + fmt::Display
{
}

impl<T: rusqlite::RowIndex + tokio_postgres::row::RowIndex + fmt::Display> SqlIndex for T {}

/// The parameters of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        &[$(&$value as &dyn $crate::sql::SqlValue),*]
    };
}
pub(crate) use values;

/// A row that was read.
#[derive(Debug)]
pub(crate) enum SqlRow<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Postgres(&'a tokio_postgres::Row),
}

impl SqlRow<'_> {
    /// The value of a column.
    pub(crate) fn get<T: SqlColumn>(&self, column: impl SqlIndex) -> Result<T> {
        match self {
            SqlRow::Sqlite(row) => row.get(column).map_err(SqlError::Sqlite),
            SqlRow::Postgres(row) => row.try_get(column).map_err(SqlError::Postgres),
        }
    }

    /// A number that is never below zero; one that is counts as 0.
    pub(crate) fn count(&self, column: impl SqlIndex) -> Result<u64> {
        Ok(u64::try_from(self.get::<i64>(column)?).unwrap_or(0))
    }

    /// A digest.
    pub(crate) fn digest(&self, column: impl SqlIndex) -> Result<[u8; 32]> {
        let bytes: Vec<u8> = self.get(column)?;
        bytes
            .try_into()
            .map_err(|_| unknown("a digest has 32 bytes"))
    }
}

/// Runs statements, in a transaction if one was begun.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Executor<'a> {
    Sqlite(&'a rusqlite::Connection),
    Postgres(&'a Session),
}

impl Executor<'_> {
    /// Whether several homes share the rows.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Executor::Postgres(_))
    }

    /// Runs a statement and returns how many rows it changed.
    pub(crate) fn execute<'q>(
        &self,
        sql: impl Into<Sql<'q>>,
        values: &[&dyn SqlValue],
    ) -> Result<usize> {
        let sql = sql.into();
        match self {
            Executor::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql.sqlite)?;
                Ok(statement.execute(sqlite_values(values))?)
            }
            Executor::Postgres(session) => session.execute(sql.postgres, &postgres_values(values)),
        }
    }

    /// All rows of an answer.
    pub(crate) fn query<'q, T>(
        &self,
        sql: impl Into<Sql<'q>>,
        values: &[&dyn SqlValue],
        mut read: impl FnMut(&SqlRow<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let sql = sql.into();
        let mut found = Vec::new();
        match self {
            Executor::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql.sqlite)?;
                let mut rows = statement.query(sqlite_values(values))?;
                while let Some(row) = rows.next()? {
                    found.push(read(&SqlRow::Sqlite(row))?);
                }
            }
            Executor::Postgres(session) => {
                for row in session.query(sql.postgres, &postgres_values(values))? {
                    found.push(read(&SqlRow::Postgres(&row))?);
                }
            }
        }
        Ok(found)
    }

    /// The first row of an answer.
    pub(crate) fn query_first<'q, T>(
        &self,
        sql: impl Into<Sql<'q>>,
        values: &[&dyn SqlValue],
        read: impl FnOnce(&SqlRow<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let sql = sql.into();
        match self {
            Executor::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql.sqlite)?;
                let mut rows = statement.query(sqlite_values(values))?;
                match rows.next()? {
                    Some(row) => read(&SqlRow::Sqlite(row)).map(Some),
                    None => Ok(None),
                }
            }
            Executor::Postgres(session) => {
                let rows = session.query(sql.postgres, &postgres_values(values))?;
                let first = rows.first().map(|row| read(&SqlRow::Postgres(row)));
                first.transpose()
            }
        }
    }

    /// A single number, such as a count.
    pub(crate) fn number<'q>(
        &self,
        sql: impl Into<Sql<'q>>,
        values: &[&dyn SqlValue],
    ) -> Result<i64> {
        let found = self.query_first(sql, values, |row| row.get(0))?;
        found.ok_or_else(|| unknown("a row is missing"))
    }
}

fn sqlite_values<'a>(values: &'a [&'a dyn SqlValue]) -> impl rusqlite::Params + 'a {
    let values = values.iter().map(|value| *value as &dyn rusqlite::ToSql);
    rusqlite::params_from_iter(values)
}

fn postgres_values<'a>(values: &[&'a dyn SqlValue]) -> Vec<&'a (dyn PostgresValue + Sync)> {
    let values = values.iter();
    values
        .map(|value| *value as &(dyn PostgresValue + Sync))
        .collect()
}
