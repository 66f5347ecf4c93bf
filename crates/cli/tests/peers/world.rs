//! A fresh home with tools in it, and servers of it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

/// A folder of settings, tools and audit, gone with the test.
pub(crate) struct Home(PathBuf);

/// The clients of these tests are named by their owner: others answer nothing.
pub(crate) const NAMED: &str =
    "\n[callers.local]\nanswers = \"L5\"\n\n[callers.stdio]\nanswers = \"L5\"\n";

impl Home {
    /// With the tools below, published, beside the bundled ones.
    pub(crate) fn new(name: &str) -> Home {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("peers")
            .join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let home = Home(folder);
        home.settings(&format!(
            "[approvals]\nwait_seconds = 20\nautomation = \"L5\"\n{NAMED}"
        ));
        home.import(&[
            tool("greet", "return `Hello, ${who}!`;"),
            // Long enough for a sign of life on the way, but not in its own test.
            tool(
                "linger",
                "const end = Date.now() + (who === 'Ada' ? 0 : 1800); \
                 while (Date.now() < end); return who;",
            ),
            tool("trip", "throw new Error(`${who} tripped`);"),
            asking("careful", "return `did it for ${who}`;"),
        ]);
        home.must(&["publish", "greet", "linger", "careful"]);
        home
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    pub(crate) fn settings(&self, text: &str) {
        fs::write(self.0.join("ringfence.toml"), text).unwrap();
    }

    /// Takes documents in, as drafts.
    pub(crate) fn import(&self, tools: &[Value]) {
        let file = self.0.join("import.json");
        fs::write(&file, json!(tools).to_string()).unwrap();
        self.must(&["import", file.to_str().unwrap()]);
    }

    /// A command of this home.
    pub(crate) fn ringfence(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ringfence"));
        command
            .args(arguments)
            .env_clear()
            .env("RINGFENCE_HOME", &self.0)
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.ringfence(arguments).output().unwrap()
    }

    /// What a command that must succeed has printed.
    #[track_caller]
    pub(crate) fn must(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (printed, said) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{arguments:?}: {printed}{said}");
        printed
    }

    /// Starts `ringfence serve` on a free port.
    pub(crate) fn serve(&self) -> Server {
        self.serve_with(&["--listen", "127.0.0.1:0"])
    }

    /// The same, and it asks for no key.
    pub(crate) fn serve_open(&self) -> Server {
        self.serve_with(&["--listen", "127.0.0.1:0", "--no-auth"])
    }

    /// Starts it where the settings say.
    pub(crate) fn serve_as_set(&self) -> Server {
        self.serve_with(&[])
    }

    fn serve_with(&self, arguments: &[&str]) -> Server {
        let arguments = [&["serve", "--json"], arguments].concat();
        let mut command = self.ringfence(&arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        // Whatever else it says must find a reader.
        std::thread::spawn(move || output.lines().count());
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("said `{line}`"));
        let token = fs::read_to_string(self.0.join("token")).unwrap();
        Server {
            child,
            url: ready["url"].as_str().unwrap().to_owned(),
            token: token.trim().to_owned(),
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// A running `ringfence serve`.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
    pub(crate) token: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A tool that takes a name.
pub(crate) fn tool(name: &str, code: &str) -> Value {
    json!({
        "name": name,
        "description": format!("Does `{name}` for somebody. Needs who. Returns what came of it."),
        "category": "TEXT",
        "params": [{
            "name": "who",
            "description": "For whom",
            "required": true,
            "type": "STRING",
            "testValue": "Ada",
        }],
        "code": code,
        "codeType": "Javascript",
    })
}

/// A tool that never runs before a person said yes.
pub(crate) fn asking(name: &str, code: &str) -> Value {
    let mut tool = tool(name, code);
    tool["humanInTheLoop"] = json!({
        "mode": "REQUIRED",
        "promptTemplate": "May '{toolName}' do it for {args.who}?",
    });
    tool
}
