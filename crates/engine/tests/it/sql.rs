//! Databases as tools: SQLite files in the jail, Postgres by a connection, and who may use
//! what.

use std::path::PathBuf;

use engine::approve::ApprovalAnswer;
use engine::call::CallRequest;
use model::caller::{Caller, Origin};
use model::govern::rules::Effect;
use model::record::audit::Status;
use serde_json::{Value, json};

use crate::postgres_lab::{PASSWORD, database_name, server};
use crate::toolbox::{done, events, world};
use crate::world::{Says, World, error};

const OPEN: &str = "[toolbox]\nenabled = [\"sql\"]\n[[rule]]\nid = \"all\"\neffect = \"allow\"\n";

fn workspace(world: &World) -> PathBuf {
    let path = world.home.path.join("workspace");
    std::fs::create_dir_all(&path).unwrap();
    path
}

async fn filled(world: &World) {
    workspace(world);
    for statement in [
        "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT)",
        "INSERT INTO items VALUES (1, 'apple'), (2, 'bread')",
    ] {
        done(
            world,
            "sqlExecute",
            json!({"file": "a.db", "statement": statement}),
        )
        .await;
    }
}

#[tokio::test]
async fn a_file_of_the_workspace_is_made_changed_and_read() {
    let world = world(OPEN);
    filled(&world).await;
    let query = json!({"file": "a.db", "statement": "SELECT name FROM items WHERE id = ?1", "parameters": [2]});
    let outcome = world.call("sqlQuery", query).await;
    let value = outcome.value.clone().unwrap();
    assert_eq!(value["columns"], json!(["name"]));
    assert_eq!(value["rows"], json!([["bread"]]));
    let events = events(&world, &outcome);
    let sql = events.iter().find(|event| event["kind"] == "sql").unwrap();
    assert_eq!((&sql["mode"], &sql["rows"]), (&json!("read"), &json!(1)));
    let process = events
        .iter()
        .find(|event| event["kind"] == "process")
        .unwrap();
    assert_eq!(process["backend"], "jail");
    let changed = json!({"file": "a.db", "statement": "UPDATE items SET name = 'x' RETURNING id"});
    let value = done(&world, "sqlExecute", changed).await;
    assert_eq!(
        (&value["changed"], &value["rowCount"]),
        (&json!(2), &json!(2))
    );
    let tables = done(&world, "sqlSchema", json!({"file": "a.db"})).await;
    assert_eq!(
        tables["tables"],
        json!([{"name": "items", "type": "table"}])
    );
    let table = done(
        &world,
        "sqlSchema",
        json!({"file": "a.db", "table": "items"}),
    )
    .await;
    assert_eq!(table["parts"][1]["name"], "name");
    world.assert_whole();
}

/// Each is refused, and the file is the same afterwards.
#[tokio::test]
async fn what_reads_changes_nothing() {
    let world = world(OPEN);
    filled(&world).await;
    let path = workspace(&world).join("a.db");
    let before = std::fs::read(&path).unwrap();
    for (statement, code) in [
        ("DELETE FROM items", "sql.refused"),
        ("WITH x AS (SELECT 1) DELETE FROM items", "sql.refused"),
        ("SELECT 1; DELETE FROM items", "sql.refused"),
        ("ATTACH '/etc/passwd' AS x", "sql.refused"),
        ("PRAGMA writable_schema = 1", "sql.refused"),
        ("SELECT load_extension('x')", "sql.refused"),
        ("not SQL at all", "sql.failed"),
        ("SELECT * FROM missing", "sql.failed"),
    ] {
        let outcome = world
            .call("sqlQuery", json!({"file": "a.db", "statement": statement}))
            .await;
        assert_eq!(error(&outcome).0, code, "{statement}: {outcome:?}");
        // The other tool is named only for what it runs.
        let is_promised = error(&outcome).1.contains("`sqlExecute` is for that");
        let is_change = statement.ends_with("DELETE FROM items") && !statement.contains(';');
        assert_eq!(is_promised, is_change, "{statement}: {outcome:?}");
        assert_eq!(std::fs::read(&path).unwrap(), before, "{statement}");
    }
}

