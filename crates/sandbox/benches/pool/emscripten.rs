//! The same call in the npm package `quickjs-emscripten`, in the same run: the usual
//! way to have QuickJS in WebAssembly. Its one wall is the module, shared by all calls.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// What is compared with; pinned, so that runs can be compared.
const PACKAGE: &str = "quickjs-emscripten@0.32.0";

const SCRIPT: &str = include_str!("emscripten.mjs");

/// Calls of one round.
const CALLS: &str = "1000";

/// Rounds of theirs, each between rounds of ours; of each the best counts.
const ROUNDS: usize = 5;

/// Measures theirs and ours (microseconds, by how many at a time) in turn. Says why
/// there is no comparison when there is none.
pub(super) fn compare(mut ours: impl FnMut(usize) -> f64) -> Value {
    let folder = match install() {
        Ok(folder) => folder,
        Err(reason) => return json!({ "not_measured": reason }),
    };
    let mut theirs_us = f64::INFINITY;
    let mut ours_us = [(1, f64::INFINITY), (16, f64::INFINITY), (64, f64::INFINITY)];
    for _ in 0..ROUNDS {
        match measure(&folder) {
            Ok(us) => theirs_us = theirs_us.min(us),
            Err(reason) => return json!({ "not_measured": reason }),
        }
        for (at_once, least) in &mut ours_us {
            *least = least.min(ours(*at_once));
        }
    }
    let rows = ours_us.map(|(at_once, us)| {
        let row = json!({ "cpu_us": super::round(us), "times_less": super::round(theirs_us / us) });
        (at_once.to_string(), row)
    });
    json!({
        "package": PACKAGE,
        "cpu_us": super::round(theirs_us),
        "ours": serde_json::Map::from_iter(rows),
    })
}

/// The package in a folder of its own below `target`, fetched on first use.
fn install() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(PACKAGE.replace('@', "-"));
    std::fs::create_dir_all(&folder).map_err(|error| format!("no folder for it: {error}"))?;
    run(Command::new("node").arg("--version"))?;
    if !folder.join("node_modules/quickjs-emscripten").exists() {
        let mut npm = Command::new("npm");
        npm.args([
            "install",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--no-save",
        ])
        .arg("--prefix")
        .arg(&folder)
        .arg(PACKAGE);
        run(&mut npm)?;
    }
    std::fs::write(folder.join("fresh.mjs"), SCRIPT)
        .map_err(|error| format!("no place for its script: {error}"))?;
    Ok(folder)
}

fn measure(folder: &Path) -> Result<f64, String> {
    let said = run(Command::new("node")
        .current_dir(folder)
        .args(["fresh.mjs", CALLS]))?;
    said.trim()
        .parse()
        .map_err(|_| format!("it said `{}`, which is no number", said.trim()))
}

fn run(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("could not run {name}: {error}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{name} failed: {}", complaint.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
