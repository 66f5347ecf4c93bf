//! Postgres: a real server, each layer with the others off.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use host::fetch::Tls;
use host::fetch::connect::TcpConnector;
use host::sql::postgres::{
    self, CheckedRoles, POSTGRES_DESCRIBE, POSTGRES_TABLES, PostgresNetwork, PostgresTarget,
    PostgresTask,
};
use host::sql::{SqlAnswer, SqlBounds, SqlFault, SqlFaultKind, SqlMode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use url::Host;

use crate::postgres_lab::{DATABASE_NAME, PASSWORD, Postgres, database_name, server};
use crate::wire::{Dns, Ends, Wire};
use crate::{PUBLIC, bounds, cases, compare};

/// A database of one test, and who asks it.
struct Lab {
    server: &'static Postgres,
    database: String,
}

impl Lab {
    /// A database with a table, a sequence and two functions; `keeper` owns them and
    /// `reader` may read the table.
    async fn new() -> Lab {
        let lab = Lab {
            server: server(),
            database: database_name(),
        };
        let name = &lab.database;
        let mut admin = lab.target("postgres");
        admin.database = "postgres".to_owned();
        // Roles are of the whole server, so the first test makes them.
        for role in ["keeper", "reader", "files", "replicator"] {
            let made = format!("CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'");
            let made = outside(&admin, &made).await;
            drop(made);
        }
        for grant in [
            "GRANT pg_read_server_files TO files",
            "ALTER ROLE replicator REPLICATION",
        ] {
            outside(&admin, grant).await.unwrap();
        }
        // No transaction can hold this one, so it does not go by our session.
        outside(&admin, &format!("CREATE DATABASE {name} OWNER keeper"))
            .await
            .unwrap();
        let super_user = lab.target("postgres");
        outside(&super_user, "GRANT ALL ON SCHEMA public TO keeper")
            .await
            .unwrap();
        let keeper = lab.target("keeper");
        for statement in [
            "CREATE TABLE items (id int PRIMARY KEY, name text NOT NULL)",
            "INSERT INTO items VALUES (1, 'apple'), (2, 'bread'), (3, 'cheese')",
            "CREATE SEQUENCE ticket",
            "CREATE PROCEDURE wipe() LANGUAGE sql AS 'DELETE FROM items'",
            "CREATE FUNCTION wipe_by_function() RETURNS bigint LANGUAGE sql AS \
             'WITH x AS (DELETE FROM items RETURNING 1) SELECT count(*) FROM x'",
            "GRANT SELECT ON items TO reader",
        ] {
            outside(&keeper, statement).await.unwrap();
        }
        lab
    }

    fn target(&self, user: &str) -> PostgresTarget {
        PostgresTarget {
            host: Host::parse("127.0.0.1").unwrap(),
            port: self.server.address.port(),
            database: self.database.clone(),
            user: user.to_owned(),
            password: Some(PASSWORD.to_owned()),
            schema: "public".to_owned(),
            private: true,
            tls: false,
            trusted: user == "postgres",
        }
    }

    async fn run(&self, user: &str, mode: SqlMode, statement: &str) -> Result<SqlAnswer, SqlFault> {
        self.run_with(user, mode, statement, &[], bounds()).await
    }

    async fn run_with(
        &self,
        user: &str,
        mode: SqlMode,
        statement: &str,
        parameters: &[Value],
        bounds: SqlBounds,
    ) -> Result<SqlAnswer, SqlFault> {
        let task = task(statement, parameters, mode, bounds);
        postgres::run(&self.target(user), &network(self.server), task).await
    }

    /// All there is in the database that a statement could have changed.
    async fn fingerprint(&self) -> Value {
        let all = "SELECT (SELECT json_agg(i ORDER BY id) FROM public.items i), \
            (SELECT last_value FROM public.ticket), \
            (SELECT array_agg(relname::text ORDER BY 1) FROM pg_class WHERE relnamespace = 'public'::regnamespace), \
            (SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace), \
            (SELECT count(*) FROM pg_largeobject_metadata), \
            (SELECT array_agg(relacl::text ORDER BY 1) FROM pg_class WHERE relnamespace = 'public'::regnamespace), \
            (SELECT array_agg(rolname::text || rolsuper::text ORDER BY 1) FROM pg_roles)";
        let answer = self.run("postgres", SqlMode::Read, all).await.unwrap();
        json!(answer.rows)
    }
}

fn task<'a>(
    statement: &'a str,
    parameters: &'a [Value],
    mode: SqlMode,
    bounds: SqlBounds,
) -> PostgresTask<'a> {
    PostgresTask {
        statement,
        parameters,
        mode,
        bounds,
        call_id: "test",
    }
}

