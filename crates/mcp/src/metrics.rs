//! Metrics of calls, for Prometheus. Tool names come from documents, never from
//! callers, and the number of series has a bound.

mod load;

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use engine::load::EngineLoad;
use engine::report::{CallReport, Reporter};
use model::sync::lock;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use load::LoadGauges;

/// Tools with series of their own; the rest are counted under [`OTHER`].
const TOOLS_MAX: usize = 1_000;
/// The tool of a call that found none, or one tool too many.
const OTHER: &str = "other";
/// The content type of the page.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Counts calls. Cheap to clone; all clones count together.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Registry,
    calls: Family<Call, Counter>,
    refusals: Family<Refusal, Counter>,
    turned_away: Family<Refusal, Counter>,
    seconds: Family<Tool, Histogram>,
    cpu_seconds: Counter<f64, AtomicU64>,
    load: LoadGauges,
    tools: Mutex<HashSet<String>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    tool: String,
    origin: String,
    status: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refusal {
    code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Tool {
    tool: String,
}

impl Metrics {
    /// Nothing counted yet.
    #[must_use]
    pub fn new() -> Metrics {
        let mut registry = Registry::with_prefix("ringfence");
        let calls = Family::default();
        registry.register(
            "calls",
            "Calls by tool, door and how they ended",
            calls.clone(),
        );
        let refusals = Family::default();
        let about = "Calls that did not get there, by reason code";
        registry.register("call_errors", about, refusals.clone());
        let turned_away = Family::default();
        let about = "Requests refused before they reached a tool, by reason code";
        registry.register("gate_refusals", about, turned_away.clone());
        let seconds = Family::new_with_constructor(buckets as fn() -> Histogram);
        let about = "Time from asking to answering";
        registry.register_with_unit("call_duration", about, Unit::Seconds, seconds.clone());
        let cpu_seconds = Counter::default();
        let about = "Processor time of scripts, in seconds";
        registry.register("script_cpu_seconds", about, cpu_seconds.clone());
        let load = LoadGauges::new(&mut registry);
        Metrics(Arc::new(Inner {
            registry,
            calls,
            refusals,
            turned_away,
            seconds,
            cpu_seconds,
            load,
            tools: Mutex::default(),
        }))
    }

    /// The name a tool is counted under.
    fn series<'a>(&self, tool: Option<&'a str>) -> &'a str {
        let Some(tool) = tool else {
            return OTHER;
        };
        let mut tools = lock(&self.0.tools);
        if tools.contains(tool) {
            return tool;
        }
        // Instruments keep every series they have seen.
        if tools.len() >= TOOLS_MAX {
            return OTHER;
        }
        tools.insert(tool.to_owned());
        tool
    }

    /// The page, with how many requests authentication refused for what, and how busy
    /// the engine is.
    #[must_use]
    pub fn text(&self, turned_away: &[(&'static str, u64)], load: Option<&EngineLoad>) -> String {
        if let Some(load) = load {
            self.0.load.set(load);
        }
        for (code, count) in turned_away {
            let refusal = Refusal {
                code: (*code).to_owned(),
            };
            // Authentication counts; this is the total.
            let counter = self.0.turned_away.get_or_create(&refusal);
            counter.inner().store(*count, Ordering::Relaxed);
        }
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.0.registry);
        text
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Reporter for Metrics {
    fn report(&self, report: &CallReport) {
        let inner = &self.0;
        let tool = self.series(report.tool.as_deref()).to_owned();
        let call = Call {
            tool: tool.clone(),
            origin: report.origin.word().to_owned(),
            status: report.status.word().to_owned(),
        };
        inner.calls.get_or_create(&call).inc();
        if let Some(code) = &report.code {
            let refusal = Refusal { code: code.clone() };
            inner.refusals.get_or_create(&refusal).inc();
        }
        let seconds = inner.seconds.get_or_create(&Tool { tool });
        seconds.observe(std::time::Duration::from_micros(report.total_us).as_secs_f64());
        let cpu = std::time::Duration::from_micros(report.cpu_us);
        inner.cpu_seconds.inc_by(cpu.as_secs_f64());
    }
}

/// From a tenth of a millisecond to half a minute.
fn buckets() -> Histogram {
    Histogram::new([
        0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0,
        2.5, 10.0, 30.0,
    ])
}

#[cfg(test)]
mod tests {
    use model::caller::Origin;
    use model::record::audit::Status;

    use super::*;

    fn report(tool: Option<&str>, status: Status, code: Option<&str>) -> CallReport {
        CallReport {
            call_id: "id".to_owned(),
            tool: tool.map(str::to_owned),
            caller: "someone".to_owned(),
            origin: Origin::Mcp,
            status,
            code: code.map(str::to_owned),
            risk: None,
            gates: Vec::new(),
            ended_at_ms: 0,
            total_us: 700,
            run_us: 0,
            cpu_us: 250_000,
            trace: None,
            steps: Vec::new(),
        }
    }

    #[test]
    fn calls_are_counted() {
        let metrics = Metrics::new();
        metrics.report(&report(Some("add"), Status::Done, None));
        metrics.report(&report(Some("add"), Status::Done, None));
        metrics.report(&report(None, Status::Refused, Some("tool.unknown")));
        let text = metrics.text(&[("gate.token", 3)], None);
        for line in [
            r#"ringfence_gate_refusals_total{code="gate.token"} 3"#,
            r#"ringfence_calls_total{tool="add",origin="mcp",status="done"} 2"#,
            r#"ringfence_calls_total{tool="other",origin="mcp",status="refused"} 1"#,
            r#"ringfence_call_errors_total{code="tool.unknown"} 1"#,
            r#"ringfence_call_duration_seconds_count{tool="add"} 2"#,
            r#"ringfence_call_duration_seconds_bucket{le="0.0005",tool="add"} 0"#,
            r#"ringfence_call_duration_seconds_bucket{le="0.001",tool="add"} 2"#,
            "ringfence_script_cpu_seconds_total 0.75",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("someone"), "callers have no series");
    }

    #[test]
    fn series_have_a_bound() {
        let metrics = Metrics::new();
        for number in 0..TOOLS_MAX + 10 {
            metrics.report(&report(Some(&format!("tool{number}")), Status::Done, None));
        }
        let series = |text: &str| text.matches("ringfence_calls_total{").count();
        assert_eq!(series(&metrics.text(&[], None)), TOOLS_MAX + 1);
        let rest = r#"ringfence_calls_total{tool="other",origin="mcp",status="done"} 10"#;
        assert!(metrics.text(&[], None).contains(rest));
    }
}
