//! Postgres, over a stream to an address that was checked.
//!
//! One connection for one call. Settings come first, then whether the role may do more
//! than data, then a transaction that we begin: to read it is `READ ONLY`, and a query of
//! ours runs in it before the caller's statement, because until then Postgres would let
//! the statement make it `READ WRITE` again. The statement goes by the extended protocol,
//! which takes exactly one. To read, the transaction is always rolled back; to write, it
//! is committed if the statement succeeded. Whatever goes wrong, the connection is dropped.
//! What does not need an answer first goes out together: each answer that is waited for
//! costs more than the work behind it.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use futures_util::future::{join, join3};
use model::network::host_pattern::HostPattern;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::NoTlsStream;
use tokio_postgres::{
    CancelToken, Client, Config, Connection, IsolationLevel, NoTls, SimpleQueryMessage,
    SimpleQueryStream, Transaction,
};
use url::Host;

use crate::fetch::Tls;
use crate::fetch::connect::{Connector, Stream};
use crate::fetch::resolve::Resolve;
pub use crate::sql::postgres::checked::CheckedRoles;
use crate::sql::postgres::dial::Dial;
use crate::sql::postgres::stream::{BoundedStream, Encrypted};
use crate::sql::postgres::value::{Given, Raw};
use crate::sql::rows::RowSink;
use crate::sql::{SqlAnswer, SqlBounds, SqlFault, SqlFaultKind, SqlMode, limit};

mod checked;
mod dial;
mod stream;
mod value;

/// Where a database is, and who we are there. Made from the operator's settings alone.
#[derive(Clone)]
pub struct PostgresTarget {
    /// The host.
    pub host: Host<String>,
    /// The port.
    pub port: u16,
    /// The database.
    pub database: String,
    /// The role.
    pub user: String,
    /// Its password.
    pub password: Option<String>,
    /// The schema that names without one are looked up in.
    pub schema: String,
    /// Whether the host may be, or lead to, a private address.
    pub private: bool,
    /// Whether the channel is encrypted.
    pub tls: bool,
    /// Whether a role that may do more than data is taken.
    pub trusted: bool,
}

// Without the password.
impl std::fmt::Debug for PostgresTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresTarget")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("database", &self.database)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// How the database is reached: the same guard as `fetch`.
#[derive(Clone, Debug)]
pub struct PostgresNetwork {
    /// The certificate authorities that are trusted.
    pub tls: Tls,
    /// Who answers questions about names.
    pub resolver: Arc<dyn Resolve>,
    /// Who opens connections.
    pub connector: Arc<dyn Connector>,
    /// Names that may lead to private addresses, besides a target that is private.
    pub private_hosts: Arc<[HostPattern]>,
    /// The roles that were checked lately.
    pub checked_roles: CheckedRoles,
}

/// One statement.
#[derive(Clone, Debug)]
pub struct PostgresTask<'a> {
    /// What it says.
    pub statement: &'a str,
    /// The values for its parameters.
    pub parameters: &'a [Value],
    /// What it may do.
    pub mode: SqlMode,
    /// How much, and for how long.
    pub bounds: SqlBounds,
    /// What the server's log knows the session by.
    pub call_id: &'a str,
}

/// The tables and views of the schema, for `sqlSchema`.
pub const POSTGRES_TABLES: &str = "SELECT c.relname::text AS name, CASE c.relkind \
        WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' \
        ELSE 'table' END AS type \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f') \
        AND pg_catalog.has_table_privilege(c.oid, 'SELECT') ORDER BY 1";

/// The columns, indexes and references of one table of the schema.
pub const POSTGRES_DESCRIBE: &str = "WITH it AS (SELECT c.oid FROM pg_catalog.pg_class c \
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
        WHERE n.nspname = $1 AND c.relname = $2 \
        AND pg_catalog.has_table_privilege(c.oid, 'SELECT')) \
    SELECT 'column' AS kind, a.attname::text AS name, \
        pg_catalog.format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS required, \
        pg_catalog.pg_get_expr(d.adbin, d.adrelid) AS preset, NULL::text AS refers_to \
    FROM it JOIN pg_catalog.pg_attribute a ON a.attrelid = it.oid \
        LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = it.oid AND d.adnum = a.attnum \
    WHERE a.attnum > 0 AND NOT a.attisdropped \
    UNION ALL SELECT 'index', i.indexrelid::pg_catalog.regclass::text, NULL, i.indisunique, \
        pg_catalog.pg_get_indexdef(i.indexrelid), NULL \
    FROM it JOIN pg_catalog.pg_index i ON i.indrelid = it.oid \
    UNION ALL SELECT 'reference', k.conname::text, NULL, NULL, NULL, \
        pg_catalog.pg_get_constraintdef(k.oid) \
    FROM it JOIN pg_catalog.pg_constraint k ON k.conrelid = it.oid WHERE k.contype = 'f'";