fn network(server: &Postgres) -> PostgresNetwork {
    PostgresNetwork {
        tls: Tls::only(&server.authority_pem).unwrap(),
        resolver: Arc::new(Dns::default()),
        connector: Arc::new(TcpConnector),
        private_hosts: Arc::new([]),
        checked_roles: CheckedRoles::default(),
    }
}

/// A statement by the driver alone, with nothing of ours.
async fn outside(target: &PostgresTarget, statement: &str) -> Result<(), tokio_postgres::Error> {
    let address = SocketAddr::new([127, 0, 0, 1].into(), target.port);
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let mut config = tokio_postgres::Config::new();
    config
        .user(&target.user)
        .dbname(&target.database)
        .password(PASSWORD);
    let (client, connection) = config.connect_raw(stream, tokio_postgres::NoTls).await?;
    let driver = tokio::spawn(connection);
    let done = client.batch_execute(statement).await;
    driver.abort();
    done
}

fn kind(ended: Result<SqlAnswer, SqlFault>) -> SqlFaultKind {
    ended.expect_err("a fault").kind
}

/// The role may write and no class is asked: the transaction alone keeps the data.
#[tokio::test]
async fn a_transaction_that_reads_cannot_be_left() {
    let lab = Lab::new().await;
    let before = lab.fingerprint().await;
    let mut found = Vec::new();
    for case in cases("postgres.txt", 3) {
        let ended = lab.run("keeper", SqlMode::Read, &case.statement).await;
        found.push(if ended.is_ok() { "runs" } else { "refused" });
        assert_eq!(lab.fingerprint().await, before, "{}", case.statement);
    }
    compare("postgres.txt", 3, 1, &found);
    // The control: the same statement, allowed to, does change it.
    lab.run("keeper", SqlMode::Write, "DELETE FROM items")
        .await
        .unwrap();
    assert_ne!(lab.fingerprint().await, before);
}

/// The session may write and no class is asked: the rights of the role alone keep the table.
#[tokio::test]
async fn a_role_that_reads_keeps_the_table_in_a_session_that_writes() {
    let lab = Lab::new().await;
    let before = lab.fingerprint().await[0][0].clone();
    let mut found = Vec::new();
    for case in cases("postgres.txt", 3) {
        let ended = lab.run("reader", SqlMode::Admin, &case.statement).await;
        found.push(if ended.is_ok() { "runs" } else { "refused" });
        assert_eq!(lab.fingerprint().await[0][0], before, "{}", case.statement);
    }
    compare("postgres.txt", 3, 2, &found);
}

/// Attack: a superuser reads files of the server in a transaction that only reads.
#[tokio::test]
async fn a_role_that_may_do_more_than_data_is_refused() {
    let lab = Lab::new().await;
    for user in ["postgres", "files", "replicator"] {
        let mut target = lab.target(user);
        target.trusted = false;
        let task = || task("SELECT 1", &[], SqlMode::Read, bounds());
        let fault = postgres::run(&target, &network(lab.server), task())
            .await
            .unwrap_err();
        assert_eq!(fault.kind, SqlFaultKind::Connection, "{user}");
        assert!(fault.message.contains("trusted"), "{fault}");
        target.trusted = true;
        postgres::run(&target, &network(lab.server), task())
            .await
            .unwrap();
    }
    // A member of a role can become it, also one without rights of its own.
    let super_user = lab.target("postgres");
    let member = format!("{}_member", lab.database);
    outside(
        &super_user,
        &format!("CREATE ROLE {member} LOGIN NOINHERIT PASSWORD '{PASSWORD}' IN ROLE postgres"),
    )
    .await
    .unwrap();
    let ended = lab.run(&member, SqlMode::Read, "SELECT 1").await;
    assert_eq!(kind(ended), SqlFaultKind::Connection);
}

