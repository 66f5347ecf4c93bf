//! `cases/limits`: an operator's limits and costs, calls one after the other, and
//! what becomes of each. Calls that are let in end at once and have run.

use std::collections::BTreeMap;
use std::fs;

use model::config::Config;
use model::govern::access::quota::{LimitUsage, LimitedCall, RateLimit, RetryAfter, enter};
use serde::Deserialize;

use crate::entries;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    about: String,
    settings: String,
    call: Vec<Call>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    /// Time of day, such as `23:59:30`, after the day of the call before if earlier.
    at: String,
    caller: Option<String>,
    tool: String,
    #[serde(default = "one")]
    times: u32,
    /// `in`, or what is said to the last of them.
    expect: String,
}

fn one() -> u32 {
    1
}

const DAY_MS: u64 = model::time::DAY_MS.unsigned_abs();

fn time_ms(text: &str) -> u64 {
    let parts: Vec<u64> = text.split(':').map(|part| part.parse().unwrap()).collect();
    let [hours, minutes, seconds] = parts[..] else {
        panic!("{text}");
    };
    ((hours * 60 + minutes) * 60 + seconds) * 1_000
}

/// What everybody used so far.
#[derive(Default)]
struct Book(BTreeMap<(String, String), LimitUsage>);

impl Book {
    fn call(&mut self, config: &Config, visit: &LimitedCall<'_>) -> String {
        let key = |limit: &RateLimit| (limit.id.clone(), visit.caller.to_lowercase());
        let held = config.limits.iter().filter(|limit| limit.holds_for(visit));
        let mut held: Vec<_> = held
            .map(|limit| (limit, self.0.remove(&key(limit)).unwrap_or_default()))
            .collect();
        let entered = enter(&mut held, visit, "p");
        for (limit, mut tally) in held {
            if entered.is_ok() {
                tally.leave("p", visit.at_ms, 0);
            }
            self.0.insert(key(limit), tally);
        }
        match entered {
            Ok(()) => "in".to_owned(),
            Err(exceeded) => {
                let again = match exceeded.again {
                    RetryAfter::Later(ms) => format!("in {} s", ms.div_ceil(1_000)),
                    RetryAfter::Tomorrow(ms) => {
                        format!("with the day, in {} s", ms.div_ceil(1_000))
                    }
                    RetryAfter::AfterAnother => "after another".to_owned(),
                    RetryAfter::Never => "never".to_owned(),
                };
                format!("{exceeded}; again {again}")
            }
        }
    }
}

#[test]
fn limit_cases() {
    let files = entries("cases/limits");
    assert!(files.len() >= 5, "only {} cases", files.len());
    for file in files {
        let case: Case = toml::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let config = Config::parse(&case.settings).unwrap();
        let (mut book, mut day, mut last) = (Book::default(), 20_000, 0);
        for (number, call) in case.call.iter().enumerate() {
            let time = time_ms(&call.at);
            day += u64::from(time < last);
            last = time;
            let visit = LimitedCall {
                caller: call.caller.as_deref().unwrap_or("ann"),
                groups: &[],
                tool: &call.tool,
                units: config.costs.of(&call.tool),
                at_ms: day * DAY_MS + time,
            };
            for turn in 1..=call.times {
                let said = book.call(&config, &visit);
                // All but the last of several get in.
                let expected = match turn == call.times {
                    true => call.expect.as_str(),
                    false => "in",
                };
                let place = file.display();
                assert_eq!(
                    said, expected,
                    "{place}, call {number}, turn {turn}: {}",
                    case.about
                );
            }
        }
    }
}
