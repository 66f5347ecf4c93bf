//! What a person sees. The real program runs at a terminal, and an emulator of one
//! shows what became of everything that was written there, hostile text above all.

use std::fs;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::ringfence;
use crate::run::scratch;
use crate::terminal::{Terminal, USUAL};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ringfence");
const ROWS_KEPT: usize = 100_000;

/// All that was done to the terminal besides showing text.
#[derive(Default)]
pub(crate) struct Done(pub(crate) Vec<String>);

impl vt100::Callbacks for Done {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.0.push("bell".to_owned());
    }

    fn visual_bell(&mut self, _: &mut vt100::Screen) {
        self.0.push("flash".to_owned());
    }

    fn resize(&mut self, _: &mut vt100::Screen, size: (u16, u16)) {
        self.0.push(format!("resize {size:?}"));
    }

    fn set_window_icon_name(&mut self, _: &mut vt100::Screen, name: &[u8]) {
        self.0.push(format!("icon {}", name.escape_ascii()));
    }

    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.0.push(format!("title {}", title.escape_ascii()));
    }

    fn copy_to_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8], data: &[u8]) {
        self.0.push(format!("clipboard {}", data.escape_ascii()));
    }

    fn paste_from_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8]) {
        self.0.push("paste".to_owned());
    }

    fn unhandled_char(&mut self, _: &mut vt100::Screen, character: char) {
        self.0.push(format!("character {character:?}"));
    }

    fn unhandled_control(&mut self, _: &mut vt100::Screen, byte: u8) {
        self.0.push(format!("control {byte:#x}"));
    }

    fn unhandled_escape(&mut self, _: &mut vt100::Screen, _: Option<u8>, _: Option<u8>, byte: u8) {
        self.0.push(format!("escape {}", char::from(byte)));
    }

    fn unhandled_csi(
        &mut self,
        _: &mut vt100::Screen,
        _: Option<u8>,
        _: Option<u8>,
        params: &[&[u16]],
        end: char,
    ) {
        self.0.push(format!("sequence {params:?} {end}"));
    }

    fn unhandled_osc(&mut self, _: &mut vt100::Screen, params: &[&[u8]]) {
        self.0.push(format!("command {params:?}"));
    }
}

/// The terminal after all these bytes.
pub(crate) fn emulated(bytes: &[u8], (columns, rows): (u16, u16)) -> vt100::Parser<Done> {
    let size = |number| NonZeroU16::new(number).unwrap();
    let done = Done::default();
    let mut parser = vt100::Parser::new_with_callbacks(size(rows), size(columns), ROWS_KEPT, done);
    parser.process(bytes);
    parser
}

pub(crate) fn rows(parser: &vt100::Parser<Done>, columns: u16) -> Vec<String> {
    parser.screen().rows(0, columns).collect()
}

/// What hostile text tries: the title, the clipboard, the cursor, the colours, the
/// other screen, answers typed by the terminal itself, all of it with eight-bit
/// controls too, and text that is not what it looks like.
fn hostile() -> String {
    let mut text = String::from("BEGIN");
    for attack in [
        "\u{1b}]0;owned\u{7}",
        "\u{1b}]52;c;cm0gLXJmIH4=\u{7}",
        "\u{1b}[2J\u{1b}[H",
        "\u{1b}[1A\u{1b}[2K",
        "\u{1b}[?1049h",
        "\u{1b}[?25l",
        "\u{1b}[6n",
        "\u{1b}[21t",
        "\u{1b}[8;1;1t",
        "\u{1b}[8mhidden",
        "\u{1b}[32m",
        "\u{1b}P$q\"p\u{1b}\\",
        "\u{1b}c",
        "\u{9b}2J",
        "\u{9d}0;owned\u{9c}",
        "\u{90}q\u{9c}",
        "\u{85}",
        "\u{7}\u{8}\u{8}\u{8}\u{b}\u{c}\u{e}",
        "\u{7f}",
        "\rerror: nothing",
        "\u{202e}detrever\u{2066}",
        "in\u{200b}vis\u{feff}ible\u{e0041}",
        "\u{fdd0}0000000000000000g\u{fdd0}",
    ] {
        text.push_str(attack);
    }
    text.push('z');
    text.push_str(&"\u{301}".repeat(200));
    // Marks of other scripts pile up as well: Arabic, Cyrillic, Vedic, Tibetan.
    for mark in ['\u{670}', '\u{2de0}', '\u{1cd0}', '\u{f71}'] {
        text.push('z');
        text.extend(std::iter::repeat_n(mark, 20));
    }
    text.push_str("END");
    text
}

