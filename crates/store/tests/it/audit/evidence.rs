//! Signed heads, and what they show about a log that was changed by a person with all
//! its files in hand: every chain below is whole in itself.

use std::fs;
use std::path::{Path, PathBuf};

use model::record::audit::chain::{ChainHash, link};
use model::record::audit::proof::LogProof;
use model::record::audit::{Act, Notice};
use model::record::note::{NoteKey, SignedNote};
use store::{
    Expectation, Filter, Retention, Rows, Store, is_signature_sound, read_heads, verify_export,
};

use crate::scratch::{BODY, Fields, HASH, Home, PREVIOUS, cut, fill, line};

/// A home with two heads: over 20 records, and over 40.
pub(super) fn signed(name: &str) -> Home {
    let home = Home::new(name);
    fill(&home.store(), 0..10);
    fill(&home.store(), 10..20);
    assert_eq!(sizes(&home), [20, 40]);
    home
}

/// The sizes of the heads beside the log.
fn sizes(home: &Home) -> Vec<u64> {
    let notes = read_heads(&home.path.join("audit/heads")).unwrap();
    notes.iter().map(|note| note.head().unwrap().size).collect()
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

/// Forgets what the index and the database remember of the log, as a thorough hand would.
fn forget(home: &Home) {
    for name in ["index.db", "index.db-wal", "index.db-shm"] {
        let _ = fs::remove_file(home.path.join("audit").join(name));
    }
    home.sql("DELETE FROM audit_mark");
}

fn broken(store: &Store) -> Option<String> {
    described(&store.audit().verify(None).unwrap().broken)
}

pub(super) fn described(broken: &Option<model::record::audit::walk::Broken>) -> Option<String> {
    let broken = broken.as_ref()?;
    Some(format!("{}: {}", broken.sequence, broken.what))
}

#[test]
fn heads_are_signed_when_a_process_ends_and_cover_everything() {
    let home = signed("heads");
    let store = home.store();
    let verified = store.audit().verify(None).unwrap();
    assert_eq!(verified.broken, None);
    assert_eq!((verified.heads, verified.signed), (2, 40));
    let key = store.audit().public_key().unwrap().unwrap();
    let note = store.audit().signed_head().unwrap();
    assert!(key.has_signed(&note, &is_signature_sound));
    let mode = |name: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        fs::metadata(home.path.join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode("audit.key"), 0o600);
    // Signing again without news adds nothing.
    assert_eq!(store.audit().sign().unwrap(), 40);
    assert_eq!(sizes(&home), [20, 40]);
}

#[test]
fn a_key_that_others_can_read_signs_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = signed("open-key");
    let path = home.path.join("audit.key");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let store = home.store();
    fill(&store, 20..22);
    let fault = store.audit().sign().unwrap_err();
    assert!(format!("{fault:?}").contains("chmod 600"), "{fault:?}");
    drop(store);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(home.store().audit().sign().unwrap(), 44);
}

/// What is done to a home with heads over 20 and 40 records, and what must be found.
type Tampering = (&'static str, fn(&Home), &'static str);

