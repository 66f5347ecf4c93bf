//! One server in the settings of a client, read as that client spells it.

use std::collections::BTreeMap;

use model::document::placeholder::{self, Part};
use model::text::{elided, one_line};
use serde_json::{Map, Value};

use crate::client_entry::ENTRY;
use crate::server_launch::ServerLaunch;

/// Fields that are understood.
const KNOWN: [&str; 9] = [
    "command",
    "args",
    "env",
    "url",
    "serverUrl",
    "httpUrl",
    "headers",
    "type",
    "disabled",
];
/// Fields that change what a server does and that Ringfence has no counterpart for.
const NEEDED: [&str; 2] = ["cwd", "envFile"];

/// A server of a client.
#[derive(Clone, Debug, Default)]
pub struct ClientEntry {
    /// What the client calls it.
    pub name: String,
    /// How it is started or reached.
    pub launch: ServerLaunch,
    /// Why it cannot be imported.
    pub obstacle: Option<String>,
    /// Fields that mean nothing here.
    pub dropped: Vec<String>,
}

impl ClientEntry {
    /// Reads an entry. What cannot be understood is an obstacle, never a guess.
    #[must_use]
    pub fn read(name: &str, entry: &Value) -> ClientEntry {
        let mut read = ClientEntry {
            name: name.to_owned(),
            ..ClientEntry::default()
        };
        let Value::Object(fields) = entry else {
            read.obstacle = Some("it is not an object".to_owned());
            return read;
        };
        let others = fields.keys().filter(|key| !KNOWN.contains(&key.as_str()));
        read.dropped = others.map(|key| elided(key, 40)).collect();
        let done = read.take(fields);
        let needed = NEEDED.into_iter().find(|key| fields.contains_key(*key));
        read.obstacle = match (done, needed) {
            (Err(why), _) => Some(why),
            (Ok(()), Some(key)) => Some(format!("`{key}` has no counterpart here")),
            (Ok(()), None) if fields.get("disabled") == Some(&Value::Bool(true)) => {
                Some("it is disabled".to_owned())
            }
            (Ok(()), None) => None,
        };
        read
    }

    /// Whether it is the entry that `connect` and `wrap` write.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.name == ENTRY
    }

    fn take(&mut self, fields: &Map<String, Value>) -> Result<(), String> {
        let text = |key: &str| match fields.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("`{key}` is not a string")),
        };
        let url = text("url")?.or(text("serverUrl")?).or(text("httpUrl")?);
        self.launch.url = url;
        self.launch.command.extend(text("command")?);
        match fields.get("args") {
            None => {}
            Some(Value::Array(words)) => {
                for word in words {
                    let word = scalar(word).ok_or("`args` holds a value that is not a string")?;
                    self.launch.command.push(word);
                }
            }
            Some(_) => return Err("`args` is not a list".to_owned()),
        }
        let key = if self.launch.url.is_some() {
            "headers"
        } else {
            "env"
        };
        self.launch.values = values(fields, key)?;
        match (&self.launch.url, fields.contains_key("command")) {
            (Some(_), true) => return Err("it has a command and an address".to_owned()),
            (None, false) => return Err("it has no command and no address".to_owned()),
            (Some(_), false) | (None, true) => {}
        }
        match text("type")?.as_deref() {
            None | Some("stdio" | "http" | "streamable-http" | "streamableHttp") => {}
            Some(other) => {
                return Err(format!("its type is `{}`", elided(other, 40)));
            }
        }
        self.fill()
    }

    /// Clients fill variables in where we do not, and spell them otherwise.
    fn fill(&mut self) -> Result<(), String> {
        let fixed = self.launch.command.iter().chain(&self.launch.url);
        for word in fixed {
            if word.contains("${") {
                return Err("its command or address contains a variable".to_owned());
            }
        }
        for value in self.launch.values.values_mut() {
            // As VS Code spells it.
            *value = value.replace("${env:", "${");
            for part in placeholder::parts(value) {
                if let Part::Literal(text) = part
                    && text.contains("${")
                {
                    return Err("it uses a variable that only its client knows".to_owned());
                }
            }
        }
        Ok(())
    }
}

/// A string, or a value that clients convert to one.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is) => Some(is.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn values(fields: &Map<String, Value>, key: &str) -> Result<BTreeMap<String, String>, String> {
    let found = match fields.get(key) {
        None => return Ok(BTreeMap::new()),
        Some(Value::Object(found)) => found,
        Some(_) => return Err(format!("`{key}` is not an object")),
    };
    let mut values = BTreeMap::new();
    for (name, value) in found {
        let Some(text) = scalar(value) else {
            return Err(format!("`{key}.{}` is not a string", one_line(name)));
        };
        values.insert(name.clone(), text);
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(entry: &Value, expected: Result<&str, &str>) {
        let read = ClientEntry::read("x", entry);
        match expected {
            Ok(shown) => {
                assert_eq!(read.obstacle, None, "{entry}");
                assert_eq!(read.launch.shown(), shown, "{entry}");
            }
            Err(why) => {
                let obstacle = read.obstacle.unwrap_or_default();
                assert!(obstacle.contains(why), "{entry}: {obstacle}");
            }
        }
    }

    #[test]
    fn entries_of_every_client_are_read() {
        check(
            &json!({"command": "npx", "args": ["-y", "a@1.0.0", 3], "env": {"N": 1, "B": true}}),
            Ok("npx -y a@1.0.0 3"),
        );
        check(&json!({"type": "stdio", "command": "a"}), Ok("a"));
        check(
            &json!({"type": "http", "url": "https://a.example/mcp"}),
            Ok("https://a.example/mcp"),
        );
        for key in ["serverUrl", "httpUrl"] {
            check(
                &json!({key: "https://a.example/"}),
                Ok("https://a.example/"),
            );
        }
    }

    #[test]
    fn unknown_fields_are_refused_not_guessed() {
        for (entry, why) in [
            (json!("x"), "not an object"),
            (json!({}), "no command and no address"),
            (
                json!({"command": "a", "url": "https://a"}),
                "and an address",
            ),
            (json!({"command": ["a"]}), "`command` is not a string"),
            (json!({"command": "a", "args": "b"}), "`args` is not a list"),
            (json!({"command": "a", "args": [null]}), "`args`"),
            (json!({"command": "a", "env": {"X": {}}}), "`env.X`"),
            (json!({"command": "a", "cwd": "/x"}), "`cwd`"),
            (json!({"command": "a", "envFile": ".env"}), "`envFile`"),
            (json!({"command": "a", "disabled": true}), "disabled"),
            (json!({"type": "sse", "url": "https://a"}), "type is `sse`"),
            (json!({"command": "${workspaceFolder}/a"}), "a variable"),
            (
                json!({"command": "a", "env": {"X": "${input:key}"}}),
                "only its client knows",
            ),
        ] {
            check(&entry, Err(why));
        }
    }

    #[test]
    fn variables_of_the_environment_are_ours() {
        let read = ClientEntry::read(
            "x",
            &json!({"command": "a", "env": {"T": "${env:MY_TOKEN}", "U": "${MY_USER}"}, "icon": 1}),
        );
        assert_eq!(read.obstacle, None);
        let values: Vec<_> = read.launch.values.into_values().collect();
        assert_eq!(values, ["${MY_TOKEN}", "${MY_USER}"]);
        assert_eq!(read.dropped, ["icon"]);
    }
}
