//! What an auditor holds a log against, and what happens where it cannot be compared: a
//! reference that is passed over would look as if the log had stood up to it.

use std::fs;

use model::record::audit::chain::Head;
use model::record::note::SignedNote;
use store::{
    Expectation, ExportScope, Filter, NodePath, Retention, Rows, VerifiedExport, read_heads,
    verify_export, verify_nodes,
};

use super::evidence::{described, exported, signed};
use super::nodes::of_home;
use crate::scratch::Home;

/// An export in a file, which is removed when the test is over.
struct Export {
    node: NodePath,
    lines: Vec<String>,
}

impl Export {
    fn of(home: &Home, filter: &Filter) -> Export {
        let (path, key, lines) = exported(home, filter);
        let key = Some(key);
        let export = Export {
            node: NodePath { path, key },
            lines,
        };
        export.write(&export.lines);
        export
    }

    fn write(&self, lines: &[String]) {
        fs::write(&self.node.path, lines.join("\n") + "\n").unwrap();
    }

    /// Verifies the file with the key and what else is expected.
    fn against(&self, expected: Expectation) -> Result<VerifiedExport, String> {
        let expected = Expectation {
            key: self.node.key.clone(),
            ..expected
        };
        verify_export(&self.node.path, &expected).map_err(|error| error.to_string())
    }

    /// What is wrong with some lines in its place.
    fn fault(&self, lines: &[String]) -> Option<String> {
        self.write(lines);
        described(
            &self
                .against(Expectation::default())
                .unwrap()
                .verified
                .broken,
        )
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.node.path);
    }
}

fn given(note: &SignedNote) -> Expectation {
    Expectation {
        checkpoints: vec![note.clone()],
        ..Expectation::default()
    }
}

/// Attack: a log that contradicts a kept head is handed over as a filtered export.
#[test]
fn a_filtered_export_takes_no_reference_and_says_that_it_is_filtered() {
    let home = signed("filtered-given");
    let newest = read_heads(&home.path.join("audit/heads")).unwrap().pop();
    let filter = Filter {
        tool: Some("tool-3".to_owned()),
        rows: Rows::Calls,
        ..Filter::default()
    };
    let export = Export::of(&home, &filter);
    let found = export.against(Expectation::default()).unwrap();
    assert_eq!(found.verified.broken, None);
    assert_eq!(found.verified.records, 4);
    assert_eq!(found.scope, ExportScope::Filtered { of: 40 });
    assert!(found.sealed_ms > Some(1_700_000_000_000));
    let head = Expectation {
        head: Some(Head::START),
        ..Expectation::default()
    };
    for (expected, flag) in [(given(&newest.unwrap()), "--checkpoint"), (head, "--head")] {
        let fault = export.against(expected).unwrap_err();
        let wanted = format!(
            "the audit cannot be verified: the export has some records of the log only, which \
             `{flag}` cannot be compared with; ask for an export without a filter, or for a \
             proof by `ringfence audit prove --since FILE`"
        );
        assert_eq!(fault, wanted);
    }
    let whole = Export::of(&home, &Filter::default());
    let found = whole.against(Expectation::default()).unwrap();
    assert_eq!(found.scope, ExportScope::Whole);
    assert!(found.sealed_ms > Some(1_700_000_000_000));
}

#[test]
fn a_given_head_within_the_removed_records_is_not_passed_over() {
    let home = signed("gap-given");
    let heads = read_heads(&home.path.join("audit/heads")).unwrap();
    let rule = Retention {
        older_than_ms: Some(1_700_000_000_015),
        bytes_max: None,
    };
    let removed = home.store().audit().retain(&rule).unwrap();
    assert_eq!(removed.through, Some(30));
    let export = Export::of(&home, &Filter::default());
    let held = |note| described(&export.against(given(note)).unwrap().verified.broken);
    assert_eq!(held(&heads[1]), None);
    let fault = held(&heads[0]).unwrap();
    let wanted = "20: the given checkpoint covers 20 records, which are among the 30 that were \
                  removed, so there is nothing to compare; `ringfence audit prove --since FILE` \
                  in the home of the log proves that the log extends it";
    assert_eq!(fault, wanted);
    // The same where several logs are verified. The home itself still has the hashes.
    let nodes = |node: &NodePath, notes: &[SignedNote]| {
        let found = verify_nodes(std::slice::from_ref(node), notes).unwrap();
        assert_eq!(found.found.faults, []);
        described(&found.nodes[0].verified.broken)
    };
    assert_eq!(nodes(&export.node, &heads[1..]), None);
    assert_eq!(nodes(&export.node, &heads).as_deref(), Some(wanted));
    assert_eq!(nodes(&of_home(&home), &heads), None);
}

