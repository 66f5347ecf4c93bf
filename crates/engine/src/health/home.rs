//! Whether a home folder is sound: permissions, settings, secrets, store, clock, tools.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use host::secrets::{Credentials, Secrets};
use model::Environment;
use model::govern::approval::authority;
use model::text::{count, one_line, shell_argument};
use store::settings::{CONFIG_FILE, RULES_FOLDER};
use store::{Filter, Store, StoreError, StoreSettings};

use crate::engine::{Engine, EngineSettings, SECRETS_FILE};
use crate::error::{EngineError, causes};
use crate::limit;
use crate::services::Alarm;
use crate::settings::{folder_faults, read_config};
use crate::upkeep;

/// 2026-01-01. A clock before this was never set.
const CLOCK_MS_MIN: i64 = 1_767_225_600_000;
const CLOCK_FIX: &str = "set the system's clock";
const SHARED_STORE_FIX: &str = "look whether the shared store answers; its address is `url` in \
                                `[store]` of ringfence.toml";
/// What people or we change in a home.
const DATED: &[&str] = &[
    CONFIG_FILE,
    RULES_FOLDER,
    "tools",
    SECRETS_FILE,
    "ringfence.db",
];
/// How far an audit row may lie in the future before the clock is doubted.
const CLOCK_AHEAD_MS_MAX: i64 = 60_000;

/// One check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeFinding {
    /// What was looked at.
    pub name: &'static str,
    /// What was found.
    pub what: String,
    /// What to do, if something is wrong.
    pub fault: Option<String>,
}

fn well(name: &'static str, what: impl Into<String>) -> HomeFinding {
    HomeFinding {
        name,
        what: what.into(),
        fault: None,
    }
}

fn wrong(name: &'static str, what: impl Into<String>, fix: impl Into<String>) -> HomeFinding {
    HomeFinding {
        name,
        what: what.into(),
        fault: Some(fix.into()),
    }
}

/// The same checks for a home that an engine is open on.
pub(super) fn examine_open(engine: &Engine) -> Vec<HomeFinding> {
    let home = engine.home();
    let (finding, newest_ms) = audit(engine.store());
    let mut findings = vec![folder(home), secrets(home), finding, clock(newest_ms)];
    findings.extend(file_times(home));
    findings.push(answers(home));
    findings.extend([names(engine), room(engine), tools(engine)]);
    findings.extend(folders(home));
    findings
}

/// Checks a home folder; never creates one. `fix` says what helps with a store that does
/// not open.
pub fn examine(
    home: &Path,
    handed: Option<&Credentials>,
    fix: &dyn Fn(&StoreError) -> Option<String>,
) -> Vec<HomeFinding> {
    let mut findings = vec![folder(home)];
    if !home.is_dir() {
        findings.push(clock(None));
        return findings;
    }
    findings.push(secrets(home));
    findings.extend(handed.map(credentials));
    match Store::open(home, StoreSettings::standard()) {
        Ok(store) => {
            let (finding, newest_ms) = audit(&store);
            findings.push(finding);
            findings.push(clock(newest_ms));
        }
        Err(error) => {
            let fix = fix(&error);
            let fix = fix.unwrap_or_else(|| store_fix(&error).to_owned());
            let what = causes(&error);
            findings.push(wrong("store", what, fix));
            findings.push(clock(None));
        }
    }
    findings.extend(file_times(home));
    findings.push(answers(home));
    findings.extend(opened(home, fix));
    findings.extend(folders(home));
    findings
}

/// What to do about a store that cannot be opened.
fn store_fix(error: &StoreError) -> &'static str {
    match is_of_shared_store(error) {
        true => SHARED_STORE_FIX,
        false => "give the home folder room and rights",
    }
}

/// Whether the store that the home shares with other nodes is the cause.
fn is_of_shared_store(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Unavailable { .. }
            | StoreError::InDoubt { .. }
            | StoreError::Shared { .. }
            | StoreError::Address { .. }
    )
}