/// What a role can do beyond the data of its own tables, directly or by becoming another.
const ROLE: &str = "SELECT pg_catalog.string_agg(DISTINCT CASE WHEN r.rolsuper THEN 'superuser' \
        WHEN r.rolreplication THEN 'replication' WHEN r.rolbypassrls THEN 'bypassrls' \
        ELSE r.rolname::text END, ', ') FROM pg_catalog.pg_roles r \
    WHERE (r.rolsuper OR r.rolreplication OR r.rolbypassrls OR r.rolname IN \
        ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program')) \
        AND pg_catalog.pg_has_role(session_user, r.oid, 'MEMBER')";

/// Runs one statement.
///
/// # Errors
/// The database cannot be reached, its role may do too much, it says no, or the time is
/// over.
pub fn run<'a>(
    target: &'a PostgresTarget,
    network: &'a PostgresNetwork,
    task: PostgresTask<'a>,
) -> SqlFuture<'a> {
    Box::pin(ask(target, network, task))
}

/// An answer on its way. Boxed: what the driver remembers is large, and every call would
/// carry it along.
pub type SqlFuture<'a> = Pin<Box<dyn Future<Output = Result<SqlAnswer, SqlFault>> + Send + 'a>>;

async fn ask(
    target: &PostgresTarget,
    network: &PostgresNetwork,
    task: PostgresTask<'_>,
) -> Result<SqlAnswer, SqlFault> {
    let mut session = Session::open(target, network, task.call_id).await?;
    let deadline = Instant::now() + Duration::from_millis(task.bounds.time_ms);
    let work = session.work(target, &network.checked_roles, &task);
    let ended = timeout_at(deadline, work).await;
    let Ok(ended) = ended else {
        // The server stops, and what it did is rolled back with the connection.
        session.cancel().await;
        return Err(SqlFault::late());
    };
    session.is_over = true;
    ended
}

/// A connection with the task that moves its bytes. Dropped before its end, the server is
/// told to stop.
struct Session {
    client: Client,
    driver: JoinHandle<()>,
    dial: Dial,
    token: CancelToken,
    is_over: bool,
}

