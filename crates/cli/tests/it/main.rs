//! Whole commands: exit code, standard output, standard error.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should stop"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

mod cases;
mod check;
mod cluster;
mod complete;
mod connect;
mod consent;
mod demo;
mod docs;
mod first_hour;
mod init;
mod json;
mod masked;
mod memory;
mod nodes;
mod observability;
mod progress;
mod publish;
mod run;
mod screen;
mod serve;
mod servers;
mod session;
mod studio;
mod terminal;
mod witness;
mod wrap;

/// The workspace's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// A command line run with nothing from this machine's environment.
struct Run {
    arguments: Vec<String>,
    folder: PathBuf,
    variables: Vec<(String, String)>,
    input: Vec<u8>,
}

fn ringfence(arguments: &[&str]) -> Run {
    let arguments = arguments
        .iter()
        .map(|argument| (*argument).to_owned())
        .collect();
    Run {
        arguments,
        folder: root(),
        variables: Vec::new(),
        input: Vec::new(),
    }
}

impl Run {
    fn within(mut self, folder: &Path) -> Run {
        self.folder = folder.to_path_buf();
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Run {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    fn input(mut self, input: &[u8]) -> Run {
        self.input = input.to_vec();
        self
    }

    fn output(&self) -> std::process::Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ringfence"))
            .args(&self.arguments)
            .current_dir(&self.folder)
            .env_clear()
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = self.input.clone();
        // A command that does not read its input closes it; that is its right.
        let writer =
            std::thread::spawn(move || drop(std::io::Write::write_all(&mut stdin, &input)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        output
    }

    /// Exit code and both streams, as one text.
    fn shown(&self) -> String {
        let output = self.output();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("output is text");
        let mut shown = format!("exit {}\n", output.status.code().expect("an exit code"));
        for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            if !bytes.is_empty() {
                shown.push_str(&format!("--- {name}\n{}", text(bytes)));
            }
        }
        shown
    }
}