/// Without a word in the rules, a statement that may change something waits for a person, who
/// sees it; one that reads does not.
#[tokio::test]
async fn a_change_asks_and_shows_its_statement() {
    let world = world("[approvals]\nwait_seconds = 1\n[toolbox]\nenabled = [\"sql\"]\n");
    workspace(&world);
    let statement = "CREATE TABLE items (id INTEGER)";
    let says = Says::new(ApprovalAnswer::Declined);
    let arguments = json!({"file": "a.db", "statement": statement});
    let mut request = CallRequest::new(Caller::named("ann"), Origin::Mcp, "sqlExecute", arguments);
    request.approver = Some(says.clone());
    let outcome = world.made(request).await;
    assert_eq!(outcome.status, Status::Refused, "{outcome:?}");
    let asked = format!("{:?}", says.asked.lock().unwrap());
    assert!(asked.contains(statement), "{asked}");
    assert!(!workspace(&world).join("a.db").exists());
    let arguments = json!({"file": "a.db", "statement": "SELECT 1"});
    let reads = CallRequest::new(Caller::named("ann"), Origin::Mcp, "sqlQuery", arguments);
    assert_eq!(world.engine.explain(&reads).effect, Effect::Allow);
}

/// Attack: names and links that lead out of the folder.
#[tokio::test]
async fn no_file_outside_the_folder_is_opened() {
    let world = world(OPEN);
    filled(&world).await;
    let workspace = workspace(&world);
    let secret = world.home.path.join("secret.db");
    std::fs::copy(workspace.join("a.db"), &secret).unwrap();
    std::os::unix::fs::symlink(&secret, workspace.join("link.db")).unwrap();
    std::os::unix::fs::symlink(&world.home.path, workspace.join("out")).unwrap();
    let absolute = secret.display().to_string();
    for file in [
        "../secret.db",
        "link.db",
        "out/secret.db",
        absolute.as_str(),
        "sub/../../secret.db",
        ":memory:",
        "file:a.db?mode=rwc",
        "missing.db",
        ".",
    ] {
        let ask = json!({"file": file, "statement": "SELECT name FROM items"});
        let outcome = world.call("sqlQuery", ask).await;
        assert_eq!(outcome.status, Status::Failed, "{file}: {outcome:?}");
    }
    // Only `sqlExecute` with a statement that makes tables makes a file.
    assert!(!workspace.join("missing.db").exists());
}

#[tokio::test]
async fn the_class_of_a_statement_decides_who_is_asked() {
    let rules = "[toolbox]\nenabled = [\"sql\"]\n\
        [[rule]]\nid = \"read\"\nactions = [\"db:query\"]\neffect = \"allow\"\n\
        [[rule]]\nid = \"no-admin\"\nactions = [\"db:admin\"]\neffect = \"deny\"\n\
        [[rule]]\nid = \"write\"\nactions = [\"db:mutate\"]\neffect = \"allow\"\n";
    let world = world(rules);
    filled_by_owner(&world);
    for (index, (tool, statement, code)) in [
        ("sqlExecute", "DROP TABLE items", "rule.denied"),
        ("sqlExecute", "this does not parse", "rule.denied"),
        (
            "sqlExecute",
            "DELETE FROM items; DROP TABLE items",
            "rule.denied",
        ),
        ("sqlQuery", "this does not parse", "rule.denied"),
    ]
    .into_iter()
    .enumerate()
    {
        // A caller is paused after some denials.
        let caller = Caller::named(format!("caller-{index}"));
        let arguments = json!({"file": "a.db", "statement": statement});
        let request = CallRequest::new(caller, Origin::Mcp, tool, arguments);
        let outcome = world.made(request).await;
        assert_eq!(error(&outcome).0, code, "{statement}");
    }
    for (tool, statement) in [
        ("sqlQuery", "SELECT * FROM items"),
        ("sqlExecute", "DELETE FROM items WHERE id = 1"),
    ] {
        done(
            &world,
            tool,
            json!({"file": "a.db", "statement": statement}),
        )
        .await;
    }
}

/// The file as another program would have made it.
fn filled_by_owner(world: &World) {
    let made = "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO items VALUES (1, 'a'), (2, 'b');";
    let path = workspace(world).join("a.db");
    let run = std::process::Command::new("python3")
        .arg("-c")
        .arg("import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])")
        .arg(path)
        .arg(made)
        .status();
    assert!(run.unwrap().success());
}

#[tokio::test]
async fn a_statement_without_end_is_stopped() {
    let world = world(OPEN);
    filled(&world).await;
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n";
    let outcome = world
        .call(
            "sqlQuery",
            json!({"file": "a.db", "statement": endless, "timeout": 1}),
        )
        .await;
    assert_eq!(error(&outcome).0, "sql.timeout", "{outcome:?}");
}