/// A role that was found good counts as good for a while, as on a connection that is kept; one
/// that was refused is asked about again.
#[tokio::test]
async fn a_good_role_is_remembered_and_a_refused_one_is_not() {
    let lab = Lab::new().await;
    let super_user = lab.target("postgres");
    let role = format!("{}_grown", lab.database);
    let change = async |words: &str| outside(&super_user, words).await.unwrap();
    change(&format!("CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")).await;
    let target = lab.target(&role);
    let ask = async |network: &PostgresNetwork| {
        let task = task("SELECT 1", &[], SqlMode::Read, bounds());
        postgres::run(&target, network, task).await
    };
    let known = network(lab.server);
    ask(&known).await.unwrap();
    change(&format!("ALTER ROLE {role} REPLICATION")).await;
    ask(&known).await.unwrap();
    let other = network(lab.server);
    assert_eq!(kind(ask(&other).await), SqlFaultKind::Connection);
    assert_eq!(kind(ask(&other).await), SqlFaultKind::Connection);
    change(&format!("ALTER ROLE {role} NOREPLICATION")).await;
    ask(&other).await.unwrap();
}

#[tokio::test]
async fn what_a_session_writes_is_kept_if_it_succeeds_and_only_then() {
    let lab = Lab::new().await;
    let given = [json!(7), json!("fig")];
    let answer = lab
        .run_with(
            "keeper",
            SqlMode::Write,
            "INSERT INTO items VALUES ($1, $2) RETURNING *",
            &given,
            bounds(),
        )
        .await
        .unwrap();
    assert_eq!(
        (answer.changed, json!(answer.rows)),
        (Some(1), json!([[7, "fig"]]))
    );
    let count = || async {
        let answer = lab
            .run("keeper", SqlMode::Read, "SELECT count(*)::int FROM items")
            .await;
        answer.unwrap().rows[0][0].clone()
    };
    assert_eq!(count().await, 4);
    let twice = "INSERT INTO items VALUES (8, 'x'), (7, 'y')";
    assert_eq!(
        kind(lab.run("keeper", SqlMode::Write, twice).await),
        SqlFaultKind::Statement
    );
    assert_eq!(count().await, 4);
    // Rows beyond the bound of the answer are written all the same.
    let many = "INSERT INTO items SELECT i, 'x' FROM generate_series(100, 1299) i RETURNING id";
    let answer = lab.run("keeper", SqlMode::Write, many).await.unwrap();
    assert_eq!(
        (answer.rows.len(), answer.truncated, answer.changed),
        (1_000, true, Some(1_200))
    );
    assert_eq!(count().await, 1_204);
}

#[tokio::test]
async fn values_of_every_type_come_back_as_json() {
    let lab = Lab::new().await;
    let all = "SELECT true, 1::smallint, 2::int, 9007199254740993::bigint, 1.5::real, 'NaN'::float8, \
        -12345.0678::numeric, 0::numeric(5,2), 'é'::text, 'a'::char(3), '{\"a\":[1]}'::json, '{\"b\":null}'::jsonb, \
        '00112233-4455-6677-8899-aabbccddeeff'::uuid, '\\xdeadbeef'::bytea, '2024-02-29'::date, \
        '12:34:56.5'::time, '2024-02-29 12:00:00'::timestamp, '2024-02-29 12:00:00+02'::timestamptz, \
        '1 year 2 mons 3 days 04:05:06'::interval, '10.0.0.1'::inet, '10.0.0.0/8'::cidr, \
        '{1,NULL,3}'::int[], '{{a,b},{c,d}}'::text[], '{}'::int[], NULL, '[1,2)'::int4range, 'infinity'::date";
    let answer = lab.run("reader", SqlMode::Read, all).await.unwrap();
    let expected = json!([
        true, 1, 2, "9007199254740993", 1.5, "NaN", "-12345.0678", "0.00", "é", "a  ", {"a": [1]}, {"b": null},
        "00112233-4455-6677-8899-aabbccddeeff", "\\xdeadbeef", "2024-02-29", "12:34:56.5",
        "2024-02-29T12:00:00", "2024-02-29T10:00:00Z", "1 year 2 mons 3 days 04:05:06", "10.0.0.1", "10.0.0.0/8",
        [1, null, 3], [["a", "b"], ["c", "d"]], [], null,
        "\\x0200000004000000010000000400000002", "infinity"
    ]);
    let (row, expected) = (json!(answer.rows[0]), expected);
    for (index, (found, expected)) in row
        .as_array()
        .unwrap()
        .iter()
        .zip(expected.as_array().unwrap())
        .enumerate()
    {
        assert_eq!(found, expected, "column {index}");
    }
    // What is given goes as text and is read as the type the server expects.
    let given = [
        json!("2024-01-01"),
        json!(1.25),
        json!(true),
        json!(null),
        json!("é'; --"),
    ];
    let back = "SELECT $1::date, $2::numeric, $3::bool, $4::int, $5::text";
    let answer = lab
        .run_with("reader", SqlMode::Read, back, &given, bounds())
        .await
        .unwrap();
    assert_eq!(
        json!(answer.rows[0]),
        json!(["2024-01-01", "1.25", true, null, "é'; --"])
    );
}