/// Whose clients may answer questions about their own calls.
fn answers(home: &Path) -> HomeFinding {
    let Ok((config, _)) = read_config(home) else {
        // Another check reports broken settings.
        return well(
            "answers",
            "no client answers while the settings cannot be read",
        );
    };
    let approvals = &config.approvals;
    let mut named: Vec<_> = approvals
        .answers
        .keys()
        .filter_map(|name| Some((name, authority::client_up_to(name, approvals)?)))
        .map(|(name, most)| format!("{} up to {}", one_line(name), most.badge()))
        .collect();
    if approvals.separate {
        named.clear();
    }
    let by = authority::ELSEWHERE;
    match named.is_empty() {
        true => well(
            "answers",
            format!("questions are answered by {by}; no client answers"),
        ),
        false => {
            let named = named.join(", ");
            well(
                "answers",
                format!("{by}; these clients themselves: {named}"),
            )
        }
    }
}

/// The folders that settings give to tools; settings that cannot be read are told
/// elsewhere.
fn folders(home: &Path) -> Vec<HomeFinding> {
    let Ok((config, _)) = read_config(home) else {
        return Vec::new();
    };
    let faults = folder_faults(home, &config).into_iter();
    let told = faults.map(|fault| {
        let what = format!("{}: {}", fault.setting, fault.why);
        wrong("folders", what, "name another folder in ringfence.toml")
    });
    told.collect()
}

fn folder(home: &Path) -> HomeFinding {
    let shown = home.display();
    match std::fs::metadata(home) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            well("home", format!("{shown} will be made when it is needed"))
        }
        Err(error) => wrong(
            "home",
            format!("{shown}: {error}"),
            "choose another with --home",
        ),
        Ok(about) if !about.is_dir() => wrong(
            "home",
            format!("{shown} is no folder"),
            "choose another with --home",
        ),
        Ok(about) if about.mode() & 0o022 != 0 => wrong(
            "home",
            format!("others can write to {shown}"),
            format!("chmod 700 {}", quoted(home)),
        ),
        Ok(_) => well("home", shown.to_string()),
    }
}

fn secrets(home: &Path) -> HomeFinding {
    let path = home.join(SECRETS_FILE);
    match Secrets::open(&path).read() {
        Ok(_) if path.exists() => well("secrets", "only you can read them"),
        Ok(_) => well("secrets", "no file of secrets"),
        Err(fault) => wrong(
            "secrets",
            fault.to_string(),
            format!("chmod 600 {}", quoted(&path)),
        ),
    }
}

/// What the service manager handed over.
fn credentials(handed: &Credentials) -> HomeFinding {
    match handed.values().and_then(|_| handed.token()) {
        Ok(Some(_)) => well("credentials", "they can be read, the token among them"),
        Ok(None) => well(
            "credentials",
            "they can be read; the token is the home's own",
        ),
        Err(fault) => wrong(
            "credentials",
            fault.to_string(),
            "see LoadCredential= of the service",
        ),
    }
}

/// The store, and the time of its newest entry.
fn audit(store: &Store) -> (HomeFinding, Option<i64>) {
    let newest = Filter {
        limit: Some(1),
        ..Filter::default()
    };
    let fix = "run `ringfence audit verify`";
    match store.audit().list(&newest) {
        Err(error) => {
            let what = causes(&error);
            (wrong("store", what, fix), None)
        }
        Ok(entries) => {
            let newest_ms = entries.first().map(|entry| entry.opening.at_ms);
            let crashed = store.status().crashed;
            let what = match crashed {
                0 => "the audit can be read and written".to_owned(),
                crashed => format!(
                    "the audit can be read and written; {} of a process that died closed",
                    count(usize::try_from(crashed).unwrap_or(usize::MAX), "call")
                ),
            };
            (well("store", what), newest_ms)
        }
    }
}

fn clock(newest_ms: Option<i64>) -> HomeFinding {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ms = now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(0));
    if now_ms < CLOCK_MS_MIN {
        return wrong("clock", "the clock was never set", CLOCK_FIX);
    }
    match newest_ms {
        Some(newest_ms) if newest_ms > now_ms + CLOCK_AHEAD_MS_MAX => wrong(
            "clock",
            format!(
                "the newest audit entry is {} in the future",
                span(newest_ms - now_ms)
            ),
            CLOCK_FIX,
        ),
        Some(_) | None => well("clock", "set, and not behind the audit"),
    }
}

