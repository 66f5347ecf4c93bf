//! `ringfence check` on whole files: what a new user meets.

use std::fs;
use std::path::PathBuf;

use crate::{ringfence, root};

/// A fresh folder under the target folder, named after the test.
fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn the_first_example_of_the_readme() {
    insta::assert_snapshot!(ringfence(&["check", "examples/hello.json"]).shown(), @r"
    exit 0
    --- stdout
    hello  L0 Verified  DRAFT
    ");
}

#[test]
fn a_file_is_a_draft_and_its_variables_are_named() {
    let missing = ringfence(&["check", "examples/weather.json"]);
    insta::assert_snapshot!(missing.shown(), @r"
    exit 0
    --- stdout
    getForecast  L3 Moderate  DRAFT
      L3  network: 1 host listed (api.forecast.example)
      L3  variables: the value of FORECAST_API_KEY can leave by the network
      variable FORECAST_API_KEY (not set, not granted)
    ");
    let set =
        ringfence(&["check", "examples/weather.json"]).variable("FORECAST_API_KEY", "forecast-key");
    insta::assert_snapshot!(set.shown(), @r"
    exit 0
    --- stdout
    getForecast  L3 Moderate  DRAFT
      L3  network: 1 host listed (api.forecast.example)
      L3  variables: the value of FORECAST_API_KEY can leave by the network
      variable FORECAST_API_KEY (set, not granted)
    ");
    let blank = ringfence(&["check", "examples/weather.json"]).variable("FORECAST_API_KEY", " ");
    assert!(blank.shown().contains("FORECAST_API_KEY (not set"));
}

#[test]
fn an_env_file_counts_and_a_bad_line_is_named() {
    let folder = scratch("env-file");
    fs::write(
        folder.join("good.env"),
        "# keys\nexport FORECAST_API_KEY='k'\n",
    )
    .unwrap();
    fs::write(folder.join("bad.env"), "FORECAST_API_KEY=k\noops\n").unwrap();
    let example = root().join("examples/weather.json").display().to_string();
    let good = ringfence(&["check", "--env-file", "good.env", &example]).within(&folder);
    assert!(
        good.shown().contains("FORECAST_API_KEY (set,"),
        "{}",
        good.shown()
    );
    let bad = ringfence(&["check", "--env-file", "bad.env", &example]).within(&folder);
    insta::assert_snapshot!(bad.shown(), @r"
    exit 2
    --- stderr
    error: `bad.env`, line 2, is not `NAME=value`
    ");
}

#[test]
fn an_array_ends_with_a_summary() {
    let folder = scratch("array");
    let documents = r#"[
  {"name": "a", "code": "return 1", "codeType": "Javascript", "draft": false},
  {"name": "b", "code": "return 2", "codeType": "Javascript", "sandboxOverrides": {"fileWrite": true}},
  {"name": "c", "code": 3}
]"#;
    fs::write(folder.join("tools.json"), documents).unwrap();
    insta::assert_snapshot!(ringfence(&["check", "tools.json"]).within(&folder).shown(), @r#"
    exit 1
    --- stdout
    a  L0 Verified  DRAFT
    b  L4 High  DRAFT
      L4  files: writes in the workspace
    c  cannot be used
      error[SPEC_PARSE]: the document has no `codeType`
      --> tools.json:4:3  codeType
      4 |   {"name": "c", "code": 3}
        |   ^^^^^^^^^^^^^^^^^^^^^^^^
      fix: add `"codeType"`: Javascript
      error[SPEC_PARSE]: `code` must be a string, this is a number
      --> tools.json:4:25  code
      4 |   {"name": "c", "code": 3}
        |                         ^
    3 documents: 2 usable (L0 1, L4 1), 1 with errors
    "#);
}

#[test]
fn files_that_cannot_be_read_get_a_sentence_each() {
    let folder = scratch("unreadable");
    fs::create_dir(folder.join("folder")).unwrap();
    fs::write(folder.join("binary.json"), [0x7b, 0xff, 0xfe, 0x00]).unwrap();
    let long = fs::File::create(folder.join("long.json")).unwrap();
    long.set_len(100 * 1024 * 1024).unwrap();
    fs::write(folder.join("deep.json"), "[".repeat(1_000_000)).unwrap();
    let files = [
        "check",
        "missing.json",
        "folder/",
        "binary.json",
        "long.json",
        "deep.json",
    ];
    insta::assert_snapshot!(ringfence(&files).within(&folder).shown(), @r"
    exit 2
    --- stdout
    binary.json  cannot be used
      error[SPEC_PARSE]: the file is not UTF-8 text: byte 1 cannot be read
      --> binary.json
    long.json  cannot be used
      error[SPEC_PARSE]: the file is longer than 16 MiB
      --> long.json
    deep.json  cannot be used
      error[SPEC_PARSE]: values are nested more than 64 deep
      --> deep.json:1:65
      1 | …[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[…
        |                                  ^
    3 documents: 0 usable, 3 with errors
    --- stderr
    error: there is no file `missing.json`
    error: `folder` is a folder; name its files, such as folder/*.json
    ");
}

#[test]
fn standard_input_is_a_file_too() {
    let document = br#"{"name":"piped","code":"return 1","codeType":"Javascript"}"#;
    insta::assert_snapshot!(ringfence(&["check", "-"]).input(document).shown(), @r"
    exit 0
    --- stdout
    piped  L0 Verified  DRAFT
    ");
}

#[test]
fn hostile_text_does_not_reach_the_terminal() {
    let document = "{\"name\":\"a\\u001b[2J\\u202e\",\"code\":\"1\",\"codeType\":\"Java\\u001b[31mscript\",\"\\u001b]0;x\":1}";
    let shown = ringfence(&["check", "-"])
        .input(document.as_bytes())
        .shown();
    assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
    assert!(shown.contains("a\\u{1b}[2J\\u{202e}"), "{shown}");
}

#[test]
fn json_is_one_value_and_nothing_else() {
    let folder = scratch("json");
    fs::write(folder.join("bad.json"), "{\"name\": \"x\",}").unwrap();
    let example = root().join("examples/hello.json").display().to_string();
    let output = ringfence(&["check", "--json", &example, "bad.json"])
        .within(&folder)
        .output();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stderr.is_empty());
    let entries: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let good = entries.get(0).unwrap();
    assert_eq!(good.get("name").unwrap(), "hello");
    assert_eq!(good.pointer("/risk/level").unwrap(), "L0");
    assert_eq!(
        good.pointer("/risk/reasons").unwrap(),
        &serde_json::json!([])
    );
    assert_eq!(
        good.pointer("/toolSafety/capabilities/network/mode")
            .unwrap(),
        "blocked"
    );
    assert_eq!(good.get("state").unwrap(), "DRAFT");
    let bad = entries.get(1).unwrap();
    assert_eq!(bad.get("risk").unwrap(), &serde_json::Value::Null);
    let expected = serde_json::json!([{"code": "SPEC_PARSE", "pointer": "", "severity": "error",
        "message": "there is a comma before `}`", "fix": "remove the comma", "line": 1, "column": 13}]);
    assert_eq!(bad.get("findings").unwrap(), &expected);
}

#[test]
fn a_broken_settings_file_is_never_the_defaults() {
    let folder = scratch("settings");
    fs::write(
        folder.join("ringfence.toml"),
        "[baseline]\nnetwrok = \"strict\"\n",
    )
    .unwrap();
    let example = root().join("examples/hello.json").display().to_string();
    let run = ringfence(&["check", "--home", ".", &example]).within(&folder);
    insta::assert_snapshot!(run.shown(), @r"
    exit 2
    --- stderr
    error: ./ringfence.toml:2:1: there is no setting `netwrok` here; did you mean `network`?
    ");
}

#[test]
fn the_home_folder_comes_from_the_argument_then_the_variable() {
    let folder = scratch("home");
    fs::write(
        folder.join("ringfence.toml"),
        "[baseline]\nnetwork = \"strict\"\n",
    )
    .unwrap();
    let home = folder.display().to_string();
    let by_variable =
        ringfence(&["check", "examples/hello.json"]).variable("RINGFENCE_HOME", &home);
    assert!(
        by_variable.shown().contains("hello  L3 Moderate"),
        "{}",
        by_variable.shown()
    );
    let by_argument = ringfence(&["check", "--home", "/nonexistent", "examples/hello.json"])
        .variable("RINGFENCE_HOME", &home);
    assert!(
        by_argument.shown().contains("hello  L0 Verified"),
        "{}",
        by_argument.shown()
    );
}

#[test]
fn help_fits_eighty_columns() {
    let commands = [
        "check",
        "test",
        "run",
        "new",
        "list",
        "show",
        "import",
        "export",
        "publish",
        "unpublish",
        "delete",
        "expose",
        "config",
        "doctor",
        "completions",
        "man",
    ];
    let audit = ["list", "show", "verify", "export", "tail", "prune"];
    let mut pages = vec![vec!["--help"], vec!["audit", "--help"]];
    pages.extend(commands.map(|command| vec![command, "--help"]));
    pages.extend(audit.map(|command| vec!["audit", command, "--help"]));
    for arguments in pages {
        let shown = ringfence(&arguments).shown();
        assert!(shown.starts_with("exit 0"), "{arguments:?}: {shown}");
        assert!(
            shown.lines().all(|line| line.chars().count() <= 80),
            "{shown}"
        );
    }
}

#[test]
fn usage_errors_exit_with_two() {
    insta::assert_snapshot!(ringfence(&["chekc"]).shown(), @r"
    exit 2
    --- stderr
    error: unrecognized subcommand 'chekc'

      tip: a similar subcommand exists: 'check'

    Usage: ringfence [COMMAND]

    For more information, try '--help'.
    ");
    assert!(ringfence(&["check"]).shown().starts_with("exit 2\n"));
}

/// A reader that goes away early is no error: `ringfence check … | head -1`.
#[test]
fn a_closed_pipe_is_quiet() {
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_ringfence"))
        .args(["check", "examples/hello.json"])
        .current_dir(root())
        .env_clear()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.stderr.is_empty(), "{:?}", output.stderr);
}
