//! What a run leaves behind beside its result: rejections that nothing handled, the
//! contents of what was thrown, and the place where it was stopped.

use sandbox::job::{
    Breach, Ended, Job, JobLimits, REJECTIONS_BYTES_MAX, RunReport, StopPlace, Thrown,
};

use super::cell_run::{check, job, run, show};

/// The rejections of a body, in one line each: `1:2 Error: message`.
fn rejections(body: &str) -> (Vec<String>, u32) {
    let report = run(job(body)).report;
    let line = |thrown: &Thrown| {
        format!(
            "{}:{} {}: {}",
            thrown.line, thrown.column, thrown.name, thrown.message
        )
    };
    (
        report.rejections.told.iter().map(line).collect(),
        report.rejections.count,
    )
}

#[track_caller]
fn check_rejections(body: &str, expected: &[&str]) {
    let (told, count) = rejections(body);
    assert_eq!(told, expected, "{body}");
    assert_eq!(count as usize, expected.len(), "{body}");
}

#[test]
fn a_dropped_call_that_fails_is_told_with_its_place() {
    check_rejections(
        "const a = 1;\n  probe.queued('fail');\nawait probe.queued('echo');\nreturn a",
        &["2:9 Error: not allowed"],
    );
    check_rejections(
        "const p = probe.queued('fail');\nawait probe.queued('echo');\nreturn 1",
        &["1:17 Error: not allowed"],
    );
    check_rejections(
        "probe.queued('fail').then((x) => x);\nawait probe.queued('echo')",
        &["1:7 Error: not allowed"],
    );
    // Met by the script at its `await`, and thrown on from there.
    check_rejections(
        "const f = async () => {\n  await probe.queued('fail')\n};\nf();\nawait probe.queued('echo')",
        &["2:15 Error: not allowed"],
    );
    let report = run(job("probe.queued('fail'); await probe.queued('echo')")).report;
    let helper = report.rejections.told[0].helper.as_deref().unwrap();
    assert!(helper.contains("host.denied"), "{helper}");
}

