//! A Postgres that nodes share, for one test: a database of its own in the server of this
//! program, and for every process a home of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use store::{Store, StoreSettings};
use tokio_postgres::{Config, NoTls};

use crate::scratch::{Home, wait_on_io};

#[path = "../../../host/tests/lab/postgres.rs"]
#[expect(
    dead_code,
    clippy::expect_used,
    reason = "these tests use a part of it"
)]
pub(crate) mod postgres;

/// A database that nodes share.
pub(crate) struct SharedHome {
    /// The home of the first node.
    pub(crate) path: PathBuf,
    database: String,
    nodes: Mutex<Vec<Home>>,
    opened: AtomicUsize,
}

impl SharedHome {
    pub(crate) fn new(name: &str) -> SharedHome {
        store::set_secret_reader(|_, _| Ok(Some(postgres::PASSWORD.to_owned())));
        let database = postgres::database_name();
        run("postgres", &format!("CREATE DATABASE {database}")).unwrap();
        let mut shared = SharedHome {
            path: PathBuf::new(),
            database,
            nodes: Mutex::default(),
            opened: AtomicUsize::new(0),
        };
        shared.path = shared.node(name);
        shared
    }

    /// The home of another node.
    pub(crate) fn node(&self, name: &str) -> PathBuf {
        self.node_with(name, "strict = true\nconnections = 8\n")
    }

    /// The same with other settings.
    pub(crate) fn node_with(&self, name: &str, settings: &str) -> PathBuf {
        let home = Home::new(&format!("shared-{name}"));
        write_settings(&home.path, &self.url(), settings);
        let path = home.path.clone();
        self.nodes.lock().unwrap().push(home);
        path
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        let port = postgres::server().address.port();
        let database = &self.database;
        format!("postgres://postgres@127.0.0.1:{port}/{database}?sslmode=disable")
    }

    /// The store of the first node, then of a new one each time.
    pub(crate) fn store(&self) -> Store {
        let path = match self.opened.fetch_add(1, Ordering::Relaxed) {
            0 => self.path.clone(),
            _ => self.node("more"),
        };
        open(&path)
    }

    /// A hand that writes past the store.
    pub(crate) fn sql(&self, sql: &str) {
        self.try_sql(sql).unwrap();
    }

    pub(crate) fn sql_of_both(&self, _: &str, postgres: &str) {
        self.sql(postgres);
    }

    pub(crate) fn try_sql(&self, sql: &str) -> Result<(), String> {
        run(&self.database, sql).map(drop)
    }

    /// The first value of the first row.
    pub(crate) fn ask(&self, sql: &str) -> String {
        run(&self.database, sql).unwrap().unwrap_or_default()
    }

    /// Lets all leases end; the living renew theirs.
    pub(crate) fn bury_the_dead(&self) {
        self.sql("UPDATE processes SET expires = clock_timestamp() - interval '1 second'");
        let living = "SELECT count(*) FROM processes WHERE expires > clock_timestamp()";
        until("a process renews its lease", || self.ask(living) != "0");
    }
}

impl Drop for SharedHome {
    fn drop(&mut self) {
        let _ = run(
            "postgres",
            &format!("DROP DATABASE {} WITH (FORCE)", self.database),
        );
    }
}

pub(crate) fn open(home: &Path) -> Store {
    Store::open(home, StoreSettings::standard()).unwrap()
}

pub(crate) fn write_settings(home: &Path, url: &str, settings: &str) {
    fs::create_dir_all(home).unwrap();
    fs::set_permissions(home, fs::Permissions::from_mode(0o700)).unwrap();
    let text = format!("[store]\nurl = \"{url}\"\n{settings}");
    fs::write(home.join("ringfence.toml"), text).unwrap();
    let mode = fs::Permissions::from_mode(0o600);
    fs::set_permissions(home.join("ringfence.toml"), mode).unwrap();
}

/// Waits for a condition, not for a time.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// Runs statements as the owner of the server.
pub(crate) fn run(database: &str, sql: &str) -> Result<Option<String>, String> {
    let address = postgres::server().address;
    wait_on_io(async {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let mut config = Config::new();
        config.user("postgres").password(postgres::PASSWORD);
        config.dbname(database);
        let (client, connection) = config.connect_raw(stream, NoTls).await.unwrap();
        let driver = tokio::spawn(connection);
        let answer = client.simple_query(sql).await;
        drop(client);
        let _ = driver.await;
        let rows = answer.map_err(|error| format!("{error:?}"))?;
        Ok(rows.into_iter().find_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        }))
    })
}
