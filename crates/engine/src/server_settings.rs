//! Changes of `[[server]]` in ringfence.toml. The rest of the file stays as it is,
//! comments included, and what would not load is not saved.

use std::collections::BTreeMap;

use model::config::Config;
use store::settings::CONFIG_FILE;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, value};

use upstream::name::ServerName;

use crate::error::EngineError;

/// The table's name in the file.
const KEY: &str = "server";

/// A server as it is written into the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenServer {
    /// Its name.
    pub name: String,
    /// The program and its arguments; empty for a server at an address.
    pub command: Vec<String>,
    /// The address, if it is reached at one.
    pub url: Option<String>,
    /// The variables of a program, or the headers of an address.
    pub values: BTreeMap<String, String>,
    /// Files and folders it may read.
    pub read: Vec<String>,
    /// Files and folders it may change.
    pub write: Vec<String>,
    /// `none` or `open`.
    pub network: Option<&'static str>,
    /// The hosts a program may reach, in place of `network`.
    pub hosts: Vec<String>,
    /// `auto`, `legacy` or `modern`.
    pub era: Option<&'static str>,
    /// Whether its address may be a private one.
    pub private: bool,
}

impl WrittenServer {
    fn table(&self) -> Table {
        let mut table = Table::new();
        let mut put = |key: &str, item: Item| {
            table.insert(key, item);
        };
        put("name", value(&self.name));
        let list = |words: &[String]| value(words.iter().collect::<Array>());
        let values = |values: &BTreeMap<String, String>| {
            let pairs = values.iter();
            value(pairs.collect::<InlineTable>())
        };
        match &self.url {
            None => put("command", list(&self.command)),
            Some(url) => put("url", value(url)),
        }
        if !self.values.is_empty() {
            let key = if self.url.is_none() { "env" } else { "headers" };
            put(key, values(&self.values));
        }
        let lists = [
            ("read", &self.read),
            ("write", &self.write),
            ("hosts", &self.hosts),
        ];
        for (key, paths) in lists {
            if !paths.is_empty() {
                put(key, list(paths));
            }
        }
        for (key, word) in [("network", self.network), ("era", self.era)] {
            if let Some(word) = word {
                put(key, value(word));
            }
        }
        if self.private {
            put("private", value(true));
        }
        table
    }
}

/// Why a server cannot have a name, in one sentence.
pub fn check_name(raw_name: &str) -> Result<(), String> {
    match ServerName::parse(raw_name) {
        Ok(_) => Ok(()),
        Err(fault) => Err(match &fault.suggestion {
            Some(name) => format!("{fault}; `{name}` would do"),
            None => fault.to_string(),
        }),
    }
}

/// The settings with more servers.
pub fn with(text: &str, servers: &[WrittenServer]) -> Result<String, EngineError> {
    let mut document = parse(text)?;
    let root = document.as_table_mut();
    // `server = [{…}]` says the same; a file that has it keeps what it says.
    if let Some(list) = root.get(KEY).and_then(Item::as_array) {
        let mut tables = ArrayOfTables::new();
        for entry in list {
            let Some(entry) = entry.as_inline_table() else {
                return Err(unfit(format!(
                    "`{KEY}` in `{CONFIG_FILE}` is not a list of tables"
                )));
            };
            tables.push(entry.clone().into_table());
        }
        root.insert(KEY, Item::ArrayOfTables(tables));
    }
    let item = root
        .entry(KEY)
        .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    let Some(tables) = item.as_array_of_tables_mut() else {
        return Err(unfit(format!(
            "`{KEY}` in `{CONFIG_FILE}` is not a list of tables"
        )));
    };
    for server in servers {
        tables.push(server.table());
    }
    checked(document.to_string())
}