#[test]
fn a_promise_of_the_scripts_own_is_told() {
    check_rejections(
        "Promise.reject(new TypeError('own'))",
        &["1:20 TypeError: own"],
    );
    check_rejections(
        "const late = [];\nlate.push((async () => { null.x })());\nreturn 1",
        &["2:31 TypeError: cannot read property 'x' of null"],
    );
    check_rejections("Promise.reject({ code: 5 })", &[r#"1:9 Error: {"code":5}"#]);
    check_rejections("Promise.reject()", &["1:9 Error: undefined"]);
    check_rejections(
        "new Promise((resolve, reject) => {\n reject('why') })",
        &["2:2 Error: why"],
    );
    check_rejections("queueMicrotask?.(() => 1)", &[]);
}

#[test]
fn handled_rejections_are_not_reported() {
    for body in [
        "try { await probe.queued('fail') } catch {}",
        "await probe.queued('fail').catch(() => 1)",
        "const p = probe.queued('fail'); await probe.queued('echo'); try { await p } catch {}",
        "const p = Promise.reject(1); await null; await null; p.catch(() => 1)",
        "try { await Promise.all([probe.queued('fail'), probe.queued('fail')]) } catch {} await probe.queued('echo')",
        "try { await Promise.race([probe.queued('fail'), probe.queued('fail')]) } catch {} await probe.queued('echo')",
        "try { await Promise.any([probe.queued('fail'), probe.queued('fail')]) } catch {}",
        "await Promise.allSettled([Promise.reject(1), probe.queued('fail')])",
        "for await (const x of (async function* () { yield 1 })()) {}",
        "throw new Error('the end itself')",
        "return probe.queued('fail')",
        "return Promise.reject(1)",
    ] {
        check_rejections(body, &[]);
    }
}

#[test]
fn a_rejection_is_told_however_the_run_ends() {
    for (body, end) in [
        ("Promise.reject(1); return 2", "value 2"),
        ("Promise.reject(1); throw 3", "threw Error: 3"),
        (
            "Promise.reject(1); await new Promise(() => {})",
            "breached Deadlock",
        ),
    ] {
        let report = run(job(body)).report;
        assert_eq!(show(&report.ended), end, "{body}");
        assert_eq!(report.rejections.count, 1, "{body}");
        assert_eq!(report.rejections.told[0].message, "1", "{body}");
    }
}

#[test]
fn rejections_are_bounded() {
    let (told, count) = rejections(
        "for (let i = 0; i < 5000; i++) Promise.reject(new Error(i + 'x'.repeat(9000)))",
    );
    assert_eq!((told.len(), count), (8, 5000));
    assert!(told.iter().all(|line| line.len() < 600), "{told:?}");
    // Handled after all, beyond those that are known one by one too.
    let (told, count) = rejections(
        "const all = []; for (let i = 0; i < 100; i++) all.push(Promise.reject(i));
         for (let i = 0; i < 99; i++) all[i].catch(() => {})",
    );
    assert_eq!((told.len(), count), (0, 1));
    let long = run(job(
        "for (let i = 0; i < 9; i++) probe.queued('fail-long'); await probe.queued('echo')",
    ));
    let told = &long.report.rejections.told;
    let size =
        |thrown: &Thrown| thrown.message.len() + thrown.helper.as_ref().map_or(0, String::len);
    assert_eq!(told.len(), 8);
    assert!(told.iter().map(size).sum::<usize>() < REJECTIONS_BYTES_MAX);
}

/// Attack: what describes a rejection runs no code of the script, and costs it nothing.
#[test]
fn telling_of_a_rejection_runs_no_code() {
    for reason in [
        "{ get message() { globalThis.ran = 1; return 'x' }, get name() { ran = 1 } }",
        "{ toJSON() { ran = 1 }, toString() { ran = 1 }, [Symbol.toPrimitive]() { ran = 1 } }",
        "new Proxy({}, { get() { for (;;); }, ownKeys() { for (;;); }, getOwnPropertyDescriptor() { for (;;); } })",
        "new Proxy(new Error('x'), { get() { for (;;); }, getPrototypeOf() { for (;;); } })",
        "Object.create(new Proxy({}, { get() { for (;;); }, has() { for (;;); } }))",
        "Object.defineProperty([1, 2], 1, { get() { for (;;); } })",
        "new (class extends Error { get message() { for (;;); } get name() { for (;;); } })()",
        "Object.assign(() => 1, { message: { toString() { for (;;); } } })",
    ] {
        let body = format!(
            "globalThis.ran = 0; Promise.reject({reason}); return {{ toJSON() {{ return ran }} }}"
        );
        let report = run(job(&body)).report;
        assert_eq!(show(&report.ended), "value 0", "{body}");
        assert_eq!(report.rejections.told.len(), 1, "{body}");
    }
}

#[test]
fn thrown_values_show_their_contents() {
    for (thrown, said) in [
        (
            "{ code: 'LIMIT', detail: { most: 5 } }",
            r#"{"code":"LIMIT","detail":{"most":5}}"#,
        ),
        ("{ message: 'm', code: 5 }", r#"{"message":"m","code":5}"#),
        ("{ message: 'only this' }", "only this"),
        ("[1, 'a', null]", r#"[1,"a",null]"#),
        ("new Map([['k', 1]])", r#"{"k":1}"#),
        ("{}", "{}"),
        (
            "{ a: undefined, f() {}, s: Symbol('s') }",
            r#"{"a":undefined,"f":[function],"s":[symbol]}"#,
        ),
        ("() => 1", "[function]"),
        ("'text'", "text"),
        ("undefined", "undefined"),
        ("42", "42"),
        ("{ get message() { throw 1 } }", r#"{"message":"[getter]"}"#),
        (
            "{ toJSON() { for (;;); }, a: 1 }",
            r#"{"toJSON":[function],"a":1}"#,
        ),
        (
            "new Proxy({ a: 1 }, { ownKeys() { for (;;); } })",
            "[proxy]",
        ),
        (
            "{ inner: new Proxy({}, { get() { for (;;); } }) }",
            r#"{"inner":[proxy]}"#,
        ),
        (
            "{ when: new Date(0), big: 5n, e: new RangeError('r') }",
            r#"{"when":"1970-01-01T00:00:00.000Z","big":5n,"e":RangeError: r}"#,
        ),
        (
            "(() => { const a = { n: 1 }; a.self = a; return a })()",
            r#"{"n":1,"self":[circular]}"#,
        ),
    ] {
        check(&format!("throw {thrown}"), &format!("threw Error: {said}"));
        check(
            &format!("return Promise.reject({thrown})"),
            &format!("threw Error: {said}"),
        );
    }
    let Ended::Threw(long) = run(job(
        "throw { rows: Array.from({ length: 1e5 }, (_, i) => i), s: 'x'.repeat(1e6) }",
    ))
    .report
    .ended
    else {
        panic!("it was thrown");
    };
    assert!(
        long.message.len() < 2_100 && long.message.contains('…'),
        "{}",
        long.message.len()
    );
    let Ended::Threw(long) = run(job("throw { s: 'x'.repeat(1e6) }")).report.ended else {
        panic!("it was thrown");
    };
    assert!(
        long.message.len() < 7_000 && long.message.contains('…'),
        "{}",
        long.message.len()
    );
}

/// The parent takes a worker whose JSON is cut for a broken one.
#[test]
fn the_json_of_a_power_is_whole_or_absent() {
    let Ended::Threw(thrown) = run(job("await probe.queued('fail-long')")).report.ended else {
        panic!("it was thrown");
    };
    let helper = thrown.helper.unwrap();
    assert!(
        helper.len() > 40_000 && helper.ends_with('}'),
        "{}",
        helper.len()
    );
}

fn stopped(body: &str, change: impl FnOnce(&mut JobLimits)) -> (String, Option<StopPlace>) {
    let mut job = Job {
        limits: super::cell_run::limits(),
        ..job(body)
    };
    change(&mut job.limits);
    let report = run(job).report;
    (show(&report.ended), report.stopped_at)
}

const SLOW: &str = "const text = 'a'.repeat(40) + 'b';\nconst f = () => {\n  return /^(a+)+$/.test(text);\n};\nreturn [1].map(f)";

#[test]
fn a_run_that_is_stopped_has_its_place() {
    let place = |line, column, in_regex| {
        Some(StopPlace {
            line,
            column,
            in_regex,
        })
    };
    for (body, expected) in [
        (SLOW, place(3, 20, true)),
        (
            "return 'x'.repeat(9).replace(\n/a/, '') +\n ('a'.repeat(40) + 'b').replace(/^(a+)+$/, '')",
            place(3, 25, true),
        ),
    ] {
        let (end, at) = stopped(body, |limits| limits.work_max = 3_000_000);
        assert_eq!((end.as_str(), at), ("breached Work", expected), "{body}");
    }
    // A loop is stopped somewhere in it.
    for (body, lines) in [
        ("const a = 1;\nfor (;;) {}", 2..=2),
        ("let n = 0;\nwhile (true) {\n  n++;\n}", 2..=3),
        (
            "const f = () => {\n  g();\n};\nconst g = () => 1;\nfor (;;) f()",
            2..=5,
        ),
    ] {
        let (end, at) = stopped(body, |limits| limits.work_max = 3_000_000);
        assert_eq!(end, "breached Work", "{body}");
        assert!(
            at.is_some_and(|at| lines.contains(&at.line) && !at.in_regex),
            "{body}: {at:?}"
        );
    }
    // Processor time looks less often.
    let (end, at) = stopped(SLOW, |limits| limits.cpu_ms_max = 50);
    assert_eq!((end.as_str(), at), ("breached Cpu", place(3, 20, true)));
    let (end, at) = stopped("const a = 1;\nfor (;;) {}", |limits| limits.cpu_ms_max = 50);
    assert_eq!(end, "breached Cpu");
    assert_eq!(at.map(|at| (at.line, at.in_regex)), Some((2, false)));
    // Other ends have none.
    assert_eq!(run(job("return 1")).report.stopped_at, None);
    let (end, at) = stopped("await probe.queued('never')", |limits| {
        limits.wall_ms_max = 50
    });
    assert_eq!((end.as_str(), at), ("breached Wall", None));
}

/// A regular expression that is over is not blamed for what comes after it.
#[test]
fn only_a_regular_expression_at_work_is_blamed() {
    let body = "const slow = /^(a+)+$/.test('a'.repeat(18) + 'b');\nfor (;;) {}";
    let (end, at) = stopped(body, |limits| limits.work_max = 30_000_000);
    assert_eq!(end, "breached Work");
    assert_eq!(at.map(|at| (at.line, at.in_regex)), Some((2, false)));
}

/// What the console of a tool shows of all this.
#[test]
fn a_tool_is_told_in_one_line_each() {
    let report = run(job(
        "Promise.reject(new TypeError('own'));\nPromise.reject();\nreturn '\\ud800'",
    ))
    .report;
    assert_eq!(
        report.remarks(),
        [
            "the result has half a character (a lone surrogate); it came out as U+FFFD",
            "a promise was rejected at line 1, column 20 and nothing handled it: TypeError: own",
            "a promise was rejected at line 2, column 9 and nothing handled it: Error: undefined",
        ]
    );
    let many = run(job("for (let i = 0; i < 20; i++) Promise.reject(i)")).report;
    let last = many.remarks().pop().unwrap();
    assert_eq!(last, "more rejected promises that nothing handled: 12");
    let words = |body: &str| {
        let mut job = job(body);
        job.limits.work_max = 3_000_000;
        let report = run(job).report;
        RunReport::breach_words(Breach::Work, report.stopped_at)
    };
    assert_eq!(
        words(SLOW),
        "a regular expression took more steps than the code may"
    );
    assert_eq!(
        words("for (;;) {}"),
        "the code ran more statements than it may"
    );
}
