//! What confinement costs: `readText` beside `std::fs::read_to_string`, and a
//! write beside the same steps done by hand.
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on should stop")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use divan::Bencher;
use divan::counter::BytesCount;
use host::files::{FileSettings, Files};
use host::message::PowerRequest;
use model::policy::grant::FileGrant;
use serde_json::json;

fn main() {
    divan::main();
}

const SIZES: &[usize] = &[100, 1_000_000];

fn workspace() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("files-bench");
    fs::create_dir_all(&path).unwrap();
    path.canonicalize().unwrap()
}

fn files() -> Files {
    let grant = FileGrant {
        read: true,
        write: true,
        base_path: None,
    };
    let settings = FileSettings {
        workspace: workspace(),
        sub_workspace: None,
        read_roots: Vec::new(),
        deadline: Instant::now() + Duration::from_secs(3_600),
        workspace_bytes_max: 1 << 30,
        home: None,
        stand_in: None,
    };
    Files::open(&grant, &settings).unwrap().unwrap()
}

/// A text of this many bytes with some letters beyond ASCII.
fn file(bytes: usize) -> PathBuf {
    let path = workspace().join(format!("{bytes}.txt"));
    let line = "a line of text as tools read it, naïve, 80 bytes with its end, more or less\n";
    let mut text = line.repeat(bytes / line.len() + 1);
    text.truncate(bytes);
    fs::write(&path, text).unwrap();
    path
}

#[divan::bench(args = SIZES)]
fn read_text(bencher: Bencher<'_, '_>, bytes: usize) {
    file(bytes);
    let files = files();
    let arguments = json!([format!("{bytes}.txt")]);
    let ask = PowerRequest {
        arguments,
        bytes: Vec::new(),
    };
    bencher
        .counter(BytesCount::new(bytes))
        .bench_local(|| files.call("readText", &ask).unwrap());
}

#[divan::bench(args = SIZES)]
fn std_read_to_string(bencher: Bencher<'_, '_>, bytes: usize) {
    let path = file(bytes);
    bencher
        .counter(BytesCount::new(bytes))
        .bench_local(|| fs::read_to_string(&path).unwrap());
}

#[divan::bench]
fn grep_1_mb(bencher: Bencher<'_, '_>) {
    file(1_000_000);
    let files = files();
    let ask = PowerRequest {
        arguments: json!(["no such (thing|text)\\d+", "1000000.txt"]),
        bytes: Vec::new(),
    };
    bencher
        .counter(BytesCount::new(1_000_000_usize))
        .bench_local(|| files.call("grep", &ask).unwrap());
}

#[divan::bench]
fn open_power(bencher: Bencher<'_, '_>) {
    workspace();
    bencher.bench_local(files);
}
