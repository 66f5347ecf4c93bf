//! `sqlQuery`, `sqlSchema` and `sqlExecute`: one statement against a SQLite file of the
//! folder, in a process in the jail, or against a database the operator named.
//!
//! What the statement is read as decided who had to agree (`toolbox::action`). Here it only
//! decides what is refused with better words than the database has; the mode of the session
//! is what the tool is for, whatever the statement says.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use host::sql::beside::SqliteFiles;
use host::sql::postgres::{
    self, POSTGRES_DESCRIBE, POSTGRES_TABLES, PostgresNetwork, PostgresTarget, PostgresTask,
};
use host::sql::role::{self, SqliteOrder};
use host::sql::sqlite::SqliteTask;
use host::sql::{SqlAnswer, SqlBounds, SqlFault, SqlFaultKind, SqlMode, limit as bound};
use model::config::{ConnectionConfig, ConnectionKind, ConnectionTls};
use model::reason::Reason;
use model::record::audit::Status;
use model::record::outcome::CallError;
use model::sql::{SqlClass, SqlDialect, SqlReading};
use model::text;
use sandbox::pool::WorkerProgram;
use serde_json::{Value, json};

use crate::bodies::toolbox::ToolboxWork;
use crate::connections;
use crate::jailed::{self, JailedCommand, OutputSink, ProcessEnd, WorkFolder};
use crate::limit;
use crate::refusal::CallRefusal;
use crate::run::RunResult;
use crate::scratch::Scratch;

/// What a call is about.
enum Source<'a> {
    /// A file of the folder.
    File(&'a str),
    /// A database the operator named.
    Connection(&'a ConnectionConfig),
}

/// What is asked of it.
enum Question<'a> {
    Statement(&'a str, &'a [Value]),
    Tables,
    Describe(&'a str),
}

/// Reads.
pub(super) async fn query(work: &ToolboxWork<'_>) -> Result<RunResult, CallRefusal> {
    let source = source(work)?;
    let statement = work.text("statement").unwrap_or_default();
    match model::sql::read(statement, source.dialect()) {
        // What our reader does not understand goes on to a session that can only read.
        SqlReading::One(SqlClass::Query) | SqlReading::Unread => {}
        SqlReading::One(SqlClass::Mutate) => {
            let message = "the statement does more than read; `sqlExecute` is for that";
            return Err(refuse(Reason::SqlRefused, message));
        }
        // Not all of these can be run by any tool, so none is promised.
        SqlReading::One(SqlClass::Admin) => {
            let message = "the statement does more than read; `sqlExecute` changes rows and tables, \
                and no tool runs what attaches files, keeps transactions open or changes settings";
            return Err(refuse(Reason::SqlRefused, message));
        }
        SqlReading::Several => return Err(several()),
        SqlReading::Nothing => return Err(refuse(Reason::SqlRefused, "there is no statement")),
    }
    let question = Question::Statement(statement, parameters(work));
    let answer = ask(work, &source, SqlMode::Read, question).await?;
    Ok(RunResult::done(shown(answer)))
}

/// Writes.
pub(super) async fn execute(work: &ToolboxWork<'_>) -> Result<RunResult, CallRefusal> {
    let source = source(work)?;
    if let Source::Connection(connection) = &source
        && !connection.write
    {
        let message = format!("nothing is written to `{}`", connection.name);
        let note = "the connection does not have `write = true`";
        return Err(refuse(Reason::SqlRefused, message).noted(note));
    }
    let statement = work.text("statement").unwrap_or_default();
    let reading = model::sql::read(statement, source.dialect());
    if reading == SqlReading::Several {
        return Err(several());
    }
    // What our reader does not understand counts as the most.
    let mode = match reading.class() {
        SqlClass::Query | SqlClass::Mutate => SqlMode::Write,
        SqlClass::Admin => SqlMode::Admin,
    };
    let question = Question::Statement(statement, parameters(work));
    let answer = ask(work, &source, mode, question).await?;
    Ok(RunResult::done(shown(answer)))
}

/// Tells what tables there are, or what one of them has.
pub(super) async fn schema(work: &ToolboxWork<'_>) -> Result<RunResult, CallRefusal> {
    let source = source(work)?;
    let question = match work.text("table") {
        None => Question::Tables,
        Some(table) => Question::Describe(table),
    };
    let answer = ask(work, &source, SqlMode::Read, question).await?;
    let objects = answer.rows.into_iter().map(|row| {
        let pairs = answer.columns.iter().cloned().zip(row);
        Value::Object(pairs.filter(|(_, value)| !value.is_null()).collect())
    });
    let objects: Vec<Value> = objects.collect();
    let key = if work.text("table").is_some() {
        "parts"
    } else {
        "tables"
    };
    Ok(RunResult::done(
        json!({key: objects, "truncated": answer.truncated}),
    ))
}

impl Source<'_> {
    fn dialect(&self) -> SqlDialect {
        match self {
            Source::File(_) => SqlDialect::Sqlite,
            Source::Connection(_) => SqlDialect::Postgres,
        }
    }
}