const TAMPERINGS: &[Tampering] = &[
    (
        "a record rewritten, and every hash behind it",
        |home| {
            home.edit(|lines| {
                let body = &mut line(lines, 25)[BODY];
                *body = body.replace("tool-2", "tool-9");
                chain_again(lines);
            });
            forget(home);
        },
        "21: records 21 to 40 are not those that were signed",
    ),
    (
        "the first record rewritten, and every hash behind it",
        |home| {
            home.edit(|lines| {
                let body = &mut line(lines, 1)[BODY];
                *body = body.replace("caller-0", "caller-9");
                chain_again(lines);
            });
            forget(home);
        },
        "1: records 1 to 20 are not those that were signed",
    ),
    (
        "the end cut off",
        |home| {
            home.edit(|lines| cut(lines, 31..));
            forget(home);
        },
        "31: the log ends with record 30, but a head over 40 records was signed",
    ),
    (
        "everything cut off",
        |home| {
            home.edit(Vec::clear);
            forget(home);
        },
        "1: the log ends with record 0, but a head over 20 records was signed",
    ),
    (
        "the log of another home",
        |home| {
            let other = signed("swapped-in");
            for (own, foreign) in home.segments().iter().zip(other.segments()) {
                fs::copy(foreign, own).unwrap();
            }
            other.edit(|_| {});
            home.edit(|lines| {
                let body = &mut line(lines, 1)[BODY];
                *body = body.replace("tool-0", "tool-8");
                chain_again(lines);
            });
            forget(home);
        },
        "1: records 1 to 20 are not those that were signed",
    ),
    (
        "the whole folder of another home",
        |home| {
            let other = signed("folder-in");
            for name in ["heads", "tree.0"] {
                fs::copy(
                    other.path.join("audit").join(name),
                    home.path.join("audit").join(name),
                )
                .unwrap();
            }
        },
        "20: the head over 20 records: the head is not signed by",
    ),
    (
        "the newest head cut off",
        |home| {
            let path = home.path.join("audit/heads");
            let text = fs::read_to_string(&path).unwrap();
            let first = text.find("\n\nringfence/").unwrap() + 2;
            fs::write(&path, text.get(..first).unwrap()).unwrap();
        },
        "40: the database remembers a signed head over 40 records, which is missing",
    ),
    (
        "all heads removed",
        |home| fs::remove_file(home.path.join("audit/heads")).unwrap(),
        "40: the database remembers a signed head over 40 records, which is missing",
    ),
    (
        "log and heads rolled back together",
        |home| {
            home.edit(|lines| cut(lines, 21..));
            let path = home.path.join("audit/heads");
            let text = fs::read_to_string(&path).unwrap();
            let first = text.find("\n\nringfence/").unwrap() + 2;
            fs::write(&path, text.get(..first).unwrap()).unwrap();
            forget(home);
        },
        "40: the database remembers a signed head over 40 records, which is missing",
    ),
    (
        "heads in another order",
        |home| {
            let path = home.path.join("audit/heads");
            let text = fs::read_to_string(&path).unwrap();
            let first = text.find("\n\nringfence/").unwrap() + 2;
            let (first, second) = text.split_at(first);
            fs::write(&path, format!("{second}{first}")).unwrap();
        },
        "21: the head over 20 records was signed after one over 40: the log was rolled back",
    ),
    (
        "a head edited",
        |home| {
            let path = home.path.join("audit/heads");
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.replace("\n20\n", "\n19\n")).unwrap();
        },
        "19: the head over 19 records: the head is not signed by",
    ),
    (
        "heads made unreadable",
        |home| {
            let path = home.path.join("audit/heads");
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.replacen('\u{2014}', "-", 1)).unwrap();
        },
        "1: head 1 of `",
    ),
];

#[test]
fn every_tampering_is_found_and_named() {
    for (what, tamper, expected) in TAMPERINGS {
        let home = signed("tampered");
        assert_eq!(broken(&home.store()), None, "{what}");
        tamper(&home);
        let store = home.store();
        let found = broken(&store).unwrap_or_else(|| panic!("{what}: nothing was found"));
        assert!(found.starts_with(expected), "{what}: {found}");
        // What was found is not signed away by the next head.
        fill(&store, 20..22);
        drop(store);
        let found = broken(&home.store());
        assert!(found.is_some(), "{what}: signed away");
    }
}

#[test]
fn a_whole_home_that_was_rolled_back_is_found_from_a_head_kept_elsewhere() {
    let home = Home::new("rolled-back");
    fill(&home.store(), 0..10);
    let copy = home.path.with_extension("copy");
    let _ = fs::remove_dir_all(&copy);
    copy_folder(&home.path, &copy);
    fill(&home.store(), 10..20);
    let kept = home.store().audit().signed_head().unwrap();
    let _ = fs::remove_dir_all(&home.path);
    copy_folder(&copy, &home.path);
    let _ = fs::remove_dir_all(&copy);
    let store = home.store();
    assert_eq!(broken(&store), None, "nothing in the home can show it");
    let expected = Expectation {
        checkpoints: vec![kept.clone()],
        ..Expectation::default()
    };
    let found = store.audit().verify_against(&expected).unwrap().broken;
    assert_eq!(
        described(&found).as_deref(),
        Some("21: the log ends with record 20, but the given checkpoint covers 40 records")
    );
    // The same from a copy that the operator keeps elsewhere, and after the log went on.
    let elsewhere = home.path.with_extension("heads");
    fs::write(&elsewhere, format!("{kept}\n")).unwrap();
    fill(&store, 30..45);
    store.audit().copy_heads_to(Some(elsewhere.clone()));
    let found = broken(&store);
    let _ = fs::remove_file(&elsewhere);
    assert_eq!(
        found.as_deref(),
        Some("21: records 21 to 40 are not those of the given checkpoint")
    );
}

