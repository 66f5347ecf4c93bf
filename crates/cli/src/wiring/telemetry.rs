//! Traces for the operator's collector: one span per call, with one below it for each gate,
//! the wait for a person and the run, and below the run one for each request to the host,
//! sent in batches through the same guarded client that tools use. Spans that cannot be sent are dropped, with one
//! warning; no call ever waits for them.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use engine::Alarm;
use engine::report::{CallReport, Reporter, StepWithin};
use host::fetch::{Fetch, TlsTrust};
use host::message::PowerRequest;
use model::record::audit::Status;
use model::record::mask::Masker;
use model::trace::TraceParent;
use opentelemetry::trace::{
    Span as _, SpanContext, SpanId, SpanKind, Status as SpanStatus, TraceContextExt as _,
    TraceFlags, TraceId, TraceState, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SdkTracer, SdkTracerProvider};
use serde_json::json;

use crate::wiring::outbound;

/// How long the last spans may take when the server ends.
const FLUSH_MAX: Duration = Duration::from_secs(3);

/// Sends a span for each call.
#[derive(Debug)]
pub(crate) struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

impl Traces {
    /// Sends to a collector. `endpoint` is its address without `/v1/traces`; `instance` tells
    /// this node from others, and without one this process has a random name.
    pub(crate) fn to(
        endpoint: &str,
        trust: &TlsTrust,
        instance: Option<String>,
        alarm: Alarm,
    ) -> anyhow::Result<Traces> {
        let collector = Collector::new(endpoint, trust, alarm)?;
        let address = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(collector)
            .with_endpoint(address)
            .build()
            .context("the exporter of traces cannot be built")?;
        let random = RandomIdGenerator::default();
        let instance = instance.unwrap_or_else(|| random.new_trace_id().to_string());
        let resource = Resource::builder_empty()
            .with_service_name("ringfence")
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .with_attribute(KeyValue::new("service.instance.id", instance))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_id_generator(CallIds(random))
            .with_batch_exporter(exporter)
            .build();
        let tracer = provider.tracer("ringfence");
        Ok(Traces { provider, tracer })
    }

    /// Sends the remaining spans, for a bounded time.
    pub(crate) fn end(&self) {
        // A collector that is down must not delay the end of the server; its spans are
        // lost.
        let _ = self.provider.shutdown_with_timeout(FLUSH_MAX);
    }
}

impl Reporter for Traces {
    fn report(&self, report: &CallReport) {
        let ended_at_ms = u64::try_from(report.ended_at_ms).unwrap_or(0);
        let ended = UNIX_EPOCH + Duration::from_millis(ended_at_ms);
        let took = Duration::from_micros(report.total_us);
        // A clock that was set back must not make a span end before it begins.
        let started = ended.checked_sub(took).unwrap_or(SystemTime::UNIX_EPOCH);
        let tool = report.tool.as_deref().unwrap_or("unknown");
        let mut attributes = vec![
            KeyValue::new("gen_ai.operation.name", "execute_tool"),
            KeyValue::new("gen_ai.tool.name", tool.to_owned()),
            KeyValue::new("gen_ai.tool.call.id", report.call_id.clone()),
            KeyValue::new("ringfence.caller", report.caller.clone()),
            KeyValue::new("ringfence.origin", report.origin.word()),
            KeyValue::new("ringfence.status", report.status.word()),
            KeyValue::new("ringfence.run_us", whole(report.run_us)),
            KeyValue::new("ringfence.cpu_us", whole(report.cpu_us)),
        ];
        attributes.extend(
            report
                .risk
                .clone()
                .map(|risk| KeyValue::new("ringfence.risk", risk)),
        );
        attributes.extend(
            report
                .code
                .clone()
                .map(|code| KeyValue::new("error.type", code)),
        );
        let stopped = report.gates.iter().find(|(_, verdict)| verdict == "stop");
        attributes
            .extend(stopped.map(|(gate, _)| KeyValue::new("ringfence.stopped_by", gate.clone())));
        let status = match report.status {
            Status::Done => SpanStatus::Ok,
            _ => SpanStatus::error(report.code.clone().unwrap_or_default()),
        };
        let parent = report.trace.as_deref().and_then(parent);
        let context = match parent {
            Some(parent) => Context::new().with_remote_span_context(parent),
            None => Context::new(),
        };
        let span = self
            .tracer
            .span_builder(format!("execute_tool {tool}"))
            .with_kind(SpanKind::Server)
            .with_start_time(started)
            .with_attributes(attributes);
        // Set for this thread and used at once: the generator is asked while
        // the span is built.
        NEXT.set(TraceParent::of_call(
            &report.call_id,
            report.trace.as_deref(),
        ));
        let mut span = self.tracer.build_with_context(span, &context);
        // A span that is not sampled asks for no id.
        NEXT.set(None);
        let own = Context::new().with_remote_span_context(span.span_context().clone());
        span.set_status(status);
        span.end_with_timestamp(ended);
        self.report_steps(report, &own, started);
    }
}

