//! What an operator does with a shared store: look at it, bring its schema up to date, and
//! move the decisions of a home into it or out of it.

use std::path::Path;
use std::time::Instant;

use crate::clock;
use crate::error::StoreError;
use crate::home::database::{self, LazyConnection};
use crate::home::process;
use crate::postgres::Cluster;
use crate::postgres::address::Address;
use crate::postgres::schema::{self, SchemaStatus};
use crate::postgres::watch::NewsKind;
use crate::share::SharedFiles;
use crate::sql::tables::{Tables, Writers};
use crate::sql::{self, Executor, SqlRow, SqlValue, values};

/// What there is to know about a shared store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedStatus {
    /// Where it is, without the password.
    pub address: String,
    /// Its schema.
    pub schema: SchemaStatus,
    /// Processes that take part now.
    pub processes: u64,
    /// The revision of the settings, rules and documents that nodes share.
    pub files_revision: u64,
    /// How long a question took, in microseconds.
    pub answer_us: u64,
    /// How far our own clock is behind its clock, in milliseconds; small differences are 0.
    pub behind_ms: i64,
}

/// Where decisions are copied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyTarget {
    /// From the home to the shared store.
    Shared,
    /// From the shared store to the home.
    Home,
    /// The same, in place of the decisions that the home has.
    HomeReplaced,
}

impl CopyTarget {
    /// What to do where it is not empty.
    fn remedy(self) -> &'static str {
        match self {
            CopyTarget::Shared => {
                "copy into an empty database; a home that only joins other nodes copies nothing"
            }
            CopyTarget::Home | CopyTarget::HomeReplaced => {
                "`--replace` puts the decisions of the shared store in place of those of the home"
            }
        }
    }
}

/// How many rows of a table were copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedTable {
    /// The table.
    pub name: &'static str,
    /// Its rows.
    pub rows: u64,
}

/// Looks at the shared store of a home; nothing if the home has none.
pub fn status(home: &Path) -> Result<Option<SharedStatus>, StoreError> {
    let Some(address) = Address::of(home)? else {
        return Ok(None);
    };
    let shown = address.shown();
    let cluster = Cluster::open(address)?;
    let pool = cluster.pool();
    let schema = schema::look(pool)?;
    let began = Instant::now();
    let answered = pool.with(|session| session.run_script("SELECT 1"));
    answered.map_err(StoreError::sql("ask the shared store"))?;
    let answer_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    let processes = match schema.found {
        0 => 0,
        _ => living(&cluster)?,
    };
    let files_revision = match schema.found < schema.known {
        // The table may not be there yet.
        true => 0,
        false => cluster.news().version(NewsKind::Files, pool)?,
    };
    Ok(Some(SharedStatus {
        address: shown,
        schema,
        processes,
        files_revision,
        answer_us,
        behind_ms: clock::behind_ms(),
    }))
}

/// Brings the schema of the shared store up to date, even if older programs can no longer use
/// it. No process may use it then: one that runs looks at the schema when it starts and never
/// again. Returns what was there; nothing if the home has no shared store.
pub fn migrate(home: &Path) -> Result<Option<SchemaStatus>, StoreError> {
    let Some(address) = Address::of(home)? else {
        return Ok(None);
    };
    let cluster = Cluster::open(address)?;
    let before = schema::look(cluster.pool())?;
    if before.found > 0 && before.cuts_off() && living(&cluster)? > 0 {
        let why = "a process uses the shared store and would go on with tables it does not know; \
                   stop `ringfence serve` everywhere first";
        return Err(StoreError::Address {
            why: why.to_owned(),
        });
    }
    schema::migrate(cluster.pool())?;
    Ok(Some(before))
}

fn living(cluster: &Cluster) -> Result<u64, StoreError> {
    let sql = "SELECT count(*) FROM processes WHERE expires > clock_timestamp()";
    let pool = cluster.pool();
    let counted = pool.with(|session| Executor::Postgres(session).number(sql, values![]));
    let counted = counted.map_err(StoreError::sql("count the processes"))?;
    Ok(u64::try_from(counted).unwrap_or(0))
}

