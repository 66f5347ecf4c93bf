//! Each bound has its own breach, a breach is final, and the work budget is the same
//! on every run.

use std::time::{Duration, Instant};

use sandbox::cell::CellStep;
use sandbox::job::{Breach, CallId, Ended, HostAnswer, HostCallId, Job, JobLimits, Payload, Up};

use super::cell_run::{cells, check_breach, job, limits, run, show};

fn with(body: &str, change: impl FnOnce(&mut JobLimits)) -> Job {
    let mut job = job(body);
    change(&mut job.limits);
    job
}

#[test]
fn each_bound_has_its_own_breach() {
    let long = "return 'x'.repeat(100)";
    check_breach(with("for (;;) {}", |l| l.work_max = 1_000), Breach::Work);
    check_breach(with("for (;;) {}", |l| l.cpu_ms_max = 20), Breach::Cpu);
    check_breach(with("for (;;) {}", |l| l.wall_ms_max = 20), Breach::Wall);
    check_breach(
        with("new Uint8Array(9e6)", |l| l.memory_bytes_max = 8 << 20),
        Breach::Memory,
    );
    check_breach(
        with("return 1", |l| l.memory_bytes_max = 1 << 20),
        Breach::Memory,
    );
    check_breach(job("JSON.parse('['.repeat(1e6))"), Breach::Stack);
    check_breach(
        with(long, |l| l.result_bytes_max = 101),
        Breach::ResultBytes,
    );
    check_breach(
        with("return [[1]]", |l| l.result_depth_max = 1),
        Breach::ResultDepth,
    );
    check_breach(
        with("console.log(1); console.log(2)", |l| {
            l.console_lines_max = 1
        }),
        Breach::ConsoleLines,
    );
    check_breach(
        with("console.log('12'); console.log('34')", |l| {
            l.console_bytes_max = 3
        }),
        Breach::ConsoleBytes,
    );
    check_breach(
        with("probe.direct('echo'); probe.direct('echo')", |l| {
            l.host_calls_max = 1
        }),
        Breach::HostCalls,
    );
    check_breach(
        with("probe.queued('x'); probe.queued('x')", |l| {
            l.host_outstanding_max = 1
        }),
        Breach::HostOutstanding,
    );
    check_breach(
        with("probe.queued('x', '12345')", |l| l.payload_bytes_max = 6),
        Breach::PayloadBytes,
    );
    check_breach(
        with("probe.direct('bytes')", |l| l.payload_bytes_max = 3),
        Breach::PayloadBytes,
    );
    check_breach(job("await new Promise(() => {})"), Breach::Deadlock);
}

#[test]
fn exactly_at_the_bound_is_allowed() {
    let fits = with("return 'x'.repeat(100)", |l| l.result_bytes_max = 102);
    assert!(matches!(run(fits).report.ended, Ended::Value(_)));
    let fits = with("return [[1]]", |l| l.result_depth_max = 2);
    assert!(matches!(run(fits).report.ended, Ended::Value(_)));
    let fits = with("console.log('123')", |l| {
        (l.console_lines_max, l.console_bytes_max) = (1, 3)
    });
    assert_eq!(run(fits).report.ended, Ended::Undefined);
    let fits = with("return probe.direct('echo', 'abc')", |l| {
        (
            l.payload_bytes_max,
            l.host_calls_max,
            l.host_outstanding_max,
        ) = (5, 1, 1)
    });
    assert!(matches!(run(fits).report.ended, Ended::Value(_)));
}

#[test]
fn a_breach_is_final() {
    for inner in [
        "for (;;) {}",
        "console.log(1)",
        "probe.direct('echo')",
        "held.push(new Uint8Array(1e6))",
    ] {
        let body = format!(
            "const held = []; for (;;) {{ try {{ for (;;) {{ {inner} }} }} catch {{ continue }} finally {{ continue }} }}"
        );
        let job = with(&body, |l| {
            (l.cpu_ms_max, l.console_lines_max, l.host_calls_max) = (50, 5, 5)
        });
        let ended = run(job).report.ended;
        assert!(matches!(ended, Ended::Breached(_)), "{inner}: {ended:?}");
    }
}