/// Exactly one of the two.
fn source<'a>(work: &'a ToolboxWork<'_>) -> Result<Source<'a>, CallRefusal> {
    match (work.text("file"), work.text("connection")) {
        (Some(file), None) => Ok(Source::File(file)),
        (None, Some(name)) => {
            let config = &work.now.config;
            let kind = ConnectionKind::Postgres;
            let found = connections::find(config, work.request, &work.groups, name, kind)?;
            Ok(Source::Connection(found))
        }
        (Some(_), Some(_)) | (None, None) => {
            let message = "give `file` or `connection`, one of them";
            Err(refuse(Reason::ArgumentSchema, message))
        }
    }
}

fn parameters<'a>(work: &'a ToolboxWork<'_>) -> &'a [Value] {
    let given = work.arguments.get("parameters").and_then(Value::as_array);
    given.map(Vec::as_slice).unwrap_or_default()
}

fn bounds(work: &ToolboxWork<'_>) -> SqlBounds {
    let asked = work
        .number("timeout")
        .map(|seconds| seconds.saturating_mul(1_000));
    let most = work.now.config.toolbox.seconds_max.saturating_mul(1_000);
    let rows = work
        .number("maxRows")
        .and_then(|rows| usize::try_from(rows).ok());
    SqlBounds {
        rows_max: rows.unwrap_or(bound::SQL_ROWS_MAX).min(bound::SQL_ROWS_MAX),
        bytes_max: bound::SQL_ANSWER_BYTES_MAX,
        time_ms: asked
            .unwrap_or(bound::SQL_TIME_MS_DEFAULT)
            .min(bound::SQL_TIME_MS_MAX)
            .min(most),
    }
}

async fn ask(
    work: &ToolboxWork<'_>,
    source: &Source<'_>,
    mode: SqlMode,
    question: Question<'_>,
) -> Result<SqlAnswer, CallRefusal> {
    let mut note = StatementNote {
        work,
        source: match source {
            Source::File(file) => format!("file {}", text::elided(file, 200)),
            Source::Connection(connection) => format!("connection {}", connection.name),
        },
        mode,
        is_over: false,
    };
    let asked = match source {
        Source::File(file) => ask_file(work, file, mode, question).await,
        Source::Connection(connection) => ask_connection(work, connection, mode, question).await,
    };
    note.close(&asked);
    asked
}

/// The statement on record, also if the call is dropped while it runs.
struct StatementNote<'a> {
    work: &'a ToolboxWork<'a>,
    source: String,
    mode: SqlMode,
    is_over: bool,
}

impl StatementNote<'_> {
    fn close(&mut self, asked: &Result<SqlAnswer, CallRefusal>) {
        self.is_over = true;
        let ended = match asked {
            Ok(answer) => json!({
                "rows": answer.rows.len(), "truncated": answer.truncated, "changed": answer.changed,
            }),
            Err(refusal) => json!({"refusal": refusal.why()}),
        };
        self.note(&ended);
    }

    fn note(&self, ended: &Value) {
        let mode = match self.mode {
            SqlMode::Read => "read",
            SqlMode::Write => "write",
            SqlMode::Admin => "admin",
        };
        let mut event = json!({"kind": "sql", "source": self.source, "mode": mode});
        if let (Some(members), Some(more)) = (event.as_object_mut(), ended.as_object()) {
            members.extend(more.clone());
        }
        self.work.powers.note(event);
    }
}

impl Drop for StatementNote<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.note(&json!({"refusal": "interrupted"}));
        }
    }
}

