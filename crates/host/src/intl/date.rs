//! `Intl.DateTimeFormat`. Options are resolved once into plain data the face
//! keeps; each moment is then one call that gives back parts.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::intl::option::Options;
use crate::intl::pattern::{Digits, Field, Piece, read};
use crate::intl::zone::{Width, Zone};
use crate::intl::{Choice, Dates, Language, choose, range, type_error};
use crate::message::{PowerFault, PowerReply, PowerRequest};

const HELPER: &str = "Intl.DateTimeFormat";

/// The farthest moment a `Date` can hold, either way.
const EPOCH_MS_MAX: f64 = 8.64e15;

/// A pattern, in bytes; the longest recorded has far fewer.
const PATTERN_BYTES_MAX: usize = 1_024;

/// What a formatter does, as `resolvedOptions` shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Resolved {
    locale: String,
    calendar: String,
    numbering_system: String,
    time_zone: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hour_cycle: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hour12: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weekday: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    era: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    year: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    month: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    day: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hour: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    minute: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    second: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fractional_second_digits: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_zone_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    date_style: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_style: Option<String>,
}

/// Resolves `arguments.locales` and `arguments.options` into `{resolved,
/// pattern}`. `arguments.required` (`date`, `time`, `any`) and
/// `arguments.defaults` (`date`, `time`, `all`) say what is shown if nothing is
/// asked for.
///
/// # Errors
/// `range-error`, `type-error`.
pub fn resolve(ask: &PowerRequest) -> Result<PowerReply, PowerFault> {
    let choice = choose(ask, HELPER)?;
    let options = Options::new(ask.arguments.get("options"), HELPER);
    let mut resolved = components(&options)?;
    resolved.locale.clone_from(&choice.tag);
    "gregory".clone_into(&mut resolved.calendar);
    "latn".clone_into(&mut resolved.numbering_system);
    let raw_zone = options
        .word("timeZone", &[])?
        .unwrap_or_else(|| "UTC".to_owned());
    let zone = Zone::parse(&raw_zone)
        .ok_or_else(|| range(HELPER, format!("Invalid time zone specified: {raw_zone}")))?;
    resolved.time_zone = zone.name;
    styles(&mut resolved, &options)?;
    let word = |name| {
        ask.arguments
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or("date")
    };
    fill(&mut resolved, word("required"), word("defaults"));
    hours(&mut resolved, &options, &choice)?;
    let pattern = pattern(&resolved, &choice.language.dates);
    show(&mut resolved, &pattern);
    Ok(PowerReply {
        value: json!({ "resolved": resolved, "pattern": pattern }),
        bytes: Vec::new(),
    })
}

/// The parts of `arguments.time`, milliseconds since 1970, by what [`resolve`]
/// gave: a list of `[type, text]`.
///
/// # Errors
/// `range-error` for a moment no `Date` can hold.
pub fn format(ask: &PowerRequest) -> Result<PowerReply, PowerFault> {
    let raw = ask.arguments.get("resolved").cloned().unwrap_or_default();
    let resolved: Resolved =
        serde_json::from_value(raw).map_err(|_| type_error(HELPER, "this is no formatter"))?;
    let pattern = ask
        .arguments
        .get("pattern")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(type_error(HELPER, "this is no formatter"));
    }
    let time = ask.arguments.get("time").and_then(Value::as_f64);
    let time = time.filter(|time| time.abs() <= EPOCH_MS_MAX);
    let time = time.ok_or_else(|| range(HELPER, "Invalid time value"))?;
    let zone = Zone::parse(&resolved.time_zone)
        .ok_or_else(|| range(HELPER, "Invalid time zone specified"))?;
    let locales = PowerRequest {
        arguments: json!({ "locales": resolved.locale }),
        bytes: Vec::new(),
    };
    let language = choose(&locales, HELPER)?.language;
    #[expect(clippy::cast_possible_truncation, reason = "bounded just above")]
    let moment = Moment::at(time.floor() as i64, &zone);
    let mut parts: Vec<(&'static str, String)> = Vec::new();
    for piece in read(pattern) {
        let (kind, text) = match piece {
            Piece::Literal(text) => ("literal", text),
            Piece::Field(field) => field_text(field, &moment, &resolved, language, &zone),
        };
        parts.push((kind, text));
    }
    Ok(PowerReply {
        value: json!(parts),
        bytes: Vec::new(),
    })
}

