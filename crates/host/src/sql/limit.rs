//! Every bound of databases, named, in one place.

model::limits! {
    /// Rows of one answer.
    SQL_ROWS_MAX: usize = 1_000;
    /// Bytes of the rows of one answer, as JSON.
    SQL_ANSWER_BYTES_MAX: usize = 1 << 20;
    /// Columns of one answer.
    SQL_COLUMNS_MAX: usize = 512;
    /// Values bound to one statement.
    SQL_PARAMETERS_MAX: usize = 128;
    /// Milliseconds of a statement unless the caller says otherwise.
    SQL_TIME_MS_DEFAULT: u64 = 10_000;
    /// Milliseconds of a statement, connecting apart.
    SQL_TIME_MS_MAX: u64 = 120_000;
    /// Bytes of the order to the process that opens a SQLite file.
    SQLITE_ORDER_BYTES_MAX: usize = 2 << 20;
    /// Bytes of the report of that process.
    SQLITE_REPORT_BYTES_MAX: usize = 8 << 20;
    /// Bytes of the path of a SQLite file.
    SQLITE_PATH_BYTES_MAX: usize = 1_024;
    /// Steps of SQLite's machine between two looks at the clock.
    SQLITE_PROGRESS_STEPS: usize = 1_000;
    /// Bytes of one value or row in SQLite.
    SQLITE_VALUE_BYTES_MAX: usize = 16 << 20;
    /// Depth of an expression in SQLite.
    SQLITE_DEPTH_MAX: usize = 100;
    /// Parts of a compound SELECT in SQLite.
    SQLITE_COMPOUND_MAX: usize = 50;
    /// Arguments of a function in SQLite.
    SQLITE_ARGUMENTS_MAX: usize = 16;
    /// Bytes of a pattern of LIKE or GLOB in SQLite.
    SQLITE_PATTERN_BYTES_MAX: usize = 1_000;
    /// Triggers within triggers in SQLite.
    SQLITE_TRIGGERS_MAX: usize = 10;
    /// Bytes of memory SQLite may take.
    SQLITE_HEAP_BYTES_MAX: usize = 128 << 20;
    /// Milliseconds to wait for another that writes to the same SQLite file.
    SQLITE_BUSY_MS: u64 = 2_000;
    /// Bytes a Postgres server may send in one call. The driver reads a message whole.
    POSTGRES_STREAM_BYTES_MAX: usize = 64 << 20;
    /// Milliseconds of a name lookup, of connecting and of signing in, each.
    POSTGRES_CONNECT_MS: u64 = 5_000;
    /// Milliseconds to wait for a lock in Postgres.
    POSTGRES_LOCK_MS: u64 = 2_000;
    /// Milliseconds after which it is asked again whether a role of Postgres holds more than data.
    POSTGRES_ROLE_MS: u64 = 30_000;
    /// Roles of Postgres whose check is remembered.
    POSTGRES_ROLES_MAX: usize = 256;
    /// Addresses of a Postgres server that are looked at.
    POSTGRES_ADDRESSES_MAX: usize = 16;
}