/// One process for one statement: what a hostile file does to SQLite ends with it.
async fn ask_file(
    work: &ToolboxWork<'_>,
    file: &str,
    mode: SqlMode,
    question: Question<'_>,
) -> Result<SqlAnswer, CallRefusal> {
    let folder = work.folder_path()?;
    let path = file_path(work, &folder, file)?;
    let bounds = bounds(work);
    let order = SqliteOrder {
        path: path.clone(),
        mode,
        task: match question {
            Question::Statement(statement, parameters) => {
                SqliteTask::Statement(statement.to_owned(), parameters.to_vec())
            }
            Question::Tables => SqliteTask::Tables,
            Question::Describe(table) => SqliteTask::Describe(table.to_owned()),
        },
        bounds,
    };
    let order = role::write_order(&order).map_err(|fault| explain(work, &fault))?;
    // Journals stand beside the file, so that folder is what the process gets.
    let beside = path.parent().unwrap_or(&folder).to_path_buf();
    let files = database_files(work, &path, mode)?;
    let own = Scratch::new(work.engine.home(), &work.call_id);
    let command = JailedCommand {
        command: program(work)?,
        environment: std::collections::BTreeMap::new(),
        stdin: order,
        own_folder: own.path().to_path_buf(),
        start: beside.clone(),
        folder: match (mode, &files) {
            (SqlMode::Read, _) => WorkFolder::ReadOnly(beside),
            (SqlMode::Write | SqlMode::Admin, None) => WorkFolder::Workspace(beside),
            (SqlMode::Write | SqlMode::Admin, Some(files)) => WorkFolder::Files {
                folder: beside,
                files: files.paths.clone(),
            },
        },
        // The process stops by itself; this is for one that was taken over.
        time: Duration::from_millis(bounds.time_ms.saturating_add(GRACE_MS)),
        network: None,
        stop: None,
    };
    let report_max = u64::try_from(bound::SQLITE_REPORT_BYTES_MAX).unwrap_or(u64::MAX);
    let (mut unseen, mut unsaid) = (|_: &[u8]| (), |_: &[u8]| ());
    let mut stdout = OutputSink::watched(report_max, &work.masker, &mut unseen);
    let mut stderr = OutputSink::watched(0, &work.masker, &mut unsaid);
    let jailer = work.engine.jailer();
    let limits = &work.now.config.toolbox;
    let ran = jailer.run(command, limits, &mut stdout, &mut stderr).await;
    let ran = ran.map_err(|fault| jailed::refuse(&fault))?;
    let stdout = stdout.finish();
    work.powers.note(ran.event("sqlite", stdout.bytes, 0));
    let answer = match &ran.end {
        ProcessEnd::Exited(0) if !stdout.is_cut => {
            role::read_report(stdout.text.as_bytes(), bounds).map_err(|fault| explain(work, &fault))
        }
        ProcessEnd::TimedOut => Err(refuse(
            Reason::SqlTimeout,
            "the statement took too long and was stopped",
        )),
        end => {
            let message = "the database could not be read; the file may be damaged";
            Err(refuse(Reason::SqlFailed, message).noted(end.why().unwrap_or_default()))
        }
    };
    // Files that were made for the statement and stayed empty go with it.
    if let (Err(_), Some(files)) = (&answer, files) {
        files.remove_empty();
    }
    answer
}

/// The files that a statement may change in a folder of the operator's; nothing where it may
/// change the whole folder, or none.
fn database_files(
    work: &ToolboxWork<'_>,
    path: &Path,
    mode: SqlMode,
) -> Result<Option<SqliteFiles>, CallRefusal> {
    if mode == SqlMode::Read {
        return Ok(None);
    }
    if !work.policy.file_write {
        let message = "the caller's level lets this tool read files, not change them";
        return Err(refuse(Reason::LevelDenied, message));
    }
    if !work.is_operators() {
        return Ok(None);
    }
    let files = SqliteFiles::prepare(path, mode).map_err(|error| {
        let message = "the file, or its journal, cannot be used as a database";
        refuse(Reason::SqlFailed, message).noted(error.to_string())
    })?;
    Ok(Some(files))
}

/// Milliseconds a process of ours has beyond its own deadline.
const GRACE_MS: u64 = 2_000;

/// This program as the process that opens the file.
fn program(work: &ToolboxWork<'_>) -> Result<Vec<String>, CallRefusal> {
    let (path, added) = match work.engine.worker_program() {
        WorkerProgram::ThisProgram => {
            let path = std::env::current_exe().map_err(|error| {
                let message = "the program of the database tools cannot be found";
                refuse(Reason::JailUnavailable, message).noted(error.to_string())
            })?;
            (path, Vec::new())
        }
        WorkerProgram::Other(path, added) => (path.clone(), added.clone()),
    };
    let mut words = vec![path.display().to_string()];
    words.extend(role::arguments());
    words.extend(added);
    Ok(words)
}