/// A world with a connection to a real server, for `ann` and no one else.
async fn connected(more: &str) -> (World, String) {
    let database = database_name();
    let port = server().address.port();
    let settings = format!(
        "{OPEN}[connections.reports]\nkind = \"postgres\"\nhost = \"127.0.0.1\"\nport = {port}\n\
         database = \"{database}\"\nuser = \"{database}\"\ncredential = \"REPORTS_PASSWORD\"\n\
         private = true\ntls = \"off\"\ncallers = [\"ann\"]\n{more}\n\
         [connections.other]\nkind = \"git\"\nhost = \"git.example.com\"\ncallers = [\"ann\"]\n"
    );
    let world = world(&settings);
    world
        .home
        .secrets(&format!("REPORTS_PASSWORD={PASSWORD}\n"));
    // By the client of Debian's package, as an operator would.
    for (name, statement) in [
        (
            "postgres",
            format!("CREATE ROLE {database} LOGIN PASSWORD '{PASSWORD}'"),
        ),
        (
            "postgres",
            format!("CREATE DATABASE {database} OWNER {database}"),
        ),
        (
            database.as_str(),
            format!(
                "CREATE TABLE items (id int PRIMARY KEY, name text); INSERT INTO items VALUES (1, 'apple'); ALTER TABLE items OWNER TO {database}"
            ),
        ),
    ] {
        let run = std::process::Command::new("psql")
            .args([
                "-h",
                "127.0.0.1",
                "-p",
                &port.to_string(),
                "-U",
                "postgres",
                "-q",
                "-d",
                name,
                "-c",
                &statement,
            ])
            .env("PGPASSWORD", PASSWORD)
            .status();
        assert!(run.unwrap().success(), "{statement}");
    }
    (world, database)
}

#[tokio::test]
async fn a_connection_is_queried_and_its_password_never_shown() {
    let (world, _) = connected("").await;
    let ask = json!({"connection": "reports", "statement": "SELECT id, name FROM items WHERE id = $1", "parameters": [1]});
    let value = done(&world, "sqlQuery", ask).await;
    assert_eq!(value["rows"], json!([[1, "apple"]]));
    let value = done(&world, "sqlSchema", json!({"connection": "reports"})).await;
    assert_eq!(value["tables"][0]["name"], "items");
    // Attack: a database that sends the password back.
    let echo = format!("SELECT '{PASSWORD}' AS it");
    let outcome = world
        .call(
            "sqlQuery",
            json!({"connection": "reports", "statement": echo}),
        )
        .await;
    let shown = format!("{outcome:?} {:?}", world.entry(&outcome));
    assert_eq!(outcome.status, Status::Done);
    assert!(!shown.contains(PASSWORD), "{shown}");
    let failing = format!("SELECT '{PASSWORD}'::int");
    let outcome = world
        .call(
            "sqlQuery",
            json!({"connection": "reports", "statement": failing}),
        )
        .await;
    let shown = format!("{outcome:?} {:?}", world.entry(&outcome));
    assert_eq!(error(&outcome).0, "sql.failed");
    assert!(!shown.contains(PASSWORD), "{shown}");
}

#[tokio::test]
async fn a_connection_is_written_to_only_if_it_says_so() {
    let (world, _) = connected("").await;
    let insert = json!({"connection": "reports", "statement": "INSERT INTO items VALUES (2, 'b')"});
    let outcome = world.call("sqlExecute", insert.clone()).await;
    assert_eq!(error(&outcome).0, "sql.refused");
    let (world, _) = connected("write = true").await;
    let value = done(&world, "sqlExecute", insert).await;
    assert_eq!(value["changed"], 1);
    let count = json!({"connection": "reports", "statement": "SELECT count(*)::int FROM items"});
    assert_eq!(done(&world, "sqlQuery", count).await["rows"], json!([[2]]));
}

/// Invariant 10: a connection that a caller may not use reads like one that is not there.
#[tokio::test]
async fn a_connection_of_others_does_not_exist() {
    let (world, _) = connected("").await;
    let ask = |name: &str| json!({"connection": name, "statement": "SELECT 1"});
    let by = |name: &'static str, arguments: Value| {
        world.made(CallRequest::new(
            Caller::named(name),
            Origin::Mcp,
            "sqlQuery",
            arguments,
        ))
    };
    let theirs = by("bo", ask("reports")).await;
    let missing = by("bo", ask("missing")).await;
    assert_eq!(error(&theirs).0, "connection.unknown");
    assert_eq!(
        error(&theirs).1.replace("reports", "X"),
        error(&missing).1.replace("missing", "X")
    );
    // Of another kind: the same words.
    let git = by("ann", ask("other")).await;
    assert_eq!(
        error(&git).1.replace("other", "X"),
        error(&missing).1.replace("missing", "X")
    );
    // The owner is told more, and may use it.
    let own = world.own_call("sqlQuery", ask("missing")).await;
    assert!(error(&own).1.contains("[connections]"), "{own:?}");
    let own = world.own_call("sqlQuery", ask("reports")).await;
    assert_eq!(own.status, Status::Done, "{own:?}");
}

