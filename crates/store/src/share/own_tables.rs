//! Which part of `ringfence.toml` nodes share. Tables that are about one machine (where it
//! listens, its disk, its network, its store) stay in the file of that machine; every other
//! table is shared. Comments stay with the table they stand above.

use toml_edit::DocumentMut;

/// The tables of `ringfence.toml` that each node has for itself.
pub const OWN_TABLES: &[&str] = &[
    "audit",
    "files",
    "network",
    "sandbox",
    "serve",
    "store",
    "telemetry",
];

/// The part of a settings file that nodes share.
pub(super) fn shared_part(text: &str) -> Result<String, String> {
    let mut shared = parse(text)?;
    shared.retain(|key, _| !OWN_TABLES.contains(&key));
    Ok(shared.to_string())
}

/// The settings file of a node: what is shared, and the node's own tables.
pub(super) fn join(shared: &str, own_text: &str) -> Result<String, String> {
    let mut whole = parse(shared)?;
    whole.retain(|key, _| !OWN_TABLES.contains(&key));
    let own = parse(own_text)?;
    for name in OWN_TABLES {
        if let Some((key, item)) = own.get_key_value(name) {
            whole.insert_formatted(key, item.clone());
        }
    }
    Ok(whole.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse()
        .map_err(|error: toml_edit::TomlError| error.message().to_owned())
}

#[cfg(test)]
mod tests {
    use model::config::Config;

    use super::*;

    const OWN: &str = "[store]\nurl = \"postgres://ring@db/ring\" # ours\n\n\
        # Here.\n[serve]\nlisten = \"127.0.0.1:9\"\n";

    #[test]
    fn a_file_is_split_and_joined_without_loss() {
        let shared = "profile = \"strict\"\n\n# Ask first.\n[[rule]]\nid = \"a\"\neffect = \"ask\"\n\n\
            [baseline]\nmax_runtime_ms = 5\n\n[[rule]]\nid = \"b\"\neffect = \"deny\"\n";
        let whole = format!("{shared}\n{OWN}");
        let part = shared_part(&whole).expect("toml");
        assert!(
            !part.contains("store") && !part.contains("listen"),
            "{part}"
        );
        assert!(
            part.contains("# Ask first.") && part.contains("\"b\""),
            "{part}"
        );
        let other =
            "[store]\nurl = \"postgres://ring@db/ring\"\n[serve]\nlisten = \"10.0.0.2:1\"\n";
        let joined = join(&part, other).expect("toml");
        assert!(joined.contains("10.0.0.2:1"), "{joined}");
        assert_eq!(shared_part(&joined).expect("toml").trim(), part.trim());
        let again = join(&part, &whole).expect("toml");
        let (before, after) = (whole.parse::<DocumentMut>(), again.parse());
        let (before, after): (_, DocumentMut) = (before.expect("toml"), after.expect("toml"));
        assert_eq!(before["rule"].to_string(), after["rule"].to_string());
        assert_eq!(before["serve"].to_string(), after["serve"].to_string());
    }

    /// Root keys with dots, inline tables and texts that look like headers.
    #[test]
    fn every_spelling_of_a_table_is_found() {
        let text = "store.url = \"postgres://ring@db/ring\"\nserve = { listen = \"127.0.0.1:9\" }\n\
            shadow = \"\"\"\n[store]\n\"\"\"\n[baseline]\nmax_runtime_ms = 5\n[audit.peers.a]\nkey = \"k\"\n";
        let part = shared_part(text).expect("toml");
        for own in ["postgres://", "127.0.0.1:9", "peers"] {
            assert!(!part.contains(own), "{own}: {part}");
        }
        assert!(part.contains("\n[store]\n\"\"\""), "{part}");
        let joined = join(&part, text).expect("toml");
        for word in ["postgres://", "127.0.0.1:9", "max_runtime_ms"] {
            assert!(joined.contains(word), "{word}: {joined}");
        }
    }

    /// Attack: a shared text that brings a store of its own would lead all nodes there.
    #[test]
    fn a_shared_text_brings_no_table_of_a_node() {
        let hostile =
            "[store]\nurl = \"postgres://ring@evil/ring\"\n[serve]\nlisten = \"0.0.0.0:1\"\n";
        let joined = join(hostile, OWN).expect("toml");
        assert!(
            !joined.contains("evil") && !joined.contains("0.0.0.0"),
            "{joined}"
        );
        assert!(joined.contains("127.0.0.1:9"), "{joined}");
    }

    /// A table that is renamed would silently be shared.
    #[test]
    fn the_own_tables_are_tables_of_the_settings() {
        for table in OWN_TABLES {
            let text = format!("[{table}]\nno_such_key_at_all = 1\n");
            let faults = Config::parse(&text).expect_err("an unknown key");
            let words: Vec<String> = faults.iter().map(ToString::to_string).collect();
            assert!(
                words.iter().any(|it| it.contains("no_such_key_at_all")),
                "{words:?}"
            );
        }
    }
}