fn components(options: &Options<'_>) -> Result<Resolved, PowerFault> {
    let names = &["narrow", "short", "long"];
    let digits = &["2-digit", "numeric"];
    let zones = &[
        "short",
        "long",
        "shortOffset",
        "longOffset",
        "shortGeneric",
        "longGeneric",
    ];
    Ok(Resolved {
        weekday: options.word("weekday", names)?,
        era: options.word("era", names)?,
        year: options.word("year", digits)?,
        month: options.word("month", &["2-digit", "numeric", "narrow", "short", "long"])?,
        day: options.word("day", digits)?,
        hour: options.word("hour", digits)?,
        minute: options.word("minute", digits)?,
        second: options.word("second", digits)?,
        fractional_second_digits: options.count("fractionalSecondDigits", 1, 3)?,
        time_zone_name: options.word("timeZoneName", zones)?,
        ..Resolved::default()
    })
}

fn styles(resolved: &mut Resolved, options: &Options<'_>) -> Result<(), PowerFault> {
    let words = &["full", "long", "medium", "short"];
    resolved.date_style = options.word("dateStyle", words)?;
    resolved.time_style = options.word("timeStyle", words)?;
    let has_style = resolved.date_style.is_some() || resolved.time_style.is_some();
    let has_field = has_date(resolved)
        || has_time(resolved)
        || resolved.era.is_some()
        || resolved.time_zone_name.is_some();
    match has_style && has_field {
        true => Err(type_error(
            HELPER,
            "Can't set option when dateStyle or timeStyle is used",
        )),
        false => Ok(()),
    }
}

fn has_date(resolved: &Resolved) -> bool {
    let fields = [
        &resolved.weekday,
        &resolved.year,
        &resolved.month,
        &resolved.day,
    ];
    fields.into_iter().any(Option::is_some)
}

fn has_time(resolved: &Resolved) -> bool {
    let fields = [&resolved.hour, &resolved.minute, &resolved.second];
    fields.into_iter().any(Option::is_some) || resolved.fractional_second_digits.is_some()
}

fn fill(resolved: &mut Resolved, required: &str, defaults: &str) {
    let is_set = match required {
        "date" => has_date(resolved),
        "time" => has_time(resolved),
        _ => has_date(resolved) || has_time(resolved),
    };
    if is_set || resolved.date_style.is_some() || resolved.time_style.is_some() {
        return;
    }
    let numeric = || Some("numeric".to_owned());
    if defaults != "time" {
        resolved.year = numeric();
        resolved.month = numeric();
        resolved.day = numeric();
    }
    if defaults != "date" {
        resolved.hour = numeric();
        resolved.minute = numeric();
        resolved.second = numeric();
    }
}

fn hours(
    resolved: &mut Resolved,
    options: &Options<'_>,
    choice: &Choice,
) -> Result<(), PowerFault> {
    let words = &["h11", "h12", "h23", "h24"];
    let asked = options.word("hourCycle", words)?;
    if resolved.hour.is_none() && resolved.time_style.is_none() {
        return Ok(());
    }
    let cycles = &choice.language.dates.hour_cycles;
    let extension = choice
        .hour_cycle
        .clone()
        .filter(|cycle| words.contains(&cycle.as_str()));
    let cycle = match options.flag("hour12") {
        Some(true) => cycles.yes.clone(),
        Some(false) => cycles.no.clone(),
        None => asked.or(extension).unwrap_or_else(|| cycles.own.clone()),
    };
    resolved.hour12 = Some(matches!(cycle.as_str(), "h11" | "h12"));
    resolved.hour_cycle = Some(cycle);
    Ok(())
}

fn letter(word: Option<&String>) -> char {
    match word.map(String::as_str) {
        Some("numeric") => 'n',
        Some("2-digit") => '2',
        Some("narrow") => 'N',
        Some("short") => 's',
        Some("long") => 'l',
        Some(_) | None => '-',
    }
}