fn copy_folder(from: &Path, to: &Path) {
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

#[test]
fn heads_are_also_kept_elsewhere() {
    let home = Home::new("elsewhere");
    let elsewhere = home.path.with_extension("heads");
    let _ = fs::remove_file(&elsewhere);
    let store = home.store();
    store.audit().copy_heads_to(Some(elsewhere.clone()));
    fill(&store, 0..5);
    drop(store);
    let copied = read_heads(&elsewhere).unwrap();
    let _ = fs::remove_file(&elsewhere);
    assert_eq!(copied, read_heads(&home.path.join("audit/heads")).unwrap());
    assert_eq!(copied.len(), 1);
}

/// A copy that could not be written is tried again, and stays a fault until it is there.
#[test]
fn a_head_that_the_copy_lacks_is_added_later() {
    let home = Home::new("copied-later");
    let folder = home.path.with_extension("copies");
    let _ = fs::remove_dir_all(&folder);
    let elsewhere = folder.join("heads");
    let store = home.store();
    store.audit().copy_heads_to(Some(elsewhere.clone()));
    fill(&store, 0..5);
    assert!(store.audit().sign().is_err());
    assert!(store.audit().sign().is_err(), "it is still missing there");
    assert!(store.audit().signing().fault.is_some());
    fs::create_dir_all(&folder).unwrap();
    store.audit().sign().unwrap();
    store.audit().sign().unwrap();
    assert!(store.audit().signing().fault.is_none());
    let copied = read_heads(&elsewhere).unwrap();
    assert_eq!(copied, read_heads(&home.path.join("audit/heads")).unwrap());
    assert_eq!(copied.len(), 1);
    drop(store);
    let _ = fs::remove_dir_all(&folder);
}

/// Several processes may ask a witness about one head.
#[test]
fn a_cosigned_head_is_kept_once() {
    let home = signed("cosigned-once");
    let notes = read_heads(&home.path.join("audit/heads")).unwrap();
    let store = home.store();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| store.audit().keep_cosigned(&notes[0]).unwrap());
        }
    });
    assert_eq!(store.audit().witnessed_size().unwrap(), 20);
    store.audit().keep_cosigned(&notes[1]).unwrap();
    store.audit().keep_cosigned(&notes[0]).unwrap();
    assert_eq!(store.audit().witnessed_size().unwrap(), 40);
    let kept = read_heads(&home.path.join("audit/cosigned")).unwrap();
    assert_eq!(kept, notes);
}

#[test]
fn after_an_acknowledged_cut_signing_goes_on() {
    let home = signed("acknowledged");
    // The index still remembers record 40, so the cut is noticed.
    home.edit(|lines| cut(lines, 31..));
    let store = home.store();
    fill(&store, 20..21);
    drop(store);
    let store = home.store();
    assert!(broken(&store).is_some());
    assert!(store.audit().sign().is_err(), "nothing is signed before");
    let filter = Filter {
        act: Some(Act::AuditCut),
        ..Filter::default()
    };
    let notices = store.audit().notices(&filter).unwrap();
    let [cut] = notices.as_slice() else {
        panic!("{notices:?}");
    };
    let known = Notice::new(Act::AuditCutAcknowledged, "owner", "cli", "restored");
    store.audit().notice(known.about(&cut.notice.id)).unwrap();
    drop(store);
    let store = home.store();
    assert_eq!(broken(&store), None);
    let head = store.audit().signed_head().unwrap().head().unwrap();
    assert_eq!(head.fork, Some(20));
    // What is changed behind the cut is found again.
    drop(store);
    home.edit(|lines| {
        let last = lines.len() - 1;
        let body = &mut lines[last][BODY];
        *body = body.replace("restored", "replaced");
        chain_again(lines);
    });
    forget(&home);
    let found = broken(&home.store()).unwrap();
    assert!(found.contains("are not those that were signed"), "{found}");
}