impl Traces {
    /// One span for each step, below the call or below its run.
    fn report_steps(&self, report: &CallReport, own: &Context, started: SystemTime) {
        let mut run = own.clone();
        for step in &report.steps {
            let at = |us: u64| started + Duration::from_micros(us);
            let child = self
                .tracer
                .span_builder(format!("ringfence.{}", step.name))
                .with_kind(SpanKind::Internal)
                .with_start_time(at(step.begin_us));
            let above = match step.within {
                StepWithin::Call => own,
                StepWithin::Run => &run,
            };
            let mut child = self.tracer.build_with_context(child, above);
            if step.name == "run" {
                run = Context::new().with_remote_span_context(child.span_context().clone());
            }
            child.end_with_timestamp(at(step.end_us));
        }
    }
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The ids of the span that is being made on this thread: a call's own, so that what a
/// call told others about itself is true.
#[derive(Debug)]
struct CallIds(RandomIdGenerator);

thread_local! {
    static NEXT: Cell<Option<TraceParent>> = const { Cell::new(None) };
}

impl IdGenerator for CallIds {
    fn new_trace_id(&self) -> TraceId {
        match NEXT.get() {
            Some(next) => TraceId::from_bytes(next.trace),
            None => self.0.new_trace_id(),
        }
    }

    fn new_span_id(&self) -> SpanId {
        match NEXT.take() {
            Some(next) => SpanId::from_bytes(next.span),
            None => self.0.new_span_id(),
        }
    }
}

/// The span that a call was told of, as its parent.
fn parent(header: &str) -> Option<SpanContext> {
    let parent = TraceParent::parse(header)?;
    Some(SpanContext::new(
        TraceId::from_bytes(parent.trace),
        SpanId::from_bytes(parent.span),
        TraceFlags::new(parent.flags),
        true,
        TraceState::NONE,
    ))
}

/// The operator's collector, reached through the guard: this host and no other.
struct Collector {
    fetch: Arc<Fetch>,
    runtime: tokio::runtime::Handle,
    alarm: Alarm,
    has_failed: AtomicBool,
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Collector")
    }
}

impl Collector {
    fn new(endpoint: &str, trust: &TlsTrust, alarm: Alarm) -> anyhow::Result<Collector> {
        let fetch = outbound::client("telemetry.otlp_endpoint", endpoint, trust)?;
        Ok(Collector {
            fetch: Arc::new(fetch),
            runtime: tokio::runtime::Handle::current(),
            alarm,
            has_failed: AtomicBool::new(false),
        })
    }

    fn failed(&self, why: &str) -> HttpError {
        // Once, until something is sent again: a collector that is down would fill the log.
        if !self.has_failed.swap(true, Ordering::Relaxed) {
            self.alarm.raise(&format!("traces cannot be sent: {why}"));
        }
        why.into()
    }
}

#[async_trait::async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let headers: serde_json::Map<_, _> = request
            .headers()
            .iter()
            .filter_map(|(name, value)| Some((name.to_string(), json!(value.to_str().ok()?))))
            .collect();
        let ask = PowerRequest {
            arguments: json!({
                "url": request.uri().to_string(),
                "method": request.method().as_str(),
                "headers": headers,
            }),
            bytes: request.into_body().to_vec(),
        };
        // The exporter's thread does not belong to the runtime.
        let fetch = Arc::clone(&self.fetch);
        let fetched = self.runtime.spawn(async move { fetch.run(ask).await });
        let answer = match fetched.await {
            Ok(fetched) => fetched
                .outcome
                .map_err(|fault| self.failed(&fault.told(&Masker::none())))?,
            Err(fault) => return Err(self.failed(&fault.to_string())),
        };
        let status = answer
            .value
            .get("status")
            .and_then(serde_json::Value::as_u64);
        let status = status.and_then(|status| u16::try_from(status).ok());
        let response = Response::builder().status(status.unwrap_or(502));
        if status.is_none_or(|status| status >= 400) {
            self.failed(&format!("the collector answers {}", status.unwrap_or(502)));
        } else {
            self.has_failed.store(false, Ordering::Relaxed);
        }
        Ok(response.body(Bytes::from(answer.bytes))?)
    }
}

