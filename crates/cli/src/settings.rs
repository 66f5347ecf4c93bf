//! Settings: where they come from, and the variables that change them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use model::Environment;
use model::config::Config;

use engine::SECRETS_FILE;
use engine::registry::read_config;
use host::secrets::{Credentials, Secrets};
use mcp::auth::local::TOKEN_FILE;
use store::settings::CONFIG_FILE;

use crate::source;

/// The folder with `ringfence.toml` and everything else.
pub(crate) const HOME: &str = "RINGFENCE_HOME";
/// The key of the client that starts `ringfence stdio`.
pub(crate) const KEY: &str = "RINGFENCE_KEY";
/// The folder of credentials of the service manager.
pub(crate) const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";
/// Set to anything: no colours.
pub(crate) const NO_COLOR: &str = "NO_COLOR";
/// `dumb`: no colours, no progress bar.
pub(crate) const TERM: &str = "TERM";

/// The variables that change what commands do, for the manual.
pub(crate) const VARIABLES: &[(&str, &str)] = &[
    (HOME, "The home folder, unless --home names one."),
    (KEY, "The key of the client that starts ringfence stdio."),
    (
        "XDG_DATA_HOME",
        "The folder of the default home; ~/.local/share if it is not set.",
    ),
    (
        CREDENTIALS,
        "The folder of credentials of the service manager: one file for each variable.",
    ),
    (NO_COLOR, "Set to anything: no colours."),
    (TERM, "dumb: no colours, and no progress bar."),
];
/// The files of the home that people read or write, for the manual.
pub(crate) const FILES: &[(&str, &str)] = &[
    (
        CONFIG_FILE,
        "The settings. ringfence init writes it with comments.",
    ),
    ("rules/", "More files of rules."),
    (
        SECRETS_FILE,
        "Variables of tools, as NAME=value lines; only you may read it.",
    ),
    (
        TOKEN_FILE,
        "The token of this machine, which ringfence serve makes.",
    ),
    (
        "wraps/",
        "What ringfence wrap changed in the settings of clients.",
    ),
    ("tools/", "Your tools, one document in each file."),
    ("trash/", "Deleted tools."),
    ("audit/", "The audit log and its index."),
    ("ringfence.db", "Approvals, keys, publications and limits."),
];

/// A variable that is set and not empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The environment, for placeholders. Variables that are not text count as unset. The
/// client's own key is never given to a tool.
pub(crate) fn environment() -> Environment {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let all = std::env::vars_os().filter_map(text);
    // A tool that could read the client's key could act as that client.
    all.filter(|(name, _)| name != KEY).collect()
}

/// The environment with the lines of a file on top.
pub(crate) fn environment_with(file: Option<&Path>) -> anyhow::Result<Environment> {
    let mut environment = environment();
    if let Some(path) = file {
        let text = source::small_text(path).context("could not read the variables")?;
        environment
            .read_lines(&text)
            .map_err(|line| anyhow!("`{}`, line {line}, is not `NAME=value`", path.display()))?;
    }
    Ok(environment)
}

/// The credentials from the service manager, if one started this process.
pub(crate) fn credentials() -> Option<Credentials> {
    variable(CREDENTIALS).map(Credentials::open)
}

/// The environment, and the credentials and the secrets file of the home for what it
/// does not set.
pub(crate) fn with_secrets(
    home: Option<&Path>,
    environment: Environment,
) -> anyhow::Result<Environment> {
    match home {
        Some(home) => {
            let secrets = Secrets::open(home.join(SECRETS_FILE)).with_credentials(credentials());
            Ok(secrets.below(&environment)?)
        }
        None => Ok(environment),
    }
}

/// The secret of a home with this name: in the environment, among the credentials of the
/// service manager, or in the secrets file.
pub(crate) fn store_secret(home: &Path, name: &str) -> Result<Option<String>, String> {
    let all = with_secrets(Some(home), environment()).map_err(|error| format!("{error:#}"))?;
    Ok(all.get(name).map(str::to_owned))
}

/// The home folder: the argument, the variable, the platform's data folder.
pub(crate) fn home(argument: Option<&Path>) -> Option<PathBuf> {
    let from_variable = || variable(HOME).map(PathBuf::from);
    let from_platform = || {
        let data = variable("XDG_DATA_HOME")
            .map(PathBuf::from)
            // The XDG specification says to ignore relative paths.
            .filter(|path| path.is_absolute());
        let data = data.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".local/share")));
        Some(data?.join("ringfence"))
    };
    argument
        .map(Path::to_path_buf)
        .or_else(from_variable)
        .or_else(from_platform)
}

/// Where the home folder comes from.
pub(crate) fn home_source(argument: Option<&Path>) -> &'static str {
    match (argument, variable(HOME)) {
        (Some(_), _) => "--home",
        (None, Some(_)) => HOME,
        (None, None) => "default",
    }
}

/// The operator's settings; without a home nothing is set.
pub(crate) fn config(home: Option<&Path>) -> anyhow::Result<Config> {
    match home {
        Some(home) => Ok(read_config(home)?.0),
        None => Ok(Config::closed()),
    }
}