#[test]
fn a_torn_head_is_signed_again() {
    let home = signed("torn-head");
    let path = home.path.join("audit/heads");
    let whole = fs::read_to_string(&path).unwrap();
    let second = whole.find("\n\nringfence/").unwrap() + 2;
    for length in second..whole.len() {
        if !whole.is_char_boundary(length) {
            continue;
        }
        fs::write(&path, whole.get(..length).unwrap()).unwrap();
        // The database did not hear of the torn head.
        let first = read_heads(&path).unwrap();
        let first = first.last().unwrap().head().unwrap();
        assert_eq!(first.size, 20, "{length}");
        let root: String = first
            .root
            .bytes()
            .iter()
            .map(|it| format!("{it:02x}"))
            .collect();
        home.sql(&format!(
            "UPDATE audit_signed SET size = 20, root = X'{root}'"
        ));
        let store = home.store();
        assert_eq!(store.audit().sign().unwrap(), 40, "{length}");
        assert_eq!(broken(&store), None, "{length}");
        assert_eq!(sizes(&home), [20, 40], "{length}");
    }
}

#[test]
fn a_damaged_tree_is_made_again() {
    let home = signed("tree");
    let path = home.path.join("audit/tree.0");
    let sound = fs::read(&path).unwrap();
    let mut flipped = sound.clone();
    flipped[100] ^= 1;
    for damaged in [
        Vec::new(),
        sound[..100].to_vec(),
        flipped,
        vec![0; sound.len()],
    ] {
        fs::write(&path, &damaged).unwrap();
        let store = home.store();
        let numbers = store.audit().head().unwrap().sequence;
        let from = usize::try_from(numbers).unwrap();
        fill(&store, from..from + 1);
        drop(store);
        let store = home.store();
        assert_eq!(broken(&store), None);
        assert_eq!(store.audit().signing().fault.map(|it| it.to_string()), None);
        assert!(store.audit().prove(&[1, 39]).is_ok());
        assert!(fs::read(&path).unwrap().starts_with(&sound));
    }
}

#[test]
fn removed_records_stay_provable_and_their_gap_is_sealed() {
    let home = signed("sealed");
    let store = home.store();
    let proofs = store.audit().prove(&[3, 4]).unwrap();
    let old_head = store.audit().signed_head().unwrap();
    let rule = Retention {
        older_than_ms: Some(1_700_000_000_015),
        bytes_max: None,
    };
    let removed = store.audit().retain(&rule).unwrap();
    assert_eq!(removed.through, Some(30));
    drop(store);
    let store = home.store();
    let verified = store.audit().verify(None).unwrap();
    assert_eq!(verified.broken, None);
    assert_eq!(verified.signed, verified.head.sequence);
    let key = store.audit().public_key().unwrap().unwrap();
    for proof in proofs {
        assert!(proof.check(&key, &is_signature_sound).is_ok());
    }
    // The head from before the removal still leads to the newest one.
    let growth = store.audit().prove_growth(&old_head).unwrap();
    assert!(growth.check(&key, &is_signature_sound).is_ok());
    drop(store);
    // Attack: the hashes of what was removed are changed.
    let path = home.path.join("audit/tree.0");
    let mut leaves = fs::read(&path).unwrap();
    leaves[33] ^= 1;
    fs::write(&path, &leaves).unwrap();
    let found = broken(&home.store()).unwrap();
    assert_eq!(found, "1: the hashes of removed records were changed");
    fs::remove_file(&path).unwrap();
    let found = broken(&home.store()).unwrap();
    assert_eq!(found, "1: the hashes of removed records are missing");
}

