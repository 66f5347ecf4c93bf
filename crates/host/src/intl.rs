//! `Intl`: dates, numbers and zones in the words of a language.
//!
//! The engine of the sandbox has none of it. Zones come from the IANA database
//! compiled in; patterns and names are Unicode's, recorded for the languages
//! below (`data/intl`). Any other language falls back to American English, and
//! `resolvedOptions` says so.

pub mod date;
mod decimal;
pub mod number;
mod option;
mod pattern;
mod zone;

use std::collections::HashMap;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::message::{FaultKind, PowerFault, PowerReply, PowerRequest};

/// Tags in one list of locales.
pub const LOCALES_MAX: usize = 64;

const RECORDED: &[(&str, &str)] = &[
    ("en-US", include_str!("../data/intl/en-US.json")),
    ("en-GB", include_str!("../data/intl/en-GB.json")),
    ("en-CA", include_str!("../data/intl/en-CA.json")),
    ("de-DE", include_str!("../data/intl/de-DE.json")),
    ("fr-FR", include_str!("../data/intl/fr-FR.json")),
    ("es-ES", include_str!("../data/intl/es-ES.json")),
    ("ja-JP", include_str!("../data/intl/ja-JP.json")),
    ("ko-KR", include_str!("../data/intl/ko-KR.json")),
    ("zh-CN", include_str!("../data/intl/zh-CN.json")),
    ("sv-SE", include_str!("../data/intl/sv-SE.json")),
];

static LOADED: [OnceLock<Option<Language>>; 10] = [const { OnceLock::new() }; 10];

/// What is recorded of a language.
#[derive(Debug, Deserialize)]
pub(crate) struct Language {
    pub(crate) locale: String,
    pub(crate) dates: Dates,
    pub(crate) numbers: Numbers,
    /// By group of zones: short and short in summer, long and long in summer,
    /// short and long without a season. Nothing where the offset is the name.
    pub(crate) zones: Vec<[Option<String>; 6]>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Dates {
    pub(crate) months: Vec<Vec<String>>,
    pub(crate) weekdays: Vec<Vec<String>>,
    /// By the hour of the day.
    pub(crate) periods: Vec<Vec<String>>,
    /// By width: before, and since.
    pub(crate) eras: HashMap<String, [String; 2]>,
    pub(crate) hour_cycles: HourCycles,
    pub(crate) date: HashMap<String, String>,
    pub(crate) time: HashMap<String, String>,
    pub(crate) date_style: HashMap<String, String>,
    pub(crate) time_style: HashMap<String, HashMap<String, String>>,
    pub(crate) glue: Glue,
    pub(crate) gmt: String,
    pub(crate) gmt_minus: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct HourCycles {
    pub(crate) own: String,
    /// What `hour12: true` means.
    pub(crate) yes: String,
    /// What `hour12: false` means.
    pub(crate) no: String,
}

/// What stands between a date and a time.
#[derive(Debug, Deserialize)]
pub(crate) struct Glue {
    pub(crate) full: String,
    pub(crate) long: String,
    pub(crate) medium: String,
    pub(crate) short: String,
    /// By width: a weekday and a time, where `{*}` stands for the time.
    pub(crate) weekday: HashMap<String, String>,
    pub(crate) styles: HashMap<String, String>,
}

/// Pairs are what stands before the digits and what stands after.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Numbers {
    pub(crate) decimal: String,
    pub(crate) group: String,
    pub(crate) minus: String,
    pub(crate) plus: String,
    pub(crate) grouping_min: usize,
    pub(crate) infinity: String,
    pub(crate) nan: String,
    pub(crate) percent: [String; 2],
    pub(crate) currency: [String; 2],
    pub(crate) currency_code: [String; 2],
    pub(crate) currency_negative: [String; 2],
    pub(crate) accounting: [String; 2],
    pub(crate) currency_name: [String; 2],
    /// By code: symbol, narrow symbol, name of one, name of many.
    pub(crate) currencies: HashMap<String, [String; 4]>,
    /// By display and power of ten: zeros taken off, affixes, affixes of one.
    pub(crate) compact: HashMap<String, Vec<Compact>>,
    /// By unit and display: affixes, affixes of one.
    pub(crate) units: HashMap<String, HashMap<String, [String; 4]>>,
}

/// Zeros taken off, before, after, before one, after one; and the word that is
/// one itself, if there is such.
pub(crate) type Compact = (usize, String, String, String, String, Option<String>);

fn recorded(index: usize) -> Option<&'static Language> {
    let (_, text) = RECORDED.get(index)?;
    let language = LOADED.get(index)?;
    language
        .get_or_init(|| serde_json::from_str(text).ok())
        .as_ref()
}

/// The language for a list of tags, and the tag it answers to.
pub(crate) struct Choice {
    pub(crate) language: &'static Language,
    pub(crate) tag: String,
    /// From `-u-hc-h23`.
    pub(crate) hour_cycle: Option<String>,
}

/// A tag without its extension `-u-…`, and the extension. Tags do not tell letters apart.
fn split_extension(raw: &str) -> (&str, &str) {
    match raw.to_ascii_lowercase().find("-u-") {
        Some(at) => raw.split_at_checked(at).unwrap_or((raw, "")),
        None => (raw, ""),
    }
}

