//! Zones: their offsets from the IANA database, their names from what is
//! recorded of each language.

use std::collections::HashMap;
use std::sync::OnceLock;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use serde::Deserialize;

use crate::intl::Language;

static DATABASE: OnceLock<TimeZoneDatabase> = OnceLock::new();
static GROUPS: OnceLock<Option<Groups>> = OnceLock::new();

#[derive(Debug, Deserialize)]
struct Groups {
    zones: HashMap<String, usize>,
    /// Minutes east, in winter and in summer.
    offsets: Vec<(i32, i32)>,
}

/// A zone, by the name it is shown under.
#[derive(Debug)]
pub(super) struct Zone {
    pub(super) name: String,
    rule: Rule,
}

#[derive(Debug)]
enum Rule {
    Named(TimeZone),
    /// Seconds east.
    Fixed(i32),
}

/// How a zone is to be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    Short,
    Long,
    ShortOffset,
    LongOffset,
    ShortGeneric,
    LongGeneric,
}

impl Width {
    pub(super) fn parse(word: &str) -> Option<Width> {
        Some(match word {
            "short" => Width::Short,
            "long" => Width::Long,
            "shortOffset" => Width::ShortOffset,
            "longOffset" => Width::LongOffset,
            "shortGeneric" => Width::ShortGeneric,
            "longGeneric" => Width::LongGeneric,
            _ => return None,
        })
    }
}

fn database() -> &'static TimeZoneDatabase {
    DATABASE.get_or_init(TimeZoneDatabase::bundled)
}

/// The names of all zones, sorted.
pub(super) fn names() -> Vec<String> {
    let mut names: Vec<String> = database()
        .available()
        .map(|name| name.to_string())
        .collect();
    names.sort();
    names
}

impl Zone {
    /// An IANA name in any case, or an offset such as `+05:30`.
    pub(super) fn parse(raw: &str) -> Option<Zone> {
        if raw.starts_with(['+', '-']) {
            let seconds = offset(raw)?;
            return Some(Zone {
                name: raw.to_owned(),
                rule: Rule::Fixed(seconds),
            });
        }
        if raw.len() > 64 || !raw.is_ascii() {
            return None;
        }
        let zone = database().get(raw).ok()?;
        // The many names of one zone are shown as one, as other engines do.
        let name = match zone.iana_name() {
            None
            | Some(
                "Etc/UTC" | "Etc/GMT" | "GMT" | "UTC" | "Etc/UCT" | "UCT" | "Zulu" | "Etc/Zulu",
            ) => "UTC".to_owned(),
            Some(name) => name.to_owned(),
        };
        Some(Zone {
            name,
            rule: Rule::Named(zone),
        })
    }

    /// Seconds east of Greenwich at a moment.
    pub(super) fn offset_seconds(&self, epoch_ms: i64) -> i32 {
        match &self.rule {
            Rule::Fixed(seconds) => *seconds,
            Rule::Named(zone) => {
                // Beyond the years 9999 the rules of the last one hold.
                let bounds = (
                    Timestamp::MIN.as_millisecond(),
                    Timestamp::MAX.as_millisecond(),
                );
                let moment = Timestamp::from_millisecond(epoch_ms.clamp(bounds.0, bounds.1));
                moment.map_or(0, |moment| zone.to_offset(moment).seconds())
            }
        }
    }

    /// What the zone is called at a moment.
    pub(super) fn called(&self, width: Width, epoch_ms: i64, language: &Language) -> String {
        let seconds = self.offset_seconds(epoch_ms);
        let names = groups().and_then(|groups| {
            let group = *groups.zones.get(&self.name)?;
            let names = language.zones.get(group)?;
            let (standard, summer) = *groups.offsets.get(group)?;
            Some((names, standard * 60 == seconds, summer * 60 == seconds))
        });
        let name = names.and_then(
            |([short, short_summer, long, long_summer, short_any, long_any], standard, summer)| {
                match (width, standard, summer) {
                    (Width::Short, true, _) => short.clone(),
                    (Width::Short, false, true) => short_summer.clone(),
                    (Width::Long, true, _) => long.clone(),
                    (Width::Long, false, true) => long_summer.clone(),
                    (Width::ShortGeneric, _, _) => short_any.clone(),
                    (Width::LongGeneric, _, _) => long_any.clone(),
                    (Width::Short | Width::Long, false, false)
                    | (Width::ShortOffset | Width::LongOffset, _, _) => None,
                }
            },
        );
        name.unwrap_or_else(|| {
            let is_long = matches!(width, Width::Long | Width::LongOffset | Width::LongGeneric);
            gmt(seconds, is_long, language)
        })
    }
}

fn groups() -> Option<&'static Groups> {
    let text = include_str!("../../data/intl/zones.json");
    GROUPS
        .get_or_init(|| serde_json::from_str(text).ok())
        .as_ref()
}

fn gmt(seconds: i32, is_long: bool, language: &Language) -> String {
    let dates = &language.dates;
    if seconds == 0 {
        return dates.gmt.clone();
    }
    let sign = match seconds < 0 {
        true => dates.gmt_minus.as_str(),
        false => "+",
    };
    let total = seconds.unsigned_abs();
    let (hours, minutes, rest) = (total / 3600, total / 60 % 60, total % 60);
    let mut text = match (is_long, minutes, rest) {
        (true, _, _) => format!("{}{sign}{hours:02}:{minutes:02}", dates.gmt),
        (false, 0, 0) => format!("{}{sign}{hours}", dates.gmt),
        (false, _, _) => format!("{}{sign}{hours}:{minutes:02}", dates.gmt),
    };
    if rest != 0 {
        text.push_str(&format!(":{rest:02}"));
    }
    text
}

fn offset(raw: &str) -> Option<i32> {
    let (sign, digits) = raw.split_at_checked(1)?;
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) => (hours, minutes),
        None if digits.len() == 4 => digits.split_at_checked(2)?,
        None => (digits, "00"),
    };
    if hours.len() != 2 || minutes.len() != 2 {
        return None;
    }
    let hours: i32 = hours.parse().ok().filter(|hours| (0..24).contains(hours))?;
    let minutes: i32 = minutes
        .parse()
        .ok()
        .filter(|minutes| (0..60).contains(minutes))?;
    let seconds = hours * 3600 + minutes * 60;
    Some(if sign == "-" { -seconds } else { seconds })
}
