//! Wall one alone: what a call costs, against the same engine compiled natively, in
//! one run. Times are processor time of the calling thread, median of many calls.
//!
//! `cargo bench -p ringfence-sandbox --bench cell`, with `-- --json` for one object.

#[path = "cell/threads.rs"]
mod threads;

use std::fs;
use std::hint::black_box;
use std::io::{self, Write};
use std::time::Instant;

use rquickjs::{Context, Promise, Runtime};
use rustix::time::{ClockId, clock_gettime};
use sandbox::cell::{Cell, CellSettings, CellStep, Cells};
use sandbox::job::{CallId, Ended, HostAnswer, Job, JobLimits, Up};

const COMPUTE: [(&str, &str); 7] = [
    ("integer loop", "let s = 0; for (let i = 0; i < 2000000; i++) s = (s + i) | 0; return s"),
    ("fib(25)", "const f = (n) => n < 2 ? n : f(n - 1) + f(n - 2); return f(25)"),
    (
        "json",
        "const a = []; for (let i = 0; i < 4000; i++) a.push({ id: i, name: 'user ' + i, tags: ['a', 'b'], score: i / 3 });
         return JSON.stringify(JSON.parse(JSON.stringify(a))).length",
    ),
    (
        "regex",
        "let t = ''; for (let i = 0; i < 5000; i++) t += 'row ' + i + ' 2024-' + (i % 12) + '-x user' + i + '@mail.com; ';
         let n = 0; for (const m of t.matchAll(/(\\d+)-(\\w+)-x user(\\d+)@([a-z]+)\\.com/g)) n += m[3].length; return n",
    ),
    (
        "sort",
        "let x = 12345; const a = []; for (let i = 0; i < 50000; i++) { x = (Math.imul(x, 1103515245) + 12345) & 0x7fffffff; a.push(x) }
         a.sort((p, q) => p - q); return a[25000]",
    ),
    (
        "string map",
        "const m = new Map(); for (let i = 0; i < 100000; i++) { const k = 'k' + (i % 5000); m.set(k, (m.get(k) ?? 0) + i) }
         let s = 0; for (const v of m.values()) s += v; return s",
    ),
    ("float loop", "let s = 0; for (let i = 1; i < 1000000; i++) s += Math.sqrt(i) / (i + 0.5); return s"),
];

fn main() -> io::Result<()> {
    let mut lines = Lines { rows: Vec::new() };
    let began = Instant::now();
    let cells = cells(64)?;
    lines.add("load_us", began.elapsed().as_secs_f64() * 1e6);
    call_costs(&cells, &mut lines)?;
    host_call_costs(&cells, &mut lines)?;
    compute(&cells, &mut lines)?;
    parked(&mut lines)?;
    threads::compare(&mut lines)?;
    lines.print()
}

fn call_costs(cells: &Cells, lines: &mut Lines) -> io::Result<()> {
    let add = || job("return a + b", r#"{"a":1,"b":2}"#);
    let ours = median_us(4_000, || run(cells, add()));
    lines.add("fresh_us", ours);
    let native = median_us(1_000, || native("return 1 + 2"));
    lines.add("fresh_native_us", native);
    lines.add("fresh_ratio", ours / native);
    let big = one_kilobyte();
    let echo = || job("input.seen = true; return input", &big);
    lines.add("kilobyte_us", median_us(3_000, || run(cells, echo())));
    // The first call fills the cache; a body that differs each time never finds it.
    let tool = ten_kilobytes();
    run(cells, job(&tool, "{}"));
    lines.add(
        "body_11k_cached_us",
        median_us(1_000, || run(cells, job(&tool, "{}"))),
    );
    let mut n = 0;
    let fresh = median_us(300, || {
        n += 1;
        run(cells, job(&format!("{tool} // {n}"), "{}"))
    });
    lines.add("body_11k_compiled_us", fresh);
    Ok(())
}

fn host_call_costs(cells: &Cells, lines: &mut Lines) -> io::Result<()> {
    for (name, body) in [
        ("queued_1_us", "return await probe.queued('echo', 1)"),
        (
            "queued_10_us",
            "let s = 0; for (let i = 0; i < 10; i++) s += await probe.queued('echo', i); return s",
        ),
        (
            "queued_10_at_once_us",
            "return (await Promise.all([0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((i) => probe.queued('echo', i)))).length",
        ),
        ("direct_1_us", "return probe.direct('echo', 1)"),
        (
            "direct_10_us",
            "let s = 0; for (let i = 0; i < 10; i++) s += probe.direct('echo', i); return s",
        ),
    ] {
        lines.add(name, median_us(2_000, || run(cells, job(body, "{}"))));
    }
    // As the guard writes them.
    for (name, body) in [
        (
            "script_of_no_calls_us",
            "async function __ag_main(){return {sum:55};} return await __ag_main();",
        ),
        (
            "script_of_10_calls_us",
            "async function __ag_main(){let s = 0; for (let i = 0; i < 10; i++) {__ag_turn(); \
             s += await __safe_callTool('add', { a: i, b: 1 });} return {sum:s};} return await __ag_main();",
        ),
    ] {
        let script = || {
            let globals = r#"{"__ag_now":1,"__ag_context":{},"__ag_turns":5000}"#;
            let mut job = job(body, globals);
            job.powers = vec!["guard".to_owned(), "script".to_owned()];
            run(cells, job)
        };
        lines.add(name, median_us(2_000, script));
    }
    Ok(())
}

fn compute(cells: &Cells, lines: &mut Lines) -> io::Result<()> {
    let mut product = 1.0;
    for (name, body) in COMPUTE {
        let ours = least_us(7, || run(cells, job(body, "{}")));
        let native = least_us(7, || native(body));
        lines.add(&format!("compute {name} ratio"), ours / native);
        product *= ours / native;
    }
    lines.add("compute_geomean_ratio", product.powf(1.0 / 7.0));
    Ok(())
}

/// Private memory of sandboxes that wait, a thousand at one time. Each kind has a wall
/// of its own, because a slot keeps some of its pages for the next call.
fn parked(lines: &mut Lines) -> io::Result<()> {
    for (name, body) in [
        ("parked_queued_kb", "await probe.queued('never')"),
        ("parked_direct_kb", "probe.direct('never')"),
    ] {
        let cells = cells(1_000)?;
        let before = private_kb()?;
        let mut out = Vec::new();
        let mut held: Vec<Cell> = Vec::new();
        for id in 0..1_000 {
            let mut cell = cells.start(CallId(id), job(body, "{}"));
            while let CellStep::Ready = cell.step(&mut out) {}
            held.push(cell);
        }
        lines.add(name, (private_kb()? - before) / 1_000.0);
    }
    Ok(())
}

fn cells(live_max: u32) -> io::Result<Cells> {
    let settings = CellSettings {
        live_max,
        ..CellSettings::default()
    };
    let cells = Cells::load(&settings).map_err(io::Error::other)?;
    cells.start_ticker().map_err(io::Error::other)?;
    Ok(cells)
}

fn private_kb() -> io::Result<f64> {
    let text = fs::read_to_string("/proc/self/smaps_rollup")?;
    let field = |name: &str| -> f64 {
        text.lines()
            .filter(|line| line.starts_with(name))
            .filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok())
            .sum()
    };
    Ok(field("Private_Dirty:") + field("Private_Clean:"))
}

