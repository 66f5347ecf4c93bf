//! Nodes that anchor each other's heads: whatever is done to one log, even with its key in
//! hand, the logs of the others contradict it.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use model::record::audit::Anchor;
use model::record::audit::chain::{ChainHash, link};
use model::record::note::{NoteKey, SignedNote};
use store::{Filter, NodePath, Retention, VerifiedNodes, read_heads, verify_nodes};

use crate::scratch::{BODY, Fields, HASH, Home, KIND, PREVIOUS, SEQUENCE, cut, fill, line};

/// Two nodes that saw each other: `b` anchors `a` at 20 and at 41 records, `a` anchors `b`
/// at 11.
struct Cluster {
    a: Home,
    b: Home,
}

impl Cluster {
    fn new(name: &str) -> Cluster {
        let cluster = Cluster {
            a: Home::new(&format!("{name}-a")),
            b: Home::new(&format!("{name}-b")),
        };
        let Cluster { a, b } = &cluster;
        fill(&a.store(), 0..10);
        fill(&b.store(), 0..5);
        anchor(b, &[newest(a)]);
        fill(&a.store(), 10..20);
        anchor(a, &[newest(b)]);
        anchor(b, &[newest(a)]);
        fill(&b.store(), 5..8);
        cluster
    }

    /// Where each node is, and its key as the auditor knows it.
    fn paths(&self) -> Vec<NodePath> {
        [&self.a, &self.b].map(of_home).into()
    }
}

pub(super) fn of_home(home: &Home) -> NodePath {
    NodePath {
        path: home.path.clone(),
        key: Some(key(home)),
    }
}

fn key(home: &Home) -> NoteKey {
    home.store().audit().public_key().unwrap().unwrap()
}

pub(super) fn newest(home: &Home) -> SignedNote {
    home.store().audit().signed_head().unwrap()
}

/// Writes heads of others into a log.
fn anchor(home: &Home, notes: &[SignedNote]) {
    let anchor = Anchor {
        at_ms: 1_700_000_000_000,
        heads: notes.iter().map(ToString::to_string).collect(),
    };
    home.store().audit().anchor(&anchor).unwrap();
}

/// What is found, a sentence each, with names that tell the nodes apart.
fn sentences(found: &VerifiedNodes, paths: &[NodePath]) -> Vec<String> {
    let mut sentences = Vec::new();
    for node in &found.nodes {
        if let Some(broken) = &node.verified.broken {
            let what = format!("{} {}: {}", node.name, broken.sequence, broken.what);
            sentences.push(what);
        }
    }
    for fault in &found.found.faults {
        sentences.push(format!("{} {}: {}", fault.node, fault.sequence, fault.what));
    }
    for (path, name) in paths.iter().zip(["A", "B", "C"]) {
        let key = path.key.as_ref().unwrap();
        for sentence in &mut sentences {
            *sentence = sentence.replace(key.name(), name);
        }
    }
    assert_eq!(found.is_whole(), sentences.is_empty());
    sentences
}

fn verify(paths: &[NodePath]) -> Vec<String> {
    sentences(&verify_nodes(paths, &[]).unwrap(), paths)
}

/// Makes every line follow the one before it again.
fn chain_again(lines: &mut [Fields]) {
    let mut previous = ChainHash::ZERO;
    for line in lines {
        line[PREVIOUS] = previous.hex();
        previous = link(&previous, &line[BODY]);
        line[HASH] = previous.hex();
    }
}

/// Numbers the records again and chains them: nothing is missing in the log itself.
fn number_again(lines: &mut [Fields]) {
    let mut numbers: HashMap<String, String> = HashMap::new();
    for (line, number) in lines.iter_mut().zip(1_u64..) {
        let number = number.to_string();
        numbers.insert(line[SEQUENCE].clone(), number.clone());
        let old = format!("\"sequence\":{}}}", line[SEQUENCE]);
        line[BODY] = line[BODY].replace(&old, &format!("\"sequence\":{number}}}"));
        if let Some((before, rest)) = line[BODY].split_once("\"opened\":") {
            let (opened, behind) = rest.split_once(',').unwrap();
            let opened = &numbers[opened];
            line[BODY] = format!("{before}\"opened\":{opened},{behind}");
        }
        line[SEQUENCE] = number;
    }
    chain_again(lines);
}

