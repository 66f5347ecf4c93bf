//! What a script's sender is told, in words that name the slip and the way out.

use model::caller::{Caller, Origin};
use model::config::ScriptPreset;
use serde_json::{Value, json};

use engine::call::CallRequest;

use crate::script::{answer, run, world};
use crate::world::World;

/// The owner's run under another preset.
async fn run_as(world: &World, preset: ScriptPreset, script: &str) -> Value {
    let arguments = json!({"script": script});
    let mut request = CallRequest::new(Caller::owner(), Origin::Cli, "codecall_execute", arguments);
    request.preset = Some(preset);
    answer(&world.made(request).await).clone()
}

/// A script, its status, and what its error says.
const SLIPS: [(&str, &str, &str); 13] = [
    (
        "```js\nreturn 1;\n```",
        "syntax_error",
        "the script stands in a markdown fence; send only what is between the two fences",
    ),
    (
        "",
        "syntax_error",
        "the script is empty; write at least what it gives back, such as `return 1`",
    ),
    (
        " \n ",
        "syntax_error",
        "the script is empty; write at least what it gives back, such as `return 1`",
    ),
    (
        "const a = 1;\nconst a = 2;",
        "syntax_error",
        "`a` is declared twice here; rename one, or leave out the second `let` or `const`",
    ),
    (
        "[1].forEach(() => { break; });",
        "syntax_error",
        "`break` has no loop or `switch` around it in this function; a callback ends with `return`",
    ),
    (
        "const list = undefined;\nfor (const a of list) {}",
        "runtime_error",
        "undefined is not a list: `for … of`, `...` and `[a, b] = …` need an array",
    ),
    (
        "return [...{}];",
        "runtime_error",
        "the value is not a list: `for … of`, `...` and `[a, b] = …` need an array; an object has `Object.entries(value)`",
    ),
    (
        "const { a } = null;",
        "runtime_error",
        "the value is undefined or null, so it has no properties; check first that it is there",
    ),
    (
        "const a = 1;\na = 2;",
        "runtime_error",
        "`a` cannot be assigned to: it is a `const` or read only",
    ),
    (
        "return b; let b = 1;",
        "runtime_error",
        "`b` is used before the line that declares it",
    ),
    (
        "const o = {}; return o.f();",
        "runtime_error",
        "what is called here is not a function",
    ),
    (
        "return 1; // fine \u{2028}callTool('add')",
        "illegal_access",
        "the character U+2028 ends a line where few editors show it; use a plain line break",
    ),
    (
        "await callTool('add', () => 1);",
        "tool_error",
        "the arguments of `add` are not data but a function or symbol; give an object, such as `{ name: value }`",
    ),
];

#[tokio::test]
async fn slips_are_told_in_plain_words() {
    let world = world().await;
    for (script, status, message) in SLIPS {
        let outcome = run(&world, script).await;
        let answer = answer(&outcome);
        assert_eq!(answer["status"], status, "{script}: {answer}");
        assert_eq!(answer["error"]["message"], message, "{script}");
    }
    // The documented shape of a syntax error, for a script that says nothing too.
    let empty = run(&world, "").await;
    let error = &answer(&empty)["error"];
    assert_eq!(error["location"], json!({"line": 1, "column": 1}));
    assert_eq!(error["issues"][0]["code"], "PRESCANNER_INPUT_TOO_LARGE");
    world.assert_whole();
}

#[tokio::test]
async fn exceeded_limits_are_named_with_their_bound() {
    let world = world().await;
    let memory = "const all = [];\nfor (let i = 0; i < 900; i++) all.push('x'.repeat(90000) + i);\nreturn all.length;";
    let told = run_as(&world, ScriptPreset::Secure, memory).await;
    assert_eq!(
        told["error"]["message"],
        "the script used more than its 32 MiB of memory; keep less at one time",
        "{told}"
    );
    let slow = "const text = 'a'.repeat(40);\nreturn /^(a+)+$/.test(text + 'b');";
    let told = run_as(&world, ScriptPreset::Experimental, slow).await;
    let message = told["error"]["message"].as_str().unwrap();
    assert!(message.contains("100000000 units of work"), "{told}");
    assert!(
        message.contains("in the regular expression at line 2, column 18; make it simpler"),
        "{told}"
    );
    assert_eq!(
        told["error"]["location"],
        json!({"line": 2, "column": 18}),
        "{told}"
    );
}