/// Whatever a command wrote: the terminal is as it was but for text, and all of that
/// text can be seen.
#[track_caller]
fn is_harmless(what: &str, bytes: &[u8]) -> String {
    let parser = emulated(bytes, USUAL);
    let screen = parser.screen();
    assert_eq!(parser.callbacks().0, Vec::<String>::new(), "{what}");
    assert!(
        !screen.alternate_screen() && !screen.hide_cursor(),
        "{what}"
    );
    assert_eq!(screen.fgcolor(), vt100::Color::Default, "{what}");
    // Only our own colours and the line of progress, which begins again.
    let text = String::from_utf8(bytes.to_vec()).expect("text");
    let mut text = text.replace("\r\u{1b}[K", "");
    for ours in ["[0m", "[1m", "[2m", "[32m", "[33m", "[1;31m"] {
        text = text.replace(&format!("\u{1b}{ours}"), "");
    }
    let odd = text
        .chars()
        .find(|character| model::text::is_hidden(*character) && !"\r\n".contains(*character));
    assert_eq!(odd, None, "{what}: {text:?}");
    assert!(!text.replace("\r\n", "").contains('\r'), "{what}: {text:?}");
    for mark in ["\u{301}", "\u{670}", "\u{2de0}", "\u{1cd0}", "\u{f71}"] {
        assert!(!text.contains(&mark.repeat(4)), "{what}: {text:?}");
    }
    text
}

fn shown(line: &str, folder: &Path) -> String {
    let terminal = Terminal::start(line, folder);
    let bytes = terminal.ended();
    is_harmless(line, &bytes)
}

/// A home with a hostile tool in it, and files with hostile names beside it.
fn hostile_home(name: &str) -> (PathBuf, String) {
    let folder = scratch(name);
    let text = hostile();
    let document = json!({
        "name": "speak", "description": text, "codeType": "Javascript",
        "category": text, "tags": [text],
        "params": [{"name": "how", "description": text, "type": "STRING", "required": true,
            "testValue": "throw"}],
        "code": "console.log(words); console.error(words);
            if (how === 'throw') throw new Error(words);
            if (how === 'value') return {[words]: [words]};
            return words;",
        "staticVariables": [{"words": text}],
    });
    fs::write(folder.join("speak.json"), document.to_string()).unwrap();
    let mut broken = document.as_object().unwrap().clone();
    broken.insert("codeType".to_owned(), json!(text));
    broken.insert(text.clone(), json!(1));
    let broken = Value::Object(broken).to_string();
    fs::write(folder.join("broken.json"), broken).unwrap();
    // A path has no slash and at most 255 bytes.
    let name = "\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\n\rerror: nothing.json";
    fs::write(folder.join(name), "{").unwrap();
    fs::write(folder.join(format!("--{name}")), "{").unwrap();
    let script = format!(
        "// {}\nreturn nothing(1);",
        text.replace(['\r', '\u{85}'], "")
    );
    fs::write(folder.join("script.js"), script).unwrap();
    fs::create_dir_all(folder.join("ring/tools")).unwrap();
    fs::copy(folder.join(name), folder.join("ring/tools").join(name)).unwrap();
    (folder, text)
}

