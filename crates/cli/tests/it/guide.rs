//! What the README and the guide show is true.

use std::fs;
use std::path::Path;

use model::config::Config;

use crate::{ringfence, root};

/// The fenced blocks of one language in a page.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let open = format!("```{language}\n");
    let inside = text
        .split(&open)
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap().to_owned());
    inside.collect()
}

#[test]
fn documents_shown_are_sound() {
    let mut seen = 0;
    for page in ["README.md", "docs/guide/tool-document.md"] {
        for block in blocks(page, "json")
            .iter()
            .filter(|block| block.contains("\"codeType\""))
        {
            let shown = ringfence(&["check", "-"]).input(block.as_bytes()).shown();
            assert!(
                shown.starts_with("exit 0\n") && !shown.contains("warning"),
                "{page}\n{block}\n{shown}"
            );
            seen += 1;
        }
    }
    assert_eq!(seen, 2);
}

#[test]
fn the_first_output_shown_is_what_comes_out() {
    let output = ringfence(&["check", "examples/hello.json", "examples/weather.json"]).output();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(blocks("README.md", "").contains(&shown), "{shown}");
}

/// Scripts of the pages pass the guard, and the one for newcomers runs in a fresh home.
#[test]
fn scripts_shown_run() {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guide-scripts");
    let _ = fs::remove_dir_all(&home);
    let script = |arguments: &[&str], block: &str| {
        ringfence(arguments)
            .variable("RINGFENCE_HOME", home.to_str().unwrap())
            .input(block.as_bytes())
            .shown()
    };
    let first = blocks("docs/guide/code-mode.md", "js");
    let second = blocks("docs/guide/script-language.md", "js");
    assert_eq!((first.len(), second.len()), (1, 1));
    for block in first.iter().chain(&second) {
        let shown = script(&["script", "check", "-"], block);
        assert!(shown.starts_with("exit 0\n"), "{block}\n{shown}");
    }
    let context = r#"{"text": "one two three"}"#;
    let run = ["script", "run", "-", "--context", context];
    let shown = script(&run, &first[0]);
    assert!(shown.starts_with("exit 0\n"), "{shown}");
    assert!(shown.contains("\"half\": 1.5"), "{shown}");
    let _ = fs::remove_dir_all(&home);
}

#[test]
fn settings_shown_load() {
    for page in [
        "docs/guide/settings.md",
        "docs/guide/access.md",
        "docs/guide/approvals.md",
    ] {
        for block in blocks(page, "toml") {
            Config::parse(&block).expect("settings");
        }
    }
}

#[test]
fn the_published_namespace_is_the_one_in_use() {
    let page = fs::read_to_string(root().join("docs/guide/tool-document.md")).unwrap();
    assert!(page.contains(&model::digest::TOOL_NAMESPACE.to_string()));
}