/// Whether a home has decisions and its shared store has none, as it is if nobody copied them.
pub fn is_left_behind(home: &Path) -> Result<bool, StoreError> {
    let Some(cluster) = Cluster::of(home)? else {
        return Ok(false);
    };
    let own = Tables::Home(LazyConnection::made_of(database::prepare(home)?));
    Ok(has_decisions(&own)? && !has_decisions(&Tables::Shared(cluster))?)
}

fn has_decisions(tables: &Tables) -> Result<bool, StoreError> {
    tables.read_moment("look for decisions", |moment| {
        for name in DECISIONS {
            let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {name} LIMIT 1) AS found");
            if moment.number(&sql, values![])? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    })
}

/// The tables that show that something was decided. Others get rows because a server runs.
const DECISIONS: &[&str] = &[
    "passes",
    "published",
    "published_texts",
    "tool_grants",
    "servers",
    "approvals",
    "callers",
    "trust",
    "keys",
    "former_keys",
];

/// Copies all decisions between a home and its shared store. No process may use either, and
/// the one they go to must be empty or is to be replaced. Nothing else is removed.
pub fn copy(home: &Path, to: CopyTarget) -> Result<Option<Vec<CopiedTable>>, StoreError> {
    let Some(cluster) = Cluster::of(home)? else {
        return Ok(None);
    };
    let own = Tables::Home(LazyConnection::made_of(database::prepare(home)?));
    if process::is_any_alive(home)? || living(&cluster)? > 0 {
        let why = "a process uses what is to be copied; stop `ringfence serve` everywhere first";
        return Err(StoreError::Address {
            why: why.to_owned(),
        });
    }
    let files = SharedFiles::new(home, &cluster);
    // What this home itself sent may be there: any command of it does that.
    if to == CopyTarget::Shared && !files.are_own()? {
        let why = format!(
            "`shared_files` has files of another home where it is to be copied to; {}",
            to.remedy()
        );
        return Err(StoreError::Address { why });
    }
    let shared = Tables::Shared(cluster);
    let (from, into) = match to {
        CopyTarget::Shared => (own, shared),
        CopyTarget::Home | CopyTarget::HomeReplaced => (shared, own),
    };
    let read = |moment: Executor<'_>| TABLES.iter().map(|table| table.read(moment)).collect();
    let read: Vec<Rows> = from.read_moment(COPYING, read)?;
    // The tables of an empty database were made a moment ago: nobody keeps decisions there.
    if to == CopyTarget::HomeReplaced && read.iter().all(Vec::is_empty) {
        let why = "the shared store has no decisions, so those of the home stay; look at `url` \
                   under `[store]`";
        return Err(StoreError::Address {
            why: why.to_owned(),
        });
    }
    let copied = into.change(COPYING, &Writers::Any, |change| {
        make_room(change, to)?;
        for (table, rows) in TABLES.iter().zip(&read) {
            table.write(change, rows)?;
        }
        if change.is_shared() {
            change.query(CONTINUE_NUMBERS, values![], |_| Ok(()))?;
            change.execute("UPDATE keys_version SET version = version + 1", values![])?;
        }
        change.execute("UPDATE standing SET version = version + 1", values![])?;
        change.execute(
            "UPDATE callers_version SET version = version + 1",
            values![],
        )?;
        Ok(())
    });
    copied?;
    // Afterwards: should this fail, the next process of the home does it.
    files.sync()?;
    let counted = TABLES.iter().zip(&read);
    let counted = counted.map(|(table, rows)| CopiedTable {
        name: table.name,
        rows: u64::try_from(rows.len()).unwrap_or(u64::MAX),
    });
    let files = CopiedTable {
        name: "shared_files",
        rows: files.count()?,
    };
    Ok(Some(counted.chain([files]).collect()))
}

/// Leaves the tables empty: they are, or they are to be replaced.
fn make_room(change: Executor<'_>, to: CopyTarget) -> sql::Result<()> {
    // Those first that refer to others.
    for table in TABLES.iter().rev() {
        let name = table.name;
        if to == CopyTarget::HomeReplaced {
            change.execute(&format!("DELETE FROM {name}"), values![])?;
        } else if change.number(&format!("SELECT count(*) FROM {name}"), values![])? > 0 {
            let what = format!(
                "`{name}` is not empty where it is to be copied to; {}",
                to.remedy()
            );
            return Err(sql::unknown(what));
        }
    }
    Ok(())
}

