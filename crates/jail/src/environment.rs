//! The environment of a child: what was declared, a short list of the parent's,
//! and folders of its own. It begins empty.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use crate::fault::JailFault;
use crate::limit;
use crate::settings::{JailNetwork, PROXY_PORT};

/// Where programs are looked for when the parent does not say.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// Variables that are the child's own folders.
const FOLDERS: &[&str] = &["HOME", "TMPDIR"];

/// Names that make the loader or the C library run or read something else.
const LOADER: &[&str] = &["GCONV_PATH", "GLIBC_TUNABLES", "LOCPATH", "NLSPATH"];

/// Names under which programs look for a proxy, in both spellings.
const PROXIED: &[&str] = &[
    "http_proxy",
    "HTTP_PROXY",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "npm_config_proxy",
    "npm_config_https_proxy",
];

/// Names of lists of hosts that programs reach without one.
const UNPROXIED: &[&str] = &["no_proxy", "NO_PROXY", "npm_config_noproxy"];

/// The variables of a child. `parents` are those of the process that starts it.
pub(crate) fn build(
    declared: &BTreeMap<String, String>,
    parents: impl Iterator<Item = (OsString, OsString)>,
    home: &Path,
    temporary: &Path,
    network: JailNetwork,
) -> Result<BTreeMap<String, String>, JailFault> {
    if declared.len() > limit::VARIABLES_MAX {
        return fault(format!(
            "{} environment variables are declared; at most {} can be",
            declared.len(),
            limit::VARIABLES_MAX
        ));
    }
    let mut environment: BTreeMap<String, String> = parents
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| is_passed_on(name))
        .collect();
    environment
        .entry("PATH".to_owned())
        .or_insert_with(|| PATH_DEFAULT.to_owned());
    for (name, value) in declared {
        check(name, value)?;
        environment.insert(name.clone(), value.clone());
    }
    if network == JailNetwork::Proxy {
        let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
        for name in PROXIED {
            environment.insert((*name).to_owned(), proxy.clone());
        }
        // Newer versions of Node look at the others only if this is set.
        environment.insert("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned());
        for name in UNPROXIED {
            // Nothing is reached without it.
            environment.insert((*name).to_owned(), String::new());
        }
    }
    for (name, folder) in [("HOME", home), ("TMPDIR", temporary)] {
        let Some(folder) = folder.to_str() else {
            return fault(format!("the path `{}` is not UTF-8", folder.display()));
        };
        environment.insert(name.to_owned(), folder.to_owned());
    }
    let bytes: usize = environment
        .iter()
        .map(|(name, value)| name.len() + value.len() + 2)
        .sum();
    if bytes > limit::ENVIRONMENT_BYTES_MAX {
        return fault(format!(
            "the environment has {bytes} bytes; at most {} are allowed",
            limit::ENVIRONMENT_BYTES_MAX
        ));
    }
    Ok(environment)
}

fn is_passed_on(name: &str) -> bool {
    matches!(name, "PATH" | "LANG" | "TZ") || name.starts_with("LC_")
}

fn check(name: &str, value: &str) -> Result<(), JailFault> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return fault(format!(
            "`{}` is not a name of an environment variable",
            name.escape_debug()
        ));
    }
    if value.contains('\0') {
        return fault(format!("the value of `{name}` holds a NUL character"));
    }
    if FOLDERS.contains(&name) {
        return fault(format!(
            "`{name}` cannot be declared: it is the program's own folder; declare folders in `read` and `write`"
        ));
    }
    if name.starts_with("LD_") || LOADER.contains(&name) {
        return fault(format!(
            "`{name}` cannot be declared: it makes the loader run other code; take it out"
        ));
    }
    Ok(())
}

fn fault<T>(sentence: String) -> Result<T, JailFault> {
    Err(JailFault::Settings(sentence))
}
