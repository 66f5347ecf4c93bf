//! Classifies SQL statements by their text, for rules, approvals and the audit.
//!
//! It decides who must agree, never whether the data is safe: that is the work of the
//! session in which a statement runs (`host::sql`) and of the database's own rights. So a
//! statement that cannot be read is not refused here, it counts as the worst there is.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, UtilityOption, Visit as _, Visitor,
};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, SQLiteDialect};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer};

use crate::limits;

/// The class of a statement: the most it can do. Later is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SqlClass {
    /// It only reads.
    Query,
    /// It changes rows.
    Mutate,
    /// It changes anything else, or its effect is unknown.
    Admin,
}

impl SqlClass {
    /// The action that rules know it by.
    #[must_use]
    pub fn action(self) -> &'static str {
        match self {
            SqlClass::Query => "db:query",
            SqlClass::Mutate => "db:mutate",
            SqlClass::Admin => "db:admin",
        }
    }
}

/// Whose SQL it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlDialect {
    /// SQLite's.
    Sqlite,
    /// PostgreSQL's.
    Postgres,
}

/// The result of reading a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlReading {
    /// One statement.
    One(SqlClass),
    /// More than one.
    Several,
    /// No statement at all.
    Nothing,
    /// It does not parse, or is too long to.
    Unread,
}

impl SqlReading {
    /// Its class.
    #[must_use]
    pub fn class(self) -> SqlClass {
        match self {
            SqlReading::One(class) => class,
            SqlReading::Several | SqlReading::Nothing | SqlReading::Unread => SqlClass::Admin,
        }
    }
}

/// Reads a text. Whatever it holds, this ends: its length, its words and its depth are
/// bounded before the parser sees them.
#[must_use]
pub fn read(text: &str, dialect: SqlDialect) -> SqlReading {
    let known: &dyn Dialect = match dialect {
        SqlDialect::Sqlite => &SQLiteDialect {},
        SqlDialect::Postgres => &PostgreSqlDialect {},
    };
    if text.len() > limits::SQL_STATEMENT_BYTES_MAX {
        return SqlReading::Unread;
    }
    let Ok(tokens) = Tokenizer::new(known, text).tokenize() else {
        return SqlReading::Unread;
    };
    // Attack: `1+1+1…` makes a tree as deep as it is long, which is walked and dropped one
    // call inside the other. The parser bounds only what stands in brackets. Values and what
    // stands between them make it wide, never deep.
    let words = tokens.iter().filter(|token| !is_flat(token)).count();
    if words > limits::SQL_WORDS_MAX || tokens.len() > limits::SQL_TOKENS_MAX {
        return SqlReading::Unread;
    }
    let parsed = Parser::new(known)
        .with_recursion_limit(limits::SQL_DEPTH_MAX)
        .with_tokens(tokens)
        .parse_statements();
    match parsed.as_deref() {
        Err(_) => SqlReading::Unread,
        Ok([]) => SqlReading::Nothing,
        Ok([statement]) => SqlReading::One(class(statement, dialect)),
        Ok(_) => SqlReading::Several,
    }
}

fn is_flat(token: &Token) -> bool {
    matches!(
        token,
        Token::Whitespace(_)
            | Token::Comma
            | Token::LParen
            | Token::RParen
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::Placeholder(_)
    )
}

fn class(statement: &Statement, dialect: SqlDialect) -> SqlClass {
    if let Statement::Explain {
        analyze,
        options,
        statement,
        ..
    } = statement
    {
        // Without ANALYZE a plan is made and nothing of it is done.
        let runs = *analyze || options.iter().flatten().any(is_analyze);
        return match runs {
            true => class(statement, dialect),
            false => SqlClass::Query,
        };
    }
    let mut walk = Walk {
        dialect,
        worst: SqlClass::Query,
    };
    // Nothing breaks off the walk: a worse part may follow.
    let _ = statement.visit(&mut walk);
    walk.worst
}

fn is_analyze(option: &UtilityOption) -> bool {
    option.name.value.eq_ignore_ascii_case("analyze")
}

/// Walks a whole tree: statements inside common table expressions, subqueries, functions.
struct Walk {
    dialect: SqlDialect,
    worst: SqlClass,
}

impl Walk {
    fn note(&mut self, class: SqlClass) -> ControlFlow<()> {
        self.worst = self.worst.max(class);
        ControlFlow::Continue(())
    }

    fn function(&mut self, name: &ObjectName) -> ControlFlow<()> {
        let last = name.0.last().and_then(|part| part.as_ident());
        let class = match last {
            Some(ident) => function_class(&ident.value.to_lowercase(), self.dialect),
            None => SqlClass::Admin,
        };
        self.note(class)
    }
}