/// The settings without a server; nothing if they have none of that name.
pub fn without(text: &str, name: &str) -> Result<Option<String>, EngineError> {
    let mut document = parse(text)?;
    let root = document.as_table_mut();
    let is_it = |found: Option<&str>| found == Some(name);
    let (before, after) = match root.get_mut(KEY) {
        Some(Item::ArrayOfTables(tables)) => {
            let before = tables.len();
            tables.retain(|table| !is_it(table.get("name").and_then(Item::as_str)));
            (before, tables.len())
        }
        Some(Item::Value(toml_edit::Value::Array(list))) => {
            let before = list.len();
            list.retain(|entry| {
                let entry = entry.as_inline_table();
                let name = entry.and_then(|entry| entry.get("name"));
                !is_it(name.and_then(toml_edit::Value::as_str))
            });
            (before, list.len())
        }
        _ => return Ok(None),
    };
    if before == after {
        return Ok(None);
    }
    if after == 0 {
        root.remove(KEY);
    }
    checked(document.to_string()).map(Some)
}

fn parse(text: &str) -> Result<DocumentMut, EngineError> {
    text.parse()
        .map_err(|_| unfit(format!("`{CONFIG_FILE}` cannot be changed: it is not TOML")))
}

/// What would not load must not be saved.
fn checked(text: String) -> Result<String, EngineError> {
    match Config::parse(&text) {
        Ok(_) => Ok(text),
        Err(faults) => {
            let first = faults.first().map(ToString::to_string).unwrap_or_default();
            Err(unfit(format!(
                "the change would break `{CONFIG_FILE}`: {first}"
            )))
        }
    }
}

fn unfit(why: String) -> EngineError {
    EngineError::Settings(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(name: &str) -> WrittenServer {
        WrittenServer {
            name: name.to_owned(),
            command: vec!["npx".to_owned(), "a \"b\"".to_owned()],
            values: [("T".to_owned(), "${T}".to_owned())].into(),
            network: Some("open"),
            ..WrittenServer::default()
        }
    }

    const SECTION: &str = "[[server]]\nname = \"one\"\ncommand = [\"npx\", 'a \"b\"']\nenv = { T = \"${T}\" }\nnetwork = \"open\"\n";

    #[test]
    fn the_rest_of_the_file_stays() {
        let mine = "# mine\n[audit] # yes\nkeep_days = 3\n";
        let changed = with(mine, &[sample("one")]).expect("a change");
        assert_eq!(changed, format!("{mine}\n{SECTION}"));
        assert_eq!(
            without(&changed, "one").expect("a change").as_deref(),
            Some(mine)
        );
        assert_eq!(without(&changed, "two").expect("no change"), None);
        let both = with(&changed, &[sample("two")]).expect("a change");
        assert_eq!(
            without(&both, "two").expect("a change"),
            Some(changed.clone())
        );
        let config = Config::parse(&both).expect("loads");
        assert_eq!(config.servers.len(), 2);
    }

    #[test]
    fn a_server_at_an_address_has_headers() {
        let server = WrittenServer {
            name: "far".to_owned(),
            url: Some("https://mcp.example.com/mcp".to_owned()),
            values: [("Authorization".to_owned(), "Bearer ${T}".to_owned())].into(),
            era: Some("modern"),
            private: true,
            ..WrittenServer::default()
        };
        assert_eq!(
            with("", &[server]).expect("a change"),
            "[[server]]\nname = \"far\"\nurl = \"https://mcp.example.com/mcp\"\nheaders = { Authorization = \"Bearer ${T}\" }\nera = \"modern\"\nprivate = true\n"
        );
    }

    #[test]
    fn inline_lists_are_understood_and_what_breaks_is_refused() {
        let inline = "server = [{ name = \"a\", command = [\"x\"] }]\n";
        let both = with(inline, &[sample("one")]).expect("a change");
        assert_eq!(Config::parse(&both).expect("loads").servers.len(), 2);
        assert_eq!(without(inline, "a").expect("a change").as_deref(), Some(""));
        assert!(with(inline, &[sample("a")]).is_err(), "two of one name");
        assert!(with("server = 3", &[sample("a")]).is_err());
        assert!(with("[broken", &[sample("a")]).is_err());
    }
}
