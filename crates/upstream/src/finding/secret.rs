//! Secrets in plain text, by the name beside them, by their shape and by how random
//! they are. Nothing here shows one: an excerpt has a known prefix and a length.

use model::limits;

/// How well-known keys begin.
const PREFIXES: &[&str] = &[
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "sk-ant-",
    "sk-proj-",
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "pk_live_",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "npm_",
    "pypi-",
    "hf_",
    "dop_v1_",
    "shpat_",
    "SG.",
    "key-",
    "ntn_",
    "secret_",
    "lin_api_",
    "tvly-",
    "fc-",
    "figd_",
    "eyJ",
    "-----BEGIN",
];
/// Parts of names of secrets.
const NAMES: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "api_key",
    "api-key",
    "access_key",
    "access-key",
    "private_key",
    "private-key",
    "credential",
    "authorization",
    "auth_key",
    "pat",
    "x-api-key",
    "cookie",
    "connection_string",
    "client_secret",
];
/// Placeholders in the place of a secret.
const PLACEHOLDERS: &[&str] = &[
    "your",
    "xxx",
    "<",
    "${",
    "$",
    "{{",
    "...",
    "…",
    "example",
    "placeholder",
    "changeme",
    "change-me",
    "insert",
    "replace",
    "todo",
    "dummy",
    "none",
    "null",
    "true",
    "false",
    "env:",
    "secret:",
    "%",
];
/// Shorter values are no keys.
const SECRET_CHARS_MIN: usize = 8;
/// Shorter ones are not masked, even where the name beside them leaves no doubt.
const NAMED_SECRET_CHARS_MIN: usize = limits::SECRET_CHARS_MIN;
/// Random values are longer than words.
const RANDOM_CHARS_MIN: usize = 20;
/// Bits for each character from which on a value is random rather than written.
const RANDOM_BITS_MIN: f64 = 3.6;

/// Whether a value is a secret, given the name beside it.
pub(super) fn is_secret(name: &str, raw_value: &str) -> bool {
    let value = bare(raw_value);
    let chars_min = match is_name_of_secret(name) {
        true => NAMED_SECRET_CHARS_MIN,
        false => SECRET_CHARS_MIN,
    };
    if value.chars().count() < chars_min || is_placeholder(value) {
        return false;
    }
    has_prefix(value).is_some() || is_secret_name(name) && !is_place(value) || is_random(value)
}

/// The value without the scheme of an `Authorization` header.
fn bare(value: &str) -> &str {
    let value = value.trim();
    let schemes = ["Bearer ", "bearer ", "Basic ", "basic ", "token ", "Token "];
    schemes
        .iter()
        .find_map(|scheme| value.strip_prefix(scheme))
        .unwrap_or(value)
        .trim()
}

fn has_prefix(value: &str) -> Option<&'static str> {
    // A prefix alone is a word, such as `key-` in `key-value`.
    let is_long = value.len() >= 16;
    PREFIXES
        .iter()
        .find(|prefix| is_long && value.starts_with(**prefix))
        .copied()
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    let words = || name.split(|c: char| !c.is_ascii_alphanumeric());
    NAMES.iter().any(|known| match known.len() {
        // A short word must be a whole word: `PATH` has no `pat`.
        0..=3 => words().any(|word| word == *known),
        _ => name.contains(known),
    }) || words().any(|word| word == "key" || word == "auth" || word == "pwd")
}

/// Whether a name ends with what a secret is called: `DB_PASSWORD` does, and `TOKEN_TYPE`,
/// whose values are short words, does not.
fn is_name_of_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    let last = name.rsplit(|c: char| !c.is_ascii_alphanumeric()).next();
    NAMES.iter().any(|known| match known.len() {
        0..=3 => last == Some(*known),
        _ => name.ends_with(known),
    }) || last == Some("pwd")
}

fn is_placeholder(value: &str) -> bool {
    let lower = value.to_lowercase();
    let first = value.chars().next();
    let is_run = value.chars().all(|c| Some(c) == first || c == '-');
    PLACEHOLDERS.iter().any(|mark| lower.starts_with(mark)) || lower.ends_with("here") || is_run
}

/// A path, a number, a word or an address is not a secret because of its name:
/// `GOOGLE_CREDENTIALS=/etc/key.json`, `TOKEN_LIMIT=100000000`.
fn is_place(value: &str) -> bool {
    let is_path = value.starts_with(['/', '~', '.']) || value.get(1..3) == Some(":\\");
    let is_number = value.chars().all(|c| c.is_ascii_digit() || c == '.');
    is_path || is_number || value.contains("://")
}

/// Letters and digits without the frequencies of a language.
pub(super) fn is_random(value: &str) -> bool {
    let is_key = |c: char| c.is_ascii_alphanumeric() || "+/=_-.".contains(c);
    let count = value.chars().count();
    if count < RANDOM_CHARS_MIN || !value.chars().all(is_key) || is_place(value) {
        return false;
    }
    let digits = value.chars().filter(char::is_ascii_digit).count();
    let letters = value.chars().filter(char::is_ascii_alphabetic).count();
    // Words joined by hyphens, versions and dates have few digits or few letters.
    digits * 8 >= count && letters * 4 >= count && bits(value) >= RANDOM_BITS_MIN
}

/// Shannon's entropy, in bits for each character.
fn bits(value: &str) -> f64 {
    let mut counts = [0_u32; 128];
    let mut total = 0_u32;
    for byte in value.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
            total += 1;
        }
    }
    let share = |count: u32| f64::from(count) / f64::from(total.max(1));
    let part = |count: &u32| -share(*count) * share(*count).log2();
    counts.iter().filter(|count| **count > 0).map(part).sum()
}

/// A secret in words: how it begins, if many do, and how long it is.
pub(super) fn shown(raw_value: &str) -> String {
    let value = bare(raw_value);
    let count = value.chars().count();
    match has_prefix(value) {
        // A known beginning helps its owner to find it and says nothing that is secret.
        Some(prefix) => format!("{prefix}… ({count} characters)"),
        None => format!("({count} characters)"),
    }
}