/// A file below the folder of the call. Links are refused by the process itself; here the
/// folder of the file is made free of them, because it is what the process is given.
fn file_path(
    work: &ToolboxWork<'_>,
    folder: &Path,
    raw_path: &str,
) -> Result<PathBuf, CallRefusal> {
    let refuse_path = |why: &str| {
        let shown = text::elided(raw_path, 100);
        refuse(
            Reason::ArgumentSchema,
            format!("`file` is `{shown}`, which {why}"),
        )
    };
    let relative = Path::new(raw_path);
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if raw_path.len() > bound::SQLITE_PATH_BYTES_MAX
        || raw_path.contains('\0')
        || !relative.components().all(is_plain)
    {
        return Err(refuse_path("is not a path below the folder of the call"));
    }
    let Some(name) = relative.file_name() else {
        return Err(refuse_path("names no file"));
    };
    let parent = folder.join(relative.parent().unwrap_or(Path::new("")));
    let Ok(parent) = parent.canonicalize() else {
        return Err(refuse_path("is in a folder that is not there"));
    };
    if !parent.starts_with(folder) {
        return Err(refuse_path("leads out of the folder of the call"));
    }
    let path = parent.join(name);
    // What no tool changes is no database either.
    if work.policy.fs_base_path.is_some()
        && let Some(what) =
            host::files::untouchable(relative).or_else(|| host::files::named_by_repository(&path))
    {
        return Err(refuse_path(&format!("is {what}")));
    }
    Ok(path)
}

async fn ask_connection(
    work: &ToolboxWork<'_>,
    connection: &ConnectionConfig,
    mode: SqlMode,
    question: Question<'_>,
) -> Result<SqlAnswer, CallRefusal> {
    let host = &connection.host;
    if !work.policy.reaches_out() {
        let message = "the caller's level leaves this tool no network";
        return Err(refuse(Reason::LevelDenied, message));
    }
    // The operator's connection is the operator's yes to its host; lists and rules that
    // leave a caller only some hosts hold all the same.
    if work.policy.bounds.check(host, connection.port).is_err() {
        let message = format!(
            "`{}` is not among the hosts of this caller",
            connection.name
        );
        return Err(refuse(Reason::HostDenied, message));
    }
    let target = PostgresTarget {
        host: host.clone(),
        port: connection.port,
        database: connection.database.clone(),
        user: connection.user.clone().unwrap_or_default(),
        password: connections::credential(work.engine.variable_source(), &work.masker, connection)?,
        schema: connection.schema.clone(),
        private: connection.private,
        tls: connection.tls == ConnectionTls::Required,
        trusted: connection.trusted,
    };
    let settings = &work.settings;
    let network = PostgresNetwork {
        tls: settings.trust.tls().map_err(|fault| {
            let message = "the network of the call cannot be set up";
            refuse(Reason::PowerUnavailable, message).noted(crate::error::causes(&fault))
        })?,
        resolver: settings.resolver.clone(),
        connector: settings.connector.clone(),
        private_hosts: settings.private_hosts.clone(),
        checked_roles: settings.checked_roles.clone(),
    };
    let schema = [Value::from(connection.schema.as_str())];
    let table;
    let (statement, parameters) = match question {
        Question::Statement(statement, parameters) => (statement, parameters),
        Question::Tables => (POSTGRES_TABLES, schema.as_slice()),
        Question::Describe(name) => {
            table = [Value::from(connection.schema.as_str()), Value::from(name)];
            (POSTGRES_DESCRIBE, table.as_slice())
        }
    };
    let task = PostgresTask {
        statement,
        parameters,
        mode,
        bounds: bounds(work),
        call_id: &work.call_id,
    };
    let answer = postgres::run(&target, &network, task).await;
    let answer = answer.map_err(|fault| explain(work, &fault))?;
    if matches!(question, Question::Describe(_)) && answer.rows.is_empty() {
        return Err(refuse(Reason::SqlFailed, "there is no such table"));
    }
    Ok(answer)
}

fn shown(answer: SqlAnswer) -> Value {
    let mut value = json!({
        "columns": answer.columns,
        "rows": answer.rows,
        "rowCount": answer.rows.len(),
        "truncated": answer.truncated,
    });
    if let (Some(changed), Some(members)) = (answer.changed, value.as_object_mut()) {
        members.insert("changed".to_owned(), changed.into());
    }
    value
}

fn several() -> CallRefusal {
    let message = "there is more than one statement; give them one by one";
    refuse(Reason::SqlRefused, message)
}

fn refuse(reason: Reason, message: impl Into<String>) -> CallRefusal {
    CallRefusal::with_status(Status::Failed, CallError::new(reason, message.into()))
}

/// What the session or the database said, masked before anything of it is cut.
fn explain(work: &ToolboxWork<'_>, fault: &SqlFault) -> CallRefusal {
    let reason = match fault.kind {
        SqlFaultKind::Refused => Reason::SqlRefused,
        SqlFaultKind::Statement | SqlFaultKind::Database => Reason::SqlFailed,
        SqlFaultKind::Timeout => Reason::SqlTimeout,
        SqlFaultKind::Connection => Reason::ConnectionFailed,
    };
    let message = work.masker.text(&fault.message);
    refuse(
        reason,
        message.elided(limit::SQL_FAULT_CHARS_MAX).into_inner(),
    )
}