/// Documents, file names, arguments, answers, errors and logs that hold sequences do
/// nothing to the terminal, whatever command shows them and however.
#[test]
fn hostile_text_does_nothing_to_a_terminal() {
    let (folder, text) = hostile_home("hostile");
    let arguments = json!({ "how": text, "more": text }).to_string();
    let import = shown(&format!("{PROGRAM} import speak.json --home ring"), &folder);
    assert!(import.contains("speak  draft"), "{import}");
    let commands = [
        "check *.json",
        "check speak.json gone*.json broken.json",
        "check -- *.json",
        "check --json -- *.json",
        "test speak.json",
        "test speak",
        "test speak speak.json",
        "test speak --json",
        "run speak.json --args '{\"how\":\"text\"}'",
        "run speak.json --args '{\"how\":\"value\"}'",
        "run speak.json --args '{\"how\":\"throw\"}'",
        "run speak.json --args '{\"how\":\"value\"}' --json",
        "run speak.json --args JSON",
        "run speak.json --args ARGUMENT",
        "run ARGUMENT",
        "run speak --tool ARGUMENT",
        "list",
        "list --json",
        "list --tag ARGUMENT",
        "show speak",
        "show speak --json",
        "show ARGUMENT",
        "export speak",
        "export speak --json",
        "script check script.js",
        "script run script.js --json",
        "script run script.js --context JSON",
        "script run script.js --context ARGUMENT",
        "audit list",
        "audit list --json",
        "audit export",
        "audit export --json",
        "audit show ARGUMENT",
        "explain --tool speak --args JSON",
        "explain --tool ARGUMENT --caller ARGUMENT",
        "policy show --caller ARGUMENT",
        "callers pause ARGUMENT",
        "callers list",
        "callers show ARGUMENT --json",
        "trust show ARGUMENT",
        "keys add ARGUMENT",
        "keys revoke ARGUMENT",
        "approvals show ARGUMENT",
        "new ARGUMENT",
        "publish speak",
        "unpublish ARGUMENT",
        "delete ARGUMENT",
        "expose ARGUMENT",
        "expose",
        "ARGUMENT",
        "check --ARGUMENT",
        "config",
        "doctor",
    ];
    for command in commands {
        let command = command.replace("ARGUMENT", &format!("'{text}'"));
        let command = command.replace("JSON", &format!("'{arguments}'"));
        shown(&format!("RINGFENCE_HOME=ring {PROGRAM} {command}"), &folder);
    }
    // It was there to be seen, not left out.
    let run = shown(
        &format!("{PROGRAM} run speak.json --args '{{\"how\":\"text\"}}' --home ring"),
        &folder,
    );
    assert!(run.contains("BEGIN\\u{1b}]0;owned\\u{7}"), "{run}");
    assert!(run.contains("\\u{9b}2J") && run.contains("END"), "{run}");
}

/// Escaping for a terminal changes the text of the JSON, not its value.
#[test]
fn json_output_is_escaped_and_means_the_same() {
    let (folder, text) = hostile_home("hostile-json");
    let value = r#"{"how":"value"}"#;
    let run = [
        "run",
        "speak.json",
        "--json",
        "--home",
        "ring",
        "--args",
        value,
    ];
    let output = ringfence(&run).within(&folder).output();
    let written = String::from_utf8(output.stdout).unwrap();
    let hidden = |character: char| model::text::is_hidden(character) && character != '\n';
    assert!(!written.contains(hidden), "{written:?}");
    let value: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(value["result"][&text], json!([text]));
    for arguments in [["export", "speak"], ["audit", "export"]] {
        let output = ringfence(&["import", "speak.json", "--home", "ring"]).within(&folder);
        output.output();
        let mut arguments = arguments.to_vec();
        arguments.extend(["--json", "--home", "ring"]);
        let output = ringfence(&arguments).within(&folder).output();
        let written = String::from_utf8(output.stdout).unwrap();
        assert!(!written.contains(hidden), "{written:?}");
        serde_json::from_str::<Value>(&written).expect("one value");
    }
}

