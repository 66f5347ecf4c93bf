//! Two servers with homes of their own on one Postgres: what one decides holds for both, and
//! what happens once happens once.
//!
//! Every case that two nodes must stand, and the tests that try it. `store` is
//! `crates/store/tests/it`, `load` is `crates/cli/tests/load`, others are here.
//!
//! | Case | Tests |
//! | --- | --- |
//! | published on A, called on B within a second | `what_one_node_decides_holds_on_the_other` |
//! | a rule, a setting, a draft of A on B | `settings_rules_and_drafts_of_one_node_hold_on_the_other`, store `cluster/files.rs` |
//! | approved on B what waits on A | `an_answer_on_one_node_reaches_the_call_on_the_other` |
//! | one approval, fifty takers on both: one | `one_approval_runs_one_of_many_calls_on_both_nodes`, store `cluster/race.rs` |
//! | a limit over both under load: never more | `a_limit_holds_over_both_nodes`, store `cluster/race.rs` (fifty takers, two limits) |
//! | a key revoked, a caller paused | `what_one_node_decides_holds_on_the_other`, store `cluster/race.rs` |
//! | trust lost on A, seen on B | store `cluster/race.rs` |
//! | killed at every step with the store | store `cluster/crash.rs`, `a_killed_node_stops_nobody`, load |
//! | Postgres stopped and started again | load |
//! | connections cut, silent, refused | store `cluster/gone.rs` |
//! | clocks an hour apart | store `cluster/crash.rs` |
//! | older and newer programs side by side | store `cluster/schema.rs` |
//! | a byte flipped, an end cut, an old head, files swapped | store `audit/nodes.rs`, `nodes.rs`; from the database: `shipped_logs_are_listed_and_verified_from_the_database` |
//! | a session of the older protocol | `a_session_of_the_older_protocol_begins_again_on_another_node`, `peers/balancers.rs` |

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::ringfence;
use crate::run::scratch;
use crate::serve::{META, command, command_to, first_line, send, terminate};

#[path = "../../../host/tests/lab/postgres.rs"]
#[expect(
    dead_code,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these tests use a part of it"
)]
mod postgres;

/// A server of a home.
struct Node {
    home: PathBuf,
    server: Child,
    address: String,
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// A database of its own, and homes whose settings name it.
struct Nodes {
    folder: PathBuf,
    url: String,
    settings: &'static str,
}

impl Nodes {
    fn new(name: &str, settings: &'static str) -> Nodes {
        let database = format!("cli_{}", name.replace('-', "_"));
        let server = postgres::server();
        let make = format!("CREATE DATABASE {database}");
        let port = server.address.port().to_string();
        let made = std::process::Command::new("psql")
            .args([
                "-h",
                "127.0.0.1",
                "-p",
                &port,
                "-U",
                "postgres",
                "-q",
                "-c",
                &make,
            ])
            .env("PGPASSWORD", postgres::PASSWORD)
            .status();
        assert!(made.unwrap().success());
        Nodes {
            folder: scratch(name),
            url: format!("postgres://postgres@127.0.0.1:{port}/{database}?sslmode=disable"),
            settings,
        }
    }

    fn database(&self) -> &str {
        let database = self.url.rsplit('/').next().unwrap();
        database.split('?').next().unwrap()
    }

    /// A hand that writes past the nodes.
    fn sql(&self, sql: &str) {
        self.sql_in(self.database(), sql);
    }

    fn sql_in(&self, database: &str, sql: &str) {
        let port = postgres::server().address.port().to_string();
        let done = std::process::Command::new("psql")
            .args(["-h", "127.0.0.1", "-p", &port, "-U", "postgres"])
            .args(["-d", database, "-q", "-c", sql])
            .env("PGPASSWORD", postgres::PASSWORD)
            .status();
        assert!(done.unwrap().success(), "{sql}");
    }