impl Session {
    async fn open(
        target: &PostgresTarget,
        network: &PostgresNetwork,
        call_id: &str,
    ) -> Result<Session, SqlFault> {
        let dial = Dial::look_up(target, network).await?;
        let mut config = Config::new();
        config
            .user(&target.user)
            .dbname(&target.database)
            .application_name(format!("ringfence/{call_id}"))
            .ssl_mode(match target.tls {
                true => SslMode::Require,
                false => SslMode::Disable,
            });
        if let Some(password) = &target.password {
            config.password(password);
        }
        let wait = Duration::from_millis(limit::POSTGRES_CONNECT_MS);
        let signing_in: SigningIn<'_> = Box::pin(async {
            let stream = BoundedStream::new(dial.connect().await?);
            let (client, driver) = match dial.tls() {
                Some(tls) => {
                    let made: Made<'_, Encrypted<Plain>> =
                        Box::pin(config.connect_raw(stream, tls));
                    let (client, connection) = made.await.map_err(|error| no_session(&error))?;
                    (client, tokio::spawn(async move { drop(connection.await) }))
                }
                None => {
                    let made: Made<'_, NoTlsStream> = Box::pin(config.connect_raw(stream, NoTls));
                    let (client, connection) = made.await.map_err(|error| no_session(&error))?;
                    (client, tokio::spawn(async move { drop(connection.await) }))
                }
            };
            Ok((client, driver))
        });
        let signed_in = tokio::time::timeout(wait, signing_in).await;
        let signed_in = signed_in.map_err(|_| {
            let message = "the database did not answer in time";
            SqlFault::new(SqlFaultKind::Connection, message)
        });
        let (client, driver) = signed_in??;
        Ok(Session {
            token: client.cancel_token(),
            client,
            driver,
            dial,
            is_over: false,
        })
    }

    async fn work(
        &mut self,
        target: &PostgresTarget,
        checked: &CheckedRoles,
        task: &PostgresTask<'_>,
    ) -> Result<SqlAnswer, SqlFault> {
        let read_only = task.mode == SqlMode::Read;
        // These three go out in this order, each a message of its own, and are answered
        // together. Nothing of the caller's is sent before all three succeeded.
        let set = self.send(&settings(target, task.bounds.time_ms)).await?;
        let role = match target.trusted || checked.holds(target) {
            true => None,
            false => Some(self.send(ROLE).await?),
        };
        let is_asked = role.is_some();
        let begin = self
            .client
            .build_transaction()
            .isolation_level(match read_only {
                true => IsolationLevel::RepeatableRead,
                false => IsolationLevel::ReadCommitted,
            })
            .read_only(read_only)
            .start();
        let (set, powers, begun) = join3(last_value(Some(set)), last_value(role), begin).await;
        set.map_err(|error| no_session(&error))?;
        check_role(powers.map_err(|error| no_session(&error))?)?;
        if is_asked {
            checked.remember(target);
        }
        let transaction = begun.map_err(|error| explain(&error))?;
        let answer = execute(&transaction, task).await;
        let ended = match (&answer, read_only) {
            (Ok(_), false) => transaction.commit().await,
            (Ok(_), true) | (Err(_), _) => transaction.rollback().await,
        };
        let answer = answer?;
        ended.map_err(|error| explain(&error))?;
        Ok(answer)
    }

    /// Sends a query of ours, and does not wait for its answer.
    async fn send(&self, query: &str) -> Result<SimpleQueryStream, SqlFault> {
        let sent = self.client.simple_query_raw(query).await;
        sent.map_err(|error| no_session(&error))
    }

    /// Tells the server to stop what it does for this session.
    async fn cancel(&mut self) {
        self.is_over = true;
        cancel(self.token.clone(), self.dial.clone()).await;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
        if self.is_over {
            return;
        }
        // The call was cancelled. Closing the socket alone would leave the server at work
        // until it has something to say.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            drop(runtime.spawn(cancel(self.token.clone(), self.dial.clone())));
        }
    }
}

/// The query that gives the session its settings: commands, because a fresh session knows none
/// of the functions that would do the same.
fn settings(target: &PostgresTarget, time_ms: u64) -> String {
    let schema = target.schema.replace('"', "\"\"");
    let lock_ms = limit::POSTGRES_LOCK_MS;
    format!(
        "SET search_path TO pg_catalog, \"{schema}\", pg_temp; \
         SET statement_timeout TO {time_ms}; \
         SET lock_timeout TO {lock_ms}; \
         SET idle_in_transaction_session_timeout TO {time_ms}; \
         SET default_transaction_read_only TO on"
    )
}

/// The first value of the last row of a query of ours; nothing if it is null or there is no
/// query.
async fn last_value(
    answer: Option<SimpleQueryStream>,
) -> Result<Option<String>, tokio_postgres::Error> {
    let Some(answer) = answer else {
        return Ok(None);
    };
    let mut answer = std::pin::pin!(answer);
    let mut value = None;
    while let Some(message) = answer.try_next().await? {
        if let SimpleQueryMessage::Row(row) = message {
            value = row.try_get(0)?.map(str::to_owned);
        }
    }
    Ok(value)
}

/// Refuses a role that may do more than data.
fn check_role(powers: Option<String>) -> Result<(), SqlFault> {
    match powers {
        None => Ok(()),
        Some(powers) => Err(SqlFault::new(
            SqlFaultKind::Connection,
            format!(
                "the role of the connection may do more than data ({powers}); use another role, or set `trusted = true`"
            ),
        )),
    }
}

/// A stream to the server, before any TLS.
type Plain = BoundedStream<Box<dyn Stream>>;

/// What signing in gives, in time.
type Made<'a, T> = Pin<
    Box<
        dyn Future<Output = Result<(Client, Connection<Plain, T>), tokio_postgres::Error>>
            + Send
            + 'a,
    >,
>;

/// A session on its way.
type SigningIn<'a> =
    Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), SqlFault>> + Send + 'a>>;

/// A word to the server, on its way.
type Telling<'a> = Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send + 'a>>;

