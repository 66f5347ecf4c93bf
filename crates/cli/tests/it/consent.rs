//! What the person at a terminal is asked before a stranger's document is tried.

use std::fs;

use serde_json::json;

use crate::run::scratch;
use crate::terminal::Terminal;

/// Once for each thing it reaches for: not for every edit, and again when it widens.
#[test]
fn a_widening_is_asked_about_once() {
    let folder = scratch("consent");
    let write = |code: &str, more: &[&str]| {
        let variables: Vec<_> = more
            .iter()
            .map(|name| json!({*name: format!("${{{name}}}")}))
            .collect();
        let document = json!({"name": "save", "code": code, "codeType": "Javascript",
            "sandboxOverrides": {"fileWrite": true}, "staticVariables": variables});
        fs::write(folder.join("tool.json"), document.to_string()).unwrap();
    };
    let program = env!("CARGO_BIN_EXE_ringfence");
    let line = format!("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI {program} test tool.json --home ring");
    let asked = "needs access that you have not granted yet";
    let test = |answer: Option<&str>| {
        let mut terminal = Terminal::start(&line, &folder);
        if let Some(answer) = answer {
            terminal.answer(answer, 1);
        }
        let (status, shown) = terminal.end();
        assert!(!shown.contains("wJalrXUtnFEMI"), "{shown}");
        assert_eq!(shown.contains(asked), answer.is_some(), "{shown}");
        (status.code(), shown)
    };
    write("return 1", &[]);
    let (code, shown) = test(Some("n\n"));
    assert_eq!(code, Some(2), "{shown}");
    assert!(
        shown.contains("not tried") && shown.contains("consent.required"),
        "{shown}"
    );
    assert!(shown.contains("no: 2 things for `save`"), "{shown}");
    let (code, shown) = test(Some("y\n"));
    assert_eq!(code, Some(0), "{shown}");
    for words in [
        "write files",
        "a copy that is thrown away",
        "[risk L4 High]",
        "pass",
    ] {
        assert!(shown.contains(words), "{shown}");
    }
    write("return 2", &[]);
    assert_eq!(test(None).0, Some(0));
    write("return 2", &["AWS_SECRET_ACCESS_KEY"]);
    let (code, shown) = test(Some("\n"));
    assert_eq!(code, Some(2), "{shown}");
    assert!(
        shown.contains("get the value of the variable AWS_SECRET_ACCESS_KEY"),
        "{shown}"
    );
    assert!(
        !shown.contains("write files"),
        "that was agreed to: {shown}"
    );
}