    fn home(&self, name: &str) -> PathBuf {
        let home = self.folder.join(name);
        fs::create_dir_all(&home).unwrap();
        let text = format!("[store]\nurl = \"{}\"\n{}", self.url, self.settings);
        fs::write(home.join("ringfence.toml"), text).unwrap();
        let secrets = home.join("secrets.env");
        let line = format!("RINGFENCE_STORE_PASSWORD={}\n", postgres::PASSWORD);
        fs::write(&secrets, line).unwrap();
        fs::set_permissions(&secrets, fs::Permissions::from_mode(0o600)).unwrap();
        home
    }

    fn serve(&self, name: &str, words: &[&str]) -> Node {
        let home = self.home(name);
        let words: Vec<&str> = ["serve", "--json", "--listen", "127.0.0.1:0"]
            .into_iter()
            .chain(words.iter().copied())
            .collect();
        let mut server = command(&words, &home);
        let ready: Value = serde_json::from_str(&first_line(&mut server)).unwrap();
        let url = ready.get("url").unwrap().as_str().unwrap();
        let address = url.strip_prefix("http://").unwrap();
        let address = address.strip_suffix("/mcp").unwrap().to_owned();
        Node {
            home,
            server,
            address,
        }
    }
}

fn run(home: &Path, words: &[&str]) -> String {
    let place = home.display().to_string();
    let words: Vec<&str> = words.iter().copied().chain(["--home", &place]).collect();
    ringfence(&words).shown()
}

/// A call, as a client of the newest protocol makes it.
fn call(address: &str, key: Option<&str>, tool: &str, arguments: &str) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{META}}}}}"#
    );
    let key = key.map(|key| format!("authorization: Bearer {key}\r\n"));
    let head = format!(
        "POST /mcp HTTP/1.1\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: tools/call\r\nmcp-name: {tool}\r\n{}",
        key.unwrap_or_default()
    );
    send(address, &head, &body)
}

