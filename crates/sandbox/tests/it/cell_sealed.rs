//! Objects of the image are never freed and not counted (guest/heap.h). A script
//! must not notice: not by changing it, not by dropping it, not when memory is collected.

use sandbox::job::Ended;

use super::cell_run::{job, run};

/// Makes circles of objects well past the collector's threshold.
const COLLECT: &str = "const collect = () => {
    for (let i = 0; i < 60000; i++) { const a = { text: 'some text ' + i }, b = { a, list: [a, i] }; a.b = b }
};\n";

#[track_caller]
fn check(body: &str, expected: &str) {
    let ended = run(job(&format!("{COLLECT}{body}"))).report.ended;
    assert_eq!(ended, Ended::Value(expected.to_owned()), "{body}");
}

#[test]
fn values_held_by_builtins_survive_collections() {
    check(
        "globalThis.kept = { list: [1, { deep: 'down' }] };
         console.kept = { me: null }; console.kept.me = console.kept;
         globalThis.note = new Map([[Array, { about: 'arrays' }]]);
         Object.defineProperty(console, 'made', { get: ((value) => () => value)({ by: 'closure' }), configurable: true });
         collect(); collect();
         return [kept.list[1].deep, console.kept.me === console.kept, note.get(Array).about, console.made.by]",
        r#"["down",true,"arrays","closure"]"#,
    );
}

#[test]
fn replaced_globals_leave_the_rest_whole() {
    check(
        "globalThis.JSON = null; globalThis.Map = class Map {}; delete globalThis.Set; console.log = () => 5;
         collect(); collect();
         return [[1, 2].map((n) => n * 2), typeof JSON, new Map() instanceof Map, typeof Set, console.log(),
           await Promise.resolve(3)]",
        r#"[[2,4],"object",true,"undefined",5,3]"#,
    );
}

#[test]
fn builtins_cannot_be_changed() {
    check(
        "const tries = [
           () => { Array.prototype.map = 1 }, () => { Array.prototype.extra = 1 }, () => { Array.prototype[0] = 1 },
           () => Array.prototype.push(1), () => { 'use strict'; Array.prototype.length = 3 }, () => { Math.min = 1 },
           () => { Promise.prototype.then.extra = 1 }, () => { Error.prototype.name = 'x' }, () => { JSON.parse = 1 },
           () => Object.setPrototypeOf(Math, {}), () => { Math.__proto__ = {} },
           () => Object.defineProperty(Object.prototype, 'get', { value: 1 }),
           () => { ({}).__proto__.then = 1 }, () => Object.assign(String.prototype, { trim: 1 }),
           () => { Reflect.construct = 1 }, () => { (async () => {}).constructor.prototype.x = 1 },
           () => { Object.getPrototypeOf(function* () {}.prototype).next = 1 }, () => { URL.prototype.href = 1 },
           () => { crypto.subtle = 1 }, () => { safety.parser = 1 }, () => { Intl.Collator = 1 },
           () => { new URLSearchParams('a=1').constructor.prototype.get = 1 },
         ];
         const held = tries.map((one) => { try { one(); return 'changed' } catch (error) { return error.name } });
         delete Array.prototype.map; Array.prototype.length = 3;
         return [[...new Set(held)], Array.prototype.length, Reflect.deleteProperty(Math, 'min'), Reflect.defineProperty(Math, 'x', { value: 1 }),
           [1, 2].map((n) => n * 2), Object.isFrozen(Array.prototype), Object.isFrozen(Object.prototype.toString)]",
        r#"[["TypeError"],0,false,false,[2,4],true,true]"#,
    );
}

/// What inherits from a frozen object may have properties of its own of the same names.
#[test]
fn objects_that_inherit_from_builtins_are_open() {
    check(
        "class Mine extends Error { constructor(text) { super(text); this.name = 'Mine'; this.message += '!' } }
         const o = {}; o.toString = () => 'o'; o.constructor = 1; o.valueOf = 2;
         const f = () => 1; f.call = 3; const a = []; a.map = 4; a.length = 0; a.push(5);
         const d = Object.create(Date.prototype); d.getTime = 6;
         class List extends Array { first() { return this[0] } } const l = List.from([7]); l.concat = 8;
         return [String(new Mine('m')), `${o}`, o.constructor, f.call, a.map, a[0], d.getTime, l.first(), l.concat]",
        r#"["Mine: m!","o",1,3,4,5,6,7,8]"#,
    );
}

#[test]
fn texts_of_the_snapshot_are_never_changed_in_place() {
    check(
        "const names = () => [Array.name, TypeError.prototype.name, typeof 1, String(true), Symbol.iterator.description];
         const before = names();
         for (let name of names()) { name += 'x'; name += 'yz'; name = name + name }
         let text = Array.name; for (let i = 0; i < 100; i++) text += i;
         return [before.join() === names().join(), Object.keys({ length: 1 })[0] + '!', 'length']",
        r#"[true,"length!","length"]"#,
    );
}

#[test]
fn tables_of_the_snapshot_grow() {
    // Past the room left for names and shapes, so that both tables are rebuilt.
    check(
        "const all = {}; let shapes = 0;
         for (let i = 0; i < 5000; i++) { all['name' + i] = i; const o = {}; o['own' + i] = i; o.second = 2; shapes += Object.keys(o).length }
         for (let i = 0; i < 300; i++) globalThis['global' + i] = { i };
         collect();
         return [Object.keys(all).length, all.name4999, shapes, global299.i, Object.keys(all).includes('name77')]",
        "[5000,4999,10000,299,true]",
    );
}

#[test]
fn weak_references_to_builtins_hold() {
    check(
        "const weak = new WeakRef(Array.prototype.concat), map = new WeakMap([[Array, { map: 1 }]]), set = new WeakSet([Math]);
         map.set(Object, map);
         const seen = new WeakRef({ gone: true }); await null;
         collect(); await null; collect();
         return [weak.deref() === Array.prototype.concat, map.get(Array).map, map.get(Object) === map, set.has(Math), seen.deref() === undefined]",
        "[true,1,true,true,true]",
    );
}

#[test]
fn garbage_circles_through_builtins_are_collected() {
    // Each refers to builtins in every way there is; a hundred times the limit in all.
    let mut job = job(
        "for (let i = 0; i < 300000; i++) {
             const a = Object.create(Array.prototype), b = { __proto__: Date.prototype, make: Map, print: console.log };
             a.b = b; b.a = a; a.iterate = Symbol.iterator; a.bound = parseInt.bind(null, '12'); a.text = 'x'.repeat(100)
         }
         return 'done'",
    );
    job.limits.memory_bytes_max = 32 << 20;
    assert_eq!(run(job).report.ended, Ended::Value("\"done\"".to_owned()));
}