#[tokio::test]
async fn parameters_are_single_values_and_as_many_as_wanted() {
    let lab = Lab::new().await;
    for given in [
        vec![],
        vec![json!(1), json!(2)],
        vec![json!([1])],
        vec![json!("a\0b")],
    ] {
        let ended = lab
            .run_with("reader", SqlMode::Read, "SELECT $1::text", &given, bounds())
            .await;
        assert_eq!(kind(ended), SqlFaultKind::Statement, "{given:?}");
    }
}

#[tokio::test]
async fn a_slow_statement_is_stopped_on_the_server_too() {
    let lab = Lab::new().await;
    let short = SqlBounds {
        time_ms: 200,
        ..bounds()
    };
    let slow = format!("SELECT pg_sleep(600) /* {} */", lab.database);
    let ended = lab
        .run_with("keeper", SqlMode::Read, &slow, &[], short)
        .await;
    assert_eq!(kind(ended), SqlFaultKind::Timeout);
    until_idle(&lab).await;
}

/// A call that is cancelled drops its future.
#[tokio::test]
async fn a_dropped_call_stops_the_server() {
    let lab = Lab::new().await;
    let slow = format!("SELECT pg_sleep(600) /* {} */", lab.database);
    let running = lab.run("keeper", SqlMode::Read, &slow);
    let mut running = Box::pin(running);
    loop {
        tokio::select! {
            ended = &mut running => panic!("{ended:?}"),
            count = sleepers(&lab) => if count == 1 { break },
        }
    }
    drop(running);
    until_idle(&lab).await;
}

async fn sleepers(lab: &Lab) -> i64 {
    let asked = "SELECT count(*)::int FROM pg_stat_activity WHERE datname = $1 \
        AND query LIKE 'SELECT pg_sleep%' AND state = 'active'";
    let given = [json!(lab.database)];
    let answer = lab
        .run_with("postgres", SqlMode::Read, asked, &given, bounds())
        .await
        .unwrap();
    answer.rows[0][0].as_i64().unwrap()
}

/// Waits until nothing of the test sleeps on the server; the test's own time ends it otherwise.
async fn until_idle(lab: &Lab) {
    let idle = async { while sleepers(lab).await > 0 {} };
    tokio::time::timeout(Duration::from_secs(60), idle)
        .await
        .expect("the server still works");
}

#[tokio::test]
async fn answers_are_cut_at_their_bounds() {
    let lab = Lab::new().await;
    let endless = "SELECT i FROM generate_series(1, 100000000) i";
    let answer = lab.run("reader", SqlMode::Read, endless).await.unwrap();
    assert_eq!((answer.rows.len(), answer.truncated), (1_000, true));
    let wide = "SELECT repeat('x', 100000) FROM generate_series(1, 50)";
    let answer = lab.run("reader", SqlMode::Read, wide).await.unwrap();
    assert!(
        answer.truncated && answer.rows.len() < 11,
        "{}",
        answer.rows.len()
    );
    let exact = "SELECT i FROM generate_series(1, 1000) i";
    let answer = lab.run("reader", SqlMode::Read, exact).await.unwrap();
    assert_eq!((answer.rows.len(), answer.truncated), (1_000, false));
    // One value alone is more than may come over the wire.
    let huge = "SELECT repeat('x', 200000000)";
    assert!(lab.run("reader", SqlMode::Read, huge).await.is_err());
}

