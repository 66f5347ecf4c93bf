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
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of = |month: i64| match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
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