#[tokio::test]
async fn a_refused_key_has_its_code() {
    let world = world().await;
    let script =
        "const k = ['con', 'structor'].map((s) => s).join('');\nconst o = {};\nreturn o[k];";
    let outcome = run(&world, script).await;
    let error = &answer(&outcome)["error"];
    assert_eq!(error["code"], "KEY_REFUSED", "{error}");
    assert_eq!(error["message"], "the key `constructor` is not allowed");
    assert_eq!(error["location"]["line"], 3, "{error}");
}

/// What is thrown and is no error shows its contents.
#[tokio::test]
async fn what_is_thrown_is_shown() {
    let world = world().await;
    for (thrown, message) in [
        (
            "{ code: 'LIMIT', detail: 'too many' }",
            r#"{"code":"LIMIT","detail":"too many"}"#,
        ),
        ("'text'", "text"),
        ("42", "42"),
        ("undefined", "undefined"),
        (
            "''",
            "the script threw an error without a message; write `throw new Error('what went wrong')`",
        ),
        (
            "new Error()",
            "the script threw an error without a message; write `throw new Error('what went wrong')`",
        ),
    ] {
        let outcome = run(&world, &format!("throw {thrown};")).await;
        let answer = answer(&outcome);
        assert_eq!(answer["status"], "runtime_error", "{answer}");
        assert_eq!(answer["error"]["message"], message, "{thrown}");
        assert_eq!(answer["error"]["location"]["line"], 1, "{thrown}: {answer}");
    }
}

/// An error is at its own line, not at the last one that happened to be noted; a failed
/// call is at the call, not inside its arguments.
#[tokio::test]
async fn errors_are_at_their_own_line() {
    let world = world().await;
    for (script, line) in [
        ("console.log('a');\nreturn null.x", 2),
        ("const a = 1;\n\n  a = 2;", 3),
        ("console.log('a');\nconst { b } = undefined;", 2),
        ("console.log('a');\nconst [b] = undefined;", 2),
        (
            "const list = undefined;\nconsole.log('a');\nfor (const b of list) {\n}",
            3,
        ),
        (
            "const x = 1;\nawait callTool('fails', {\n  hard: x === 1,\n});",
            2,
        ),
    ] {
        let outcome = run(&world, script).await;
        let location = &answer(&outcome)["error"]["location"];
        assert_eq!(location["line"], line, "{script}: {outcome:?}");
    }
    let outcome = run(
        &world,
        "const y = true;\nawait callTool('fails', { hard: y });",
    )
    .await;
    let location = &answer(&outcome)["error"]["location"];
    assert_eq!(*location, json!({"line": 2, "column": 7}));
}

/// The owner is helped with names, but not to those a script cannot call.
#[tokio::test]
async fn no_name_is_suggested_that_a_script_cannot_call() {
    let world = world().await;
    let script =
        "return (await callTool('codecal_execute', {}, { throwOnError: false })).error.message;";
    let told = run_as(&world, ScriptPreset::Secure, script).await;
    let message = told["result"].as_str().unwrap();
    assert!(message.contains("there is no tool"), "{message}");
    assert!(!message.contains("codecall_execute"), "{message}");
}

/// The warnings of a script that ends well.
async fn warned(world: &World, script: &str) -> Vec<String> {
    let outcome = run(world, script).await;
    let answer = answer(&outcome);
    assert_eq!(answer["status"], "ok", "{script}: {answer}");
    let warnings = answer["warnings"].as_array().cloned().unwrap_or_default();
    let words = warnings
        .iter()
        .map(|line| line.as_str().unwrap().to_owned());
    words.collect()
}