#[test]
fn the_work_budget_gives_the_same_verdict_on_every_run() {
    let bodies = [
        "let n = 0; for (let i = 0; i < 100000; i++) n += i; return n",
        "return /(a+)+$/.test('a'.repeat(16) + '!')",
        "const f = (n) => n < 2 ? n : f(n - 1) + f(n - 2); return f(20)",
        "return (await Promise.all(Array.from({ length: 20 }, (_, i) => probe.queued('echo', i)))).length",
        "const a = Array.from({ length: 3000 }, (_, i) => (i * 7919) % 3000); a.sort((x, y) => x - y); return a[7]",
        "const held = []; for (let i = 0; i < 20000; i++) { const o = { i }; o.self = o; held[i % 7] = o } return 1",
    ];
    for body in bodies {
        let first = run(job(body)).report;
        assert!(
            matches!(first.ended, Ended::Value(_)),
            "{}",
            show(&first.ended)
        );
        let work = first.usage.work;
        for _ in 0..20 {
            let again = run(job(body)).report;
            assert_eq!(
                (again.ended, again.usage.work),
                (first.ended.clone(), work),
                "{body}"
            );
        }
        // One unit less than it needs is a breach, every time; one more is enough.
        if work > 1 {
            for _ in 0..5 {
                let short = run(with(body, |l| l.work_max = work)).report;
                assert_eq!(short.ended, Ended::Breached(Breach::Work), "{body}");
                let enough = run(with(body, |l| l.work_max = work + 1)).report;
                assert_eq!(enough.ended, first.ended, "{body}");
            }
        }
    }
}

#[test]
fn work_counts_jumps_and_calls() {
    let work = |body: &str| run(job(body)).report.usage.work;
    let empty = work("");
    assert!(empty <= 4, "{empty}");
    let loops = work("for (let i = 0; i < 1000; i++) {}") - empty;
    // A condition and a jump back, each time round.
    assert!((2000..=2002).contains(&loops), "{loops}");
    let calls = work("const f = () => 1; let i = 0; for (; i < 1000; i++) f()") - empty;
    assert!((3000..=3004).contains(&calls), "{calls}");
    let regex = work("/(a+)+$/.test('a'.repeat(16) + '!')") - empty;
    assert!(regex >= 10_000 && regex % 10_000 < 10, "{regex}");
}

#[test]
fn an_endless_loop_ends_within_five_percent() {
    for _ in 0..5 {
        let report = run(with("for (;;) {}", |l| l.cpu_ms_max = 100)).report;
        assert_eq!(report.ended, Ended::Breached(Breach::Cpu));
        assert!(report.usage.cpu_us <= 105_000, "{}", report.usage.cpu_us);
        assert!(report.usage.cpu_us >= 100_000, "{}", report.usage.cpu_us);
    }
}