fn pattern(resolved: &Resolved, dates: &Dates) -> String {
    let family = if resolved.hour12 == Some(true) {
        "a"
    } else {
        "H"
    };
    if resolved.date_style.is_some() || resolved.time_style.is_some() {
        return styled(resolved, dates, family);
    }
    let date_key: String = [
        if resolved.era.is_some() && resolved.year.is_some() {
            'G'
        } else {
            '-'
        },
        letter(resolved.weekday.as_ref()),
        letter(resolved.year.as_ref()),
        letter(resolved.month.as_ref()),
        letter(resolved.day.as_ref()),
    ]
    .iter()
    .collect();
    let time_key: String = [
        letter(resolved.hour.as_ref()),
        letter(resolved.minute.as_ref()),
        letter(resolved.second.as_ref()),
        if resolved.fractional_second_digits.is_some() {
            'S'
        } else {
            '-'
        },
        if resolved.time_zone_name.is_some() {
            'z'
        } else {
            '-'
        },
    ]
    .iter()
    .collect();
    let date = dates.date.get(&date_key);
    let time_key = match resolved.hour {
        Some(_) => format!("{time_key}{family}"),
        None => time_key,
    };
    let time = dates.time.get(&time_key);
    match (date, time) {
        (Some(date), Some(time)) => joint(resolved, dates, date, time),
        (Some(one), None) | (None, Some(one)) => one.clone(),
        (None, None) => String::new(),
    }
}

/// A date and a time, with what stands between.
fn joint(resolved: &Resolved, dates: &Dates, date: &str, time: &str) -> String {
    let glue = &dates.glue;
    let only_weekday =
        resolved.year.is_none() && resolved.month.is_none() && resolved.day.is_none();
    if only_weekday && resolved.hour.is_some() && resolved.minute.is_some() {
        let width = letter(resolved.weekday.as_ref()).to_string();
        if let Some(joint) = glue.weekday.get(&width) {
            return joint.replace("{*}", time);
        }
    }
    let glue = match (resolved.month.as_deref(), resolved.weekday.is_some()) {
        (Some("long"), true) => &glue.full,
        (Some("long"), false) => &glue.long,
        (Some("short" | "narrow"), _) => &glue.medium,
        (_, _) => &glue.short,
    };
    format!("{date}{glue}{time}")
}

fn styled(resolved: &Resolved, dates: &Dates, family: &str) -> String {
    let date = resolved
        .date_style
        .as_ref()
        .and_then(|style| dates.date_style.get(style));
    let time = resolved
        .time_style
        .as_ref()
        .and_then(|style| dates.time_style.get(style)?.get(family));
    let glue = resolved
        .date_style
        .as_ref()
        .and_then(|style| dates.glue.styles.get(style));
    match (date, glue, time) {
        (Some(date), Some(glue), Some(time)) => format!("{date}{glue}{time}"),
        (Some(one), _, _) | (_, _, Some(one)) => one.clone(),
        (None, _, None) => String::new(),
    }
}

/// What is asked for and what is shown can differ: `minute: "numeric"` after an
/// hour has two digits. `resolvedOptions` tells what is shown.
fn show(resolved: &mut Resolved, pattern: &str) {
    if resolved.date_style.is_some() || resolved.time_style.is_some() {
        return;
    }
    for piece in read(pattern) {
        let Piece::Field(field) = piece else { continue };
        let (slot, digits) = match field {
            Field::Year(digits) => (&mut resolved.year, digits),
            Field::Month(digits) => (&mut resolved.month, digits),
            Field::Day(digits) => (&mut resolved.day, digits),
            Field::Hour(digits) => (&mut resolved.hour, digits),
            Field::Minute(digits) => (&mut resolved.minute, digits),
            Field::Second(digits) => (&mut resolved.second, digits),
            Field::MonthName(_)
            | Field::Weekday(_)
            | Field::Era
            | Field::DayPeriod(_)
            | Field::Fraction
            | Field::Zone => continue,
        };
        let word = match digits {
            Digits::Numeric => "numeric",
            Digits::Two => "2-digit",
        };
        *slot = Some(word.to_owned());
    }
}

/// A moment on the clock and calendar of a zone.
#[derive(Debug)]
struct Moment {
    epoch_ms: i64,
    year: i64,
    /// From zero.
    month: usize,
    day: i64,
    weekday: usize,
    hour: i64,
    minute: i64,
    second: i64,
    millisecond: i64,
}