/// Signs a log that was changed as if nothing had been signed before: what a person does
/// who has the key and the whole home.
fn sign_again(home: &Home) {
    for name in [
        "index.db",
        "index.db-wal",
        "index.db-shm",
        "heads",
        "tree.0",
    ] {
        let _ = fs::remove_file(home.path.join("audit").join(name));
    }
    home.sql("DELETE FROM audit_mark; DELETE FROM audit_signed");
    fill(&home.store(), 100..101);
    assert!(
        !read_heads(&home.path.join("audit/heads"))
            .unwrap()
            .is_empty()
    );
}

pub(super) fn copy_folder(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => {
                fs::copy(entry.path(), target).unwrap();
            }
        }
    }
}

fn swap_files(one: &Path, other: &Path) {
    let aside = one.with_extension("aside");
    fs::rename(one, &aside).unwrap();
    fs::rename(other, one).unwrap();
    fs::rename(&aside, other).unwrap();
}

/// What is done to a cluster, and what the first sentence must be.
type Tampering = (&'static str, fn(&Cluster), &'static str);

const TAMPERINGS: &[Tampering] = &[
    (
        "a byte of the past flipped",
        |it| {
            it.a.edit(|lines| {
                let body = &mut line(lines, 5)[BODY];
                *body = body.replace("tool-2", "tool-9");
            });
        },
        "A 5: its hash does not fit its body",
    ),
    (
        "the past rewritten and signed again",
        |it| {
            it.a.edit(|lines| {
                let body = &mut line(lines, 5)[BODY];
                *body = body.replace("tool-2", "tool-9");
                chain_again(lines);
            });
            sign_again(&it.a);
        },
        "A 1: records 1 to 20 are not those that record 11 of `B` anchors",
    ),
    (
        "the newest records rewritten and signed again",
        |it| {
            it.a.edit(|lines| {
                let body = &mut line(lines, 33)[BODY];
                *body = body.replace("tool-6", "tool-9");
                chain_again(lines);
            });
            sign_again(&it.a);
        },
        "A 21: records 21 to 41 are not those that record 12 of `B` anchors",
    ),
    (
        "the end cut off and the rest signed again",
        |it| {
            it.a.edit(|lines| cut(lines, 31..));
            sign_again(&it.a);
        },
        "A 33: the log ends with record 32, but record 12 of `B` anchors its head over 41 records",
    ),
    (
        "the end cut off, with its heads",
        |it| {
            it.a.edit(|lines| cut(lines, 21..));
            let path = it.a.path.join("audit/heads");
            let text = fs::read_to_string(&path).unwrap();
            let first = text.find("\n\nringfence/").unwrap() + 2;
            fs::write(&path, text.get(..first).unwrap()).unwrap();
        },
        "A 21: the log ends with record 20, but record 12 of `B` anchors its head over 41 records",
    ),
    (
        "an old head replayed",
        |it| {
            let old = read_heads(&it.a.path.join("audit/heads")).unwrap();
            anchor(&it.b, &old[..1]);
        },
        "A 21: record 19 of `B` anchors a head over 20 records after one over 41: an old head was \
         replayed, or the log was rolled back",
    ),
    (
        "the logs of two nodes swapped",
        |it| {
            for (one, other) in it.a.segments().iter().zip(it.b.segments()) {
                swap_files(one, &other);
            }
        },
        "A 19: the log ends with record 18, but a head over 20 records was signed",
    ),
    (
        "the folders of two nodes swapped",
        |it| swap_files(&it.a.path.join("audit"), &it.b.path.join("audit")),
        "A 10: the head over 10 records: the head is not signed by",
    ),
    (
        "an anchor taken out",
        |it| {
            it.b.edit(|lines| lines.retain(|line| line[KIND] != "anchor"))
        },
        "B 11: the record is missing",
    ),
    (
        "an anchor taken out, and the rest numbered and signed again",
        |it| {
            it.b.edit(|lines| {
                lines.retain(|line| line[SEQUENCE] != "11");
                number_again(lines);
            });
            sign_again(&it.b);
        },
        "B 1: records 1 to 11 are not those that record 41 of `A` anchors",
    ),
    (
        "an anchored head changed, and the rest signed again",
        |it| {
            it.b.edit(|lines| {
                let body = &mut line(lines, 12)[BODY];
                *body = body.replace("\\n41\\n", "\\n31\\n");
                chain_again(lines);
            });
            sign_again(&it.b);
        },
        "B 12: it anchors a head of `A` over 31 records that was not signed by it",
    ),
    (
        "a chain without its heads",
        |it| fs::write(it.a.path.join("audit/heads"), "").unwrap(),
        // The anchors of the other node still vouch for the records. Without that node,
        // nothing would.
        "A 1: no signed head covers any of its 41 records: its heads were taken away",
    ),
];

