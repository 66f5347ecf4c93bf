//! A folder with a home in it, where what a page shows is done.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use regex::Regex;

use super::live::Server;
use crate::serve::{command, first_line, terminate};
use crate::terminal::Terminal;

/// Where pages say the server is.
const SHOWN_ADDRESS: &str = "127.0.0.1:7464";

/// What a terminal shows when it wants an answer.
const PROMPT: &str = "\n> ";

/// Where the blocks of a page happen; gone with it.
pub(crate) struct Story {
    folder: PathBuf,
    server: Option<Server>,
}

/// What a command came to.
struct Done {
    code: Option<i32>,
    shown: String,
}

impl Done {
    /// Whether a command came to what the page shows.
    fn is_like(&self, command: &str, expected: &str) -> Result<(), String> {
        let mut shown = self.shown.clone();
        if self.code != Some(0) {
            let code = self
                .code
                .map_or("by a signal".to_owned(), |code| code.to_string());
            shown.push_str(&format!("[exit {code}]\n"));
        }
        alike(expected, &shown).map_err(|why| format!("$ {command}\n{why}"))
    }
}

/// What a terminal shows, without its colours.
fn plain(shown: &str) -> String {
    let colours = Regex::new("\u{1b}\\[[0-9;]*[A-Za-z]").unwrap();
    colours.replace_all(shown, "").replace('\r', "")
}

/// The commands of a transcript, each with what it prints.
fn steps(text: &str) -> Result<Vec<(&str, String)>, String> {
    let mut steps: Vec<(&str, String)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push((command, String::new())),
            (None, Some((_, expected))) => {
                expected.push_str(line);
                expected.push('\n');
            }
            (None, None) => return Err(format!("`{line}` follows no command")),
        }
    }
    Ok(steps)
}

/// A folder for one block.
pub(crate) fn fresh(page: &Path) -> Story {
    Story::new(&page.file_name().unwrap().to_string_lossy())
}

