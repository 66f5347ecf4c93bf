//! Everything a script can reach, by name: `cases/surface`. A walk through the real
//! sandbox lists each object and function with its path, what it is and whether it can
//! be changed. A list that grows or changes fails, so that no change opens a way by
//! accident; `UPDATE_CASES=1` rewrites it, for review.

use std::fs;
use std::path::{Path, PathBuf};

use sandbox::job::{Ended, Job};

use super::cell_run::{job, limits, run, show};

/// Walks from the global object, from prototypes that only syntax leads to, and from
/// what the engine and the host throw and settle. A line for each object: its path, what
/// it is, and `open` if it can be changed. Lists what a property's getter and setter are
/// too. What was seen before is not listed again.
const WALK: &str = r#"
const world = this, { kind, direct, queued } = probe;
delete world.probe;
const seen = [], lines = [], next = [];
const see = (path, value) => {
  if ((typeof value !== 'object' || value === null) && typeof value !== 'function') return;
  if (seen.includes(value)) return;
  seen.push(value);
  lines.push(`${path}  ${kind(value)}${Object.isFrozen(value) ? '' : ' open'}`);
  next.push([path, value]);
};
const step = (path, key) => (typeof key === 'symbol' ? `${path}[${key.description}]` : `${path}.${key}`);
const look = ([path, value]) => {
  see(`${path}.<prototype>`, Object.getPrototypeOf(value));
  const names = Object.getOwnPropertyNames(value), symbols = Object.getOwnPropertySymbols(value);
  for (const key of names.sort().concat(symbols)) {
    const about = Object.getOwnPropertyDescriptor(value, key);
    see(step(path, key), about.value);
    see(`${step(path, key)}.<get>`, about.get);
    see(`${step(path, key)}.<set>`, about.set);
  }
};
const caught = (work) => { try { work() } catch (error) { return error } };
const waits = async (work) => { try { await work() } catch (error) { return error } };
see('global', world);
const start = () => { while (next.length > 0) look(next.shift()) };
start();
const syntax = {
  arrow: () => 1, async: async () => 1, generator: function* () { yield 1 }, asyncGenerator: async function* () { yield 1 },
  sloppy: function () { return arguments }, method: { m() {} }.m, class: class { #p = 1; static s = 2; get g() { return 1 } },
  array: [], object: {}, regexp: /a/g, text: Object('a'), number: Object(1), truth: Object(true), big: Object(1n),
  symbol: Object(Object.getOwnPropertySymbols(Array.prototype)[0]), template: ((parts) => parts)`a${1}b`,
};
const made = {
  arguments: syntax.sloppy(1), strictArguments: (function () { 'use strict'; return arguments })(),
  arrayIterator: [][Object.getOwnPropertySymbols(Array.prototype)[0]](), entries: [1].entries(), textIterator: ''[Object.getOwnPropertySymbols(String.prototype)[0]](),
  matches: 'a'.matchAll(/a/g), matched: 'a'.match(/a/), generated: syntax.generator(), asyncGenerated: syntax.asyncGenerator(),
  yielded: syntax.generator().next(), promise: syntax.async(), bound: syntax.arrow.bind(null), instance: new syntax.class(),
  helper: [].values().map((x) => x), descriptor: Object.getOwnPropertyDescriptor({ get a() { return 1 } }, 'a'),
};
const thrown = {
  type: caught(() => null.x), range: caught(() => 'a'.repeat(-1)), reference: caught(() => missing),
  stack: caught(() => { const deep = () => deep() + 1; deep() }), circle: caught(() => { const a = {}; a.a = a; JSON.stringify(a) }),
  direct: caught(() => direct('fail')), queued: await waits(() => queued('fail')),
  toJSON: caught(() => direct('echo', { toJSON: () => { throw new Error('x') } })),
  promise: caught(() => direct('echo', [syntax.async()])),
};
const answers = { plain: direct('echo', { a: [1] }), bytes: direct('bytes'), settled: queued('echo', 1) };
for (const [name, found] of [['syntax', syntax], ['made', made], ['thrown', thrown], ['answers', answers]]) {
  for (const key of Object.keys(found)) see(`${name}.${key}`, found[key]);
  start();
}
return lines;
"#;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../cases/surface/{name}.txt"))
}

fn walk(powers: &[&str], globals: &str, more: &str) -> Vec<String> {
    let mut limits = limits();
    limits.result_bytes_max = 4 << 20;
    let ran = run(Job {
        // What a face gives once it is asked, before the last of the walk.
        body: WALK.replace("return lines;", &format!("{more}\nreturn lines;")),
        globals: globals.to_owned(),
        powers: powers.iter().map(|&power| power.to_owned()).collect(),
        limits,
        ..job("")
    });
    let Ended::Value(json) = &ran.report.ended else {
        panic!("{}", show(&ran.report.ended));
    };
    serde_json::from_str(json).expect("a list of lines")
}

