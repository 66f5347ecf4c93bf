//! What the claims of a token with a right signature say: for whom it is, when it counts,
//! and which names are what they look like.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::limit;

/// How far two clocks may differ.
pub const CLOCK_LEEWAY: Duration = Duration::from_secs(30);

/// Why a token does not count now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimesFault {
    /// Its times are missing or no numbers.
    Unreadable(&'static str),
    /// Its times and the clock of this machine do not fit; one clock may be wrong.
    Clock(String),
}

/// Whether a token counts at this time.
///
/// # Errors
/// It is over, or not yet begun, or does not say.
pub fn check_times(claims: &Map<String, Value>, now_ms: i64) -> Result<(), TimesFault> {
    let now = Duration::from_millis(u64::try_from(now_ms).unwrap_or(0)).as_secs_f64();
    let leeway = CLOCK_LEEWAY.as_secs_f64();
    let moment = |claim: &str| match claims.get(claim) {
        None => Ok(None),
        Some(value) => match value.as_f64() {
            Some(seconds) if seconds.is_finite() => Ok(Some(seconds)),
            Some(_) | None => Err(TimesFault::Unreadable("its times cannot be read")),
        },
    };
    // A token without an end could never be taken back.
    let expires = moment("exp")?.ok_or(TimesFault::Unreadable("it never expires"))?;
    if now >= expires + leeway {
        let ago = span(now - expires);
        return Err(TimesFault::Clock(format!(
            "it expired {ago} ago by the clock of this server; get a new one, or set the clock"
        )));
    }
    for claim in ["nbf", "iat"] {
        let ahead = moment(claim)?.map_or(0.0, |from| from - now);
        if ahead > leeway {
            let ahead = span(ahead);
            return Err(TimesFault::Clock(format!(
                "its `{claim}` is {ahead} ahead of the clock of this server; set the clock of the server or of the issuer"
            )));
        }
    }
    Ok(())
}

/// A length of time in the largest unit that fits.
fn span(seconds: f64) -> String {
    let units = [(86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")];
    let found = units
        .into_iter()
        .find(|(length, _)| seconds >= 2.0 * length);
    let (length, unit) = found.unwrap_or((1.0, "seconds"));
    format!("{:.0} {unit}", (seconds / length).floor())
}

/// One audience or several; ours must be among them.
#[must_use]
pub fn is_for(audience: Option<&Value>, ours: &str) -> bool {
    match audience {
        Some(Value::String(one)) => one == ours,
        Some(Value::Array(several)) => several.iter().any(|one| one == ours),
        Some(_) | None => false,
    }
}

/// Names stand in rules, questions and the audit, so they must be what they look.
#[must_use]
pub fn is_plain_name(name: &str) -> bool {
    let count = name.chars().count();
    (1..=limit::CLAIM_CHARS_MAX).contains(&count)
        && name.trim() == name
        && !name.chars().any(model::text::is_hidden)
}