impl Moment {
    fn at(epoch_ms: i64, zone: &Zone) -> Moment {
        let local_ms = epoch_ms + i64::from(zone.offset_seconds(epoch_ms)) * 1000;
        let (days, in_day) = (
            local_ms.div_euclid(86_400_000),
            local_ms.rem_euclid(86_400_000),
        );
        let (year, month, day) = civil(days);
        Moment {
            epoch_ms,
            year,
            month,
            day,
            weekday: usize::try_from((days + 4).rem_euclid(7)).unwrap_or_default(),
            hour: in_day / 3_600_000,
            minute: in_day / 60_000 % 60,
            second: in_day / 1000 % 60,
            millisecond: in_day % 1000,
        }
    }
}

/// Year, month from zero, and day of so many days since 1970, in the Gregorian
/// calendar for all time. The year is counted from March, so that the leap day
/// is its last.
fn civil(days: i64) -> (i64, usize, i64) {
    let days = days + 719_468;
    let (era, in_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year + year / 4 - year / 100);
    let march_month = (5 * in_year + 2) / 153;
    let day = in_year - (153 * march_month + 2) / 5 + 1;
    let month = (march_month + 2) % 12;
    let year = year + era * 400 + i64::from(month < 2);
    (year, usize::try_from(month).unwrap_or_default(), day)
}

fn field_text(
    field: Field,
    moment: &Moment,
    resolved: &Resolved,
    language: &Language,
    zone: &Zone,
) -> (&'static str, String) {
    let dates = &language.dates;
    let name = |lists: &[Vec<String>], list: usize, item: usize| {
        lists
            .get(list)
            .and_then(|list| list.get(item))
            .cloned()
            .unwrap_or_default()
    };
    let year_of_era = if moment.year > 0 {
        moment.year
    } else {
        1 - moment.year
    };
    match field {
        Field::Year(Digits::Numeric) => ("year", year_of_era.to_string()),
        Field::Year(Digits::Two) => ("year", format!("{:02}", year_of_era % 100)),
        Field::Month(digits) => {
            let month = i64::try_from(moment.month + 1).unwrap_or_default();
            ("month", number(month, digits))
        }
        Field::MonthName(list) => ("month", name(&dates.months, list, moment.month)),
        Field::Day(digits) => ("day", number(moment.day, digits)),
        Field::Weekday(list) => ("weekday", name(&dates.weekdays, list, moment.weekday)),
        Field::Era => {
            let width = resolved.era.as_deref().unwrap_or("short");
            let [before, since] = match dates.eras.get(width) {
                Some(names) => names,
                None => return ("era", String::new()),
            };
            (
                "era",
                if moment.year > 0 {
                    since.clone()
                } else {
                    before.clone()
                },
            )
        }
        Field::Hour(digits) => {
            let hour = match resolved.hour_cycle.as_deref() {
                Some("h11") => moment.hour % 12,
                Some("h12") => (moment.hour + 11) % 12 + 1,
                Some("h24") => (moment.hour + 23) % 24 + 1,
                Some(_) | None => moment.hour,
            };
            ("hour", number(hour, digits))
        }
        Field::Minute(digits) => ("minute", number(moment.minute, digits)),
        Field::Second(digits) => ("second", number(moment.second, digits)),
        Field::DayPeriod(list) => {
            let hour = usize::try_from(moment.hour).unwrap_or_default();
            ("dayPeriod", name(&dates.periods, list, hour))
        }
        Field::Fraction => {
            let count = resolved.fractional_second_digits.unwrap_or(3);
            let digits = format!("{:03}", moment.millisecond);
            ("fractionalSecond", digits.chars().take(count).collect())
        }
        Field::Zone => {
            let width = zone_width(resolved);
            (
                "timeZoneName",
                zone.called(width, moment.epoch_ms, language),
            )
        }
    }
}

fn zone_width(resolved: &Resolved) -> Width {
    let style = resolved.time_style.as_deref().map(|style| match style {
        "full" => Width::Long,
        _ => Width::Short,
    });
    let asked = resolved.time_zone_name.as_deref().and_then(Width::parse);
    style.or(asked).unwrap_or(Width::Short)
}

fn number(number: i64, digits: Digits) -> String {
    match digits {
        Digits::Numeric => number.to_string(),
        Digits::Two => format!("{number:02}"),
    }
}
