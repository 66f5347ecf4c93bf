//! The promises of SPECIFICATION.md that a bench measures, each with its bound.
//!
//! Machines differ and are busy, so a promise compares two things that were measured
//! in turn in one run, or a size that does not depend on time. Those that also hold on
//! a machine shared with other work are for CI; the others want an idle one.

use clap::ValueEnum;
use serde_json::Value;

/// Which promises are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PromiseSet {
    /// Those that hold on a machine shared with other work.
    Ci,
    /// All of them; for an idle machine.
    All,
}

/// The place of a number in the output of a bench.
type Place = &'static [&'static str];

/// The measured value of a promise.
#[derive(Clone, Copy, Debug)]
enum Measure {
    Number(Place),
    Ratio(Place, Place),
    Sum(Place, Place),
}

#[derive(Clone, Copy, Debug)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// The effect of a missing number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absence {
    Breaks,
    /// It needs a program that may not be installed.
    IsTold,
}

#[derive(Debug)]
struct Promise {
    /// As SPECIFICATION.md has it; the crate is before the dot.
    name: &'static str,
    measure: Measure,
    bound: Bound,
    set: PromiseSet,
    absence: Absence,
}

const PROMISES: &[Promise] = &[
    Promise {
        name: "host.fetch_1kb",
        measure: Measure::Number(&["fetch_over_client_1kb"]),
        bound: Bound::AtMost(1.3),
        set: PromiseSet::All,
        absence: Absence::Breaks,
    },
    Promise {
        name: "host.fetch_1mb",
        measure: Measure::Number(&["fetch_over_client_1mb"]),
        bound: Bound::AtMost(1.3),
        set: PromiseSet::Ci,
        absence: Absence::Breaks,
    },
    Promise {
        name: "sql.statement",
        measure: Measure::Number(&["sql_over_driver_ms"]),
        bound: Bound::AtMost(1.0),
        set: PromiseSet::All,
        absence: Absence::Breaks,
    },
    Promise {
        name: "clone.route",
        measure: Measure::Number(&["clone_over_git"]),
        bound: Bound::AtMost(1.3),
        set: PromiseSet::All,
        absence: Absence::Breaks,
    },
    Promise {
        name: "sandbox.fresh",
        measure: Measure::Number(&["fresh_ratio"]),
        bound: Bound::AtMost(0.5),
        set: PromiseSet::Ci,
        absence: Absence::Breaks,
    },
    Promise {
        name: "sandbox.emscripten",
        measure: Measure::Number(&["quickjs_emscripten", "ours", "16", "times_less"]),
        bound: Bound::AtLeast(6.0),
        set: PromiseSet::All,
        absence: Absence::IsTold,
    },
    Promise {
        name: "sandbox.compute",
        measure: Measure::Number(&["compute_geomean_ratio"]),
        bound: Bound::AtMost(2.5),
        set: PromiseSet::Ci,
        absence: Absence::Breaks,
    },
    Promise {
        name: "sandbox.memory",
        measure: Measure::Sum(&["parked", "worker_kb_each"], &["parked", "parent_kb_each"]),
        bound: Bound::AtMost(130.0),
        set: PromiseSet::Ci,
        absence: Absence::Breaks,
    },
    Promise {
        name: "sandbox.deadline",
        measure: Measure::Number(&["kill", "median_ms"]),
        bound: Bound::AtMost(105.0),
        set: PromiseSet::All,
        absence: Absence::Breaks,
    },
    Promise {
        name: "store.verify",
        measure: Measure::Number(&["verify_cpu_ms"]),
        bound: Bound::AtMost(1_500.0),
        set: PromiseSet::Ci,
        absence: Absence::Breaks,
    },
    Promise {
        name: "store.list",
        measure: Measure::Number(&["list_50_all_cpu_ms"]),
        bound: Bound::AtMost(5.0),
        set: PromiseSet::Ci,
        absence: Absence::Breaks,
    },
    Promise {
        name: "evidence.prove",
        measure: Measure::Number(&["prove_p99_ms"]),
        bound: Bound::AtMost(10.0),
        set: PromiseSet::All,
        absence: Absence::Breaks,
    },
    Promise {
        name: "evidence.sign",
        measure: Measure::Number(&["sign_cpu_us_per_record"]),
        bound: Bound::AtMost(10.0),
        set: PromiseSet::All,
        absence: Absence::Breaks,
    },
    Promise {
        name: "evidence.ship",
        measure: Measure::Number(&["ship_lag_worst_seconds"]),
        bound: Bound::AtMost(2.0),
        set: PromiseSet::All,
        absence: Absence::IsTold,
    },
    Promise {
        name: "shared.call",
        measure: Measure::Number(&["shared_call_cpu_ratio_64"]),
        bound: Bound::AtMost(1.5),
        set: PromiseSet::All,
        absence: Absence::IsTold,
    },
    Promise {
        name: "shared.limited_call",
        measure: Measure::Number(&["shared_limited_call_cpu_ratio_64"]),
        bound: Bound::AtMost(1.5),
        set: PromiseSet::All,
        absence: Absence::IsTold,
    },
    Promise {
        name: "shared.wait",
        measure: Measure::Number(&["shared_limited_call_p50_ms_1"]),
        bound: Bound::AtMost(1.5),
        set: PromiseSet::All,
        absence: Absence::IsTold,
    },
    Promise {
        name: "shared.nodes",
        measure: Measure::Number(&["shared_three_nodes_call_ratio"]),
        bound: Bound::AtLeast(0.9),
        set: PromiseSet::All,
        absence: Absence::IsTold,
    },
    Promise {
        name: "shared.ship",
        measure: Measure::Number(&["shared_ship_lag_worst_seconds"]),
        bound: Bound::AtMost(2.0),
        set: PromiseSet::All,
        absence: Absence::IsTold,
    },
    Promise {
        name: "engine.governed",
        measure: Measure::Ratio(
            &["cpu_us_per_call", "sixty_four_at_a_time", "governed"],
            &["cpu_us_per_call", "sixty_four_at_a_time", "bare"],
        ),
        bound: Bound::AtMost(2.0),
        set: PromiseSet::All,
        absence: Absence::Breaks,
    },
    Promise {
        name: "mcp.governed",
        measure: Measure::Number(&["governed / echo, 2026-07-28", "2"]),
        bound: Bound::AtMost(4.0),
        set: PromiseSet::All,
        absence: Absence::Breaks,
    },
    Promise {
        name: "mcp.wait",
        measure: Measure::Number(&["targets", "p50 ms alone, 2026-07-28", "measured"]),
        bound: Bound::AtMost(1.0),
        set: PromiseSet::All,
        absence: Absence::Breaks,
    },
    Promise {
        name: "bridge.direct",
        measure: Measure::Number(&["ringfence / direct"]),
        bound: Bound::AtMost(2.5),
        set: PromiseSet::All,
        absence: Absence::Breaks,
    },
    Promise {
        name: "bridge.wait",
        measure: Measure::Number(&["p99 ms beyond direct, 800 calls a second"]),
        bound: Bound::AtMost(0.5),
        set: PromiseSet::All,
        absence: Absence::Breaks,
    },
    Promise {
        name: "bridge.fastmcp",
        measure: Measure::Number(&["ringfence / fastmcp"]),
        bound: Bound::AtMost(1.0),
        set: PromiseSet::All,
        absence: Absence::IsTold,
    },
    Promise {
        name: "bridge.mcp_proxy",
        measure: Measure::Number(&["ringfence / mcp-proxy"]),
        bound: Bound::AtMost(1.0),
        set: PromiseSet::All,
        absence: Absence::IsTold,
    },
    Promise {
        name: "bridge.list",
        measure: Measure::Number(&["many", "list ms"]),
        bound: Bound::AtMost(10.0),
        set: PromiseSet::All,
        absence: Absence::Breaks,
    },
    Promise {
        name: "bridge.idle",
        measure: Measure::Number(&["many", "idle cpu, share of a core"]),
        bound: Bound::AtMost(0.01),
        set: PromiseSet::All,
        absence: Absence::Breaks,
    },
    Promise {
        name: "jail.start",
        measure: Measure::Number(&["jail_over_bare_ms"]),
        bound: Bound::AtMost(6.0),
        set: PromiseSet::All,
        absence: Absence::Breaks,
    },
    Promise {
        name: "jail.bwrap",
        measure: Measure::Number(&["jail_over_bwrap"]),
        bound: Bound::AtMost(1.0),
        set: PromiseSet::All,
        absence: Absence::IsTold,
    },
    Promise {
        name: "jail.egress",
        measure: Measure::Number(&["egress_over_open_1mb"]),
        bound: Bound::AtMost(1.3),
        set: PromiseSet::All,
        absence: Absence::IsTold,
    },
];

