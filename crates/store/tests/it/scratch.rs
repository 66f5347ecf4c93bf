//! A home for one test, and things to write into it.

use std::fs;
use std::ops::RangeBounds;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use model::caller::Origin;
use model::record::audit::{Closing, Opening, Status};
use store::{Store, StoreSettings};

/// Removed with everything in it when the test is over.
pub(crate) struct Home {
    pub(crate) path: PathBuf,
}

impl Home {
    pub(crate) fn new(name: &str) -> Home {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = format!("store-{name}-{}-{count}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        let _ = fs::remove_dir_all(&path);
        Home { path }
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.path, StoreSettings::standard()).unwrap()
    }

    /// A hand that writes past the store.
    pub(crate) fn sql(&self, sql: &str) {
        self.sql_of("ringfence.db", sql);
    }

    /// The same where the databases have different words for it: SQLite, Postgres.
    pub(crate) fn sql_of_both(&self, sqlite: &str, _: &str) {
        self.sql(sqlite);
    }

    /// The same, if the database lets it.
    pub(crate) fn try_sql(&self, sql: &str) -> Result<(), String> {
        let connection = rusqlite::Connection::open(self.path.join("ringfence.db")).unwrap();
        let on = connection.execute_batch("PRAGMA foreign_keys = ON");
        on.unwrap();
        connection
            .execute_batch(sql)
            .map_err(|error| error.to_string())
    }

    /// Processes that were killed count as dead: here the kernel sees to it.
    pub(crate) fn bury_the_dead(&self) {}

    /// The same in the index of the audit.
    pub(crate) fn index_sql(&self, sql: &str) {
        self.sql_of("audit/index.db", sql);
    }

    fn sql_of(&self, file: &str, sql: &str) {
        let connection = rusqlite::Connection::open(self.path.join(file)).unwrap();
        connection.execute_batch(sql).unwrap();
    }

    /// The last record the index covers.
    pub(crate) fn indexed(&self) -> u64 {
        let file = self.path.join("audit/index.db");
        let connection = rusqlite::Connection::open(file).unwrap();
        let sql = "SELECT through FROM indexed";
        let through: i64 = connection.query_row(sql, [], |row| row.get(0)).unwrap();
        u64::try_from(through).unwrap()
    }

    /// The segments of the log, oldest first.
    pub(crate) fn segments(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path.join("audit")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let mut segments: Vec<_> = paths
            .filter(|path| path.extension().is_some_and(|it| it == "log"))
            .collect();
        segments.sort();
        segments
    }

    /// The same hand in the log: changes the lines of each segment.
    pub(crate) fn edit(&self, edit: impl Fn(&mut Vec<Fields>)) {
        for path in self.segments() {
            let text = fs::read_to_string(&path).unwrap();
            let fields = |line: &str| -> Fields {
                let fields: Vec<_> = line.splitn(6, ' ').map(str::to_owned).collect();
                fields.try_into().unwrap()
            };
            let mut lines: Vec<Fields> = text.lines().map(fields).collect();
            edit(&mut lines);
            let text: String = lines.iter().map(|line| line.join(" ") + "\n").collect();
            let mode = fs::metadata(&path).unwrap().permissions();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, mode).unwrap();
        }
    }
}

/// Sequence, kind, process, previous, hash, body.
pub(crate) type Fields = [String; 6];

/// The line of a record.
pub(crate) fn line(lines: &mut [Fields], sequence: u64) -> &mut Fields {
    let wanted = sequence.to_string();
    let found = lines.iter_mut().find(|line| line[SEQUENCE] == wanted);
    found.unwrap()
}

pub(crate) const SEQUENCE: usize = 0;
pub(crate) const KIND: usize = 1;
pub(crate) const PREVIOUS: usize = 3;
pub(crate) const HASH: usize = 4;
pub(crate) const BODY: usize = 5;

/// Takes lines away whose place is within a range.
pub(crate) fn cut(lines: &mut Vec<Fields>, range: impl RangeBounds<u64>) {
    lines.retain(|line| !range.contains(&line[SEQUENCE].parse().unwrap()));
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

pub(crate) fn opening(number: usize) -> Opening {
    Opening {
        call_id: format!("{number:08x}-0000-7000-8000-000000000000"),
        parent_id: None,
        at_ms: 1_700_000_000_000 + i64::try_from(number).unwrap(),
        origin: Origin::ALL[number % Origin::ALL.len()],
        caller: format!("caller-{}", number % 7),
        tool: format!("tool-{}", number % 10),
        arguments_digest: "00".repeat(32),
    }
}

pub(crate) fn closing(status: Status) -> Closing {
    Closing::bare(1_700_000_100_000, status, None)
}

/// Runs a future to its end.
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

/// The same for a future that uses the network.
pub(crate) fn wait_on_io<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// Opens and closes so many entries.
pub(crate) fn fill(store: &Store, numbers: std::ops::Range<usize>) {
    wait(async {
        for number in numbers {
            let row = store.audit().open(opening(number)).await.unwrap();
            let status = if number % 11 == 0 {
                Status::Failed
            } else {
                Status::Done
            };
            store.audit().close(row, closing(status)).await.unwrap();
        }
    });
}