#[test]
fn processor_time_is_not_counted_while_a_call_is_awaited() {
    for body in [
        "await probe.queued('slow'); return 1",
        "probe.direct('slow'); return 1",
    ] {
        let job = with(body, |l| (l.cpu_ms_max, l.wall_ms_max) = (30, 5_000));
        let mut cell = cells().start(CallId(7), job);
        let mut out = Vec::new();
        assert!(matches!(cell.step(&mut out), CellStep::Waiting), "{body}");
        let Some(Up::Host(CallId(7), request)) = out.pop() else {
            panic!("no request")
        };
        let until = Instant::now() + Duration::from_millis(60);
        while Instant::now() < until {
            assert!(matches!(cell.step(&mut out), CellStep::Waiting));
            std::thread::yield_now();
            std::thread::park_timeout(Duration::from_millis(5));
        }
        // Answers to no pending request change nothing.
        cell.answer(HostCallId(99), HostAnswer::Value(Payload::default()));
        cell.answer(
            request.id,
            HostAnswer::Value(Payload {
                json: "1".to_owned(),
                bytes: Vec::new(),
            }),
        );
        cell.answer(request.id, HostAnswer::Error("{}".to_owned()));
        match cell.step(&mut out) {
            CellStep::Ended(report) => {
                assert_eq!(report.ended, Ended::Value("1".to_owned()));
                assert!(
                    report.usage.wall_us >= 60_000 && report.usage.cpu_us < 30_000,
                    "{report:?}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_cancelled_cell_says_so_wherever_it_is() {
    for body in [
        "for (;;) {}",
        "await probe.queued('never')",
        "probe.direct('never')",
        "return 1",
    ] {
        let mut cell = cells().start(CallId(1), job(body));
        let mut out = Vec::new();
        if body != "return 1" {
            assert!(!matches!(cell.step(&mut out), CellStep::Ended(_)), "{body}");
        }
        cell.cancel();
        match cell.step(&mut out) {
            CellStep::Ended(report) => assert_eq!(report.ended, Ended::Cancelled, "{body}"),
            other => panic!("{body}: {other:?}"),
        }
    }
}

#[test]
fn cells_take_turns() {
    let mut spinners: Vec<_> = (0..3)
        .map(|id| cells().start(CallId(id), job("for (;;) {}")))
        .collect();
    let mut quick = cells().start(CallId(9), job("return 'quick'"));
    let mut out = Vec::new();
    for spinner in &mut spinners {
        assert!(matches!(spinner.step(&mut out), CellStep::Ready));
    }
    assert!(matches!(quick.step(&mut out), CellStep::Ended(_)));
    for spinner in &mut spinners {
        spinner.cancel();
        // Processor time, not wall time: other tests keep the machine busy.
        match spinner.step(&mut out) {
            CellStep::Ended(report) => {
                let cpu_us = report.usage.cpu_us;
                assert!(cpu_us < 100_000, "a turn of {cpu_us} µs");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn usage_is_reported() {
    let report = run(job(
        "const a = new Uint8Array(1 << 22); await probe.queued('echo'); return a.length",
    ))
    .report;
    assert_eq!(report.usage.host_calls, 1);
    assert!(report.usage.memory_bytes > 4 << 20 && report.usage.memory_bytes <= 64 << 20);
    assert!(report.usage.work > 0 && report.usage.cpu_us > 0);
    assert!(report.usage.wall_us >= report.usage.cpu_us / 2);
    assert!(limits().memory_bytes_max > 0);
}

#[test]
fn ordinary_recursion_goes_thousands_deep_and_then_throws() {
    for (form, least) in [
        ("const f = () => { depth++; f() }", 7_000),
        (
            "function f(a, b, c) { depth++; return f(a, b, c) + 1 }",
            7_000,
        ),
        (
            "const o = { get a() { depth++; return this.a } }, f = () => o.a",
            6_000,
        ),
        (
            "class A { constructor() { depth++; new A() } } const f = () => new A()",
            7_000,
        ),
        ("const f = () => { depth++; [1].map(f) }", 3_000),
        (
            "const f = () => { depth++; Reflect.apply(f, null, []) }",
            3_000,
        ),
        ("const f = async () => { depth++; await f() }", 3_000),
        (
            "function* g() { depth++; yield* g() } const f = () => g().next()",
            3_000,
        ),
        ("const f = () => { depth++; eval('f()') }", 2_500),
        (
            "const f = () => { depth++; return 'a'.replace(/a/g, f) }",
            1_500,
        ),
        (
            "const o = { toString() { depth++; return `${o}` } }, f = () => `${o}`",
            1_500,
        ),
        (
            "const f = () => { depth++; [1, 2].sort(f); return 0 }",
            1_500,
        ),
    ] {
        let body = format!(
            "let depth = 0; {form}\ntry {{ await f() }} catch (error) {{ return [error.name, depth] }}"
        );
        let ended = run(job(&body)).report.ended;
        let depth = match &ended {
            Ended::Value(json) => json
                .strip_prefix("[\"RangeError\",")
                .and_then(|rest| rest.strip_suffix(']')?.parse::<u32>().ok()),
            _ => None,
        };
        assert!(depth >= Some(least), "{form}: {ended:?}");
    }
}

#[test]
fn nesting_that_native_code_walks_ends_by_name() {
    for body in [
        "JSON.parse('['.repeat(1e6))",
        "let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x",
        "let o = []; for (let i = 0; i < 1e5; i++) o = [o]; JSON.stringify(o)",
        "new Function('('.repeat(1e5) + '1' + ')'.repeat(1e5))",
    ] {
        check_breach(job(body), Breach::Stack);
    }
    // As deep as data is ever meant to be.
    let body = "JSON.parse('['.repeat(5000) + ']'.repeat(5000)); return 1";
    assert_eq!(run(job(body)).report.ended, Ended::Value("1".to_owned()));
}