/// The verdicts on the promises of one crate.
#[derive(Debug)]
pub(super) struct Judged {
    /// One for each promise.
    pub(super) lines: Vec<String>,
    pub(super) is_kept: bool,
}

fn promises(crate_name: &str, set: PromiseSet) -> impl Iterator<Item = &'static Promise> {
    let is_of = move |promise: &&Promise| {
        let own = promise.name.split('.').next();
        own == Some(crate_name) && (set == PromiseSet::All || promise.set == PromiseSet::Ci)
    };
    PROMISES.iter().filter(is_of)
}

/// Whether a crate's benches have to be run.
pub(super) fn has_promises(crate_name: &str, set: PromiseSet) -> bool {
    promises(crate_name, set).next().is_some()
}

/// The arguments that make its benches print the numbers.
pub(super) fn arguments(crate_name: &str) -> &'static [&'static str] {
    match crate_name {
        "sandbox" => &["--json"],
        _ => &[],
    }
}

/// Judges the output of a crate's benches.
pub(super) fn judge(crate_name: &str, set: PromiseSet, printed: &str) -> Judged {
    let reports = reports(printed);
    let mut judged = Judged {
        lines: Vec::new(),
        is_kept: true,
    };
    for promise in promises(crate_name, set) {
        let measured = promise.measure.of(&reports);
        let (is_kept, verdict) = match (measured, promise.absence) {
            (Some(value), _) if promise.bound.holds(value) => (true, "kept"),
            (Some(_), _) => (false, "BROKEN"),
            (None, Absence::IsTold) => (true, "not measured here"),
            (None, Absence::Breaks) => (false, "BROKEN, not measured"),
        };
        let value = measured.map_or("-".to_owned(), |value| format!("{value:.2}"));
        let line = format!(
            "{:<20} {value:>9}  {:<15} {verdict}",
            promise.name,
            promise.bound.text()
        );
        judged.lines.push(line);
        judged.is_kept &= is_kept;
    }
    judged
}

