//! Random sequences of operations, confined and naive, each in a tree of its
//! own: the answers and the trees must be the same after every step.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use proptest::prelude::{ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::sample::select;
use serde_json::{Value, json};

use crate::scratch::{Scratch, call, tree};

#[derive(Clone, Debug)]
enum Step {
    Write(&'static str, String),
    Append(&'static str, String),
    Read(&'static str),
    Count(&'static str),
    Slice(&'static str, i64, i64),
    Sort(&'static str, bool),
    Exists(&'static str),
    List(&'static str),
    Find(&'static str),
    Copy(&'static str, &'static str),
    Move(&'static str, &'static str),
    Delete(&'static str),
    DeleteDir(&'static str),
    Edit(&'static str, &'static str),
}

fn path() -> impl Strategy<Value = &'static str> {
    select(vec![
        "a", "b", "d/a", "d/b", "d/e/a", "d/e", "d", "f/g/h", "f", "./b", "d/../a", "f//g",
    ])
}

fn content() -> impl Strategy<Value = String> {
    let lines = proptest::collection::vec(select(vec!["x", "yy", "é", "10", "9", ""]), 0..6);
    lines.prop_map(|lines| lines.join("\n"))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (path(), content()).prop_map(|(path, text)| Step::Write(path, text)),
        2 => (path(), content()).prop_map(|(path, text)| Step::Append(path, text)),
        2 => path().prop_map(Step::Read),
        1 => path().prop_map(Step::Count),
        1 => (path(), -4..5_i64, -4..5_i64).prop_map(|(path, a, b)| Step::Slice(path, a, b)),
        1 => (path(), any::<bool>()).prop_map(|(path, flag)| Step::Sort(path, flag)),
        1 => path().prop_map(Step::Exists),
        1 => path().prop_map(Step::List),
        1 => path().prop_map(Step::Find),
        2 => (path(), path()).prop_map(|(from, to)| Step::Copy(from, to)),
        2 => (path(), path()).prop_map(|(from, to)| Step::Move(from, to)),
        1 => path().prop_map(Step::Delete),
        1 => path().prop_map(Step::DeleteDir),
        1 => (path(), select(vec!["x", "y", "é"])).prop_map(|(path, old)| Step::Edit(path, old)),
    ]
}

impl Step {
    fn confined(&self) -> (&'static str, Value) {
        match self {
            Step::Write(path, text) => ("writeText", json!([path, text])),
            Step::Append(path, text) => ("appendText", json!([path, text])),
            Step::Read(path) => ("readText", json!([path])),
            Step::Count(path) => ("lineCount", json!([path])),
            Step::Slice(path, start, end) => ("slice", json!([path, start, end])),
            Step::Sort(path, flag) => ("sort", json!([path, {"reverse": flag}])),
            Step::Exists(path) => ("exists", json!([path])),
            Step::List(path) => ("list", json!([path])),
            Step::Find(path) => ("find", json!([path, "*", {"type": "file"}])),
            Step::Copy(from, to) => ("copy", json!([from, to])),
            Step::Move(from, to) => ("move", json!([from, to])),
            Step::Delete(path) => ("delete", json!([path])),
            Step::DeleteDir(path) => ("deleteDir", json!([path])),
            Step::Edit(path, old) => ("editText", json!([path, old, "new", true])),
        }
    }

    /// The same with `std::fs`, and nothing else in mind. The value is what the
    /// specification says, or `null` where it is only the path.
    fn naive(&self, root: &Path) -> io::Result<Value> {
        let at = |path: &str| plain(root, path);
        let read = |path: &str| fs::read_to_string(at(path));
        match self {
            Step::Read(path) => Ok(json!(read(path)?)),
            Step::Count(path) => Ok(json!(read(path)?.lines().count())),
            Step::Slice(path, start, end) => {
                let text = read(path)?;
                let lines: Vec<&str> = text.lines().collect();
                let count = i64::try_from(lines.len()).unwrap();
                let place = |index: i64| match index < 0 {
                    true => (count + index).max(0),
                    false => index.min(count),
                };
                let (start, end) = (place(*start), place(*end).max(place(*start)));
                let (start, end) = (
                    usize::try_from(start).unwrap(),
                    usize::try_from(end).unwrap(),
                );
                Ok(json!(lines[start..end]))
            }
            Step::Sort(path, is_reverse) => {
                let text = read(path)?;
                let mut lines: Vec<&str> = text.lines().collect();
                lines.sort();
                if *is_reverse {
                    lines.reverse();
                }
                Ok(json!(lines))
            }
            Step::Exists(path) => Ok(json!(at(path).exists())),
            Step::List(path) => list(root, &at(path)),
            Step::Find(path) => match at(path).is_dir() {
                true => {
                    let below = tree(&at(path));
                    let names = below.iter().filter(|(_, what)| what.starts_with("file"));
                    let names = names.map(|(name, _)| at(path).join(name));
                    let mut names: Vec<_> = names.map(|name| display(root, &name)).collect();
                    names
                        .sort_by_key(|name| name.split('/').map(str::to_owned).collect::<Vec<_>>());
                    Ok(json!(names))
                }
                false => Err(io::ErrorKind::NotADirectory.into()),
            },
            Step::Write(..)
            | Step::Append(..)
            | Step::Copy(..)
            | Step::Move(..)
            | Step::Delete(_)
            | Step::DeleteDir(_)
            | Step::Edit(..) => self.naive_write(root),
        }
    }

    fn naive_write(&self, root: &Path) -> io::Result<Value> {
        let at = |path: &str| plain(root, path);
        let make = |path: &str| fs::create_dir_all(at(path).parent().unwrap());
        match self {
            Step::Write(path, text) => {
                make(path)?;
                fs::write(at(path), text).map(|()| Value::Null)
            }
            Step::Append(path, text) => {
                make(path)?;
                let mut file = fs::OpenOptions::new()
                    .append(true)
                    .create(true)
                    .open(at(path))?;
                file.write_all(text.as_bytes()).map(|()| Value::Null)
            }
            Step::Copy(from, to) => {
                if !at(from).is_file() {
                    return Err(io::ErrorKind::NotFound.into());
                }
                make(to)?;
                let text = fs::read(at(from))?;
                fs::write(at(to), text).map(|()| Value::Null)
            }
            Step::Move(from, to) => {
                fs::metadata(at(from))?;
                if at(to) != at(from) && at(to).starts_with(at(from)) {
                    return Err(io::ErrorKind::InvalidInput.into());
                }
                make(to)?;
                fs::rename(at(from), at(to)).map(|()| Value::Null)
            }
            Step::Delete(path) => match fs::metadata(at(path)) {
                Ok(_) => fs::remove_file(at(path)).map(|()| json!(true)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(json!(false)),
                Err(error) => Err(error),
            },
            Step::DeleteDir(path) => match fs::metadata(at(path)) {
                Ok(metadata) if metadata.is_dir() => {
                    let count = tree(&at(path)).len() + 1;
                    fs::remove_dir_all(at(path)).map(|()| json!(count))
                }
                Ok(_) => Err(io::ErrorKind::NotADirectory.into()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(json!(0)),
                Err(error) => Err(error),
            },
            Step::Edit(path, old) => {
                let text = fs::read_to_string(at(path))?;
                let count = text.matches(old).count();
                if count == 0 {
                    return Err(io::ErrorKind::InvalidInput.into());
                }
                fs::write(at(path), text.replace(old, "new"))?;
                Ok(json!(count))
            }
            _ => panic!("{self:?} only reads"),
        }
    }
}

fn list(root: &Path, folder: &Path) -> io::Result<Value> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(json!([])),
        Err(error) => return Err(error),
    };
    let mut names: Vec<String> = entries
        .map(|entry| display(root, &entry.unwrap().path()))
        .collect();
    names.sort();
    Ok(json!(names))
}

/// The few spellings of [`path`], without their dots.
fn plain(root: &Path, path: &str) -> std::path::PathBuf {
    let path = path.trim_start_matches("./").replace("d/../", "");
    root.join(path.replace("//", "/"))
}

fn display(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap().display().to_string()
}

fn cases() -> u32 {
    match std::env::var_os("SLOW_TESTS") {
        Some(_) => 1_000,
        None => 40,
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn confined_and_naive_operations_agree(steps in proptest::collection::vec(step(), 1..30)) {
        let (confined, naive) = (Scratch::new("confined"), Scratch::new("naive"));
        let files = confined.files();
        for (index, step) in steps.iter().enumerate() {
            let (function, arguments) = step.confined();
            let ours = call(&files, function, arguments);
            let theirs = step.naive(&naive.workspace());
            let at = format!("step {index} {step:?}: {ours:?} and {theirs:?}");
            assert_eq!(ours.is_ok(), theirs.is_ok(), "{at}");
            if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
                let value = match step {
                    Step::Edit(..) => ours.value["replacements"].clone(),
                    Step::Write(..) | Step::Append(..) | Step::Copy(..) | Step::Move(..) => Value::Null,
                    _ => ours.value,
                };
                assert_eq!(value, theirs, "{at}");
            }
            assert_eq!(tree(&confined.workspace()), tree(&naive.workspace()), "{at}");
        }
    }
}
