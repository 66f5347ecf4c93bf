//! What a governed statement costs over the driver it is made of: a real Postgres on
//! loopback, one connection for each statement both ways, in turn. `cargo xtask bench sql`
//! runs it. The last line is one JSON object.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench that cannot go on should stop, and its result is printed"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use host::fetch::Tls;
use host::fetch::connect::TcpConnector;
use host::fetch::resolve::SystemResolver;
use host::sql::postgres::{self, CheckedRoles, PostgresNetwork, PostgresTarget, PostgresTask};
use host::sql::{SqlBounds, SqlMode};
use postgres_lab::{PASSWORD, database_name, server};
use serde_json::json;
use tokio::net::TcpStream;

#[path = "../tests/lab/postgres.rs"]
#[expect(dead_code, reason = "tests need more of the lab")]
mod postgres_lab;

const ROUNDS: usize = 300;
const STATEMENT: &str = "SELECT i, i::text FROM generate_series(1, 100) i";

fn main() {
    // `cargo test` runs every bench once, with this.
    if std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (mut bare, mut governed) = (Vec::new(), Vec::new());
    // An ordinary role, which is checked by the first statement and then every half minute.
    let role = database_name();
    runtime.block_on(async {
        let made = format!("CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'");
        connect("postgres")
            .await
            .batch_execute(&made)
            .await
            .unwrap();
        let roles = CheckedRoles::default();
        for _ in 0..ROUNDS {
            bare.push(timed(run_bare(&role)).await);
            governed.push(timed(run_governed(&role, &roles)).await);
        }
    });
    let (bare, governed) = (median(bare), median(governed));
    let over = governed.saturating_sub(bare);
    println!("driver {bare:?}, governed {governed:?}");
    println!(
        "{}",
        json!({"sql_over_driver_ms": over.as_secs_f64() * 1_000.0})
    );
}

async fn timed(work: impl Future<Output = usize>) -> Duration {
    let start = Instant::now();
    assert_eq!(work.await, 100);
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

async fn connect(user: &str) -> tokio_postgres::Client {
    let stream = TcpStream::connect(server().address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut config = tokio_postgres::Config::new();
    config.user(user).dbname("postgres").password(PASSWORD);
    let (client, connection) = config
        .connect_raw(stream, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

/// The least a program has to do with the driver.
async fn run_bare(user: &str) -> usize {
    let client = connect(user).await;
    client.query(STATEMENT, &[]).await.unwrap().len()
}

async fn run_governed(user: &str, roles: &CheckedRoles) -> usize {
    let server = server();
    let target = PostgresTarget {
        host: url::Host::parse("127.0.0.1").unwrap(),
        port: server.address.port(),
        database: "postgres".to_owned(),
        user: user.to_owned(),
        password: Some(PASSWORD.to_owned()),
        schema: "public".to_owned(),
        private: true,
        tls: false,
        trusted: false,
    };
    let network = PostgresNetwork {
        tls: Tls::only(&server.authority_pem).unwrap(),
        resolver: Arc::new(SystemResolver),
        connector: Arc::new(TcpConnector),
        private_hosts: Arc::new([]),
        checked_roles: roles.clone(),
    };
    let task = PostgresTask {
        statement: STATEMENT,
        parameters: &[],
        mode: SqlMode::Read,
        bounds: SqlBounds {
            rows_max: 1_000,
            bytes_max: 1 << 20,
            time_ms: 10_000,
        },
        call_id: "bench",
    };
    postgres::run(&target, &network, task)
        .await
        .unwrap()
        .rows
        .len()
}