/// What may be changed of what was there before the script: its own global object, and
/// `console`, whose functions tool code may replace for itself.
const OPEN: [&str; 2] = ["global", "global.console"];

#[track_caller]
fn check(name: &str, lines: &[String]) {
    for line in lines {
        let (at, what) = line.split_once("  ").expect("a path and what it is");
        assert_ne!(
            what.trim_end_matches(" open"),
            "host",
            "{name}: {at} is a function of the host"
        );
        let is_open = what.starts_with("image ") && what.ends_with(" open");
        assert!(!is_open || OPEN.contains(&at), "{name}: {line}");
    }
    assert!(lines.len() > 300, "{name}: only {} lines", lines.len());
    let found = format!("{}\n", lines.join("\n"));
    if std::env::var_os("UPDATE_CASES").is_some() {
        fs::write(path(name), &found).expect("the case can be written");
        return;
    }
    let kept = fs::read_to_string(path(name)).unwrap_or_default();
    let (old, new): (Vec<_>, Vec<_>) = (kept.lines().collect(), found.lines().collect());
    let gone: Vec<_> = old.iter().filter(|line| !new.contains(line)).collect();
    let come: Vec<_> = new.iter().filter(|line| !old.contains(line)).collect();
    assert!(
        found == kept,
        "cases/surface/{name}.txt is not what a script reaches; gone: {gone:#?}, new: {come:#?}"
    );
}

#[test]
fn what_tool_code_without_powers_reaches() {
    let more = "for (const [name, found] of [['url', new URL('a:b')], ['params', new URLSearchParams('a=1')],
          ['walked', new URLSearchParams('a=1').keys()], ['decoder', new TextDecoder()], ['collator', new Intl.Collator()],
          ['plural', new Intl.PluralRules()]]) see(`made.${name}`, found);
        start();";
    let offline = more.replace("['url', new URL('a:b')], ", "");
    let offline = offline.replace(
        "['collator', new Intl.Collator()],\n          ['plural', new Intl.PluralRules()]",
        "",
    );
    check("tool", &walk(&["probe"], "{}", &offline));
}

