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
    assert_eq!(version, "2");
    // A later version added something that this one need not know.
    home.sql("UPDATE schema_version SET version = 99; ALTER TABLE approvals ADD COLUMN more TEXT");
    let store = open(&home.node("older"));
    assert_eq!(store.approvals().count_pending(1).unwrap(), 0);
    drop(store);
    let oldest = home.node("oldest");
    let status = store::shared::status(&oldest).unwrap().unwrap().schema;
    assert!(status.is_usable() && !status.is_newer(), "{status:?}");
    home.sql("UPDATE schema_version SET usable_from = 99");
    let status = store::shared::status(&oldest).unwrap().unwrap().schema;
    assert!(!status.is_usable() && status.is_newer(), "{status:?}");
    let error = refused(&oldest);
    assert!(
        matches!(
            error,
            StoreError::Newer {
                found: 99,
                known: 2,
                ..
            }
        ),
        "{error:?}"
    );
}

/// Nodes of the first schema run: a newer program does not start, because its tables would stop
/// them; after `migrate` it does, and they are refused.
#[test]
fn a_change_that_would_stop_older_nodes_is_made_only_on_request() {
    let home = SharedHome::new("older");
    drop(home.store());
    home.sql(
        "DROP TABLE shared_files; DROP TABLE files_version; DROP TABLE waiting_scripts;
         UPDATE schema_version SET version = 1, usable_from = 1",
    );
    let node = home.node("newer");
    let error = refused(&node);
    assert!(error.to_string().contains("store migrate"), "{error}");
    let version = home.ask("SELECT version FROM schema_version");
    assert_eq!(version, "1", "nothing was changed");
    let status = store::shared::status(&node).unwrap().unwrap();
    assert!(!status.schema.is_usable(), "{status:?}");
    // A node of the first schema runs. It would go on, with tables that it does not know.
    home.sql("INSERT INTO processes VALUES ('older', clock_timestamp() + interval '1 hour')");
    let error = store::shared::migrate(&node).unwrap_err().to_string();
    assert!(
        error.contains("stop `ringfence serve` everywhere"),
        "{error}"
    );
    assert_eq!(home.ask("SELECT version FROM schema_version"), "1");
    home.sql("UPDATE processes SET expires = clock_timestamp() - interval '1 second'");
    let before = store::shared::migrate(&node).unwrap().unwrap();
    assert_eq!((before.found, before.known), (1, 2));
    open(&node).shared_files().unwrap().sync().unwrap();
    // What the first schema's program would find: it knows one step, and two are needed.
    let usable_from = home.ask("SELECT usable_from FROM schema_version");
    assert_eq!(usable_from, "2");
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
    // Control: under the name the certificate is for, all is well, for records too.
    let named = format!("@{}:", postgres::DATABASE_NAME);
    let url = format!("{}?hostaddr=127.0.0.1", url.replace("@127.0.0.1:", &named));
    write_settings(&node, &url, "ca_file = \"ca.pem\"\n");
    drop(open(&node));
    let ship = |ca_file| {
        let database = store::ShipDatabase::new(&url, Some(postgres::PASSWORD), ca_file);
        let listing = async move { database.unwrap().list(&store::Filter::default()).await };
        crate::scratch::wait_on_io(listing)
    };
    assert!(ship(Some(node.join("ca.pem"))).unwrap().is_empty());
    let refused = format!("{:?}", ship(None).unwrap_err());
    assert!(refused.contains("certificate"), "{refused}");
}