#[tokio::test]
async fn calls_without_await_are_warned_about() {
    let world = world().await;
    // Still under way: the script ends at once.
    for script in [
        "const a = 1;\n  callTool('endless', { go: true });\nreturn a;",
        "const a = 1;\n  [1].forEach((n) => callTool('endless', { go: true }));\nreturn a;",
    ] {
        let warnings = warned(&world, script).await;
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0].starts_with("the call of `endless` at line 2, column"),
            "{warnings:?}"
        );
        assert!(
            warnings[0].ends_with("was stopped; write `await`"),
            "{warnings:?}"
        );
    }
    // Failed before the end, where nobody looks.
    let script = "callTool('fails', { hard: true });\nfor (let i = 0; i < 8; i++) await callTool('add', { a: 1, b: 1 });\nreturn 1;";
    let warnings = warned(&world, script).await;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].starts_with("the call of `fails` at line 1, column 1 failed ("),
        "{warnings:?}"
    );
    let script = "[1, 2].forEach(async (n) => {\n  await callTool('add', { a: n });\n});\n\
        for (let i = 0; i < 8; i++) await callTool('add', { a: 1, b: 1 });\nreturn 1;";
    let warnings = warned(&world, script).await;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("VALIDATION: the argument `b` is required")
            && warnings[0].ends_with("(2 times)"),
        "{warnings:?}"
    );
    // Awaited, caught, asked not to throw, or given back: no word.
    for script in [
        "return await callTool('add', { a: 1, b: 2 });",
        "return callTool('add', { a: 1, b: 2 });",
        "try { await callTool('fails', { hard: true }); } catch (e) { return e.code; }",
        "return await callTool('fails', { hard: true }, { throwOnError: false });",
        "return await parallel([1, 2], (n) => callTool('add', { a: n, b: n }));",
        "const p = callTool('fails', { hard: true });\nawait callTool('add', { a: 1, b: 1 });\n\
         try { await p; } catch (e) { return 1; }",
        "try {\n  await parallel([1, 2], (n) => callTool('fails', { hard: true }));\n\
         } catch (e) {}\nreturn await callTool('add', { a: 1, b: 1 });",
    ] {
        assert_eq!(
            warned(&world, script).await,
            Vec::<String>::new(),
            "{script}"
        );
    }
}

/// The sandbox sees every promise that is rejected and that nothing handles.
#[tokio::test]
async fn rejections_nothing_handles_are_told() {
    let world = world().await;
    // Kept and never looked at; of the script's own; failing where others are caught.
    for (script, warning) in [
        (
            "const p = callTool('fails', { hard: true });\nfor (let i = 0; i < 8; i++) await callTool('add', { a: 1, b: 1 });\nreturn 1;",
            "the call of `fails` at line 1, column 11 failed (",
        ),
        (
            "const f = async () => {\n  throw new TypeError('mine');\n};\nf();\nreturn 1;",
            "a promise was rejected at line 2, column 13 (TypeError: mine), and nothing handles that",
        ),
        (
            "try { await callTool('fails', { hard: true }); } catch (e) {}\n\
             callTool('fails', { hard: true });\nfor (let i = 0; i < 8; i++) await callTool('add', { a: 1, b: 1 });\nreturn 1;",
            "the call of `fails` at line 2, column 1 failed (",
        ),
    ] {
        let warnings = warned(&world, script).await;
        assert_eq!(warnings.len(), 1, "{script}: {warnings:?}");
        assert!(warnings[0].starts_with(warning), "{warnings:?}");
    }
    let many = "for (let i = 0; i < 20; i++) callTool('fails', { hard: true });\n\
        for (let i = 0; i < 8; i++) await callTool('add', { a: 1, b: 1 });\nreturn 1;";
    let warnings = warned(&world, many).await;
    assert!(
        warnings.len() <= 3 && warnings.iter().any(|line| line.contains("more promises")),
        "{warnings:?}"
    );
    // A script that failed says it too: it may be why.
    let outcome = run(
        &world,
        "const f = async () => {\n  throw new Error('first');\n};\nf();\nthrow new Error('second');",
    )
    .await;
    let failed = answer(&outcome);
    assert_eq!(failed["error"]["message"], "second", "{failed}");
    assert!(
        failed["warnings"][0]
            .as_str()
            .unwrap()
            .contains("Error: first"),
        "{failed}"
    );
}
