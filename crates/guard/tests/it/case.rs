//! Scripts kept as data: files of `cases/guard` and `cases/attack/guard`.

use std::fs;
use std::path::PathBuf;

use guard::{Preset, PresetLevel};

/// One script.
#[derive(Debug)]
pub(crate) struct Case {
    /// The file and the line of its title.
    pub(crate) place: String,
    /// What stands after `###`, without the preset.
    pub(crate) title: String,
    pub(crate) level: PresetLevel,
    pub(crate) source: String,
    /// What stands after `=>`.
    pub(crate) expected: Option<String>,
}

impl Case {
    pub(crate) fn preset(&self) -> Preset {
        Preset::agent_script(self.level)
    }
}

/// The folder `cases`, or one below it.
pub(crate) fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../cases")
        .join(name)
}

/// All scripts of a folder, file by file.
pub(crate) fn cases(name: &str) -> Vec<Case> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder(name))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    paths.iter().flat_map(read).collect()
}

fn read(path: &PathBuf) -> Vec<Case> {
    let text = fs::read_to_string(path).unwrap();
    let mut cases: Vec<Case> = Vec::new();
    for (index, line) in text.split('\n').enumerate() {
        if let Some(title) = line.strip_prefix("### ") {
            let (level, title) = level_of(title);
            cases.push(Case {
                place: format!("{}:{}", path.file_name().unwrap().display(), index + 1),
                title,
                level,
                source: String::new(),
                expected: None,
            });
            continue;
        }
        let Some(case) = cases.last_mut() else {
            continue;
        };
        if let Some(expected) = line.strip_prefix("=> ") {
            case.expected = Some(expected.to_owned());
            continue;
        }
        case.source.push_str(&expanded(line));
        case.source.push('\n');
    }
    for case in &mut cases {
        let end = case.source.trim_end_matches('\n').len();
        case.source.truncate(end);
    }
    cases
}

/// `[balanced] title`, or `CODE [balanced] title`.
fn level_of(title: &str) -> (PresetLevel, String) {
    let Some((before, rest)) = title.split_once('[') else {
        return (PresetLevel::Secure, title.to_owned());
    };
    let (name, after) = rest.split_once("] ").unwrap();
    (
        PresetLevel::named(name).unwrap(),
        format!("{before}{after}"),
    )
}

/// A line with `@repeat` and `{U+…}` read.
fn expanded(line: &str) -> String {
    if let Some(rest) = line.strip_prefix("@repeat ") {
        let (count, piece) = rest.split_once(' ').unwrap();
        return piece.repeat(count.parse().unwrap());
    }
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("{U+") {
        let (code, after) = after.split_once('}').unwrap();
        text.push_str(before);
        text.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
        rest = after;
    }
    text.push_str(rest);
    text
}
