//! A folder with a home in it, where what a page shows is done.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use regex::Regex;

/// Where the blocks of a page happen; gone with it.
pub(crate) struct Story {
    folder: PathBuf,
}

/// What a command came to.
struct Done {
    code: Option<i32>,
    shown: String,
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
        fs::create_dir_all(folder.join("ring")).unwrap();
        let examples = super::root().join("examples");
        fs::create_dir(folder.join("examples")).unwrap();
        for entry in fs::read_dir(examples).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                fs::copy(
                    &path,
                    folder.join("examples").join(path.file_name().unwrap()),
                )
                .unwrap();
            }
        }
        Story { folder }
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).map_err(|error| error.to_string())
    }

    /// Each line is a command that ends well.
    pub(crate) fn commands(&self, text: &str) -> Result<(), String> {
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let done = self.typed(line, b"");
            if done.code != Some(0) {
                return Err(format!("$ {line}\n{}[exit {:?}]", done.shown, done.code));
            }
        }
        Ok(())
    }

    /// Commands after `$ `, each with what it prints; `[exit N]` unless it is 0.
    pub(crate) fn transcript(&self, text: &str) -> Result<(), String> {
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let Some(command) = line.strip_prefix("$ ") else {
                return Err(format!("`{line}` follows no command"));
            };
            let mut expected = String::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
                expected.push_str(line);
                expected.push('\n');
            }
            let done = self.typed(command, b"");
            let mut shown = done.shown;
            if done.code != Some(0) {
                let code = done
                    .code
                    .map_or("by a signal".to_owned(), |code| code.to_string());
                shown.push_str(&format!("[exit {code}]\n"));
            }
            alike(&expected, &shown).map_err(|why| format!("$ {command}\n{why}"))?;
        }
        Ok(())
    }

    /// What one command prints.
    pub(crate) fn prints(&self, command: &str, expected: &str) -> Result<(), String> {
        alike(expected, &self.typed(command, b"").shown)
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
        let settings = "[exposure]\npreset = 'everything'\n[disclosure]\nenabled = true\n";
        self.write("ring/ringfence.toml", settings)?;
        self.write("arguments.json", text)?;
        let command = format!("ringfence explain --tool {tool} --args \"$(cat arguments.json)\"");
        self.commands(&command)
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
        let command = format!("{command} > said && {interpreter} program < said");
        self.commands(&command)
    }

    /// One line as a shell runs it, with nothing of this machine but the program and
    /// the plainest tools.
    fn typed(&self, line: &str, input: &[u8]) -> Done {
        let program = Path::new(env!("CARGO_BIN_EXE_ringfence"));
        let binaries = program.parent().unwrap().display();
        let mut child = Command::new("sh")
            .args(["-c", line])
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", format!("{binaries}:/usr/local/bin:/usr/bin:/bin"))
            .env("RINGFENCE_HOME", self.folder.join("ring"))
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