/// Chooses the first language of `arguments.locales` that is recorded.
pub(crate) fn choose(ask: &PowerRequest, helper: &str) -> Result<Choice, PowerFault> {
    let mut hit = None;
    for raw in tags(ask.arguments.get("locales"), helper)? {
        let (base, extension) = split_extension(raw);
        let tag = canonical(base).ok_or_else(|| {
            range(
                helper,
                format!("Incorrect locale information provided: `{raw}`"),
            )
        })?;
        if let (None, Some(index)) = (&hit, index(&tag)) {
            let hour_cycle = extension
                .to_ascii_lowercase()
                .split_once("-hc-")
                .map(|(_, rest)| rest.chars().take(3).collect());
            hit = Some((index, tag, hour_cycle));
        }
    }
    let (index, tag, hour_cycle) = hit.unwrap_or((0, "en-US".to_owned(), None));
    match recorded(index) {
        Some(language) => Ok(Choice {
            language,
            tag,
            hour_cycle,
        }),
        None => Err(PowerFault::new(
            FaultKind::HelperRuntime,
            "locale-data",
            helper,
            "the data of this language cannot be read",
        )),
    }
}

fn tags<'ask>(raw: Option<&'ask Value>, helper: &str) -> Result<Vec<&'ask str>, PowerFault> {
    match raw {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(tag)) => Ok(vec![tag]),
        Some(Value::Array(list)) if list.len() <= LOCALES_MAX => list
            .iter()
            .map(|tag| {
                tag.as_str()
                    .ok_or_else(|| type_error(helper, "a locale must be a string"))
            })
            .collect(),
        Some(_) => Err(type_error(
            helper,
            "locales must be a string or a short list of strings",
        )),
    }
}

/// `EN-us` as `en-US`; nothing if it is no tag.
fn canonical(tag: &str) -> Option<String> {
    let mut parts = tag.split('-');
    let language = parts.next()?;
    let is_alpha = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphabetic());
    if !matches!(language.len(), 2 | 3 | 5..=8) || !is_alpha(language) {
        return None;
    }
    let mut out = language.to_ascii_lowercase();
    for part in parts {
        if part.is_empty()
            || part.len() > 8
            || !part.bytes().all(|byte| byte.is_ascii_alphanumeric())
        {
            return None;
        }
        out.push('-');
        match (part.len(), is_alpha(part)) {
            (2, true) => out.push_str(&part.to_ascii_uppercase()),
            (4, true) => {
                let (first, rest) = part.split_at_checked(1)?;
                out.push_str(&first.to_ascii_uppercase());
                out.push_str(&rest.to_ascii_lowercase());
            }
            (_, _) => out.push_str(&part.to_ascii_lowercase()),
        }
    }
    Some(out)
}

fn index(tag: &str) -> Option<usize> {
    let exact = RECORDED.iter().position(|(known, _)| *known == tag);
    let (language, region) = tag.split_once('-').unwrap_or((tag, ""));
    // Where English is spoken, most write the date as in Britain.
    let wanted = match (language, region) {
        ("en", "" | "US" | "PH" | "PR") => "en-US",
        ("en", _) => "en-GB",
        (_, _) => {
            return exact.or_else(|| {
                RECORDED
                    .iter()
                    .position(|(known, _)| known.split('-').next() == Some(language))
            });
        }
    };
    exact.or_else(|| RECORDED.iter().position(|(known, _)| *known == wanted))
}

/// `{locale, supported}`: the tag that `arguments.locales` leads to, and those
/// of the list that are recorded.
///
/// # Errors
/// `range-error` for a tag that is none.
pub fn locale(ask: &PowerRequest) -> Result<PowerReply, PowerFault> {
    let helper = "Intl";
    let choice = choose(ask, helper)?;
    let mut all = Vec::new();
    let mut supported = Vec::new();
    for raw in tags(ask.arguments.get("locales"), helper)? {
        let tag = canonical(split_extension(raw).0).unwrap_or_default();
        if index(&tag).is_some() {
            supported.push(tag.clone());
        }
        all.push(tag);
    }
    Ok(PowerReply {
        value: json!({ "locale": choice.tag, "canonical": all, "supported": supported }),
        bytes: Vec::new(),
    })
}

/// The names of all zones.
///
/// # Errors
/// Never.
pub fn zones() -> Result<PowerReply, PowerFault> {
    Ok(PowerReply {
        value: json!(zone::names()),
        bytes: Vec::new(),
    })
}

/// A fault the face throws as `RangeError`.
pub(crate) fn range(helper: &str, message: impl Into<String>) -> PowerFault {
    PowerFault::new(FaultKind::InvalidInput, "range-error", helper, message)
}

/// A fault the face throws as `TypeError`.
pub(crate) fn type_error(helper: &str, message: impl Into<String>) -> PowerFault {
    PowerFault::new(FaultKind::InvalidInput, "type-error", helper, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_can_be_read() {
        for (at, (tag, text)) in RECORDED.iter().enumerate() {
            let read: Result<Language, _> = serde_json::from_str(text);
            assert_eq!(read.unwrap().locale, *tag);
            assert!(recorded(at).is_some());
        }
    }

    #[test]
    fn an_extension_is_known_in_either_spelling() {
        for tag in ["de-DE-u-hc-h23", "de-DE-U-HC-H23"] {
            let ask = PowerRequest {
                arguments: json!({ "locales": [tag] }),
                ..PowerRequest::default()
            };
            let value = locale(&ask).unwrap().value;
            assert_eq!(value["locale"], "de-DE", "{tag}");
            assert_eq!(value["canonical"], json!(["de-DE"]), "{tag}");
            assert_eq!(value["supported"], json!(["de-DE"]), "{tag}");
        }
    }
}