impl Visitor for Walk {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        let class = match statement {
            Statement::Query(_) => SqlClass::Query,
            Statement::ShowVariable { .. } if self.dialect == SqlDialect::Postgres => {
                SqlClass::Query
            }
            Statement::Pragma { name, is_eq, .. } => {
                let name = name.0.last().and_then(|part| part.as_ident());
                let tells = name.is_some_and(|name| is_telling_pragma(&name.value));
                // With `=` the same pragma sets a value.
                match tells && !is_eq {
                    true => SqlClass::Query,
                    false => SqlClass::Admin,
                }
            }
            Statement::Insert { .. }
            | Statement::Update { .. }
            | Statement::Delete { .. }
            | Statement::Merge { .. } => SqlClass::Mutate,
            // There are well over a hundred others, and new ones with every version: what
            // is not known to be less is the worst.
            _ => SqlClass::Admin,
        };
        self.note(class)
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        // `FOR UPDATE` and the like make others wait.
        match query.locks.is_empty() {
            true => ControlFlow::Continue(()),
            false => self.note(SqlClass::Mutate),
        }
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        match &select.into {
            None => ControlFlow::Continue(()),
            // It makes a table.
            Some(_) => self.note(SqlClass::Admin),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { name, args, .. } => {
                let last = name.0.last().and_then(|part| part.as_ident());
                let pragma = last.and_then(|name| pragma_table(&name.value));
                match pragma {
                    Some(pragma) if !is_telling_pragma(&pragma) => self.note(SqlClass::Admin),
                    Some(_) => ControlFlow::Continue(()),
                    None if args.is_some() => self.function(name),
                    None => ControlFlow::Continue(()),
                }
            }
            TableFactor::Function { name, .. } => self.function(name),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        match expression {
            Expr::Function(function) => self.function(&function.name),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Pragmas of SQLite that only tell what tables there are.
const TELLING_PRAGMAS: [&str; 7] = [
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "table_info",
    "table_list",
    "table_xinfo",
];

fn is_telling_pragma(name: &str) -> bool {
    let mut known = TELLING_PRAGMAS.iter();
    known.any(|known| known.eq_ignore_ascii_case(name))
}

/// The pragma behind a table such as `pragma_table_info`.
fn pragma_table(name: &str) -> Option<String> {
    let name = name.to_lowercase();
    name.strip_prefix("pragma_").map(str::to_owned)
}

/// Functions of Postgres that take a number, a lock or a message from others.
const POSTGRES_MUTATES: &[&str] = &["nextval", "pg_notify", "setval"];

/// Functions of Postgres that do more than compute: they read or write files of the server,
/// run statements out of texts, change settings, or command other sessions.
const POSTGRES_ADMIN: &[&str] = &[
    "brin_desummarize_range",
    "brin_summarize_new_values",
    "brin_summarize_range",
    "currtid2",
    "cursor_to_xml",
    "cursor_to_xmlschema",
    "database_to_xml",
    "database_to_xml_and_xmlschema",
    "gin_clean_pending_list",
    "query_to_xml",
    "query_to_xml_and_xmlschema",
    "query_to_xmlschema",
    "schema_to_xml",
    "schema_to_xml_and_xmlschema",
    "set_config",
    "table_to_xml",
    "table_to_xml_and_xmlschema",
    "ts_rewrite",
    "ts_stat",
];

/// Beginnings of names of such functions.
const POSTGRES_ADMIN_PREFIXES: &[&str] = &[
    "binary_upgrade_",
    "dblink",
    "http_",
    "lo_",
    "pg_backup_",
    "pg_cancel_",
    "pg_copy_",
    "pg_create_",
    "pg_current_logfile",
    "pg_drop_",
    "pg_export_",
    "pg_extension_",
    "pg_file_",
    "pg_hba_",
    "pg_ident_",
    "pg_import_",
    "pg_log_",
    "pg_logdir_",
    "pg_logical_",
    "pg_ls_",
    "pg_promote",
    "pg_read_",
    "pg_reload_",
    "pg_replication_",
    "pg_rotate_",
    "pg_start_",
    "pg_stat_file",
    "pg_stat_reset",
    "pg_stop_",
    "pg_switch_",
    "pg_sync_",
    "pg_terminate_",
    "pg_wal_",
];

/// Functions of SQLite, or of its shell, that reach beyond the database.
const SQLITE_ADMIN: &[&str] = &[
    "edit",
    "eval",
    "fts3_tokenizer",
    "load_extension",
    "readfile",
    "sha3_query",
    "writefile",
];

fn function_class(name: &str, dialect: SqlDialect) -> SqlClass {
    let begins = |list: &[&str]| list.iter().any(|prefix| name.starts_with(prefix));
    match dialect {
        SqlDialect::Sqlite => {
            let is_admin = SQLITE_ADMIN.contains(&name) || name.starts_with("sqlite_");
            match is_admin {
                true => SqlClass::Admin,
                false => SqlClass::Query,
            }
        }
        SqlDialect::Postgres => match () {
            () if POSTGRES_ADMIN.contains(&name) || begins(POSTGRES_ADMIN_PREFIXES) => {
                SqlClass::Admin
            }
            () if POSTGRES_MUTATES.contains(&name) || name.contains("advisory_") => {
                SqlClass::Mutate
            }
            () => SqlClass::Query,
        },
    }
}

/// The fuzz target and its seeds call this. Whatever the text, it is read, read the same
/// again, and no worse with a comment before it; what both dialects take for a query holds
/// no word that only writes have at its beginning.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for dialect in [SqlDialect::Sqlite, SqlDialect::Postgres] {
        let reading = read(&text, dialect);
        assert_eq!(reading, read(&text, dialect));
        if let SqlReading::One(class) = reading {
            let commented = format!("/* a comment */ {text}");
            if commented.len() <= limits::SQL_STATEMENT_BYTES_MAX {
                assert_eq!(read(&commented, dialect), SqlReading::One(class), "{text}");
            }
            let first = text
                .trim_start()
                .split(|c: char| !c.is_ascii_alphabetic())
                .next();
            let first = first.unwrap_or_default().to_ascii_uppercase();
            let writes = [
                "INSERT", "UPDATE", "DELETE", "DROP", "CREATE", "ALTER", "GRANT", "TRUNCATE",
                "COPY", "DO", "CALL", "SET", "COMMIT", "BEGIN", "ROLLBACK", "ATTACH", "VACUUM",
                "MERGE", "REPLACE",
            ];
            let is_write = writes.contains(&first.as_str());
            assert!(!is_write || class != SqlClass::Query, "{text}");
        }
    }
}
