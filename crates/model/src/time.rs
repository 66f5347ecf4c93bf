//! Lengths of time. What time it is comes in as an argument.

/// Milliseconds of a minute.
pub const MINUTE_MS: i64 = 60_000;
/// Milliseconds of an hour.
pub const HOUR_MS: i64 = 60 * MINUTE_MS;
/// Milliseconds of a day.
pub const DAY_MS: i64 = 86_400_000;

/// A moment as people write it: a length before `now_ms` (`90s`, `15m`, `2h`, `7d`), or a
/// date (`2026-01-31`), which is its midnight in UTC. Nothing if it is neither.
#[must_use]
pub fn moment(text: &str, now_ms: i64) -> Option<i64> {
    match length_ms(text) {
        Some(ago_ms) => Some(now_ms.saturating_sub(ago_ms)),
        None => date_ms(text),
    }
}

/// `2h` in milliseconds.
#[must_use]
pub fn length_ms(text: &str) -> Option<i64> {
    let unit = text.chars().last()?;
    let count: i64 = text.strip_suffix(unit)?.parse().ok()?;
    let each = match unit {
        's' => 1_000,
        'm' => MINUTE_MS,
        'h' => HOUR_MS,
        'd' => DAY_MS,
        _ => return None,
    };
    (count >= 0).then(|| count.saturating_mul(each))
}

/// `2026-01-31`: the date of a moment from 1970 on, UTC.
#[must_use]
pub fn date(at_ms: i64) -> Option<String> {
    let mut left = at_ms.div_euclid(DAY_MS);
    if !(0..=DATE_DAYS_MAX).contains(&left) {
        return None;
    }
    let mut year = 1970;
    loop {
        let days = if is_leap(year) { 366 } else { 365 };
        if left < days {
            break;
        }
        left -= days;
        year += 1;
    }
    let mut month = 1;
    while left >= days_of(year, month) {
        left -= days_of(year, month);
        month += 1;
    }
    Some(format!("{year:04}-{month:02}-{:02}", left + 1))
}

/// Days up to the year 9999.
const DATE_DAYS_MAX: i64 = 2_932_896;

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Midnight, UTC, of a date of the Gregorian calendar from 1970 on.
fn date_ms(text: &str) -> Option<i64> {
    let mut parts = text.split('-');
    let mut number = |chars: usize| {
        let part = parts.next()?;
        let is_plain = part.len() == chars && part.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| part.parse::<i64>().ok()).flatten()
    };
    let (year, month, day) = (number(4)?, number(2)?, number(2)?);
    if parts.next().is_some() || year < 1970 || !(1..=12).contains(&month) {
        return None;
    }
    let days_of = |month: i64| days_of(year, month);
    if !(1..=days_of(month)).contains(&day) {
        return None;
    }
    let years: i64 = (1970..year)
        .map(|year| if is_leap(year) { 366 } else { 365 })
        .sum();
    let months: i64 = (1..month).map(days_of).sum();
    Some((years + months + day - 1) * DAY_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_reads_back_as_it_was_written() {
        for text in [
            "1970-01-01",
            "2024-02-29",
            "2026-12-31",
            "2100-03-01",
            "9999-12-31",
        ] {
            let at_ms = date_ms(text).expect("a date");
            assert_eq!(date(at_ms).as_deref(), Some(text));
            assert_eq!(date(at_ms + DAY_MS - 1).as_deref(), Some(text));
        }
        assert_eq!(date(-1), None);
        assert_eq!(date(i64::MAX), None);
    }

    #[test]
    fn moments_are_lengths_or_dates() {
        let now = 1_785_597_907_123;
        assert_eq!(moment("2h", now), Some(now - 7_200_000));
        assert_eq!(moment("7d", now), Some(now - 604_800_000));
        for (date, at_ms) in [
            ("1970-01-01", 0),
            ("2000-02-29", 951_782_400_000),
            ("2026-11-15", 1_794_700_800_000),
            ("2100-03-01", 4_107_542_400_000),
        ] {
            assert_eq!(moment(date, now), Some(at_ms), "{date}");
        }
        for odd in [
            "yesterday",
            "-1d",
            "h",
            "",
            "2026-13-01",
            "2026-1-1",
            "2026-02-29",
            "1900-01-01",
            "2026-01-31x",
            "2026-01-31-01",
            "+026-01-01",
        ] {
            assert_eq!(moment(odd, now), None, "{odd}");
        }
    }
}