impl Measure {
    fn of(self, reports: &[Value]) -> Option<f64> {
        let number = |place: Place| {
            let mut found = reports.iter().filter_map(|report| at(report, place));
            found.next()
        };
        match self {
            Measure::Number(place) => number(place),
            Measure::Ratio(above, below) => Some(number(above)? / number(below)?),
            Measure::Sum(one, other) => Some(number(one)? + number(other)?),
        }
    }
}

impl Bound {
    /// NaN breaks every promise.
    fn holds(self, value: f64) -> bool {
        match self {
            Bound::AtMost(most) => value <= most,
            Bound::AtLeast(least) => value >= least,
        }
    }

    fn text(self) -> String {
        match self {
            Bound::AtMost(most) => format!("at most {most}"),
            Bound::AtLeast(least) => format!("at least {least}"),
        }
    }
}

fn at(report: &Value, place: Place) -> Option<f64> {
    let mut value = report;
    for key in place {
        value = match value {
            Value::Array(items) => items.get(key.parse::<usize>().ok()?)?,
            other => other.get(key)?,
        };
    }
    value.as_f64()
}

/// The JSON objects among other lines. Each begins at the start of a line.
fn reports(printed: &str) -> Vec<Value> {
    let mut reports = Vec::new();
    let mut rest = printed;
    while !rest.is_empty() {
        if rest.starts_with('{') {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            if let Some(Ok(report)) = values.next() {
                let end = values.byte_offset();
                reports.push(report);
                rest = rest.get(end..).unwrap_or_default();
                continue;
            }
        }
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    }
    reports
}

#[cfg(test)]
mod tests;