#[test]
fn several_logs_are_held_against_the_heads_that_name_them() {
    let (home, other) = (signed("nodes-given"), signed("nodes-other"));
    let heads = |home: &Home| read_heads(&home.path.join("audit/heads")).unwrap();
    let (own, foreign) = (heads(&home), heads(&other));
    let found = verify_nodes(&[of_home(&home)], &own).unwrap();
    assert!(found.is_whole());
    // A head that no log is held against is a fault.
    let found = verify_nodes(&[of_home(&home)], &foreign[..1]).unwrap();
    assert!(!found.is_whole());
    let fault = &found.found.faults[0];
    assert_eq!(fault.node, foreign[0].head().unwrap().origin);
    assert_eq!(
        fault.what,
        "the given checkpoint covers 20 records of it, but its log is not among those that are \
         verified"
    );
    // Attack: the home of before, and the heads with it.
    fs::write(home.path.join("audit/heads"), format!("{}\n", own[0])).unwrap();
    let log = home.segments().pop().unwrap();
    let text = fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').take(20).collect();
    fs::write(&log, lines.concat()).unwrap();
    let alone = verify_nodes(&[untouched(&home)], &[]).unwrap();
    assert!(alone.is_whole());
    let found = verify_nodes(&[untouched(&home)], &own[1..]).unwrap();
    assert_eq!(
        described(&found.nodes[0].verified.broken).as_deref(),
        Some("21: the log ends with record 20, but the given checkpoint covers 40 records")
    );
    // Attack: the heads are taken away, so that nothing contradicts the log.
    fs::write(home.path.join("audit/heads"), "").unwrap();
    let found = verify_nodes(&[untouched(&home)], &[]).unwrap();
    let fault = described(&found.nodes[0].verified.broken).unwrap();
    assert!(
        fault.starts_with("1: no signed head covers any of its 20 records"),
        "{fault}"
    );
}

/// A home whose store is not opened, which would notice what was done to it.
fn untouched(home: &Home) -> NodePath {
    NodePath {
        path: home.path.clone(),
        key: store::public_key(&home.path).unwrap(),
    }
}

/// Attack: what shows that an export is not whole is taken out with what it lacks.
#[test]
fn an_export_without_its_header_or_its_heads_says_nothing_for_a_key() {
    let home = signed("headless");
    let export = Export::of(&home, &Filter::default());
    let lines = export.lines.clone();
    // One line for the log, 40 records, two heads, the seal.
    assert_eq!(lines.len(), 44);
    assert_eq!(
        export.fault(&lines[1..]).as_deref(),
        Some("41: the export has signed heads and no header")
    );
    let cut = [&lines[1..21], &lines[41..42]].concat();
    assert_eq!(
        export.fault(&cut).as_deref(),
        Some("21: the export has signed heads and no header")
    );
    let keyless = verify_export(&export.node.path, &Expectation::default()).unwrap_err();
    assert!(
        keyless.to_string().contains("name the public key"),
        "{keyless}"
    );
    let bare = export.fault(&lines[1..41]).unwrap();
    assert!(
        bare.starts_with("1: no signed head covers its records, so the key proves nothing"),
        "{bare}"
    );
    // Without a key, it is an export of records as any other.
    let plain = verify_export(&export.node.path, &Expectation::default()).unwrap();
    assert_eq!((plain.verified.broken, plain.sealed_ms), (None, None));
}