impl Story {
    pub(crate) fn new(page: &str) -> Story {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("docs-{number}-{}", page.replace(['/', '.'], "-"));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&folder);
        // The folders of clients, as their first start makes them.
        for name in [
            "ring",
            "me/.cursor",
            "me/.config/Claude",
            "me/.config/Code/User",
        ] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        fs::create_dir(folder.join("examples")).unwrap();
        for entry in fs::read_dir(crate::root().join("examples")).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let into = folder.join("examples").join(path.file_name().unwrap());
                fs::copy(&path, into).unwrap();
            }
        }
        Story {
            folder,
            server: None,
        }
    }

    fn home(&self) -> PathBuf {
        self.folder.join("ring")
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).map_err(|error| error.to_string())
    }

    /// Starts a server of the story's home, unless it has one, and makes an operator's
    /// key: `$KEY`.
    pub(crate) fn serve(&mut self) -> Result<(), String> {
        if self.server.is_none() {
            let key = "KEY=$(ringfence keys add me --role operator); echo KEY=$KEY >> env";
            self.commands(key)?;
            self.server = Some(Server::start(&self.home(), &[]));
        }
        Ok(())
    }

    /// The end of the page: its server ends well.
    pub(crate) fn end(&mut self) -> Result<(), String> {
        self.server.take().map_or(Ok(()), Server::end)
    }

    /// A script of which each command ends well.
    pub(crate) fn commands(&self, text: &str) -> Result<(), String> {
        let done = self.typed(&format!("set -e\n{text}"), b"");
        match done.code {
            Some(0) => Ok(()),
            code => Err(format!("{text}--- printed\n{}[exit {code:?}]", done.shown)),
        }
    }

    /// Commands after `$ `, each with what it prints; `[exit N]` unless it is 0.
    pub(crate) fn transcript(&self, text: &str) -> Result<(), String> {
        for (command, expected) in steps(text)? {
            let done = self.typed(command, b"");
            done.is_like(command, &expected)?;
        }
        Ok(())
    }

    /// The same at a terminal, where every question is answered with `y`.
    pub(crate) fn terminal_transcript(&self, text: &str) -> Result<(), String> {
        for (command, expected) in steps(text)? {
            self.at_terminal(command).is_like(command, &expected)?;
        }
        Ok(())
    }

    /// Servers: each says where it is, or is a client's, and ends well when told to.
    pub(crate) fn servers(&self, text: &str) -> Result<(), String> {
        self.write("ring/ringfence.toml", "[serve]\nlisten = \"127.0.0.1:0\"\n")?;
        for line in text.lines() {
            let typed = line.split('#').next().unwrap_or("").trim();
            let words: Vec<_> = typed.split_whitespace().skip(1).collect();
            let words: Vec<_> = words
                .iter()
                .map(|word| match word.starts_with("127.0.0.1:") {
                    // Another program may have the port that the page shows.
                    true => "127.0.0.1:0",
                    false => word,
                })
                .collect();
            let mut child = command(&words, &self.home());
            let code = match words.first() {
                Some(&"stdio") => {
                    drop(child.stdin.take());
                    child.wait().unwrap().code()
                }
                _ => {
                    let said = first_line(&mut child);
                    if !said.starts_with("http://127.0.0.1:") {
                        return Err(format!("$ {typed}\n{said}"));
                    }
                    terminate(&mut child)
                }
            };
            if code != Some(0) {
                return Err(format!("$ {typed}\n[exit {code:?}]"));
            }
        }
        Ok(())
    }

    /// Commands at a terminal, where every question is answered with `y`.
    pub(crate) fn answered(&self, text: &str) -> Result<(), String> {
        for line in text.lines() {
            let done = self.at_terminal(line);
            if done.code != Some(0) {
                return Err(format!("$ {line}\n{}", done.shown));
            }
        }
        Ok(())
    }

    fn at_terminal(&self, line: &str) -> Done {
        let ended = "the command has ended";
        let line = format!(
            "{}\ncode=$?; echo '{ended}'; exit $code",
            self.at_home(line)
        );
        let mut terminal = Terminal::start(&line, &self.folder);
        let mut asked = 1;
        while !terminal.either(ended, PROMPT, asked) {
            terminal.answer("y\n", asked);
            asked += 1;
        }
        let (status, shown) = terminal.end();
        let shown = plain(&shown);
        Done {
            code: status.code(),
            shown: shown.replace(&format!("{ended}\n"), ""),
        }
    }

    /// What a command shows at a terminal until it asks. The answer is no.
    pub(crate) fn shows(&self, command: &str, expected: &str) -> Result<(), String> {
        let mut terminal = Terminal::start(&self.at_home(command), &self.folder);
        terminal.until(PROMPT, 1);
        let shown = plain(&String::from_utf8(terminal.bytes()).expect("text"));
        terminal.answer("n\n", 1);
        drop(terminal.end());
        alike(expected, &format!("{shown}\n"))
    }

    /// What one command prints.
    pub(crate) fn prints(&self, command: &str, expected: &str) -> Result<(), String> {
        alike(expected, &self.typed(command, b"").shown)
    }

    /// Each line is among those a command prints.
    pub(crate) fn prints_lines(&self, command: &str, expected: &str) -> Result<(), String> {
        let shown = self.typed(command, b"").shown;
        let mut lines = shown.lines().map(str::trim);
        for line in expected.lines() {
            if !lines
                .clone()
                .any(|shown| alike(line, &format!("{shown}\n")).is_ok())
            {
                let all: Vec<_> = lines.by_ref().collect();
                return Err(format!("no line like\n{line}\namong\n{}", all.join("\n")));
            }
        }
        Ok(())
    }

    /// Settings come into force, every name in them known.
    pub(crate) fn settings(&self, text: &str) -> Result<(), String> {
        self.write("ring/ringfence.toml", text)?;
        self.commands("ringfence config\nringfence list")
    }

    /// A document that `check` takes, without a warning.
    pub(crate) fn document(&self, text: &str) -> Result<(), String> {
        let done = self.typed("ringfence check -", text.as_bytes());
        match done.code == Some(0) && !done.shown.contains("warning") {
            true => Ok(()),
            false => Err(done.shown),
        }
    }

    /// Arguments that a bundled tool takes.
    pub(crate) fn arguments(&self, tool: &str, text: &str) -> Result<(), String> {
        self.with_arguments("explain --tool", tool, text)
    }

    /// Arguments with which a bundled tool does what it should.
    pub(crate) fn called(&self, tool: &str, text: &str) -> Result<(), String> {
        self.with_arguments("run", tool, text)
    }

    fn with_arguments(&self, command: &str, tool: &str, text: &str) -> Result<(), String> {
        let settings = "[exposure]\npreset = 'everything'\n[progressive]\nenabled = true\n";
        self.write("ring/ringfence.toml", settings)?;
        self.write("arguments.json", text)?;
        self.commands(&format!(
            "ringfence {command} {tool} --args \"$(cat arguments.json)\""
        ))
    }

    /// A script the guard takes; with a context it also runs.
    pub(crate) fn script(&self, text: &str, context: Option<&str>) -> Result<(), String> {
        let mut commands = vec!["ringfence script check -".to_owned()];
        if let Some(context) = context {
            self.write("context.json", context)?;
            let run = "ringfence script run - --context \"$(cat context.json)\"";
            commands.push(run.to_owned());
        }
        for command in commands {
            let done = self.typed(&command, text.as_bytes());
            if done.code != Some(0) {
                return Err(format!("$ {command}\n{}", done.shown));
            }
        }
        Ok(())
    }

    /// A program that reads what a command prints.
    pub(crate) fn program(
        &self,
        interpreter: &str,
        text: &str,
        command: &str,
    ) -> Result<(), String> {
        self.write("program", text)?;
        self.commands("ringfence run countWords --args '{\"text\": \"a b\"}'")?;
        self.commands(&format!("{command} > said\n{interpreter} program < said"))
    }

    /// Lines as a shell runs them, with nothing of this machine but the program and
    /// the plainest tools.
    fn typed(&self, lines: &str, input: &[u8]) -> Done {
        let mut child = Command::new("sh")
            .args(["-c", &self.at_home(lines)])
            .current_dir(&self.folder)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that does not read its input closes it; that is its right.
        drop(child.stdin.take().unwrap().write_all(input));
        let output = child.wait_with_output().unwrap();
        let mut shown = String::new();
        for bytes in [&output.stdout, &output.stderr] {
            shown.push_str(std::str::from_utf8(bytes).expect("output is text"));
        }
        Done {
            code: output.status.code(),
            shown: shown.replace(&self.folder.display().to_string(), "<folder>"),
        }
    }

    /// Lines of shell in the story's home, which know what the story knows.
    fn at_home(&self, lines: &str) -> String {
        let program = Path::new(env!("CARGO_BIN_EXE_ringfence"));
        let binaries = program.parent().unwrap().display();
        let folder = self.folder.display();
        let lines = match &self.server {
            Some(server) => lines.replace(SHOWN_ADDRESS, server.address()),
            None => lines.to_owned(),
        };
        format!(
            "export PATH='{binaries}':/usr/local/bin:/usr/bin:/bin HOME='{folder}/me' \
             RINGFENCE_HOME='{folder}/ring'\n\
             if [ -e env ]; then . ./env; fi\n\
             {lines}"
        )
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Whether what was shown fits what the page shows. `…` stands for anything in a line,
/// alone for any lines.
fn alike(expected: &str, shown: &str) -> Result<(), String> {
    let mut pattern = String::from("(?s)^");
    for line in expected.lines() {
        if line.trim() == "…" {
            pattern.push_str("(?:[^\\n]*\\n)*?");
            continue;
        }
        let parts: Vec<_> = line.trim_end().split('…').map(regex::escape).collect();
        pattern.push_str(&parts.join("[^\\n]*?"));
        pattern.push_str("[ ]*\\n");
    }
    pattern.push('$');
    match Regex::new(&pattern).unwrap().is_match(shown) {
        true => Ok(()),
        false => Err(format!(
            "--- shown on the page\n{expected}--- printed\n{shown}"
        )),
    }
}

#[test]
fn an_ellipsis_stands_for_anything_and_the_rest_for_itself() {
    assert!(alike("a … c\n", "a b c\n").is_ok());
    assert!(alike("a\n…\nc\n", "a\nb\nb\nc\n").is_ok());
    assert!(alike("a\n", "a\nb\n").is_err());
    assert!(alike("a\nb\n", "a\n").is_err());
    assert!(alike("a … c\n", "a b d\n").is_err());
}
