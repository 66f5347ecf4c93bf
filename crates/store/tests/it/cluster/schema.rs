//! Versions of the schema: a newer one is refused unless it says that this program can use it.

use store::{Store, StoreError, StoreSettings};

use crate::lab::{SharedHome, open};

fn refused(home: &std::path::Path) -> StoreError {
    match Store::open(home, StoreSettings::standard()) {
        Err(error) => error,
        Ok(_) => panic!("it opened"),
    }
}

#[test]
fn a_newer_schema_is_used_only_if_it_says_so() {
    let home = SharedHome::new("schema");
    drop(home.store());
    let version = home.ask("SELECT version FROM schema_version");
    assert_eq!(version, "1");
    // A later version added something that this one need not know.
    home.sql("UPDATE schema_version SET version = 99; ALTER TABLE approvals ADD COLUMN more TEXT");
    let store = open(&home.node("older"));
    assert_eq!(store.approvals().count_pending(1).unwrap(), 0);
    drop(store);
    home.sql("UPDATE schema_version SET usable_from = 99");
    let error = refused(&home.node("oldest"));
    assert!(
        matches!(
            error,
            StoreError::Newer {
                found: 99,
                known: 1,
                ..
            }
        ),
        "{error:?}"
    );
}

/// Many nodes start at once on an empty database: one makes the tables.
#[test]
fn an_empty_database_is_prepared_once() {
    let home = SharedHome::new("empty");
    let nodes: Vec<_> = (0..6).map(|n| home.node(&format!("start-{n}"))).collect();
    std::thread::scope(|scope| {
        for node in &nodes {
            scope.spawn(|| drop(open(node)));
        }
    });
    assert_eq!(home.ask("SELECT count(*) FROM schema_version"), "1");
    assert_eq!(home.ask("SELECT count(*) FROM processes"), "0", "all left");
}

/// Over TLS the certificate must be for the host's name and from an authority that is known.
#[test]
fn tls_is_wanted_unless_the_address_says_otherwise() {
    use crate::lab::{postgres, write_settings};
    let home = SharedHome::new("tls");
    let node = home.node("tls-on");
    let url = home.url().replace("?sslmode=disable", "");
    write_settings(&node, &url, "");
    let error = refused(&node);
    let StoreError::Unavailable { why, .. } = &error else {
        panic!("{error:?}");
    };
    assert!(why.contains("certificate"), "{why}");
    std::fs::write(node.join("ca.pem"), &postgres::server().authority_pem).unwrap();
    write_settings(&node, &url, "ca_file = \"ca.pem\"\n");
    let error = refused(&node);
    assert!(
        format!("{error:?}").contains("certificate"),
        "not its name: {error:?}"
    );
}