#[test]
fn every_manipulation_of_a_node_is_found_from_the_others() {
    for (what, tamper, expected) in TAMPERINGS {
        let cluster = Cluster::new("tampered");
        let paths = cluster.paths();
        assert_eq!(verify(&paths), Vec::<String>::new(), "{what}");
        tamper(&cluster);
        let found = verify(&paths);
        let found = found.join("\n");
        assert!(found.starts_with(expected), "{what}: {found}");
    }
}

#[test]
fn swapped_files_are_called_swapped() {
    let cluster = Cluster::new("swapped");
    let paths = cluster.paths();
    swap_files(&cluster.a.path.join("audit"), &cluster.b.path.join("audit"));
    let found = verify(&paths).join("\n");
    assert!(
        found.contains("A 1: its heads are signed by `B`: the files were swapped"),
        "{found}"
    );
    let cluster = Cluster::new("swapped-logs");
    let paths = cluster.paths();
    for (one, other) in cluster.a.segments().iter().zip(cluster.b.segments()) {
        swap_files(one, &other);
    }
    let found = verify(&paths).join("\n");
    assert!(
        found.contains("A 1: its records are those of `B`: the files were swapped"),
        "{found}"
    );
}

#[test]
fn a_node_that_was_rolled_back_or_forked_is_found() {
    let cluster = Cluster::new("rolled-back");
    let Cluster { a, b } = &cluster;
    let paths = cluster.paths();
    let before = a.path.with_extension("before");
    copy_folder(&a.path, &before);
    fill(&a.store(), 30..35);
    anchor(b, &[newest(a)]);
    assert_eq!(verify(&paths), Vec::<String>::new());
    let (kept, _) = export(a);
    let _exports = Exports(vec![kept.path.clone()]);
    let copies = [of_home(a), kept];
    assert_eq!(verify(&copies), Vec::<String>::new());
    // The whole home of an hour ago, with its key and its database.
    copy_folder(&before, &a.path);
    let _ = fs::remove_dir_all(&before);
    let found = verify(&paths).join("\n");
    let expected = "A 42: the log ends with record 41, but record 19 of `B` anchors its head over \
                    51 records: its end was cut off, or it was exported before the other";
    assert_eq!(found, expected);
    // It goes on with other records, and signs them.
    fill(&a.store(), 40..45);
    let found = verify(&paths);
    let expected = "A 1: two different heads over 51 records were signed, the one that is kept \
                    beside the log and the one that record 19 of `B` anchors: the log was forked";
    assert_eq!(found[0], expected);
    assert_eq!(
        found[1],
        "A 42: records 42 to 51 are not those that record 19 of `B` anchors"
    );
    // Without the other node, the export of before is enough.
    let found = verify(&copies).join("\n");
    let expected = "42: two copies of it differ in records 42 to 51: the log was forked";
    assert!(found.contains(expected), "{found}");
}

