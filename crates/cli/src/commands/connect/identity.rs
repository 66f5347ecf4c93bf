//! Who a connected client is: a caller and a key of its own, and how far questions
//! about its calls may be answered in it.
//!
//! No two programs share a key, so that rules, the audit and what may be answered tell
//! them apart, and one can be turned away without the others. A key in a client's file
//! is as safe as that file: whatever can read it can be that client.

use std::path::Path;

use anyhow::{Context as _, bail};
use engine::exposure_admin::table;
use engine::registry::CONFIG_FILE;
use model::caller::{self, folded};
use model::config::Config;
use model::govern::approval::authority::CONNECTED_DEFAULT;
use model::govern::key::{self, KeyForm, KeyRecord, Role};
use model::policy::risk::Level;
use serde_json::Value;
use store::{Keys, SettingsEdit};
use toml_edit::{DocumentMut, Item, Table, value};

use super::NAME;
use crate::commands::keys;
use crate::output::console;
use crate::output::console::{Typed, Wanted};
use crate::output::sheet::Sheet;
use crate::settings;

/// A client's own caller.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) record: KeyRecord,
    pub(crate) secret: String,
    /// Whether the key is not stored yet.
    pub(crate) is_new: bool,
}

impl Identity {
    /// The caller that the client's file has a key of, or a new one.
    pub(crate) fn of(
        home: &Path,
        held: Option<&str>,
        name: Option<&str>,
        usual: &str,
    ) -> anyhow::Result<Identity> {
        let known = Keys::open(home)?;
        if let Some(found) = holder(&known, held)?
            && name.is_none_or(|name| caller::is_same(name, &found.record.name))
        {
            return Ok(found);
        }
        let name = name.unwrap_or(usual);
        let all = known.all()?;
        if let Some(taken) = all
            .iter()
            .find(|record| caller::is_same(&record.name, name))
        {
            let taken = &taken.name;
            bail!(
                "`{taken}` has a key already, and this client does not show it; name the client \
                 with `--name NAME`, or revoke that key with `ringfence keys revoke {taken}`"
            );
        }
        let minted = keys::with_admin(home, |admin| admin.mint(name, Role::Agent, None));
        let (record, secret) = minted?;
        Ok(Identity {
            record,
            secret: secret.reveal().to_owned(),
            is_new: true,
        })
    }

    /// Stores a new key. A key is valid before it is written into a client's file.
    pub(crate) fn keep(&self, home: &Path) -> anyhow::Result<()> {
        if !self.is_new {
            return Ok(());
        }
        Ok(keys::with_admin(home, |admin| admin.keep(&self.record))?)
    }

    /// Revokes a new key that its client never got.
    pub(crate) fn undo(&self, home: &Path) {
        if self.is_new {
            // The first error is already on its way to the person; a key that stays is
            // listed by `keys list`.
            let _ = revoke(home, &self.record);
        }
    }
}

/// The caller of the key in the client's file, if the key is valid.
pub(crate) fn holder(known: &Keys, held: Option<&str>) -> anyhow::Result<Option<Identity>> {
    let Some(text) = held else {
        return Ok(None);
    };
    let Some(KeyForm::Key(id)) = key::read(text) else {
        return Ok(None);
    };
    let found = known.find(id)?;
    let counts = |record: &KeyRecord| {
        record.digest == key::digest(text)
            && record.role == Role::Agent
            && !record.is_expired(store::clock::now_ms())
    };
    Ok(found.filter(counts).map(|record| Identity {
        record,
        secret: text.to_owned(),
        is_new: false,
    }))
}

/// The key in the entry of a client's file.
pub(crate) fn held(file: Option<&str>, section: &str) -> Option<String> {
    let file: Value = serde_json::from_str(file?).ok()?;
    let entry = file.get(section)?.get(NAME)?;
    let shown = |value: &Value| value.as_str().map(str::to_owned);
    let in_variable = entry.get("env").and_then(|env| env.get(settings::KEY));
    let in_header = entry
        .get("headers")
        .and_then(|all| all.get("Authorization"));
    let in_header = in_header.and_then(Value::as_str);
    let in_header = in_header.and_then(|header| header.strip_prefix("Bearer "));
    in_variable
        .and_then(shown)
        .or_else(|| in_header.map(str::to_owned))
}

/// Takes a caller's key back, and with it what its client might have answered: a caller that
/// gets the name next does not inherit it.
pub(crate) fn revoke(home: &Path, record: &KeyRecord) -> anyhow::Result<()> {
    let (_, written) = keys::with_admin(home, |admin| admin.revoke(&record.name))?;
    written?;
    set_answers(home, &record.name, None).map(|_| ())
}

/// The risk up to which the settings let a client answer.
pub(crate) fn answers_now(config: &Config, name: &str) -> Option<Level> {
    config.approvals.answers.get(&folded(name)).copied()
}