/// Files of the home that were changed in the future: one of two clocks was wrong. Such
/// a file may be read again and again, and looks newer than every later change.
fn file_times(home: &Path) -> Option<HomeFinding> {
    let now = SystemTime::now();
    let ahead = |name: &'static str| {
        let changed = std::fs::metadata(home.join(name)).ok()?.modified().ok()?;
        let ahead_ms = changed.duration_since(now).ok()?.as_millis();
        let ahead_ms = i64::try_from(ahead_ms).unwrap_or(i64::MAX);
        (ahead_ms > CLOCK_AHEAD_MS_MAX).then_some((name, ahead_ms))
    };
    let (name, ahead_ms) = DATED.iter().find_map(|name| ahead(name))?;
    let what = format!("`{name}` was changed {} in the future", span(ahead_ms));
    let path = home.join(name);
    let fix = format!("{CLOCK_FIX}; if it is right, `touch {}`", quoted(&path));
    Some(wrong("clock", what, fix))
}

/// A path in a command that a person copies.
fn quoted(path: &Path) -> String {
    shell_argument(&path.display().to_string())
}

/// A length of time in the largest unit that fits.
fn span(ms: i64) -> String {
    let seconds = ms / 1_000;
    let units = [(86_400, "days"), (3_600, "hours"), (60, "minutes")];
    let found = units.into_iter().find(|(length, _)| seconds >= 2 * length);
    let (length, unit) = found.unwrap_or((1, "seconds"));
    format!("{} {unit}", seconds / length)
}

/// Settings, documents and the room of the audit, as the engine finds them.
fn opened(home: &Path, fix: &dyn Fn(&StoreError) -> Option<String>) -> Vec<HomeFinding> {
    let settings =
        // Silent: what it would say is told as findings.
        EngineSettings::new(home.to_path_buf(), Environment::empty(), Alarm::new(|_| ()));
    match Engine::open(settings) {
        // They may be right, and only not readable: nothing in them is to be mended then.
        Err(EngineError::Store(error)) => {
            let fix = fix(&error).unwrap_or_else(|| store_fix(&error).to_owned());
            vec![wrong("settings", causes(&error), fix)]
        }
        Err(error) => vec![wrong("settings", error.to_string(), "mend ringfence.toml")],
        Ok(engine) => vec![names(&engine), room(&engine), tools(&engine)],
    }
}

fn tools(engine: &Engine) -> HomeFinding {
    let now = engine.registry().current();
    let total = now.tools().count();
    match now.set_aside.len() {
        0 => well("tools", count(total, "tool")),
        aside => wrong(
            "tools",
            format!("{} set aside", count(aside, "file")),
            "run `ringfence list` and mend them",
        ),
    }
}

/// Whether the next call can be recorded, and how much room is left.
fn room(engine: &Engine) -> HomeFinding {
    let failed = |fault: StoreError| {
        let what = causes(&fault);
        wrong(
            "audit",
            what,
            "run `ringfence audit prune`, or raise `audit.bytes_max`",
        )
    };
    if let Err(fault) = engine.store().ready() {
        return failed(fault);
    }
    let room = match engine.store().room() {
        Ok(room) => room,
        Err(fault) => return failed(fault),
    };
    let when_full = engine.registry().current().config.audit.when_full;
    match room.percent() >= limit::AUDIT_TOLD_FROM_PERCENT {
        true => well("audit", upkeep::full_soon(room, when_full)),
        false => well("audit", format!("{} % of its room is used", room.percent())),
    }
}

/// Whether everything the settings name is there.
fn names(engine: &Engine) -> HomeFinding {
    let now = engine.registry().current();
    match engine.registry().check_names(&now.settings) {
        Ok(()) => well("settings", "everything they name is there"),
        Err(error) => wrong(
            "settings",
            error.to_string(),
            "name what is there, or what is to come in `[expected]`",
        ),
    }
}
