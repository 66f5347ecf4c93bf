//! The cache of compiled bodies changes nothing but the time.

use sandbox::job::{Ended, Job};

use super::cell_run::{job, run, show};

/// A body large enough to be kept.
fn large(tail: &str) -> String {
    let mut body = String::new();
    for n in 0..60 {
        body.push_str(&format!(
            "const f{n} = (x) => {{ if (x > {n}) return x * {n}; return 'k{n}' }};\n"
        ));
    }
    body + tail
}

#[test]
fn a_kept_body_behaves_as_the_first_time() {
    let body = large(
        "const o = { f: f3 }; return [f3(10), f3.toString().length, o.f.name, (await probe.queued('echo', 2))]",
    );
    let first = run(job(&body)).report;
    assert!(
        matches!(first.ended, Ended::Value(_)),
        "{}",
        show(&first.ended)
    );
    for _ in 0..5 {
        let again = run(job(&body)).report;
        assert_eq!(again.ended, first.ended);
        assert_eq!(again.usage.work, first.usage.work);
    }
}

#[test]
fn positions_survive_the_cache() {
    for tail in [
        "null.x",
        "throw new Error('m')",
        "const g = () => { undefined.y };\n  g()",
    ] {
        let body = large(tail);
        let first = run(job(&body)).report.ended;
        let again = run(job(&body)).report.ended;
        assert_eq!(first, again);
        let Ended::Threw(thrown) = first else {
            panic!("{first:?}")
        };
        assert_eq!(thrown.line, 61, "{thrown:?}");
    }
}

#[test]
fn a_kept_body_is_fresh_each_time() {
    let body = large(
        "globalThis.count = (globalThis.count ?? 0) + start; f1.mark = (f1.mark ?? 0) + 1; return [count, f1.mark]",
    );
    for start in 1..5 {
        let ran = run(Job {
            globals: format!(r#"{{"start":{start}}}"#),
            ..job(&body)
        });
        assert_eq!(show(&ran.report.ended), format!("value [{start},1]"));
    }
}

#[test]
fn another_body_is_another_entry() {
    let one = large("return 1");
    let two = large("return 2");
    for _ in 0..3 {
        assert_eq!(run(job(&one)).report.ended, Ended::Value("1".to_owned()));
        assert_eq!(run(job(&two)).report.ended, Ended::Value("2".to_owned()));
    }
}

#[test]
fn a_body_that_does_not_parse_is_not_kept() {
    let body = large("return (");
    let first = run(job(&body)).report.ended;
    assert!(
        matches!(&first, Ended::Threw(thrown) if thrown.name == "SyntaxError"),
        "{first:?}"
    );
    assert_eq!(run(job(&body)).report.ended, first);
}

#[test]
fn a_large_body_runs() {
    let body = format!("const s = {:?}; return s.length", "x".repeat(300_000));
    for _ in 0..2 {
        assert_eq!(
            run(job(&body)).report.ended,
            Ended::Value("300000".to_owned())
        );
    }
}