fn job(body: &str, globals: &str) -> Job {
    Job {
        body: body.to_owned(),
        globals: globals.to_owned(),
        declared: Vec::new(),
        powers: vec!["probe".to_owned()],
        limits: JobLimits {
            work_max: u64::MAX / 2,
            cpu_ms_max: 60_000,
            wall_ms_max: 600_000,
            memory_bytes_max: 64 << 20,
            result_bytes_max: 1 << 20,
            result_depth_max: 64,
            console_lines_max: 100,
            console_bytes_max: 1 << 16,
            host_calls_max: 1_000,
            host_outstanding_max: 100,
            payload_bytes_max: 1 << 20,
        },
        seed: 7,
        now_ms: 0,
    }
}

/// Runs a job to its end, answering each call at once with its own payload.
fn run(cells: &Cells, job: Job) {
    let mut cell = cells.start(CallId(1), job);
    let mut out = Vec::new();
    loop {
        let step = cell.step(&mut out);
        for up in out.drain(..) {
            if let Up::Host(_, request) = up {
                cell.answer(request.id, HostAnswer::Value(request.payload));
            }
        }
        if let CellStep::Ended(report) = step {
            assert!(
                matches!(report.ended, Ended::Value(_)),
                "{:?}",
                report.ended
            );
            black_box(report);
            return;
        }
    }
}

/// The same body in the same engine without any wall: a new runtime, a new context.
fn native(body: &str) {
    let ran = run_natively(body);
    assert!(ran.is_ok(), "{:?}", ran.err());
}

fn run_natively(body: &str) -> rquickjs::Result<()> {
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(64 << 20);
    let context = Context::full(&runtime)?;
    let source =
        format!("(async function () {{\n{body}\n}})().then((value) => JSON.stringify(value))");
    let text: String = context.with(|js| js.eval::<Promise<'_>, _>(source)?.finish())?;
    black_box(text);
    Ok(())
}

fn one_kilobyte() -> String {
    let items: Vec<_> = (0..12)
        .map(|i| {
            format!(
                r#"{{"id":{i},"sku":"SKU-{:06}","qty":{},"price":{}.5,"tags":["alpha","beta"]}}"#,
                i * 77,
                i % 7,
                i * 3
            )
        })
        .collect();
    format!(
        r#"{{"input":{{"title":"order export","items":[{}]}}}}"#,
        items.join(",")
    )
}

fn ten_kilobytes() -> String {
    let mut body = String::new();
    for i in 0..120 {
        body.push_str(&format!("const f{i} = (x) => {{ if (x > {i}) return x * {i}; else return String(x) + 'k{i}'; }};\n"));
    }
    body + "return f3(10)"
}

fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

fn samples(count: usize, mut call: impl FnMut()) -> Vec<f64> {
    for _ in 0..count / 10 + 1 {
        call();
    }
    let mut times: Vec<f64> = (0..count)
        .map(|_| {
            let before = cpu_us();
            call();
            cpu_us() - before
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

fn median_us(count: usize, call: impl FnMut()) -> f64 {
    samples(count, call)
        .get(count / 2)
        .copied()
        .unwrap_or(f64::NAN)
}

/// The least of a few: what neighbours on the machine disturb least.
fn least_us(count: usize, call: impl FnMut()) -> f64 {
    samples(count, call).first().copied().unwrap_or(f64::NAN)
}

struct Lines {
    rows: Vec<(String, f64)>,
}

impl Lines {
    fn add(&mut self, name: &str, value: f64) {
        self.rows.push((name.to_owned(), value));
    }

    fn print(&self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if std::env::args().any(|argument| argument == "--json") {
            let rows: Vec<_> = self
                .rows
                .iter()
                .map(|(name, value)| format!("{name:?}:{value:.2}"))
                .collect();
            return writeln!(out, "{{{}}}", rows.join(","));
        }
        for (name, value) in &self.rows {
            writeln!(out, "{name:<28} {value:>10.2}")?;
        }
        Ok(())
    }
}