#[tokio::test]
async fn a_missing_password_and_a_limit_on_hosts_refuse() {
    let (world, _) = connected("").await;
    world.home.secrets("OTHER=1\n");
    let ask = json!({"connection": "reports", "statement": "SELECT 1"});
    let outcome = world.call("sqlQuery", ask.clone()).await;
    assert_eq!(error(&outcome).0, "requirement.missing", "{outcome:?}");
    let settings = std::fs::read_to_string(world.home.path.join("ringfence.toml")).unwrap();
    world
        .home
        .secrets(&format!("REPORTS_PASSWORD={PASSWORD}\n"));
    world.home.file(
        "ringfence.toml",
        &format!("[access]\nhosts = [\"*.example.com\"]\n{settings}"),
    );
    let outcome = world.call("sqlQuery", ask).await;
    assert_eq!(error(&outcome).0, "host.denied", "{outcome:?}");
}

/// In a folder of the operator's a statement changes the database at once, with the locks of
/// SQLite, and its process can write nothing else there.
#[tokio::test]
async fn a_database_of_the_operators_folder_is_changed_and_nothing_beside_it() {
    let project = crate::toolbox_folder::Project::new();
    let settings = crate::toolbox_folder::settings(&project, crate::toolbox_folder::ALLOW);
    let world = world(&settings);
    let execute = async |file: &str, statement: &str| {
        let arguments = json!({"file": file, "statement": statement});
        world.call("sqlExecute", arguments).await
    };
    let made = execute("data/new.db", "CREATE TABLE items (name TEXT)").await;
    assert_eq!(error(&made).0, "argument.schema", "{made:?}");
    project.write("data/keep.txt", "kept\n");
    let made = execute("data/new.db", "CREATE TABLE items (name TEXT)").await;
    assert_eq!(made.status, Status::Done, "{made:?}");
    let filled = execute("data/new.db", "INSERT INTO items VALUES ('a'), ('b')").await;
    assert_eq!(filled.value.unwrap()["changed"], 2);
    // Another program that has it open sees the change: it is the same file.
    let open = count_rows(&project.path.join("data/new.db"));
    assert_eq!(open, "2");
    // A statement that fails leaves no new database behind.
    let failed = execute("data/other.db", "CREATE TABLE items (name TEXT) nonsense").await;
    assert_ne!(failed.status, Status::Done);
    let mut names: Vec<_> = std::fs::read_dir(project.path.join("data"))
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["keep.txt", "new.db", "new.db-journal"]);
    let journal = project.path.join("data/new.db-journal");
    assert_eq!(journal.metadata().unwrap().len(), 0);
    // With a write-ahead log.
    python(
        &project.path,
        "log.db",
        "c.execute('PRAGMA journal_mode=WAL'); c.execute('CREATE TABLE t (x)')",
    );
    let changed = execute("log.db", "INSERT INTO t VALUES (1)").await;
    assert_eq!(changed.status, Status::Done, "{changed:?}");
    let read = json!({"file": "log.db", "statement": "SELECT x FROM t"});
    assert_eq!(done(&world, "sqlQuery", read).await["rows"], json!([[1]]));
    // Attack: a journal that leads elsewhere, a name that git obeys, and what a repository
    // names as a program.
    let outside = project.path.join("../outside");
    python(&project.path, "x.db", "c.execute('CREATE TABLE t (x)')");
    std::os::unix::fs::symlink(&outside, project.path.join("x.db-journal")).unwrap();
    for file in ["x.db", ".git/x.db", ".envrc"] {
        let refused = execute(file, "CREATE TABLE u (x)").await;
        assert_ne!(refused.status, Status::Done, "{file}");
    }
    assert!(!outside.exists());
}

/// How many rows another program counts.
fn count_rows(path: &std::path::Path) -> String {
    let program = format!(
        "import sqlite3; print(sqlite3.connect('{}').execute('SELECT count(*) FROM items').fetchone()[0])",
        path.display()
    );
    let ran = std::process::Command::new("python3")
        .args(["-c", &program])
        .output()
        .unwrap();
    String::from_utf8_lossy(&ran.stdout).trim().to_owned()
}

fn python(folder: &std::path::Path, file: &str, lines: &str) {
    let program = format!("import sqlite3; c = sqlite3.connect('{file}'); {lines}; c.commit()");
    let ran = std::process::Command::new("python3")
        .args(["-c", &program])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
}