/// Exports a node with proofs.
pub(super) fn export(home: &Home) -> (NodePath, Vec<String>) {
    let store = home.store();
    let mut lines = Vec::new();
    let each = &mut |line: &model::record::audit::proof::ExportedLine| {
        lines.push(line.json().to_string());
        Ok(())
    };
    store
        .audit()
        .export_proved(&Filter::default(), each)
        .unwrap();
    let path = home.path.with_extension("jsonl");
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let key = store.audit().public_key().unwrap();
    (NodePath { path, key }, lines)
}

/// Removed when the test is over.
struct Exports(Vec<PathBuf>);

impl Drop for Exports {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}

#[test]
fn an_auditor_with_exports_and_keys_alone_finds_the_same() {
    let cluster = Cluster::new("exported");
    let ((a, lines), (b, _)) = (export(&cluster.a), export(&cluster.b));
    let _exports = Exports(vec![a.path.clone(), b.path.clone()]);
    let paths = [a.clone(), b.clone()];
    let found = verify_nodes(&paths, &[]).unwrap();
    assert_eq!(sentences(&found, &paths), Vec::<String>::new());
    let vouched: Vec<_> = found.found.vouched.iter().map(|it| it.size).collect();
    assert_eq!(vouched, [11, 41], "each vouches for the other");
    // Attack: the export of an hour ago, which is whole in itself, with another end.
    let sentence = |lines: &[String]| {
        fs::write(&a.path, lines.join("\n") + "\n").unwrap();
        verify(&paths).join("\n")
    };
    let without_end = sentence(&lines[..lines.len() - 1]);
    assert_eq!(
        without_end,
        "A 42: the export does not end with its seal: its end was cut off"
    );
    let cut: Vec<String> = [&lines[..31], &lines[42..43]].concat();
    let found = sentence(&cut);
    assert!(
        found.contains("anchors its head over 41 records"),
        "{found}"
    );
    // Attack: the two files change places.
    sentence(&lines);
    swap_files(&a.path, &b.path);
    let found = verify(&paths).join("\n");
    assert!(
        found.contains("A 1: its heads are signed by `B`: the files were swapped"),
        "{found}"
    );
    swap_files(&a.path, &b.path);
    // A log that is anchored and not given is named, not passed over.
    let alone = verify_nodes(&[b], &[]).unwrap();
    assert_eq!(alone.found.unchecked.len(), 1);
    // Without its key, an export is not believed.
    let unknown = NodePath { key: None, ..a };
    assert!(verify_nodes(&[unknown], &[]).is_err());
}

#[test]
fn anchors_hold_after_old_records_were_removed() {
    let cluster = Cluster::new("retained");
    let Cluster { a, b } = &cluster;
    let rule = Retention {
        older_than_ms: Some(1_700_000_000_015),
        bytes_max: None,
    };
    let removed = a.store().audit().retain(&rule).unwrap();
    assert_eq!(removed.through, Some(30));
    let rule = Retention {
        older_than_ms: Some(1_700_000_000_005),
        bytes_max: None,
    };
    // The first anchor goes with its neighbours; the second says what it said, and more.
    let removed = b.store().audit().retain(&rule).unwrap();
    assert_eq!(removed.through, Some(12));
    anchor(b, &[newest(a)]);
    let paths = cluster.paths();
    assert_eq!(verify(&paths), Vec::<String>::new());
    let ((one, _), (other, _)) = (export(a), export(b));
    let _exports = Exports(vec![one.path.clone(), other.path.clone()]);
    assert_eq!(verify(&[one, other]), Vec::<String>::new());
    // Attack: the hashes of what was removed are changed, where an anchor covers them.
    let path = a.path.join("audit/tree.0");
    let mut leaves = fs::read(&path).unwrap();
    leaves[33] ^= 1;
    fs::write(&path, &leaves).unwrap();
    let found = verify(&paths).join("\n");
    assert!(
        found.contains("the hashes of removed records were changed"),
        "{found}"
    );
}