#[tokio::test]
async fn tables_and_columns_are_told_as_far_as_the_role_may_read() {
    let lab = Lab::new().await;
    outside(&lab.target("keeper"), "CREATE TABLE hidden (secret text)")
        .await
        .unwrap();
    let schema = [json!("public")];
    let tables = lab
        .run_with("reader", SqlMode::Read, POSTGRES_TABLES, &schema, bounds())
        .await
        .unwrap();
    assert_eq!(json!(tables.rows), json!([["items", "table"]]));
    let items = [json!("public"), json!("items")];
    let columns = lab
        .run_with("reader", SqlMode::Read, POSTGRES_DESCRIBE, &items, bounds())
        .await
        .unwrap();
    assert_eq!(
        json!(columns.rows[0][..4]),
        json!(["column", "id", "integer", true])
    );
    assert_eq!(json!(columns.rows[2][..2]), json!(["index", "items_pkey"]));
    let hidden = [json!("public"), json!("hidden")];
    let columns = lab
        .run_with(
            "reader",
            SqlMode::Read,
            POSTGRES_DESCRIBE,
            &hidden,
            bounds(),
        )
        .await
        .unwrap();
    assert_eq!(columns.rows.len(), 0);
}

/// Attack: a table or function of the schema with the name of one of the system's.
#[tokio::test]
async fn names_of_the_system_come_first() {
    let lab = Lab::new().await;
    for statement in [
        "CREATE FUNCTION public.set_config(text, text, boolean) RETURNS text LANGUAGE sql AS 'SELECT ''evil'''",
        "CREATE FUNCTION public.version() RETURNS text LANGUAGE sql AS 'SELECT ''evil'''",
        "CREATE TABLE public.pg_roles (rolname text)",
    ] {
        outside(&lab.target("keeper"), statement).await.unwrap();
    }
    let answer = lab
        .run("reader", SqlMode::Read, "SELECT version()")
        .await
        .unwrap();
    assert_ne!(json!(answer.rows), json!([["evil"]]));
    let answer = lab
        .run("reader", SqlMode::Read, "SELECT count(*) > 3 FROM pg_roles")
        .await
        .unwrap();
    assert_eq!(json!(answer.rows), json!([[true]]));
}

/// With TLS: to a name whose certificate is right, and to none whose is not.
#[tokio::test]
async fn the_channel_is_encrypted_for_the_name_that_was_asked_for() {
    let lab = Lab::new().await;
    let dns = Dns::default();
    for name in [DATABASE_NAME, "other.lab.example.com"] {
        dns.say(name, PUBLIC);
    }
    let mut network = network(lab.server);
    network.resolver = Arc::new(dns);
    let public = SocketAddr::new(PUBLIC.parse().unwrap(), lab.server.address.port());
    let labs = HashMap::from([(public, Some(lab.server.address))]);
    network.connector = Arc::new(Wire::new(Ends::Labs(labs)));
    let mut target = lab.target("reader");
    (target.private, target.tls) = (true, true);
    target.host = Host::parse(DATABASE_NAME).unwrap();
    let encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let ask = || task(encrypted, &[], SqlMode::Read, bounds());
    let answer = postgres::run(&target, &network, ask()).await.unwrap();
    assert_eq!(json!(answer.rows), json!([[true]]));
    let mut other = target.clone();
    other.host = Host::parse("other.lab.example.com").unwrap();
    assert_eq!(
        kind(postgres::run(&other, &network, ask()).await),
        SqlFaultKind::Connection
    );
    network.tls = Tls::only(&crate::postgres_lab::other_authority()).unwrap();
    assert_eq!(
        kind(postgres::run(&target, &network, ask()).await),
        SqlFaultKind::Connection
    );
}

