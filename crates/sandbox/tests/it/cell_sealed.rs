//! What is in the snapshot lives for ever and is not counted (guest/heap.h). A script
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
fn what_only_builtins_refer_to_survives_collections() {
    check(
        "globalThis.kept = { list: [1, { deep: 'down' }] };
         Array.prototype.kept = { me: null }; Array.prototype.kept.me = Array.prototype.kept;
         Object.setPrototypeOf(Math, { lent: { value: 7 } });
         JSON.parse.note = new Map([[Array, { about: 'arrays' }]]);
         Object.defineProperty(Date, 'made', { get: ((value) => () => value)({ by: 'closure' }), configurable: true });
         collect(); collect();
         return [kept.list[1].deep, [].kept.me === [].kept, Math.lent.value,
           JSON.parse.note.get(Array).about, Date.made.by]",
        r#"["down",true,7,"arrays","closure"]"#,
    );
}

#[test]
fn dropped_and_replaced_builtins_leave_the_rest_whole() {
    check(
        "const { map } = Array.prototype;
         delete Array.prototype.map; delete Object.prototype.toString; Promise.prototype.then.extra = [1];
         globalThis.JSON = null; globalThis.Map = class Map {}; String.prototype.trim = () => 'mine';
         Array.prototype.push = undefined;
         collect(); collect();
         Array.prototype.map = map;
         return [[1, 2].map((n) => n * 2), ' a '.trim(), typeof JSON, new Map() instanceof Map,
           Promise.prototype.then.extra, typeof {}.toString, await Promise.resolve(3)]",
        r#"[[2,4],"mine","object",true,[1],"undefined",3]"#,
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
    // Past the room left for names and shapes, so that both tables are made anew.
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