const COPYING: &str = "copy the store";

/// New journals get numbers after those that were copied.
const CONTINUE_NUMBERS: &str = "SELECT setval(pg_get_serial_sequence('script_journals', 'id'), \
    (SELECT coalesce(max(id), 0) + 1 FROM script_journals), false)";

/// A table as both databases have it. Of each column the kind: a whole `n`umber, a `t`ext,
/// `b`ytes, or `y`es and no.
struct CopiedColumns {
    name: &'static str,
    columns: &'static [(&'static str, char)],
    order: &'static str,
}

/// The rows of a table, each value in its own type.
type Rows = Vec<Vec<Box<dyn SqlValue + Send>>>;

impl CopiedColumns {
    fn names(&self) -> String {
        let names = self.columns.iter();
        let names: Vec<_> = names.map(|(name, _)| format!("\"{name}\"")).collect();
        names.join(", ")
    }

    fn read(&self, from: Executor<'_>) -> sql::Result<Rows> {
        let (names, table, order) = (self.names(), self.name, self.order);
        let sql = format!("SELECT {names} FROM {table} ORDER BY {order}");
        from.query(&sql, values![], |row| {
            let columns = self.columns.iter().enumerate();
            columns
                .map(|(place, (_, kind))| value(row, place, *kind))
                .collect()
        })
    }

    fn write(&self, into: Executor<'_>, rows: &Rows) -> sql::Result<()> {
        let marks: Vec<_> = (1..=self.columns.len()).map(|n| format!("?{n}")).collect();
        let (names, table, marks) = (self.names(), self.name, marks.join(", "));
        let sql = format!("INSERT INTO {table} ({names}) VALUES ({marks})");
        for row in rows {
            let row: Vec<&dyn SqlValue> = row.iter().map(|value| &**value as _).collect();
            into.execute(&sql, &row)?;
        }
        Ok(())
    }
}

fn value(row: &SqlRow<'_>, place: usize, kind: char) -> sql::Result<Box<dyn SqlValue + Send>> {
    Ok(match kind {
        'n' => Box::new(row.get::<Option<i64>>(place)?),
        'b' => Box::new(row.get::<Option<Vec<u8>>>(place)?),
        'y' => Box::new(row.get::<Option<bool>>(place)?),
        _ => Box::new(row.get::<Option<String>>(place)?),
    })
}