/// What cannot be told in time is left to the server's own timeouts.
async fn cancel(token: CancelToken, dial: Dial) {
    let wait = Duration::from_millis(limit::POSTGRES_CONNECT_MS);
    let telling = async {
        let Ok(stream) = dial.connect().await else {
            return;
        };
        let stream = BoundedStream::new(stream);
        let told: Telling<'_> = match dial.tls() {
            Some(tls) => Box::pin(token.cancel_query_raw(stream, tls)),
            None => Box::pin(token.cancel_query_raw(stream, NoTls)),
        };
        drop(told.await);
    };
    drop(tokio::time::timeout(wait, telling).await);
}

async fn execute(
    transaction: &Transaction<'_>,
    task: &PostgresTask<'_>,
) -> Result<SqlAnswer, SqlFault> {
    // In this order: with the first, the mode of the transaction is fixed. Preparing a
    // statement executes nothing of it.
    let (fixed, prepared) = join(
        transaction.batch_execute("SELECT 1"),
        transaction.prepare(task.statement),
    )
    .await;
    fixed.map_err(|error| explain(&error))?;
    let prepared = prepared.map_err(|error| explain(&error))?;
    let (wanted, given) = (prepared.params().len(), task.parameters.len());
    if wanted != given {
        let message = format!(
            "the statement has {}, and {given} given",
            model::text::count(wanted, "parameter"),
        );
        return Err(SqlFault::new(SqlFaultKind::Statement, message));
    }
    if prepared.columns().len() > limit::SQL_COLUMNS_MAX {
        let message = format!(
            "the answer has more than {} columns",
            limit::SQL_COLUMNS_MAX
        );
        return Err(SqlFault::new(SqlFaultKind::Statement, message));
    }
    let columns = prepared
        .columns()
        .iter()
        .map(|column| column.name().to_owned());
    let mut sink = RowSink::new(columns.collect(), task.bounds);
    let values: Vec<Given<'_>> = task.parameters.iter().map(Given).collect();
    let portal = transaction.bind_raw(&prepared, values).await;
    let portal = portal.map_err(|error| explain(&error))?;
    let rows_max = match task.mode {
        // One row more than is shown, to know whether there are more.
        SqlMode::Read => {
            i32::try_from(task.bounds.rows_max).map_or(i32::MAX, |most| most.saturating_add(1))
        }
        // To its end, or only some of it would be done.
        SqlMode::Write | SqlMode::Admin => 0,
    };
    let rows = transaction.query_portal_raw(&portal, rows_max).await;
    let rows = rows.map_err(|error| explain(&error))?;
    let mut rows = std::pin::pin!(rows);
    let mut is_wanted = true;
    while let Some(row) = rows.try_next().await.map_err(|error| explain(&error))? {
        if is_wanted {
            let values = (0..row.len()).map(|index| match row.try_get::<_, Option<Raw>>(index) {
                Ok(Some(Raw(value))) => Ok(value),
                Ok(None) => Ok(Value::Null),
                Err(error) => Err(explain(&error)),
            });
            is_wanted = sink.push(values.collect::<Result<_, _>>()?);
        }
    }
    let changed = match task.mode {
        SqlMode::Read => None,
        SqlMode::Write | SqlMode::Admin => rows.rows_affected(),
    };
    Ok(sink.finish(changed))
}

/// There is no session. The operator knows the address; a caller is not told it.
fn no_session(error: &tokio_postgres::Error) -> SqlFault {
    let message = match error.as_db_error() {
        Some(said) => format!("the database refuses the connection: {}", said.message()),
        None => format!("there is no session with the database: {}", kind_of(error)),
    };
    SqlFault::new(SqlFaultKind::Connection, message)
}

/// The innermost cause without what it may quote of the network.
fn kind_of(error: &tokio_postgres::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// What the database said, as a fault.
fn explain(error: &tokio_postgres::Error) -> SqlFault {
    let Some(said) = error.as_db_error() else {
        let message = format!("the database failed: {}", kind_of(error));
        return SqlFault::new(SqlFaultKind::Statement, message);
    };
    let mut message = said.message().to_owned();
    if let Some(hint) = said.hint() {
        message.push_str(&format!(" ({hint})"));
    }
    let code = said.code();
    let timeouts = [
        SqlState::QUERY_CANCELED,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ];
    let refusals = [
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::INSUFFICIENT_PRIVILEGE,
        SqlState::ACTIVE_SQL_TRANSACTION,
        SqlState::NO_ACTIVE_SQL_TRANSACTION,
    ];
    let kind = match () {
        () if timeouts.contains(code) => SqlFaultKind::Timeout,
        () if refusals.contains(code) => SqlFaultKind::Refused,
        () => SqlFaultKind::Statement,
    };
    SqlFault::new(kind, message)
}