#[test]
fn proofs_show_what_was_signed_and_nothing_else() {
    let home = signed("proofs");
    let store = home.store();
    let key = store.audit().public_key().unwrap().unwrap();
    let proofs = store.audit().prove(&[1, 17, 40]).unwrap();
    for proof in &proofs {
        let text = serde_json::to_string(&LogProof::Inclusion(proof.clone())).unwrap();
        let read: LogProof = serde_json::from_str(&text).unwrap();
        assert_eq!(
            read.check(&key, &is_signature_sound).map(|it| it.size),
            Ok(40)
        );
    }
    let other = signed("other-key");
    let other = other.store().audit().public_key().unwrap().unwrap();
    let mut forged = proofs[1].clone();
    assert!(
        forged.check(&other, &is_signature_sound).is_err(),
        "another key"
    );
    forged.record.body = forged.record.body.replace("tool-8", "tool-9");
    let fault = forged.check(&key, &is_signature_sound).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "the hash of record 17 does not fit its body"
    );
    forged.record.hash = link(&forged.record.previous, &forged.record.body);
    let fault = forged.check(&key, &is_signature_sound).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "record 17 is not among those that were signed"
    );
    let mut elsewhere = proofs[1].clone();
    elsewhere.hashes.swap(0, 1);
    assert!(elsewhere.check(&key, &is_signature_sound).is_err());
    assert!(
        store.audit().prove(&[41]).is_err(),
        "there is no such record"
    );
    assert!(store.audit().prove(&[0]).is_err());
}

/// Exports a home to a file.
pub(super) fn exported(home: &Home, filter: &Filter) -> (PathBuf, NoteKey, Vec<String>) {
    let store = home.store();
    let mut lines = Vec::new();
    store
        .audit()
        .export_proved(filter, &mut |line| {
            lines.push(line.json().to_string());
            Ok(())
        })
        .unwrap();
    let path = home.path.with_extension("jsonl");
    let key = store.audit().public_key().unwrap().unwrap();
    (path, key, lines)
}

/// Verifies lines as an auditor does, with the file and the key alone.
fn audited(path: &Path, key: &NoteKey, lines: &[String]) -> Option<String> {
    fs::write(path, lines.join("\n") + "\n").unwrap();
    let expected = Expectation {
        key: Some(key.clone()),
        ..Expectation::default()
    };
    let verified = verify_export(path, &expected);
    let _ = fs::remove_file(path);
    match verified {
        Ok(export) => described(&export.verified.broken),
        Err(error) => Some(format!("error: {error}")),
    }
}

#[test]
fn an_auditor_with_the_export_and_the_key_alone_finds_every_change() {
    let home = signed("auditor");
    let (path, key, lines) = exported(&home, &Filter::default());
    assert_eq!(audited(&path, &key, &lines), None);
    // One line for the log, 40 records, two heads, the seal.
    assert_eq!(lines.len(), 44);
    // Attack: each line is left out, and each is doubled.
    for index in 1..lines.len() {
        let mut without = lines.clone();
        let left_out = without.remove(index);
        let found = audited(&path, &key, &without);
        assert!(found.is_some(), "{left_out}");
        if (1..=40).contains(&index) {
            let mut doubled = lines.clone();
            doubled.insert(index, lines[index].clone());
            assert!(audited(&path, &key, &doubled).is_some(), "{index}");
        }
    }
    // Attack: the end is cut off together with the newest head: an older log, whole in itself.
    let cut = [&lines[..21], &lines[41..42]].concat();
    assert_eq!(
        audited(&path, &key, &cut).as_deref(),
        Some("21: the export does not end with its seal: its end was cut off")
    );
    let older = [&lines[..21], &lines[41..42], &lines[43..]].concat();
    assert_eq!(
        audited(&path, &key, &older).as_deref(),
        Some("21: the export has 22 lines that do not fit its seal over 43 lines")
    );
    // Attack: a record is rewritten with all hashes behind it.
    let mut rewritten = lines.clone();
    let mut previous = ChainHash::ZERO;
    for line in &mut rewritten[1..=40] {
        let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
        let body = value["body"].as_str().unwrap().replace("tool-7", "tool-3");
        let hash = link(&previous, &body);
        value["previous"] = previous.hex().into();
        value["hash"] = hash.hex().into();
        value["body"] = body.into();
        previous = hash;
        *line = value.to_string();
    }
    assert_eq!(
        audited(&path, &key, &rewritten).as_deref(),
        Some("1: records 1 to 20 are not those that were signed")
    );
    // Attack: the export names another key.
    let other = signed("auditor-other");
    let other = other.store().audit().public_key().unwrap().unwrap();
    let found = audited(&path, &other, &lines).unwrap();
    assert!(found.contains("is not signed by"), "{found}");
    // Without a key, nothing is believed.
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let fault = verify_export(&path, &Expectation::default()).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "the audit cannot be verified: the export has signed heads; name the public key with \
         `--key`"
    );
    let _ = fs::remove_file(&path);
}