#[test]
fn what_tool_code_with_every_power_reaches() {
    let functions = "workspace readRoots readText list exists stat grep lineCount slice cut sort find searchInFiles \
                     writeText appendText editText copy move delete deleteDir";
    let files: Vec<_> = functions
        .split(' ')
        .map(|name| format!("fs.{name}"))
        .collect();
    let mut powers = vec!["fetch"];
    powers.extend(files.iter().map(String::as_str));
    powers.push("probe");
    check("tool-powers", &walk(&powers, r#"{"text":"a"}"#, ""));
}

#[test]
fn what_a_script_reaches() {
    let globals = r#"{"__ag_now":1000,"__ag_context":{"k":[1]},"__ag_turns":1000000}"#;
    let more = "see('made.space', __ag_space('users', 'list get')); see('made.call', __safe_callTool('x'));
        see('made.parallel', __safe_parallel([1], async (x) => x)); see('thrown.key', caught(() => __ag_guardKey('constructor')));
        see('thrown.parallel', await waits(() => __safe_parallel(1))); start();";
    check(
        "script",
        &walk(&["guard", "script", "probe"], globals, more),
    );
}

/// What the helpers give, for the comparison below. Nothing of it asks the host.
const USE: &str = r#"
const used = {};
const use = (name, work) => { try { used[name] = work() } catch (error) { used[name] = `${error.name}: ${error.message}` } };
use('encode', () => [...new Encoder().encode('hé')]);
use('into', () => new Encoder().encodeInto('hé', new Bytes(2)));
use('decode', () => new Decoder().decode(new Bytes([104, 195, 169])));
use('label', () => new Decoder('latin1'));
use('clone', () => clone({ a: [1, { b: 2 }], d: new Day(5), m: new Pairs([[1, 2]]), e: new Fault('x') }));
use('cloneFunction', () => clone(() => 1));
use('atob', () => un64('YWJj') + to64('abc'));
use('badBase64', () => un64('%'));
use('params', () => { const p = new Params('a=1&b=%20x'); p.append('c', 'ä'); p.delete('a'); p.sort(); return [p.toString(), [...p.keys()], p.get('b')] });
use('compare', () => ['b', 'ä', 'a'].sort((x, y) => (x < y ? -1 : 1)));
use('java', () => old.type('java.io.File'));
use('badKey', () => keys.subtle.importKey('raw', [1], 'NOPE'));
use('random', () => keys.getRandomValues('x'));
use('key', () => keys.subtle.importKey('raw', [1, 2], { name: 'HMAC' }).algorithm.length);
"#;

const TAKE: &str = "const { TextEncoder: Encoder, TextDecoder: Decoder, structuredClone: clone, atob: un64, btoa: to64,
  URLSearchParams: Params, Java: old, crypto: keys, Uint8Array: Bytes, Date: Day, Map: Pairs, Error: Fault } = globalThis;
const { getOwnPropertyNames: names, getOwnPropertyDescriptor: about, getPrototypeOf: above, defineProperty: define, isFrozen } = Object;
const { ownKeys, set } = Reflect, world = globalThis, { kind } = probe;\n";

/// Replaces every global, and tries to replace every method of every prototype, with
/// functions that keep whatever they are given.
const POISON: &str = r#"
const caught = [];
const trap = function (...given) { caught[caught.length] = this; for (let i = 0; i < given.length; i++) caught[caught.length] = given[i]; return 13 };
let changed = 0;
const poison = (object, depth) => {
  if (depth > 3 || ((typeof object !== 'object' || object === null) && typeof object !== 'function')) return;
  const list = ownKeys(object);
  for (let i = 0; i < list.length; i++) {
    let inner;
    try { inner = about(object, list[i]).value } catch { }
    if (object !== world && isFrozen(object)) {
      try { object[list[i]] = trap; if (object[list[i]] === trap) changed++ } catch { }
      try { define(object, list[i], { get: trap, set: trap }); changed++ } catch { }
    }
    if (inner !== world && inner !== object) poison(inner, depth + 1);
  }
};
const globals = names(world), roots = [];
for (let i = 0; i < globals.length; i++) roots[i] = world[globals[i]];
for (let i = 0; i < roots.length; i++) { try { poison(roots[i], 0) } catch { } }
for (let i = 0; i < globals.length; i++) set(world, globals[i], trap);
"#;

/// Attack: a script that replaces what the prelude works with, to listen in.
#[test]
fn helpers_work_whatever_a_script_has_replaced() {
    let whole = run(job(&format!("{TAKE}{USE}return used")));
    let poisoned = run(job(&format!(
        "{TAKE}{POISON}{USE}
         const kinds = []; for (let i = 0; i < caught.length; i++) kinds[i] = kind(caught[i]);
         return {{ used, changed, caught: kinds }}"
    )));
    let (Ended::Value(whole), Ended::Value(poisoned)) = (whole.report.ended, poisoned.report.ended)
    else {
        panic!("a run did not end");
    };
    assert_eq!(
        poisoned,
        format!(r#"{{"used":{whole},"changed":0,"caught":[]}}"#)
    );
    assert!(
        whole.contains(r#""decode":"hé""#) && whole.contains(r#""key":16"#),
        "{whole}"
    );
}

/// The same for what scripts of code mode have.
#[test]
fn the_names_of_scripts_work_whatever_a_script_has_replaced() {
    let take = "const world = this, { kind } = probe, callTool = __safe_callTool, parallel = __safe_parallel, log = __safe_mcpLog,
        turn = __ag_turn, guardKey = __ag_guardKey;
        const { getOwnPropertyNames: names, getOwnPropertyDescriptor: about, defineProperty: define, isFrozen } = Object;
        const ownKeys = (object) => names(object), set = (object, key, value) => { object[key] = value };\n";
    let using = "const used = []; log('info', 'said', { a: [1] });
        used[0] = await parallel([3, 4], async (x, i) => x * 10 + i);
        try { await parallel([1], () => { throw 7 }) } catch (error) { used[1] = error }
        try { guardKey('constructor') } catch (error) { used[2] = error.code }
        used[3] = guardKey('fine'); turn();
        try { callTool({ toString() { throw 8 } }) } catch (error) { used[4] = error }
        try { callTool('x', { toJSON() { throw 9 } }) } catch (error) { used[5] = error }
        used[6] = [await callTool('x', { toJSON() { throw null } }, { throwOnError: false })];";
    let script = |body: String| {
        let ran = run(Job {
            globals: r#"{"__ag_now":1000,"__ag_context":{},"__ag_turns":1000000}"#.to_owned(),
            powers: ["guard", "script", "probe"].map(str::to_owned).to_vec(),
            ..job(&body)
        });
        assert!(ran.requests.is_empty(), "{:?}", ran.requests);
        assert_eq!(ran.console[0].text, r#"[info] said {"a":[1]}"#);
        show(&ran.report.ended)
    };
    let whole = script(format!("{take}{using}return used"));
    let poisoned = script(format!(
        "{take}{POISON}{using}
         const kinds = []; for (let i = 0; i < caught.length; i++) kinds[i] = kind(caught[i]);
         return {{ used, changed, caught: kinds }}"
    ));
    let whole = whole.strip_prefix("value ").unwrap_or(&whole);
    assert_eq!(
        whole,
        r#"[[30,41],7,"KEY_REFUSED","fine",8,9,[{"success":false,"error":{"code":"VALIDATION","toolName":"x"}}]]"#
    );
    assert_eq!(
        poisoned,
        format!(r#"value {{"used":{whole},"changed":0,"caught":[]}}"#)
    );
}