/// Attack: ssrf by a database. Nothing is connected to that the guard did not let.
#[tokio::test]
async fn a_host_inside_is_reached_only_if_the_operator_says_so() {
    let wire = Arc::new(Wire::new(Ends::Nowhere));
    let ask = |host: &str, answer: &str, private: bool| {
        let dns = Dns::default();
        dns.say(host, answer);
        let network = PostgresNetwork {
            tls: Tls::only(&crate::postgres_lab::other_authority()).unwrap(),
            resolver: Arc::new(dns),
            connector: Arc::<Wire>::clone(&wire),
            private_hosts: Arc::new([]),
            checked_roles: CheckedRoles::default(),
        };
        let target = PostgresTarget {
            host: Host::parse(host).unwrap(),
            port: 5432,
            database: "a".to_owned(),
            user: "a".to_owned(),
            password: None,
            schema: "public".to_owned(),
            private,
            tls: true,
            trusted: false,
        };
        let wire = Arc::clone(&wire);
        async move {
            let before = wire.called().len();
            let task = task("SELECT 1", &[], SqlMode::Read, bounds());
            let ended = postgres::run(&target, &network, task).await;
            let fault = ended.unwrap_err();
            assert_eq!(fault.kind, SqlFaultKind::Connection);
            assert!(!fault.message.contains(&target.host.to_string()), "{fault}");
            wire.called().len() - before
        }
    };
    for (host, answer) in [
        ("127.0.0.1", ""),
        ("10.1.2.3", ""),
        ("169.254.169.254", ""),
        ("localhost", "127.0.0.1"),
        ("db.example.com", "10.0.0.1"),
        ("db.example.com", "93.184.216.34 10.0.0.1"),
        ("db.example.com", "169.254.169.254"),
        ("[::1]", ""),
    ] {
        assert_eq!(ask(host, answer, false).await, 0, "{host} {answer}");
    }
    assert_eq!(ask("db.example.com", "93.184.216.34", false).await, 1);
    assert_eq!(ask("db.example.com", "10.0.0.1", true).await, 1);
    // Where clouds keep credentials there is no database, even if the operator says so.
    assert_eq!(ask("169.254.169.254", "", true).await, 0);
    assert_eq!(ask("db.example.com", "169.254.169.254", true).await, 0);
}

/// A call that waits for a server that never answers can be dropped, and says so by itself
/// in the end.
#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_does_not_hold_the_call() {
    let network = PostgresNetwork {
        tls: Tls::only(&crate::postgres_lab::other_authority()).unwrap(),
        resolver: Arc::new(Dns::default()),
        connector: Arc::new(Wire::new(Ends::Hangs)),
        private_hosts: Arc::new([]),
        checked_roles: CheckedRoles::default(),
    };
    let target = PostgresTarget {
        host: Host::parse("93.184.216.34").unwrap(),
        port: 5432,
        database: "a".to_owned(),
        user: "a".to_owned(),
        password: None,
        schema: "public".to_owned(),
        private: false,
        tls: true,
        trusted: false,
    };
    let task = task("SELECT 1", &[], SqlMode::Read, bounds());
    let ended = postgres::run(&target, &network, task).await;
    assert_eq!(kind(ended), SqlFaultKind::Connection);
}

/// Attack: a server that floods, hangs up, says nothing or speaks another protocol.
#[tokio::test]
async fn a_hostile_server_ends_the_call_and_nothing_else() {
    let scripts: [&[u8]; 5] = [
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n",
        // Authentication is done, then a message of nearly two gigabytes begins.
        b"R\0\0\0\x08\0\0\0\0D\x7f\xff\xff\xff",
        // It wants the password in the clear.
        b"R\0\0\0\x08\0\0\0\x03",
        b"E\0\0\0\x0bSFATAL\0\0",
    ];
    for script in scripts {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut asked = [0; 1024];
                let _ = stream.read(&mut asked).await;
                let _ = stream.write_all(script).await;
                let flood = [b'x'; 64 * 1024];
                if script.contains(&b'D') {
                    while stream.write_all(&flood).await.is_ok() {}
                }
            }
        });
        let target = PostgresTarget {
            host: Host::parse("127.0.0.1").unwrap(),
            port: address.port(),
            database: "a".to_owned(),
            user: "a".to_owned(),
            password: None,
            schema: "public".to_owned(),
            private: true,
            tls: false,
            trusted: false,
        };
        let network = PostgresNetwork {
            tls: Tls::only(&crate::postgres_lab::other_authority()).unwrap(),
            resolver: Arc::new(Dns::default()),
            connector: Arc::new(Wire::new(Ends::Lab(address))),
            private_hosts: Arc::new([]),
            checked_roles: CheckedRoles::default(),
        };
        let task = task("SELECT 1", &[], SqlMode::Read, bounds());
        let ended = postgres::run(&target, &network, task).await;
        assert_eq!(kind(ended), SqlFaultKind::Connection, "{script:?}");
        server.abort();
    }
}