#[cfg(test)]
mod tests {
    use engine::report::CallStep;

    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const CALL: &str = "019a9324-5ab0-7c01-8f00-aabbccddeeff";

    /// A collector that takes one request and keeps it.
    async fn collector() -> (String, tokio::task::JoinHandle<Vec<u8>>) {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let taken = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            let is_whole = |request: &[u8]| {
                let text = String::from_utf8_lossy(request);
                let (head, _) = text.split_once("\r\n\r\n")?;
                let length = head.to_lowercase();
                let length = length.split_once("content-length: ")?.1.lines().next()?;
                let length: usize = length.parse().ok()?;
                Some(request.len() >= head.len() + 4 + length)
            };
            while is_whole(&request) != Some(true) {
                assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0);
            }
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(answer).await.unwrap();
            request
        });
        (endpoint, taken)
    }

    fn report() -> CallReport {
        CallReport {
            call_id: CALL.to_owned(),
            tool: Some("convertUnits".to_owned()),
            caller: "local".to_owned(),
            origin: model::caller::Origin::Mcp,
            status: Status::Refused,
            code: Some("rule.denied".to_owned()),
            risk: Some("L0".to_owned()),
            gates: vec![("rules".to_owned(), "stop".to_owned())],
            ended_at_ms: 1_700_000_000_000,
            total_us: 900,
            run_us: 0,
            cpu_us: 0,
            trace: Some(format!("00-{TRACE}-00f067aa0ba902b7-01")),
            steps: vec![
                CallStep {
                    name: "approval".into(),
                    within: StepWithin::Call,
                    begin_us: 10,
                    end_us: 500,
                },
                CallStep {
                    name: "run".into(),
                    within: StepWithin::Call,
                    begin_us: 500,
                    end_us: 900,
                },
                CallStep {
                    name: "fetch".into(),
                    within: StepWithin::Run,
                    begin_us: 600,
                    end_us: 800,
                },
            ],
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_call_reaches_the_collector() {
        let (endpoint, taken) = collector().await;
        let alarm = Alarm::new(|sentence| panic!("{sentence}"));
        let node = Some("ringfence/of-a-node".to_owned());
        let traces = Traces::to(&endpoint, &TlsTrust::system(None), node, alarm).unwrap();
        traces.report(&report());
        tokio::task::spawn_blocking(move || traces.end())
            .await
            .unwrap();
        let request = taken.await.unwrap();
        let holds = |part: &[u8]| request.windows(part.len()).any(|window| window == part);
        assert!(request.starts_with(b"POST /v1/traces HTTP/1.1\r\n"));
        for part in [
            "application/x-protobuf",
            "service.instance.id",
            "ringfence/of-a-node",
            "execute_tool convertUnits",
            "rule.denied",
            CALL,
            "ringfence.approval",
            "ringfence.run",
            "ringfence.fetch",
        ] {
            assert!(holds(part.as_bytes()), "{part}");
        }
        assert!(
            holds(&TraceId::from_hex(TRACE).unwrap().to_bytes()),
            "the caller's trace"
        );
        // The id that a server behind this call was told, once as the call's own and once
        // as the parent of each step; a request of the run is below the run.
        let own = [0x8f, 0x00, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff];
        let told = request.windows(8).filter(|window| *window == own);
        assert_eq!(told.count(), 3);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_unreachable_collector_is_reported_once() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let said = Arc::new(std::sync::Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        let alarm = Alarm::new(move |sentence| heard.lock().unwrap().push(sentence.to_owned()));
        let traces = Traces::to(&endpoint, &TlsTrust::system(None), None, alarm).unwrap();
        for _ in 0..3 {
            traces.report(&report());
            let _ = traces.provider.force_flush();
        }
        tokio::task::spawn_blocking(move || traces.end())
            .await
            .unwrap();
        let said = said.lock().unwrap();
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("traces cannot be sent: "), "{said:?}");
    }
}