/// The risk up to which a client shall answer: from the flag, the settings, the person
/// at the terminal, or the default.
pub(crate) fn answers(
    said: Option<Level>,
    now: Option<Level>,
    client: &str,
    asks: bool,
) -> anyhow::Result<Level> {
    if let Some(level) = said.or(now) {
        return Ok(level);
    }
    if !asks || !console::is_here() {
        return Ok(CONNECTED_DEFAULT);
    }
    let usual = CONNECTED_DEFAULT.badge();
    let choices = Level::ALL.map(|level| match level {
        Level::L0 => (level.badge().to_owned(), "never".to_owned()),
        level => (level.badge().to_owned(), format!("up to {}", level.badge())),
    });
    let sheet = Sheet {
        head: format!(
            "up to which risk may questions about its calls be answered in {client} itself?"
        ),
        parts: Vec::new(),
        about: format!("questions answered in {client}; others in the inbox or at a terminal"),
        choices: choices.to_vec(),
        otherwise: format!("up to {usual}"),
    };
    match console::ask(&sheet, &Wanted::default()) {
        Typed::Key(word) => {
            let mut all = Level::ALL.into_iter();
            let found = all.find(|level| level.badge() == word);
            found.context("that is not one of L0 to L5")
        }
        Typed::Otherwise => Ok(CONNECTED_DEFAULT),
        Typed::Ended | Typed::Withdrawn | Typed::Nowhere => {
            bail!("there was no answer; use `--answers L0` to `L5`")
        }
    }
}

/// Writes into the settings how far a caller's client answers. Returns whether
/// that was a change.
pub(crate) fn set_answers(home: &Path, name: &str, level: Option<Level>) -> anyhow::Result<bool> {
    let settings = SettingsEdit::begin(home)?;
    let text = settings.read()?;
    let changed = with_answers(&text, name, level)?;
    if changed == text {
        return Ok(false);
    }
    // Settings that would not load must not be saved.
    if let Err(faults) = Config::parse(&changed) {
        let first = faults.first().map(ToString::to_string).unwrap_or_default();
        bail!("the change would break `{CONFIG_FILE}`: {first}");
    }
    settings.write(&changed)?;
    Ok(true)
}

fn with_answers(text: &str, name: &str, level: Option<Level>) -> anyhow::Result<String> {
    let mut document: DocumentMut = text
        .parse()
        .with_context(|| format!("`{CONFIG_FILE}` cannot be changed"))?;
    let root = document.as_table_mut();
    let is_there = |key: &str, root: &Table| {
        let callers = root.get("callers").and_then(Item::as_table_like);
        let mut keys = callers.into_iter().flat_map(|all| all.iter());
        keys.find(|(own, _)| caller::is_same(own, key))
            .map(|(own, _)| own.to_owned())
    };
    let own = is_there(name, root);
    let Some(level) = level else {
        if let Some(own) = own {
            let callers = table(root, "callers")?;
            let caller = table(callers, &own)?;
            caller.remove("answers");
            if caller.is_empty() {
                callers.remove(&own);
            }
            if callers.is_empty() {
                root.remove("callers");
            }
        }
        return Ok(document.to_string());
    };
    let own = own.unwrap_or_else(|| name.to_owned());
    let caller = table(table(root, "callers")?, &own)?;
    caller.set_implicit(false);
    if caller.get("answers").and_then(Item::as_str) != Some(level.badge()) {
        caller["answers"] = value(level.badge());
    }
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, name: &str, level: Option<Level>, expected: &str) {
        let changed = with_answers(text, name, level).expect("a change");
        assert_eq!(changed, expected);
        let config = Config::parse(&changed).expect("loads");
        assert_eq!(answers_now(&config, name), level);
    }

    #[test]
    fn the_rest_of_the_settings_stays() {
        let l4 = "[callers.cursor]\nanswers = \"L4\"\n";
        check("", "cursor", Some(Level::L4), l4);
        check(l4, "cursor", Some(Level::L4), l4);
        check(
            l4,
            "Cursor",
            Some(Level::L0),
            "[callers.cursor]\nanswers = \"L0\"\n",
        );
        check(l4, "cursor", None, "");
        check("", "cursor", None, "");
        let mine = "# mine\n[callers.Cursor] # yes\ndeny = [\"x\"]\n\n[audit]\nkeep_days = 3\n";
        check(
            mine,
            "cursor",
            Some(Level::L3),
            "# mine\n[callers.Cursor] # yes\ndeny = [\"x\"]\nanswers = \"L3\"\n\n[audit]\nkeep_days = 3\n",
        );
        let both = "[callers.bob]\ndeny = [\"x\"]\n\n[callers.cursor]\nanswers = \"L4\"\n";
        check(both, "cursor", None, "[callers.bob]\ndeny = [\"x\"]\n");
    }

    #[test]
    fn the_key_is_found_where_connect_puts_it() {
        let file = |entry: &str| format!("{{\"mcpServers\": {{\"ringfence\": {entry}}}}}");
        for (entry, expected) in [
            (
                r#"{"command": "x", "env": {"RINGFENCE_KEY": "rf_a"}}"#,
                Some("rf_a"),
            ),
            (
                r#"{"headers": {"Authorization": "Bearer rf_b"}}"#,
                Some("rf_b"),
            ),
            (r#"{"headers": {"Authorization": "Basic x"}}"#, None),
            (r#"{"command": "x"}"#, None),
        ] {
            let found = held(Some(&file(entry)), "mcpServers");
            assert_eq!(found.as_deref(), expected, "{entry}");
        }
        assert_eq!(held(None, "mcpServers"), None);
        assert_eq!(held(Some("// no"), "mcpServers"), None);
    }
}