/// Every table of decisions, those first that others refer to.
const TABLES: &[CopiedColumns] = &[
    CopiedColumns {
        name: "passes",
        columns: &[
            ("digest", 't'),
            ("name", 't'),
            ("ok", 'y'),
            ("at_ms", 'n'),
            ("elapsed_ms", 'n'),
            ("error_code", 't'),
            ("error_message", 't'),
        ],
        order: "digest",
    },
    CopiedColumns {
        name: "published",
        columns: &[("name", 't'), ("digest", 't'), ("at_ms", 'n')],
        order: "name",
    },
    CopiedColumns {
        name: "published_texts",
        columns: &[("name", 't'), ("digest", 't'), ("text", 't')],
        order: "name",
    },
    CopiedColumns {
        name: "tool_grants",
        columns: &[
            ("tool", 't'),
            ("place", 't'),
            ("need", 't'),
            ("at_ms", 'n'),
            ("how", 't'),
        ],
        order: "tool, place, need",
    },
    CopiedColumns {
        name: "servers",
        columns: &[
            ("name", 't'),
            ("pins", 't'),
            ("seen", 't'),
            ("seen_ms", 'n'),
            ("restarts", 'n'),
        ],
        order: "name",
    },
    CopiedColumns {
        name: "approvals",
        columns: &[
            ("id", 't'),
            ("state", 't'),
            ("place", 't'),
            ("asked_ms", 'n'),
            ("expires_ms", 'n'),
            ("binding", 't'),
            ("tool_binding", 't'),
            ("session", 't'),
            ("call_id", 't'),
            ("tool", 't'),
            ("caller", 't'),
            ("caller_owner", 'y'),
            ("risk", 't'),
            ("reasons", 't'),
            ("prompt", 't'),
            ("arguments", 't'),
            ("scope", 't'),
            ("answered_ms", 'n'),
            ("answered_by", 't'),
            ("channel", 't'),
            ("own_client", 'y'),
            ("note", 't'),
            ("used_ms", 'n'),
            ("used_by_call", 't'),
            ("uses", 'n'),
            ("why", 't'),
            ("changed", 't'),
            ("changed_binding", 't'),
        ],
        order: "id",
    },
    CopiedColumns {
        name: "callers",
        columns: &[
            ("name", 't'),
            ("shown", 't'),
            ("in_a_row", 'n'),
            ("in_all", 'n'),
            ("paused_ms", 'n'),
            ("paused_by", 't'),
            ("paused_why", 't'),
            ("evaluated_ms", 'n'),
            ("changed_ms", 'n'),
        ],
        order: "name",
    },
    CopiedColumns {
        name: "trust",
        columns: &[
            ("caller", 't'),
            ("category", 't'),
            ("level", 't'),
            ("since_ms", 'n'),
            ("verified_ms", 'n'),
            ("agreed_by", 't'),
        ],
        order: "caller, category",
    },
    CopiedColumns {
        name: "feedback",
        columns: &[
            ("caller", 't'),
            ("at_ms", 'n'),
            ("score", 'n'),
            ("category", 't'),
            ("note", 't'),
            ("by", 't'),
        ],
        order: "at_ms, rowid",
    },
    CopiedColumns {
        name: "tallies",
        columns: &[
            ("limit_id", 't'),
            ("caller", 't'),
            ("state", 't'),
            ("idle_from_ms", 'n'),
        ],
        order: "limit_id, caller",
    },
    CopiedColumns {
        name: "keys",
        columns: &[
            ("id", 't'),
            ("name", 't'),
            ("role", 't'),
            ("digest", 'b'),
            ("created_ms", 'n'),
            ("expires_ms", 'n'),
        ],
        order: "id",
    },
    CopiedColumns {
        name: "former_keys",
        columns: &[
            ("digest", 'b'),
            ("name", 't'),
            ("ended_ms", 'n'),
            ("end", 't'),
        ],
        order: "digest",
    },
    CopiedColumns {
        name: "person_codes",
        columns: &[("digest", 'b'), ("made_ms", 'n'), ("expires_ms", 'n')],
        order: "made_ms, rowid",
    },
    CopiedColumns {
        name: "person_sessions",
        columns: &[
            ("digest", 'b'),
            ("id", 't'),
            ("person", 't'),
            ("role", 't'),
            ("address", 't'),
            ("browser", 't'),
            ("started_ms", 'n'),
            ("seen_ms", 'n'),
            ("expires_ms", 'n'),
        ],
        order: "id",
    },
    CopiedColumns {
        name: "script_journals",
        columns: &[
            ("id", 'n'),
            ("key", 't'),
            ("caller", 't'),
            ("process", 't'),
            ("kept_ms", 'n'),
            ("expires_ms", 'n'),
            ("bytes", 'n'),
            ("journal", 't'),
        ],
        order: "id",
    },
    CopiedColumns {
        name: "script_steps",
        columns: &[("script", 'n'), ("number", 'n'), ("step", 't')],
        order: "script, number",
    },
    CopiedColumns {
        name: "waiting_scripts",
        columns: &[
            ("call_id", 't'),
            ("script_call", 't'),
            ("kept_ms", 'n'),
            ("script", 't'),
        ],
        order: "call_id",
    },
    CopiedColumns {
        name: "jobs",
        columns: &[
            ("id", 't'),
            ("caller", 't'),
            ("process", 't'),
            ("call_id", 't'),
            ("command", 't'),
            ("state", 't'),
            ("started_ms", 'n'),
            ("ended_ms", 'n'),
            ("exit_code", 'n'),
            ("stdout_bytes", 'n'),
            ("stderr_bytes", 'n'),
            ("why", 't'),
            ("changes", 't'),
        ],
        order: "id",
    },
    CopiedColumns {
        name: "witnessed",
        columns: &[
            ("origin", 't'),
            ("size", 'n'),
            ("root", 'b'),
            ("seen_at", 'n'),
            ("note", 't'),
        ],
        order: "origin",
    },
];