fn count_words(node: &Node, key: Option<&str>) -> String {
    call(&node.address, key, "countWords", r#"{"text":"a b"}"#)
}

fn ran(answer: &str) -> bool {
    answer.contains("\"words\":2")
}

/// Waits for a condition; so long a change may take to reach another node.
fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(5);
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

#[test]
fn what_one_node_decides_holds_on_the_other() {
    let nodes = Nodes::new("cluster-decide", "");
    let (a, b) = (nodes.serve("a", &[]), nodes.serve("b", &[]));
    let added = run(&a.home, &["keys", "add", "ada", "--json"]);
    let json = added.split_once("--- stdout\n").unwrap().1;
    let json: Value = serde_json::from_str(json).unwrap();
    let key = json.get("key").unwrap().as_str().unwrap();
    soon("a key made on A opens B", || {
        ran(&count_words(&b, Some(key)))
    });
    assert!(ran(&count_words(&a, Some(key))));
    // Paused on A, refused by B; resumed on B, admitted by A.
    let paused = run(&a.home, &["callers", "pause", "ada"]);
    assert!(paused.starts_with("exit 0"), "{paused}");
    soon("paused", || {
        count_words(&b, Some(key)).contains("caller.paused")
    });
    let resumed = run(&b.home, &["callers", "resume", "ada"]);
    assert!(resumed.starts_with("exit 0"), "{resumed}");
    soon("resumed", || ran(&count_words(&a, Some(key))));
    // Published on A, called on B, whose home has no such file.
    for words in [
        &["new", "countVowels"][..],
        &["publish", "countVowels", "--yes"],
        &["expose", "countVowels"],
    ] {
        let done = run(&a.home, words);
        assert!(done.starts_with("exit 0"), "{words:?} {done}");
    }
    let vowels = || call(&b.address, Some(key), "countVowels", r#"{"who":"Ada"}"#);
    soon("published", || vowels().contains("\"greeting\":"));
    let withdrawn = run(&a.home, &["unpublish", "countVowels"]);
    assert!(withdrawn.starts_with("exit 0"), "{withdrawn}");
    soon("withdrawn", || !vowels().contains("\"greeting\":"));
    // Revoked on B, refused by A.
    let revoked = run(&b.home, &["keys", "revoke", "ada"]);
    assert!(revoked.starts_with("exit 0"), "{revoked}");
    soon("revoked", || {
        count_words(&a, Some(key)).starts_with("HTTP/1.1 401")
    });
    let status = run(&a.home, &["store", "status", "--json"]);
    assert!(
        status.contains("\"kind\":\"postgres\"") || status.contains("postgres"),
        "{status}"
    );
    assert!(!status.contains(postgres::PASSWORD), "{status}");
}

/// Settings, rules and drafts: written on one node by a command or by hand, in force there at
/// once and on the other within a second. What is about one machine stays there.
#[test]
fn settings_rules_and_drafts_of_one_node_hold_on_the_other() {
    let nodes = Nodes::new("cluster-files", "");
    let (a, b) = (
        nodes.serve("a", &["--no-auth"]),
        nodes.serve("b", &["--no-auth"]),
    );
    assert!(ran(&count_words(&b, None)));
    // A rule file, by hand on A, where no call is made: B denies.
    fs::create_dir_all(a.home.join("rules")).unwrap();
    let rule = "[[rule]]\nid = \"no\"\neffect = \"deny\"\ntools = [\"countWords\"]\n";
    fs::write(a.home.join("rules/no.toml"), rule).unwrap();
    soon("the rule of A denies on B", || !ran(&count_words(&b, None)));
    // Three in a row would pause the caller.
    let denied = count_words(&a, None);
    assert!(denied.contains("rule.denied"), "{denied}");
    // Deleted on B: A admits.
    fs::remove_file(b.home.join("rules/no.toml")).unwrap();
    soon("the rule is gone on A", || {
        !a.home.join("rules/no.toml").exists()
    });
    let admitted = count_words(&a, None);
    assert!(ran(&admitted), "{admitted}");
    // A draft made on A is a draft on B, and can be published there.
    let made = run(&a.home, &["new", "fromA"]);
    assert!(made.starts_with("exit 0"), "{made}");
    for words in [&["publish", "fromA", "--yes"][..], &["expose", "fromA"]] {
        let done = run(&b.home, words);
        assert!(done.starts_with("exit 0"), "{words:?} {done}");
    }
    soon("published on B, called on A", || {
        let answer = call(&a.address, None, "fromA", r#"{"who":"Ada"}"#);
        answer.contains("\"greeting\":")
    });
    // The exposure that B wrote is in the settings of A, and A's own tables are still there.
    let settings = fs::read_to_string(a.home.join("ringfence.toml")).unwrap();
    assert!(settings.contains("fromA"), "{settings}");
    assert!(settings.contains("[store]"), "{settings}");
    let shown = run(&a.home, &["store", "status"]);
    assert!(shown.contains("files      revision"), "{shown}");
}

/// A call waits on A, a person approves on B, and the call runs on A.
#[test]
fn an_answer_on_one_node_reaches_the_call_on_the_other() {
    let settings = "\n[approvals]\nautomation = \"L2\"\nwait_seconds = 20\n\n\
        [[rule]]\nid = \"ask\"\neffect = \"ask\"\n";
    let nodes = Nodes::new("cluster-ask", settings);
    let (a, b) = (
        nodes.serve("a", &["--no-auth"]),
        nodes.serve("b", &["--no-auth"]),
    );
    let address = a.address.clone();
    let waiting =
        std::thread::spawn(move || call(&address, None, "countWords", r#"{"text":"a b"}"#));
    let mut id = String::new();
    soon("the question is in the inbox of B", || {
        let listed = run(&b.home, &["approvals", "list", "--json"]);
        let json = listed.split_once("--- stdout\n").unwrap().1;
        let json: Value = serde_json::from_str(json).unwrap();
        let first = json.as_array().and_then(|all| all.first());
        let found = first
            .and_then(|first| first.get("id"))
            .and_then(Value::as_str);
        id = found.unwrap_or_default().to_owned();
        !id.is_empty()
    });
    let words = [
        "approvals",
        "approve",
        &id,
        "--automation",
        "--scope",
        "once",
    ];
    let approved = run(&b.home, &words);
    assert!(approved.starts_with("exit 0"), "{approved}");
    let answer = waiting.join().unwrap();
    assert!(ran(&answer), "{answer}");
}

/// A person agrees to a call that waited on A. The client comes back to B, whose home is in
/// another place, and the call runs there.
#[test]
fn an_answer_counts_for_the_same_call_on_another_node() {
    let settings = "\n[approvals]\nautomation = \"L2\"\nwait_seconds = 1\n\n\
        [[rule]]\nid = \"ask\"\neffect = \"ask\"\n";
    let nodes = Nodes::new("cluster-moved", settings);
    let (a, b) = (
        nodes.serve("a", &["--no-auth"]),
        nodes.serve("b", &["--no-auth"]),
    );
    let waited = count_words(&a, None);
    assert!(!ran(&waited), "{waited}");
    let listed = run(&b.home, &["approvals", "list", "--json"]);
    let json = listed.split_once("--- stdout\n").unwrap().1;
    let json: Value = serde_json::from_str(json).unwrap();
    let all = json.as_array().cloned().unwrap_or_default();
    let id = all.first().and_then(|one| one.get("id")?.as_str());
    let id = id.unwrap_or_default();
    let words = [
        "approvals",
        "approve",
        id,
        "--automation",
        "--scope",
        "once",
    ];
    let approved = run(&a.home, &words);
    assert!(approved.starts_with("exit 0"), "{approved}");
    let answer = count_words(&b, None);
    assert!(ran(&answer), "{answer}");
}

/// A server of one home goes on with SQLite while the settings name a database. A command
/// that paused a caller there would have no effect on it.
#[test]
fn a_command_is_refused_while_the_server_uses_another_store() {
    let nodes = Nodes::new("cluster-gap", "");
    let home = nodes.home("a");
    let settings = fs::read_to_string(home.join("ringfence.toml")).unwrap();
    fs::write(home.join("ringfence.toml"), "").unwrap();
    let words = ["serve", "--no-auth", "--json", "--listen", "127.0.0.1:0"];
    let mut server = command(&words, &home);
    first_line(&mut server);
    fs::write(home.join("ringfence.toml"), &settings).unwrap();
    for words in [
        &["callers", "pause", "ada"][..],
        &["keys", "list"],
        &["store", "copy", "--to", "postgres"],
    ] {
        let refused = run(&home, words);
        assert!(!refused.starts_with("exit 0"), "{words:?} {refused}");
        assert!(
            refused.contains("stop `ringfence serve`"),
            "{words:?} {refused}"
        );
    }
    assert_eq!(terminate(&mut server), Some(0));
    // Stopped: a command in between does no harm to the copy.
    let listed = run(&home, &["list"]);
    assert!(listed.starts_with("exit 0"), "{listed}");
    for words in [
        &["store", "copy", "--to", "postgres"][..],
        &["callers", "pause", "ada"],
    ] {
        let done = run(&home, words);
        assert!(done.starts_with("exit 0"), "{words:?} {done}");
    }
    let asked = run(&home, &["store", "copy", "--to", "home", "--replace"]);
    assert!(asked.contains("--yes"), "{asked}");
    let back = run(
        &home,
        &["store", "copy", "--to", "home", "--replace", "--yes"],
    );
    assert!(back.starts_with("exit 0"), "{back}");
    fs::write(home.join("ringfence.toml"), "").unwrap();
    let paused = run(&home, &["callers", "list"]);
    assert!(paused.contains("ada"), "{paused}");
}

/// A copy of a home that lost its files, looked at with a command that only lists.
#[test]
fn listing_a_damaged_copy_changes_no_node() {
    let nodes = Nodes::new("cluster-copy", "");
    let a = nodes.serve("a", &["--no-auth"]);
    for name in ["one", "two"] {
        let made = run(&a.home, &["new", name]);
        assert!(made.starts_with("exit 0"), "{made}");
    }
    let copy = a.home.with_file_name("copy");
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .args([&a.home, &copy])
        .status();
    assert!(copied.unwrap().success());
    fs::remove_dir_all(copy.join("tools")).unwrap();
    let mut settings = fs::read_to_string(copy.join("ringfence.toml")).unwrap();
    settings.push_str("\n[[rule]]\nid = \"no\"\neffect = \"deny\"\n");
    fs::write(copy.join("ringfence.toml"), settings).unwrap();
    let listed = run(&copy, &["list"]);
    assert!(listed.contains("this home is a copy of"), "{listed}");
    let status = run(&a.home, &["list"]);
    assert!(status.contains("one") && status.contains("two"), "{status}");
    assert!(ran(&count_words(&a, None)));
    // The node itself loses them: they come back, and a command says so.
    fs::remove_dir_all(a.home.join("tools")).unwrap();
    soon("the tools are restored", || {
        a.home.join("tools/two.json").exists()
    });
}

/// The database is gone for a while and nobody calls: the log has the outage once and its end
/// once, and the audit does not blame the settings.
#[test]
fn an_outage_is_said_once() {
    let nodes = Nodes::new("cluster-outage", "");
    let home = nodes.home("a");
    let log = home.join("stderr.log");
    let words = ["serve", "--no-auth", "--json", "--listen", "127.0.0.1:0"];
    let file = fs::File::create(&log).unwrap();
    let mut server = command_to(&words, &home, file.into());
    first_line(&mut server);
    let database = nodes.database();
    let allow = |yes: bool| {
        nodes.sql_in(
            "postgres",
            &format!("ALTER DATABASE {database} ALLOW_CONNECTIONS {yes}"),
        );
    };
    let said = |what: &str| fs::read_to_string(&log).unwrap().matches(what).count();
    allow(false);
    nodes.sql_in(
        "postgres",
        &format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'"
        ),
    );
    soon("it says so", || said("could not be reloaded") > 0);
    // A look now and then, several times each second.
    std::thread::park_timeout(Duration::from_secs(3));
    allow(true);
    soon("it says that too", || said("reloaded again") > 0);
    let shown = || fs::read_to_string(&log).unwrap();
    assert_eq!(said("could not be reloaded"), 1, "{}", shown());
    assert_eq!(said("reloaded again"), 1, "{}", shown());
    let notices = run(&home, &["audit", "list", "--json"]);
    assert!(!notices.contains("settings.refused"), "{notices}");
    assert_eq!(terminate(&mut server), Some(0));
}

/// What is wrong with the way to the database, and which setting mends it.
#[test]
fn the_status_names_what_to_mend() {
    let nodes = Nodes::new("cluster-status", "");
    let home = nodes.home("a");
    let status = run(&home, &["store", "status"]);
    assert!(status.contains("none yet"), "{status}");
    assert!(!status.contains("in 0 µs"), "{status}");
    // A schema that says that this program is too old for it.
    run(&home, &["keys", "list"]);
    nodes.sql("UPDATE schema_version SET version = 99, usable_from = 99");
    let status = run(&home, &["store", "status"]);
    assert!(status.starts_with("exit 1"), "{status}");
    assert!(status.contains("99, too new for this version"), "{status}");
    for secrets in ["", "RINGFENCE_STORE_PASSWORD=wrong\n"] {
        fs::write(home.join("secrets.env"), secrets).unwrap();
        let status = run(&home, &["store", "status"]);
        assert!(status.contains("`store.password`"), "{secrets}: {status}");
        assert!(!status.contains("does not answer"), "{secrets}: {status}");
    }
}

/// The role and the database as the guide makes them are enough to take part and to ship.
#[test]
fn the_sql_of_the_guide_makes_a_database_for_nodes() {
    let guide = fs::read_to_string(crate::root().join("docs/guide/cluster.md")).unwrap();
    let (_, rest) = guide.split_once("```sql\n").unwrap();
    let (sql, _) = rest.split_once("```").unwrap();
    let mut nodes = Nodes::new("cluster-guide", "\n[audit.ship]\nsync = true\n");
    for statement in sql
        .split_inclusive(';')
        .map(str::trim)
        .filter(|it| !it.is_empty())
    {
        let statement = statement
            .replace("ringfence", "ringfence_guide")
            .replace("a long random password", postgres::PASSWORD);
        nodes.sql_in("postgres", &statement);
    }
    let port = postgres::server().address.port();
    nodes.url =
        format!("postgres://ringfence_guide@127.0.0.1:{port}/ringfence_guide?sslmode=disable");
    let node = nodes.serve("a", &["--no-auth"]);
    assert!(ran(&count_words(&node, None)));
    let added = run(&node.home, &["keys", "add", "ada"]);
    assert!(added.starts_with("exit 0"), "{added}");
    soon("it is shipped", || {
        let listed = run(&node.home, &["audit", "list", "--nodes"]);
        listed.contains("countWords")
    });
}

#[test]
fn a_server_that_starts_before_the_copy_says_so() {
    let nodes = Nodes::new("cluster-forgotten", "");
    let home = nodes.home("a");
    let settings = home.join("ringfence.toml");
    fs::rename(&settings, home.join("kept.toml")).unwrap();
    let added = run(&home, &["keys", "add", "ada"]);
    assert!(added.starts_with("exit 0"), "{added}");
    fs::rename(home.join("kept.toml"), &settings).unwrap();
    let said_by = |home: &Path| {
        let log = home.join("stderr.log");
        let words = ["serve", "--no-auth", "--json", "--listen", "127.0.0.1:0"];
        let file = fs::File::create(&log).unwrap();
        let mut server = command_to(&words, home, file.into());
        first_line(&mut server);
        assert_eq!(terminate(&mut server), Some(0));
        fs::read_to_string(&log).unwrap()
    };
    let remedy = "run `ringfence store copy --to postgres`";
    assert!(said_by(&home).contains(remedy));
    // A home that only joins has nothing to copy.
    assert!(!said_by(&nodes.home("b")).contains(remedy));
    let copied = run(&home, &["store", "copy", "--to", "postgres"]);
    assert!(copied.starts_with("exit 0"), "{copied}");
    assert!(!said_by(&home).contains(remedy));
}

/// Twenty equal calls on both nodes wait, and a person agrees once: one of them runs.
#[test]
fn one_approval_runs_one_of_many_calls_on_both_nodes() {
    let settings = "\n[approvals]\nautomation = \"L2\"\nwait_seconds = 4\n\n\
        [[rule]]\nid = \"ask\"\neffect = \"ask\"\n";
    let nodes = Nodes::new("cluster-once", settings);
    let (a, b) = (
        nodes.serve("a", &["--no-auth"]),
        nodes.serve("b", &["--no-auth"]),
    );
    let calls: Vec<_> = (0..20)
        .map(|number| {
            let address = if number % 2 == 0 { &a } else { &b };
            let address = address.address.clone();
            std::thread::spawn(move || call(&address, None, "countWords", r#"{"text":"a b"}"#))
        })
        .collect();
    let mut id = String::new();
    soon("there is a question", || {
        let listed = run(&b.home, &["approvals", "list", "--json"]);
        let json = listed.split_once("--- stdout\n").unwrap().1;
        let json: Value = serde_json::from_str(json).unwrap();
        let all = json.as_array().cloned().unwrap_or_default();
        let found = all.first().and_then(|one| one.get("id")?.as_str());
        id = found.unwrap_or_default().to_owned();
        !id.is_empty()
    });
    let words = [
        "approvals",
        "approve",
        &id,
        "--automation",
        "--scope",
        "once",
    ];
    let approved = run(&a.home, &words);
    assert!(approved.starts_with("exit 0"), "{approved}");
    let answers = calls.into_iter().map(|call| call.join().unwrap());
    let ran = answers.filter(|answer| ran(answer)).count();
    assert_eq!(ran, 1);
}

/// What a person can do who writes to the database, and how it is undone.
const TAMPERED: [(&str, &str); 4] = [
    (
        "UPDATE audit_records SET body = replace(body, 'countWords', 'sendMoney')",
        "UPDATE audit_records SET body = replace(body, 'sendMoney', 'countWords')",
    ),
    (
        "CREATE TABLE cut AS SELECT * FROM audit_records WHERE sequence > 2; \
         DELETE FROM audit_records WHERE sequence > 2",
        "INSERT INTO audit_records SELECT * FROM cut ON CONFLICT DO NOTHING",
    ),
    // No hash covers what lists filter by.
    (
        "UPDATE audit_records SET caller = caller || 'x', status = 'refused' \
         WHERE kind <> 'checkpoint'",
        "UPDATE audit_records SET caller = left(caller, -1), \
         status = CASE WHEN kind = 'close' THEN 'done' END WHERE kind <> 'checkpoint'",
    ),
    (
        "CREATE TABLE heads AS SELECT * FROM audit_heads; DELETE FROM audit_heads",
        "INSERT INTO audit_heads SELECT * FROM heads ON CONFLICT DO NOTHING",
    ),
];

/// Records go to the database of the store, where no other is named. They are in one list,
/// and an auditor finds what was changed there.
#[test]
fn shipped_logs_are_listed_and_verified_from_the_database() {
    let settings = "\n[audit]\nanchor_seconds = 1\n[audit.ship]\nsync = true\n";
    let nodes = Nodes::new("cluster-ship", settings);
    let (a, b) = (
        nodes.serve("a", &["--no-auth"]),
        nodes.serve("b", &["--no-auth"]),
    );
    for node in [&a, &b] {
        assert!(ran(&count_words(node, None)));
    }
    soon("both are in the list", || {
        let listed = run(&a.home, &["audit", "list", "--nodes", "--json"]);
        let names = listed.matches("\"node\":").count();
        listed.starts_with("exit 0") && names >= 2
    });
    let filtered = run(
        &a.home,
        &["audit", "list", "--nodes", "--tool", "noSuchTool"],
    );
    assert!(!filtered.contains("countWords"), "{filtered}");
    let key = |node: &Node| {
        let shown = run(&node.home, &["audit", "key"]);
        let line = shown.lines().find(|line| line.starts_with("ringfence/"));
        line.unwrap().to_owned()
    };
    let unknown = run(&a.home, &["audit", "verify", "--shipped"]);
    assert!(unknown.contains("no key of `"), "{unknown}");
    let other = key(&b);
    let verify = || run(&a.home, &["audit", "verify", "--shipped", "--key", &other]);
    let mut said = String::new();
    soon("both are whole, with a head each", || {
        said = verify();
        said.starts_with("exit 0") && !said.contains("signed: 0")
    });
    assert_eq!(said.matches("whole  ").count(), 2, "{said}");
    let log = other.split('+').next().unwrap();
    for (act, undo) in TAMPERED {
        nodes.sql(act);
        let found = verify();
        assert!(found.starts_with("exit 1"), "{act}: {found}");
        assert!(found.contains("broken  "), "{act}: {found}");
        assert!(found.contains(log), "{act}: {found}");
        nodes.sql(undo);
    }
    let whole = verify();
    assert!(whole.starts_with("exit 0"), "{whole}");
    hold_against_a_kept_head(&nodes, &a, &b, &other);
    // The rows of the whole node: nothing that is left contradicts that.
    let own = key(&a);
    let own = own.split('+').next().unwrap();
    nodes.sql(&format!("DELETE FROM audit_records WHERE node = '{own}'"));
    let found = verify();
    assert!(found.starts_with("exit 1"), "{found}");
    assert!(
        found.contains("none of its records is in the database"),
        "{found}"
    );
}

/// A head of another node that an auditor kept: what it covers arrives, and fits.
fn hold_against_a_kept_head(nodes: &Nodes, from: &Node, of: &Node, key: &str) {
    let head = run(&of.home, &["audit", "checkpoint"]);
    let (_, head) = head.split_once("--- stdout\n").unwrap();
    let file = nodes.folder.join("head.txt").display().to_string();
    fs::write(&file, head).unwrap();
    let given = ["--key", key, "--checkpoint", &file];
    let words = [&["audit", "verify", "--shipped"][..], &given[..]].concat();
    soon("what it covers is there", || {
        run(&from.home, &words).starts_with("exit 0")
    });
}

/// Evidence is in each home: it can be read while the database is away.
#[test]
fn the_audit_is_read_while_the_shared_store_does_not_answer() {
    let home = scratch("cluster-away");
    let done = run(&home, &["run", "countWords", "--args", r#"{"text": "a"}"#]);
    assert!(done.starts_with("exit 0"), "{done}");
    let settings = "[store]\nurl = \"postgres://postgres@127.0.0.1:1/x?sslmode=disable\"\n";
    fs::write(home.join("ringfence.toml"), settings).unwrap();
    for word in ["verify", "list", "key", "checkpoint", "export"] {
        let shown = run(&home, &["audit", word]);
        assert!(shown.starts_with("exit 0"), "{word}: {shown}");
    }
    let doctor = run(&home, &["doctor"]);
    assert!(
        doctor.contains("look whether the shared store answers; its address is `url` in `[store]`"),
        "{doctor}"
    );
    assert!(!doctor.contains("room and rights"), "{doctor}");
    assert!(!doctor.contains("mend ringfence.toml"), "{doctor}");
}

/// Thirty units for sixty calls on both nodes: thirty run.
#[test]
fn a_limit_holds_over_both_nodes() {
    let settings = "\n[[limit]]\nid = \"few\"\nunits_per_day = 30\n";
    let nodes = Nodes::new("cluster-limit", settings);
    let nodes = [
        nodes.serve("a", &["--no-auth"]),
        nodes.serve("b", &["--no-auth"]),
    ];
    let addresses: Arc<Vec<String>> =
        Arc::new(nodes.iter().map(|node| node.address.clone()).collect());
    let threads: Vec<_> = (0..12)
        .map(|number| {
            let addresses = Arc::clone(&addresses);
            std::thread::spawn(move || {
                let address = addresses.get(number % 2).unwrap();
                let answers =
                    (0..5).map(|_| call(address, None, "countWords", r#"{"text":"a b"}"#));
                answers.filter(|answer| ran(answer)).count()
            })
        })
        .collect();
    let count: usize = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    assert_eq!(count, 30);
}

/// A node that is killed takes nothing with it: the other goes on, and so does the first.
#[test]
fn a_killed_node_stops_nobody() {
    let nodes = Nodes::new("cluster-kill", "");
    let mut a = nodes.serve("a", &["--no-auth"]);
    let b = nodes.serve("b", &["--no-auth"]);
    assert!(ran(&count_words(&a, None)));
    a.server.kill().unwrap();
    a.server.wait().unwrap();
    assert!(ran(&count_words(&b, None)));
    let again = nodes.serve("a", &["--no-auth"]);
    assert!(ran(&count_words(&again, None)));
    let whole = run(&a.home, &["audit", "verify"]);
    assert!(whole.contains("whole  "), "{whole}");
}

/// A session of the older protocol belongs to a node; the other says 404, and the client
/// begins again there.
#[test]
fn a_session_of_the_older_protocol_begins_again_on_another_node() {
    let nodes = Nodes::new("cluster-session", "");
    let a = nodes.serve("a", &["--no-auth"]);
    let mut b = nodes.serve("b", &["--no-auth"]);
    let head = "POST /mcp HTTP/1.1\r\ncontent-type: application/json\r\n\
        accept: application/json, text/event-stream\r\n";
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let begun = send(&a.address, head, hello);
    let lower = begun.to_lowercase();
    let session = lower
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "));
    let session = session.unwrap().trim().to_owned();
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}"#;
    let head = format!("{head}mcp-session-id: {session}\r\nmcp-protocol-version: 2025-06-18\r\n");
    let own = send(&a.address, &head, list);
    assert!(own.starts_with("HTTP/1.1 200"), "{own}");
    let other = send(&b.address, &head, list);
    assert!(other.starts_with("HTTP/1.1 404"), "{other}");
    assert_eq!(terminate(&mut b.server), Some(0));
}