fn tool(name: &str, code: &str) -> String {
    let document = json!({"name": name, "code": code, "codeType": "Javascript",
        "params": [{"name": "text", "type": "STRING", "required": false, "testValue": "t"}],
        "sandboxOverrides": {"networkMode": "open"}, "humanInTheLoop": {"mode": "REQUIRED"}});
    document.to_string()
}

/// Another process that wants the tool to run, and waits for an answer.
fn calling(folder: &Path, text: &str) -> Child {
    let arguments = json!({ "text": text }).to_string();
    Command::new(PROGRAM)
        .args(["run", "send.json", "--yes", "--home", "ring"])
        .args(["--args", &arguments])
        .current_dir(folder)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// An argument made to look like another question, of the length that scrolls the real
/// one away.
fn fake_question(columns: usize) -> String {
    let mut text = String::new();
    let pad = |text: &mut String| {
        let used = text.chars().count() % columns;
        text.push_str(&" ".repeat(columns - used));
    };
    for line in [
        "\"}",
        "[risk L0 Verified] `agent1` wants to run `getCurrentTime`",
        "arguments:",
        "{}",
        "answer for [risk L0 Verified] `getCurrentTime`, called by `agent1`:",
    ] {
        text.push_str(line);
        pad(&mut text);
    }
    " ".repeat(8_000) + &text
}

/// The watch begins before the first call.
fn make_home(home: &Path) {
    fs::create_dir_all(home).unwrap();
    fs::write(home.join("ringfence.toml"), "").unwrap();
}

/// A fake question inside an argument stands behind a bar, and the real one stays on
/// the screen, with what the answer is for beside the choice.
#[test]
fn a_fake_question_in_watch_does_not_look_like_one() {
    for size in [(80, 24), (40, 24), (132, 50)] {
        let folder = scratch(&format!("fake-{}", size.0));
        fs::write(folder.join("send.json"), tool("send", "return 'sent'")).unwrap();
        for text in [
            fake_question(usize::from(size.0)),
            "日本語[risk L0]".repeat(700),
        ] {
            let line = format!("{PROGRAM} approvals watch --count 1 --home ring");
            make_home(&folder.join("ring"));
            let mut watch = Terminal::sized(&line, &folder, size);
            let call = calling(&folder, &text);
            watch.until("anything else = no", 1);
            watch.until("\n> ", 1);
            let parser = emulated(&watch.bytes(), size);
            assert_eq!(parser.callbacks().0, Vec::<String>::new());
            let rows = rows(&parser, size.0);
            let begins = |words: &str| rows.iter().any(|row| row.contains(words));
            assert!(begins("[risk L4 High] `owner` wants"), "{rows:#?}");
            assert!(begins("answer for [risk L4 High] `send`"), "{rows:#?}");
            for row in &rows {
                let is_fake = row.contains("L0") || row.contains("getCurrentTime");
                assert!(!is_fake || row.starts_with("| "), "{rows:#?}");
            }
            // Nothing was broken by the terminal, which knows no bar.
            for (row, _) in (0_u16..).zip(&rows) {
                assert!(!parser.screen().row_wrapped(row), "{rows:#?}");
            }
            watch.answer("n\n", 1);
            let (status, shown) = watch.end();
            assert!(status.success(), "{shown}");
            let said = "no: [risk L4 High] `send`, called by";
            assert!(shown.replace("\r\n| ", "").contains(said), "{shown}");
            let called = call.wait_with_output().unwrap();
            let said = String::from_utf8(called.stderr).unwrap();
            assert!(said.contains("approval.declined"), "{said}");
        }
    }
}

/// A window made narrower while a question is open: the terminal breaks the lines again,
/// without a bar, so the question is shown again to fit.
#[test]
fn a_question_is_shown_again_when_the_window_changes() {
    let folder = scratch("resized");
    fs::write(folder.join("send.json"), tool("send", "return 'sent'")).unwrap();
    let arguments = json!({"text": "[risk L0 Verified] ".repeat(12)}).to_string();
    fs::write(folder.join("arguments.json"), arguments).unwrap();
    let (wide, narrow) = ((100, 30), (40, 30));
    let line = format!(
        "{{ while [ ! -e narrower ]; do :; done; stty cols {} </dev/tty; }} & \
         {PROGRAM} run send.json --yes --args \"$(cat arguments.json)\" --home ring",
        narrow.0
    );
    let mut terminal = Terminal::sized(&line, &folder, wide);
    terminal.until("\n> ", 1);
    let before = terminal.bytes().len();
    // Half an answer, which belongs to what was shown before.
    terminal.type_in("y");
    fs::write(folder.join("narrower"), "").unwrap();
    terminal.until("\n> ", 2);
    let after = terminal.bytes().split_off(before);
    let parser = emulated(&after, narrow);
    let rows = rows(&parser, narrow.0);
    let asks = rows.iter().any(|row| row.contains("answer for [risk L4"));
    assert!(asks, "{rows:#?}");
    for row in rows.iter().filter(|row| row.contains("L0")) {
        assert!(row.starts_with("| "), "{rows:#?}");
    }
    // Alone it is no yes.
    terminal.answer("\n", 2);
    let (_, shown) = terminal.end();
    assert!(shown.contains("no: [risk L4 High] `send`"), "{shown}");
    assert!(!shown.contains("sent\r\n"), "{shown}");
}

/// Of long arguments both ends are shown, with a count, and a key shows all of them,
/// page by page, before there is an answer.
#[test]
fn all_of_a_long_argument_can_be_read_before_a_yes() {
    let folder = scratch("long");
    fs::write(folder.join("send.json"), tool("send", "return 'sent'")).unwrap();
    let letters = |count: usize| "abcdefghij".repeat(count / 10);
    let text = format!("{}NEEDLE{}", letters(10_000), letters(10_000));
    let line = format!("{PROGRAM} approvals watch --count 1 --home ring");
    make_home(&folder.join("ring"));
    let size = (100, 30);
    let mut watch = Terminal::sized(&line, &folder, size);
    let call = calling(&folder, &text);
    watch.until(" characters left out; v shows all\r\n", 1);
    watch.until("v = show all of it first", 1);
    watch.answer("v\n", 1);
    let mut page = 1;
    loop {
        watch.until(&format!("page {page} of "), 1);
        let text = String::from_utf8(watch.bytes()).unwrap();
        let last = text.rsplit("page ").next().unwrap();
        let of: usize = last.split([' ', ';']).nth(2).unwrap().parse().unwrap();
        watch.type_in("\n");
        if page == of {
            break;
        }
        page += 1;
    }
    assert!(page > 5, "{page} pages");
    // Then it asks again.
    watch.answer("y\n", 2);
    let (_, shown) = watch.end();
    let bare: String = shown.replace("\r\n| ", "");
    assert!(bare.contains("NEEDLE"), "{bare}");
    let called = call.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(called.stdout).unwrap(), "sent\n");
    // `approvals show` has it whole as well, as long as the question waits.
    let waiting = calling(&folder, &format!("{text}2"));
    let inbox = |arguments: &[&str]| {
        let mut all = vec!["approvals"];
        all.extend(arguments);
        all.extend(["--json", "--home", "ring"]);
        let output = ringfence(&all).within(&folder).output();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let id = loop {
        if let Some(first) = inbox(&["list"]).as_array().unwrap().first() {
            break first["id"].as_str().unwrap().to_owned();
        }
    };
    let whole = inbox(&["show", &id]);
    let arguments: Value = serde_json::from_str(whole["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments["text"], json!(format!("{text}2")));
    inbox(&["deny", &id]);
    waiting.wait_with_output().unwrap();
    // Once it is over, both ends are enough.
    let over = inbox(&["show", &id]);
    assert!(over["arguments"].as_str().unwrap().chars().count() <= 8_000);
}

/// Two calls of a script want a person at the same time: one question is on the screen,
/// the yes is for that one, and the other is asked afterwards.
#[test]
fn two_questions_at_one_terminal_take_turns() {
    let folder = scratch("turns");
    for (name, code) in [("note", "return 'noted'"), ("erase", "return 'erased'")] {
        fs::write(folder.join(format!("{name}.json")), tool(name, code)).unwrap();
    }
    let script = "const both = await parallel(['note', 'erase'], async (name) => {
        try {
            return name === 'note' ? await callTool('note', {}) : await callTool('erase', {});
        } catch (error) { return 'refused'; }
    });
    return both;";
    fs::write(folder.join("both.js"), script).unwrap();
    let setup = ringfence(&["import", "note.json", "erase.json", "--home", "ring"]);
    assert!(setup.within(&folder).output().status.success());
    let publish = ringfence(&["publish", "note", "erase", "--yes", "--home", "ring"]);
    let published = publish.within(&folder).shown();
    assert!(published.starts_with("exit 0"), "{published}");
    for (first, second) in [("y\n", "n\n"), ("n\n", "y\n")] {
        let line = format!("{PROGRAM} script run both.js --home ring");
        let mut terminal = Terminal::start(&line, &folder);
        terminal.until("anything else = no", 1);
        let before = String::from_utf8(terminal.bytes()).unwrap();
        assert_eq!(before.matches("wants to run").count(), 1, "{before}");
        let asked_first = match before.contains("wants to run `note`") {
            true => "note",
            false => "erase",
        };
        terminal.answer(first, 1);
        let said = format!("`{asked_first}`, called by `owner`\r\n");
        terminal.until(&said, 1);
        terminal.answer(second, 2);
        let (_, shown) = terminal.end();
        let runs = match first {
            "y\n" => asked_first,
            _ if asked_first == "note" => "erase",
            _ => "note",
        };
        let (yes, no) = match runs {
            "note" => ("noted", "erased"),
            _ => ("erased", "noted"),
        };
        assert!(shown.contains(yes) && !shown.contains(no), "{shown}");
    }
}

/// Two commands at the same terminal ask one after the other as well.
#[test]
fn two_processes_at_one_terminal_take_turns() {
    let folder = scratch("processes");
    for name in ["one", "two"] {
        let code = format!("return '{name} ran'");
        fs::write(folder.join(format!("{name}.json")), tool(name, &code)).unwrap();
    }
    let run = |name: &str| format!("{PROGRAM} run {name}.json --yes --home ring");
    let line = format!("exec 3<&0; {} <&3 & {} <&3 & wait", run("one"), run("two"));
    let mut terminal = Terminal::start(&line, &folder);
    terminal.until("anything else = no", 1);
    let before = String::from_utf8(terminal.bytes()).unwrap();
    assert_eq!(before.matches("wants to run").count(), 1, "{before}");
    let (first, second) = match before.contains("wants to run `one`") {
        true => ("one", "two"),
        false => ("two", "one"),
    };
    terminal.answer("n\n", 1);
    terminal.until(&format!("no: [risk L4 High] `{first}`"), 1);
    terminal.answer("y\n", 2);
    let (_, shown) = terminal.end();
    assert!(shown.contains(&format!("{second} ran")), "{shown}");
    assert!(!shown.contains(&format!("{first} ran")), "{shown}");
}

/// Calls the tool and answers nothing. Returns the id of the open question.
fn waiting(folder: &Path, settings: &str) -> String {
    fs::create_dir_all(folder.join("ring")).unwrap();
    let settings = format!("[approvals]\nwait_seconds = 1\n{settings}");
    fs::write(folder.join("ring/ringfence.toml"), settings).unwrap();
    fs::write(folder.join("send.json"), tool("send", "return 'sent'")).unwrap();
    calling(folder, "hi").wait_with_output().unwrap();
    let listed = ringfence(&["approvals", "list", "--json", "--home", "ring"]);
    let listed = listed.within(folder).output().stdout;
    let listed: Value = serde_json::from_slice(&listed).unwrap();
    listed
        .pointer("/0/id")
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned()
}

fn approval(folder: &Path, id: &str) -> Value {
    let shown = ringfence(&["approvals", "show", id, "--json", "--home", "ring"]);
    serde_json::from_slice(&shown.within(folder).output().stdout).unwrap()
}

/// The command out of a refusal, run by a program, approves nothing.
#[test]
fn nothing_is_approved_without_a_terminal() {
    let folder = scratch("no-terminal");
    let id = waiting(&folder, "");
    for more in [vec![], vec!["--scope", "once"], vec!["--automation"]] {
        let output = Command::new("setsid")
            .args(["-w", PROGRAM, "approvals", "approve", &id, "--home", "ring"])
            .args(&more)
            .current_dir(&folder)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{more:?}: {output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.starts_with("refused: "), "{said}");
        assert_eq!(approval(&folder, &id)["state"], "pending");
    }
}

/// Whatever standard input is, the question is shown at the terminal, and what is typed
/// there counts.
#[test]
fn an_approval_is_typed_at_the_terminal() {
    let folder = scratch("typed");
    let id = waiting(&folder, "");
    for (answer, state, channel) in [
        ("n\n", "pending", Value::Null),
        ("\n", "pending", Value::Null),
        ("y\n", "approved", json!("terminal")),
    ] {
        let line = format!("{PROGRAM} approvals approve {id} --home ring </dev/null");
        let mut terminal = Terminal::start(&line, &folder);
        terminal.until("[risk L4 High] `owner` wants to run `send`", 1);
        terminal.until("| {\"text\":\"hi\"}", 1);
        terminal.answer(answer, 1);
        let (status, shown) = terminal.end();
        assert_eq!(status.success(), state == "approved", "{shown}");
        let now = approval(&folder, &id);
        assert_eq!((&now["state"], &now["channel"]), (&json!(state), &channel));
    }
}

/// Automation is the operator's word, up to a risk, and recorded as what it is.
#[test]
fn the_settings_limit_automated_approvals() {
    for (allowed, counts) in [("L0", false), ("L3", false), ("L4", true), ("L5", true)] {
        let folder = scratch(&format!("automation-{allowed}"));
        let id = waiting(&folder, &format!("automation = \"{allowed}\"\n"));
        let approve = [
            "approvals",
            "approve",
            &id,
            "--automation",
            "--home",
            "ring",
        ];
        let output = ringfence(&approve).within(&folder).output();
        assert_eq!(output.status.success(), counts, "{allowed}: {output:?}");
        let now = approval(&folder, &id);
        let expected = match counts {
            true => (json!("approved"), json!("automation")),
            false => (json!("pending"), Value::Null),
        };
        assert_eq!((now["state"].clone(), now["channel"].clone()), expected);
    }
}

/// A step in trust is a question like any other: the yes is typed, and raises the level
/// at once. The steps before it are those of the case.
#[test]
fn a_trust_promotion_is_approved_at_the_terminal() {
    let folder = scratch("trust-typed");
    let case = crate::root().join("cases/cli/trust");
    for entry in fs::read_dir(&case).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
    }
    let steps = fs::read_to_string(case.join("steps.sh")).unwrap();
    for step in steps.lines().take_while(|step| !step.contains("approve")) {
        let step = step.replace("ringfence ", &format!("{PROGRAM} "));
        Command::new("sh")
            .args(["-c", &step])
            .current_dir(&folder)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("RINGFENCE_HOME", folder.join("ring"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
    }
    let shown = |arguments: &[&str]| {
        let output = ringfence(arguments).within(&folder).output();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let listed = shown(&["approvals", "list", "--json", "--home", "ring"]);
    let id = listed[0]["id"].as_str().unwrap();
    let line = format!("{PROGRAM} approvals approve {id} --home ring");
    let mut terminal = Terminal::start(&line, &folder);
    terminal.until("wants to run `trust:promote`", 1);
    terminal.answer("y\n", 1);
    let (status, text) = terminal.end();
    assert!(status.success(), "{text}");
    let trust = shown(&["trust", "show", "stdio", "--json", "--home", "ring"]);
    assert_eq!(trust["tracks"][0]["level"], "elevated", "{trust:#}");
}
