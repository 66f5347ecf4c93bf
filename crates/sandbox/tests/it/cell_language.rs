//! What of the language is there: each probe with its answer. A change of the engine
//! that takes something away, or brings something, shows here.

use super::cell_run::{check, ended};

/// Expressions that are true where the feature is there.
const PRESENT: &[&str] = &[
    // ES2015 to ES2020, by sample.
    "[...'a\u{1F600}'].length === 2",
    "(() => { class A { #x = 1; get x() { return this.#x } static s = 2 } return new A().x + A.s === 3 })()",
    "(({ a, ...rest }) => rest.b)({ a: 1, b: 2 }) === 2",
    "2 ** 10 === 1024 && [1, 2].includes(2)",
    "'x'.padStart(3, 'ab') === 'abx' && Object.entries({ a: 1 })[0][1] === 1",
    "(async () => { for await (const x of [1]) return x })() instanceof Promise",
    "/(?<year>\\d{4})/u.exec('2024').groups.year === '2024'",
    "/(?<=a)b/s.test('ab') && /\\p{L}/u.test('\u{e9}')",
    "[1, [2, [3]]].flat(Infinity).length === 3 && Object.fromEntries([['a', 1]]).a === 1",
    "null?.x === undefined && (null ?? 1) === 1",
    "10n ** 20n === 100000000000000000000n && BigInt.asUintN(8, 257n) === 1n",
    "[...'a1b2'.matchAll(/\\d/g)].length === 2 && typeof globalThis === 'object'",
    "Promise.allSettled([]) instanceof Promise",
    "Symbol('d').description === 'd'",
    // ES2021
    "'aa'.replaceAll('a', 'b') === 'bb' && 1_000 === 1000",
    "(() => { let a = null; a ??= 1; a &&= 2; a ||= 3; return a === 2 })()",
    "typeof WeakRef === 'function' && typeof FinalizationRegistry === 'function'",
    "Promise.any([Promise.resolve(1)]) instanceof Promise && new AggregateError([1]).errors.length === 1",
    // ES2022
    "[1, 2].at(-1) === 2 && 'ab'.at(-1) === 'b' && Object.hasOwn({ a: 1 }, 'a')",
    "new Error('m', { cause: 1 }).cause === 1",
    "/a/d.exec('ba').indices[0][0] === 1",
    "(() => { class A { static { A.y = 1 } static has(o) { return #p in o } #p } return A.y === 1 && A.has(new A()) })()",
    // ES2023
    "[3, 1].toSorted()[0] === 1 && [1, 2].toReversed()[0] === 2 && [1].with(0, 9)[0] === 9",
    "[1, 2, 3].toSpliced(0, 1).length === 2 && [1, 2].findLast((x) => x < 2) === 1",
    "new WeakMap([[Symbol('k'), 1]]) instanceof WeakMap",
    // ES2024
    "Object.groupBy([1, 2, 3], (x) => (x % 2 ? 'odd' : 'even')).odd.length === 2",
    "Map.groupBy([1, 2], (x) => x % 2).get(1)[0] === 1",
    "Promise.withResolvers().promise instanceof Promise",
    "'a\\ud800'.isWellFormed() === false && 'a\\ud800'.toWellFormed() === 'a\\ufffd'",
    "/[\\p{L}--[a-z]]/v.test('A') && !/[\\p{L}--[a-z]]/v.test('a')",
    "new ArrayBuffer(8, { maxByteLength: 16 }).resizable && new ArrayBuffer(8).transfer(4).byteLength === 4",
    // Newer, and there.
    "new Set([1, 2]).union(new Set([3])).size === 3 && new Set([1]).isSubsetOf(new Set([1, 2]))",
    "[1, 2, 3].values().map((x) => x * 2).take(2).toArray().length === 2",
    "typeof Array.fromAsync === 'function' && typeof Promise.try === 'function'",
    "/(?i:a)b/.test('Ab') && RegExp.escape('.') === '\\\\.'",
    "new Uint8Array([1, 2]).toBase64() === 'AQI=' && Uint8Array.fromHex('ff')[0] === 255",
    "new Float16Array([1.5])[0] === 1.5 && Math.f16round(1.5) === 1.5",
    "Error.isError(new TypeError()) && !Error.isError({})",
    "JSON.rawJSON('1').rawJSON === '1'",
    // Ours.
    "btoa('\u{e9}') === '6Q==' && atob(' 6 Q = = ') === '\u{e9}'",
    "new TextEncoder().encode('\u{e9}\\ud800').join() === '195,169,239,191,189'",
    "new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 0xe2, 0x82, 0xac, 0xff])) === '\u{20ac}\u{fffd}'",
    "(() => { const d = new TextDecoder(); return d.decode(new Uint8Array([0xe2, 0x82]), { stream: true }) + d.decode(new Uint8Array([0xac])) === '\u{20ac}' })()",
    "(() => { try { new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([0xff])) } catch (e) { return e instanceof TypeError } })()",
    "(() => { const a = { d: new Date(5), m: new Map([[1, { x: 1 }]]), u: new Uint8Array([7]) }; a.self = a; const b = structuredClone(a); return b !== a && b.self === b && b.d.getTime() === 5 && b.m.get(1).x === 1 && b.u[0] === 7 })()",
    "(() => { try { structuredClone(() => 1) } catch (e) { return e.name === 'DataCloneError' } })()",
    "structuredClone(new RangeError('r')) instanceof RangeError",
    "typeof queueMicrotask === 'function'",
];

/// Names that are not there, on purpose or because the engine lacks them.
const ABSENT: &[&str] = &[
    "Atomics",
    "SharedArrayBuffer",
    "Temporal",
    "WebAssembly",
    "setTimeout",
    "setInterval",
    "fetch",
    "require",
    "process",
    "Worker",
    "XMLHttpRequest",
    "ShadowRealm",
];

#[test]
fn documented_globals_exist() {
    let missing: Vec<_> = PRESENT
        .iter()
        .map(|probe| (probe, ended(&format!("return {probe}"))))
        .filter(|(_, found)| found != "value true")
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn undocumented_globals_do_not_exist() {
    for name in ABSENT {
        check(&format!("return typeof {name}"), r#"value "undefined""#);
    }
}

#[test]
fn resources_are_disposed_of() {
    check(
        "const log = []; { using a = { [Symbol.dispose]() { log.push('a') } }; log.push('in') } return log",
        r#"value ["in","a"]"#,
    );
}

#[test]
fn the_prelude_shows_nothing_of_itself() {
    check(
        "return probe.queued.toString().includes('shape')",
        "value false",
    );
    check(
        "return structuredClone.toString().includes('seen')",
        "value false",
    );
}
