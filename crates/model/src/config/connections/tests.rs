//! Connections as they are written, and every slip in them.

use super::*;
use crate::config::Config;

const REPORTS: &str = "kind = \"postgres\"\nhost = \"db.example.com\"\ndatabase = \"reports\"\nuser = \"reader\"\ncredential = \"REPORTS_PASSWORD\"\n";

fn parse(section: &str) -> Result<ConnectionConfig, Vec<String>> {
    let text = format!("[groups.devs]\nmembers = [\"bo\"]\n\n[connections.reports]\n{section}");
    match Config::parse(&text) {
        Ok(mut config) => Ok(config.connections.remove(0)),
        Err(faults) => Err(faults.into_iter().map(|fault| fault.message).collect()),
    }
}

#[test]
fn unset_settings_are_closed() {
    let connection = parse(REPORTS).expect("a connection");
    assert_eq!(connection.port, 5432);
    assert_eq!(connection.tls, ConnectionTls::Required);
    assert_eq!(connection.schema, "public");
    assert!(!connection.private && !connection.write && !connection.trusted);
    assert!(connection.serves(&Caller::owner(), &[]));
    assert!(!connection.serves(&Caller::named("ann"), &["devs".to_owned()]));
}

#[test]
fn callers_and_groups_may_use_it_and_no_others() {
    let connection = parse(&format!("{REPORTS}callers = [\"ann\", \"@devs\"]\n"));
    let connection = connection.expect("a connection");
    assert!(connection.serves(&Caller::named("Ann"), &[]));
    assert!(connection.serves(&Caller::named("bo"), &["devs".to_owned()]));
    assert!(!connection.serves(&Caller::named("bo"), &["ops".to_owned()]));
    assert!(!connection.serves(&Caller::named("owner"), &[]));
}

/// Names of an OAuth issuer keep their case: another spelling may be another person.
#[test]
fn subjects_of_an_issuer_are_not_folded() {
    let connection = parse(&format!("{REPORTS}callers = [\"oauth:kim\"]\n"));
    let connection = connection.expect("a connection");
    assert!(connection.serves(&Caller::named("oauth:kim"), &[]));
    assert!(!connection.serves(&Caller::named("oauth:KIM"), &[]));
}

#[test]
fn every_error_has_a_sentence() {
    let says = |section: &str, words: &str| {
        let faults = parse(section).expect_err(section);
        assert!(
            faults.iter().any(|fault| fault.contains(words)),
            "{section}: {faults:?}"
        );
    };
    says(
        "kind = \"postgres\"\nhost = \"db.example.com\"",
        "needs a `database`",
    );
    says(
        "kind = \"postgres\"\nhost = \"db.example.com\"",
        "needs a `user`",
    );
    says(&format!("{REPORTS}tls = \"off\""), "without TLS");
    says(
        &REPORTS.replace("db.example.com", "*.example.com"),
        "leads to one host",
    );
    says(
        &REPORTS.replace("db.example.com", "db.example.com:1"),
        "write it as `port`",
    );
    says(
        &REPORTS.replace("REPORTS_PASSWORD", "hunter2"),
        "not the name of a variable",
    );
    says(
        &REPORTS.replace("\"postgres\"", "\"mysql\""),
        "`kind` is `mysql`",
    );
    says(
        "kind = \"git\"\nhost = \"git.example.com\"\ntrusted = true",
        "`trusted` is for",
    );
    says(
        "kind = \"http\"\nhost = \"api.example.com\"\ndatabase = \"x\"",
        "`database` and `schema`",
    );
    says(&format!("{REPORTS}callers = [\"@ops\"]"), "no group `ops`");
    says(&format!("{REPORTS}port = 0"), "`port` is 0");
}

#[test]
fn a_channel_without_tls_is_for_private_hosts() {
    let connection = parse(&format!("{REPORTS}tls = \"off\"\nprivate = true\n"));
    assert_eq!(connection.expect("a connection").tls, ConnectionTls::Off);
}