#[test]
fn an_auditor_finds_what_no_hash_covers() {
    let home = signed("auditor-spelling");
    let (path, key, lines) = exported(&home, &Filter::default());
    assert_eq!(audited(&path, &key, &lines), None);
    // Attack: something is added or spelled in another way where no hash covers it.
    let spelling = "it is not written as an export writes it";
    for (index, change, wanted) in [
        (5, r#"","note":"hi"}"#, spelling),
        (5, r#"" }"#, spelling),
        (5, r#"","hashes":[]}"#, spelling),
        (0, r#"","note":"hi"}"#, spelling),
        (42, r#"","more":1}"#, spelling),
        (43, r#"","more":1}"#, spelling),
    ] {
        let mut added = lines.clone();
        // The first line ends with an object, all others with a text.
        added[index] = match index {
            0 => added[0].replacen("{", r#"{"note":"hi","#, 1),
            _ => added[index].strip_suffix("\"}").unwrap().to_owned() + change,
        };
        let found = audited(&path, &key, &added).unwrap();
        assert!(found.contains(wanted), "{index} {change}: {found}");
        assert!(found.contains(&format!("line {}", index + 1)), "{found}");
    }
    // Attack: a field that an export has, in a line that has it not.
    let hash = model::record::tree::TreeHash::empty().to_string();
    let mut added = lines.clone();
    added[5] =
        added[5].strip_suffix('}').unwrap().to_owned() + &format!(r#","hashes":["{hash}"]}}"#);
    let found = audited(&path, &key, &added).unwrap();
    assert!(found.contains("hashes of its own"), "{found}");
    // Attack: the header names another key, or a second seal is put in between.
    let mut header = lines.clone();
    header[0] = header[0].replacen(&key.to_string(), &key.to_string().replacen('+', "x+", 1), 1);
    let found = audited(&path, &key, &header).unwrap();
    assert!(found.contains("names another key"), "{found}");
    let mut twice = lines.clone();
    twice.insert(3, lines[43].clone());
    let found = audited(&path, &key, &twice).unwrap();
    assert!(found.contains("do not fit its seal"), "{found}");
    // A line that is none is named, with its place.
    for (garbage, what) in [
        ("garbage", "line 8: it is not a record"),
        ("{}", "line 8: it is not"),
    ] {
        let mut lines = lines.clone();
        lines.insert(7, garbage.to_owned());
        let found = audited(&path, &key, &lines).unwrap();
        assert!(found.starts_with("7: ") && found.contains(what), "{found}");
    }
}

#[test]
fn an_export_after_a_removal_is_verified_from_the_sealed_gap() {
    let home = signed("auditor-gap");
    let store = home.store();
    let rule = Retention {
        older_than_ms: Some(1_700_000_000_015),
        bytes_max: None,
    };
    store.audit().retain(&rule).unwrap();
    drop(store);
    let (path, key, lines) = exported(&home, &Filter::default());
    assert_eq!(audited(&path, &key, &lines), None);
    let mut changed = lines.clone();
    let mut log: serde_json::Value = serde_json::from_str(&changed[0]).unwrap();
    log["removed"]["hashes"][0] = model::record::tree::TreeHash::empty().to_string().into();
    changed[0] = log.to_string();
    assert!(audited(&path, &key, &changed).is_some());
    log["removed"] = serde_json::json!({"size": 0, "hashes": []});
    changed[0] = log.to_string();
    assert_eq!(
        audited(&path, &key, &changed).as_deref(),
        Some("1: the tree over the removed records is missing")
    );
}

#[test]
fn an_export_of_some_records_carries_a_proof_for_each() {
    let home = signed("auditor-some");
    let filter = Filter {
        tool: Some("tool-3".to_owned()),
        rows: Rows::Calls,
        ..Filter::default()
    };
    let (path, key, lines) = exported(&home, &filter);
    assert_eq!(lines.len(), 1 + 4 + 1);
    assert_eq!(audited(&path, &key, &lines), None);
    let mut changed = lines.clone();
    changed[2] = changed[2].replace("tool-3", "tool-4");
    let mut value: serde_json::Value = serde_json::from_str(&lines[1]).unwrap();
    assert!(!value["hashes"].as_array().unwrap().is_empty());
    value["hashes"][0] = model::record::tree::TreeHash::empty().to_string().into();
    for (index, line) in [(1, value.to_string()), (2, lines[1].clone())] {
        let mut changed = lines.clone();
        changed[index] = line;
        assert!(audited(&path, &key, &changed).is_some(), "{index}");
    }
    // Attack: a record less.
    let without = [&lines[..2], &lines[3..]].concat();
    assert_eq!(
        audited(&path, &key, &without).as_deref(),
        Some("29: the export has 4 lines that do not fit its seal over 5 lines")
    );
}

#[test]
fn a_witness_cosigns_growth_and_refuses_to_go_back() {
    let (home, witness) = (signed("log"), Home::new("witness"));
    let store = home.store();
    let key = store.audit().public_key().unwrap().unwrap();
    let notes = read_heads(&home.path.join("audit/heads")).unwrap();
    let keys = [key.clone()];
    let request = |old: u64, hashes, note: &SignedNote| model::record::witness::WitnessRequest {
        old,
        hashes,
        note: note.clone(),
    };
    let first = request(0, Vec::new(), &notes[0]);
    let growth = store.audit().prove_growth(&notes[0]).unwrap();
    let second = request(20, growth.hashes, &notes[1]);
    let seen = witness.store();
    let cosigned = seen.witnessed().add(&first, &keys, 1_700_000_000).unwrap();
    let mut note = notes[0].clone();
    note.add(cosigned.unwrap());
    let public = seen.witnessed().key().unwrap();
    assert!(public.has_signed(&note, &is_signature_sound));
    assert!(
        seen.witnessed()
            .add(&second, &keys, 1_700_000_010)
            .unwrap()
            .is_ok()
    );
    // Back to the first, in this process and the next.
    drop(seen);
    let seen = witness.store();
    use model::record::witness::WitnessRefusal;
    let again = seen.witnessed().add(&first, &keys, 1_700_000_020).unwrap();
    assert_eq!(again, Err(WitnessRefusal::Conflict(40)));
    let none = seen.witnessed().add(&second, &[], 1_700_000_020).unwrap();
    assert_eq!(none, Err(WitnessRefusal::UnknownLog));
    let list = seen.witnessed().list().unwrap();
    assert_eq!(list.len(), 1);
    assert_eq!((list[0].size, list[0].seen_at), (40, 1_700_000_010));
}

#[test]
fn processes_that_write_together_sign_one_history() {
    let home = Home::new("together");
    let stores = [home.store(), home.store(), home.store()];
    for round in 0..4 {
        for (number, store) in stores.iter().enumerate() {
            let from = (round * 3 + number) * 10;
            fill(store, from..from + 10);
            // What is not indexed yet waits for the next head.
            let _ = store.audit().sign();
        }
    }
    drop(stores);
    let store = home.store();
    let verified = store.audit().verify(None).unwrap();
    assert_eq!(described(&verified.broken), None);
    assert_eq!(verified.signed, 240);
    let sizes = sizes(&home);
    assert!(sizes.is_sorted(), "{sizes:?}");
}
