//! Nothing of one call is there in the next, however often slots are used again.

use sandbox::cell::{CellSettings, Cells};
use sandbox::job::{Ended, Job};

use super::cell_run::{job, run, run_in, show};

/// Changes everything a script can reach, or tries to.
const POLLUTE: &str = r#"
    globalThis.leak = 'MARK-' + seed;
    for (const change of [
        () => { Object.prototype.polluted = 'yes' }, () => { Array.prototype.map = () => 'replaced' },
        () => { Math.random = () => 4 }, () => { JSON.parse = JSON.stringify = () => 'replaced' },
        () => { Promise.prototype.then = null }, () => { Function.prototype.call = null },
        () => { String.prototype.split = () => 'replaced' }, () => { RegExp.prototype.exec = () => 'replaced' },
    ]) { try { change() } catch {} }
    console.log = probe.queued = probe.direct = () => 'replaced';
    globalThis.console = globalThis.probe = globalThis.Date = globalThis.Error = undefined;
    Symbol.for('leak');
    for (const key of Reflect.ownKeys(globalThis)) { try { Object.freeze(globalThis[key]) } catch {} }
    try { Object.freeze(Object.prototype); Object.preventExtensions(globalThis) } catch {}
    const big = []; for (let i = 0; i < dirty; i++) big.push('MARK' + i + seed);
    return 1"#;

/// Looks for any of it, and for the state of everything that could carry it.
const LOOK: &str = r#"
    const clean = [
        typeof leak, ({}).polluted, [1].map((x) => x + 1)[0], Math.random() !== 4,
        JSON.parse('{"a":1}').a, JSON.stringify([1]), typeof console.log, typeof probe.queued, typeof Date,
        'a-b'.split('-').length, /a/.exec('a')[0], Object.isFrozen(Object.prototype), Object.isExtensible(globalThis),
        await probe.queued('echo', 5), new Error('e').message,
    ];
    console.log('ok');
    return clean"#;

const CLEAN: &str = r#"value ["undefined",null,2,true,1,"[1]","function","function","function",2,"a",true,true,5,"e"]"#;

#[test]
fn pollution_is_gone_in_the_next_call() {
    let settings = CellSettings {
        live_max: 4,
        ..CellSettings::default()
    };
    let cells = Cells::load(&settings).expect("the guest loads");
    cells.start_ticker().expect("the ticker starts");
    let rounds = if std::env::var_os("SLOW_TESTS").is_some() {
        10_000
    } else {
        2_000
    };
    for round in 0..rounds {
        // Now and then megabytes, so that whole pages are given back and taken again.
        let dirty = if round % 50 == 0 { 50_000 } else { 20 };
        let globals = format!(r#"{{"seed":{round},"dirty":{dirty}}}"#);
        let polluted = run_in(
            &cells,
            Job {
                globals,
                ..job(POLLUTE)
            },
        );
        assert_eq!(show(&polluted.report.ended), "value 1");
        let looked = run_in(&cells, job(LOOK));
        assert_eq!(show(&looked.report.ended), CLEAN, "round {round}");
        assert_eq!(looked.console.len(), 1);
    }
}

#[test]
fn a_marker_in_raw_memory_is_gone_in_the_next_call() {
    // With one slot, the next sandbox is in the very memory the marker was left in.
    let settings = CellSettings {
        live_max: 1,
        ..CellSettings::default()
    };
    let cells = Cells::load(&settings).expect("the guest loads");
    cells.start_ticker().expect("the ticker starts");
    for round in 0..100 {
        let marker = format!("NEEDLE{round}NEEDLE");
        let write = format!(
            "const keep = []; for (let i = 0; i < 2000; i++) keep.push(new TextEncoder().encode('{marker}'.repeat(20)));
             globalThis.keep = keep; return keep.length"
        );
        let wrote = run_in(&cells, job(&write)).report.ended;
        assert_eq!(wrote, Ended::Value("2000".to_owned()));
        assert_eq!(cells.scan_next_slot(b"NEEDLE"), Some(0), "round {round}");
    }
}

#[test]
fn a_marker_in_raw_memory_would_be_found() {
    // The positive control of the test above: the same scan, inside the same call.
    let settings = CellSettings {
        live_max: 1,
        ..CellSettings::default()
    };
    let cells = Cells::load(&settings).expect("the guest loads");
    let found = cells.scan_after(
        job("globalThis.keep = new TextEncoder().encode('NEEDLE'.repeat(1000)); return 1"),
        b"NEEDLE",
    );
    assert!(found.is_some_and(|count| count >= 1000), "{found:?}");
}

#[test]
fn concurrent_sandboxes_are_isolated() {
    let one = run(job(
        "globalThis.shared = 1; Symbol.for('x').toString(); return typeof other",
    ));
    let two = run(job("globalThis.other = 2; return typeof shared"));
    assert_eq!(show(&one.report.ended), r#"value "undefined""#);
    assert_eq!(show(&two.report.ended), r#"value "undefined""#);
}
