//! Logs that only grew, and logs that did not.

use std::convert::Infallible;

use super::*;
use crate::record::audit::chain::{ChainHash, RecordKind, link, notice_body};
use crate::record::audit::notice::SERVER;
use crate::record::audit::spell;

/// A chain of notices; `word` tells one chain from another.
fn chain(count: u64, word: &str) -> Vec<Record> {
    let acts = (1..=count).map(|_| Notice::new(Act::KeyMade, SERVER, "test", word));
    of_notices(Vec::new(), acts)
}

fn of_notices(mut records: Vec<Record>, notices: impl Iterator<Item = Notice>) -> Vec<Record> {
    for notice in notices {
        let previous = records.last().map_or(ChainHash::ZERO, |it| it.hash);
        let sequence = u64::try_from(records.len()).expect("few") + 1;
        let body = notice_body(sequence, &spell::notice(&notice).expect("canonical"));
        records.push(Record {
            sequence,
            kind: RecordKind::Notice,
            previous,
            hash: link(&previous, &body),
            body,
        });
    }
    records
}

fn head(records: &[Record], size: usize) -> TreeHead {
    let mut tree = Frontier::default();
    for record in &records[..size] {
        tree.push(TreeHash::record(&record.hash));
    }
    TreeHead {
        origin: "log".to_owned(),
        size: tree.size(),
        root: tree.root(),
        fork: None,
    }
}

fn kept(heads: &[TreeHead]) -> Vec<(TreeHead, HeadSource)> {
    let heads = heads.iter().cloned();
    heads.map(|head| (head, HeadSource::Kept)).collect()
}

fn check(records: &[Record], heads: Vec<(TreeHead, HeadSource)>) -> (u64, Option<String>) {
    let none = |_| Ok::<_, Infallible>(TreeHash::empty());
    let check = HeadCheck::new(heads, Frontier::default(), none);
    let mut check = check.expect("nothing to read");
    for record in records {
        check.step(record, &record.read::<Ending>().expect("a body"));
    }
    let signed = check.signed();
    (
        signed,
        check
            .finish()
            .map(|fault| format!("{}: {}", fault.sequence, fault.what)),
    )
}

#[test]
fn a_log_that_only_grew_fits_all_its_heads() {
    let records = chain(40, "one");
    let heads: Vec<TreeHead> = [0, 1, 7, 7, 32, 40].map(|size| head(&records, size)).into();
    assert_eq!(check(&records, kept(&heads)), (40, None));
    assert_eq!(check(&records, Vec::new()), (0, None));
}

#[test]
fn a_rewritten_log_is_found_with_the_records_in_question() {
    let records = chain(40, "one");
    let heads = kept(&[10, 20, 40].map(|size| head(&records, size)));
    // The same records up to 12, then others.
    let mut forked = records.clone();
    forked.truncate(12);
    let others = (12..40).map(|_| Notice::new(Act::KeyMade, SERVER, "test", "forked"));
    let forked = of_notices(forked, others);
    let what = "11: records 11 to 20 are not those that were signed";
    assert_eq!(check(&forked, heads), (10, Some(what.to_owned())));
}

#[test]
fn a_cut_end_is_found() {
    let records = chain(40, "one");
    let heads = kept(&[10, 40].map(|size| head(&records, size)));
    let what = "31: the log ends with record 30, but a head over 40 records was signed";
    assert_eq!(check(&records[..30], heads), (10, Some(what.to_owned())));
}

#[test]
fn a_given_checkpoint_is_held_against_the_log_too() {
    let records = chain(40, "one");
    let given = vec![(head(&records, 40), HeadSource::Given)];
    assert_eq!(check(&records, given.clone()), (40, None));
    let what = "31: the log ends with record 30, but the given checkpoint covers 40 records";
    assert_eq!(
        check(&records[..30], given.clone()).1.as_deref(),
        Some(what)
    );
    let what = "1: records 1 to 40 are not those of the given checkpoint";
    assert_eq!(check(&chain(40, "two"), given).1.as_deref(), Some(what));
}

#[test]
fn heads_in_another_order_are_found() {
    let records = chain(40, "one");
    let heads = kept(&[10, 40, 30].map(|size| head(&records, size)));
    let what = "31: the head over 30 records was signed after one over 40: the log was rolled back";
    assert_eq!(check(&records, heads).1.as_deref(), Some(what));
}

/// A log that lost its records from 31 on, reported it, and went on.
fn cut_log(is_acknowledged: bool) -> (Vec<Record>, Vec<Record>) {
    let records = chain(40, "one");
    let mut cut = Notice::new(Act::AuditCut, SERVER, "log", "cut");
    cut.id = "the-cut".to_owned();
    let act = match is_acknowledged {
        true => Act::AuditCutAcknowledged,
        false => Act::KeyMade,
    };
    let acknowledged = Notice::new(act, "owner", "cli", "restored").about("the-cut");
    let later = (0..20).map(|_| Notice::new(Act::KeyMade, SERVER, "test", "later"));
    let notices = [cut, acknowledged].into_iter().chain(later);
    let after = of_notices(records[..30].to_vec(), notices);
    (records, after)
}

#[test]
fn after_an_acknowledged_cut_lost_heads_count_no_more() {
    let (before, after) = cut_log(true);
    let mut forked = head(&after, 45);
    forked.fork = Some(20);
    let heads = [
        head(&before, 20),
        head(&before, 40),
        forked,
        head(&after, 52),
    ];
    assert_eq!(check(&after, kept(&heads)), (52, None));
    // A person who kept the lost head elsewhere still sees the difference.
    let mut given = kept(&heads);
    given.push((head(&before, 40), HeadSource::Given));
    let what = "21: records 21 to 40 are not those of the given checkpoint";
    assert_eq!(check(&after, given).1.as_deref(), Some(what));
    // Attack: records after the fork are rewritten later.
    let mut rewritten = after;
    rewritten.truncate(48);
    let others = (48..52).map(|_| Notice::new(Act::KeyMade, SERVER, "test", "rewritten"));
    let rewritten = of_notices(rewritten, others);
    let what = "46: records 46 to 52 are not those that were signed";
    assert_eq!(check(&rewritten, kept(&heads)).1.as_deref(), Some(what));
    // Attack: before the head that declares the fork, behind the cut.
    let mut rewritten = rewritten;
    rewritten.truncate(35);
    let others = (35..52).map(|_| Notice::new(Act::KeyMade, SERVER, "test", "rewritten"));
    let rewritten = of_notices(rewritten, others);
    let what = "21: records 21 to 45 are not those that were signed";
    assert_eq!(check(&rewritten, kept(&heads)).1.as_deref(), Some(what));
}

#[test]
fn between_an_acknowledgement_and_the_next_head_the_log_is_whole() {
    let (before, after) = cut_log(true);
    let heads = [head(&before, 20), head(&before, 40)];
    assert_eq!(check(&after, kept(&heads)), (20, None));
    let (before, after) = cut_log(false);
    let heads = [head(&before, 20), head(&before, 40)];
    let what = "21: records 21 to 40 are not those that were signed";
    assert_eq!(check(&after, kept(&heads)).1.as_deref(), Some(what));
}

/// Attack: the log is rewritten, and a cut that never was is reported and acknowledged at
/// its end, so that the heads of before seem void.
#[test]
fn a_forged_cut_at_the_end_excuses_no_rewriting() {
    let records = chain(40, "one");
    let heads = kept(&[10, 40].map(|size| head(&records, size)));
    let mut cut = Notice::new(Act::AuditCut, SERVER, "log", "cut");
    cut.id = "the-cut".to_owned();
    let known = Notice::new(Act::AuditCutAcknowledged, "owner", "cli", "known").about("the-cut");
    let others = (12..50).map(|_| Notice::new(Act::KeyMade, SERVER, "test", "forged"));
    let forged = of_notices(records[..12].to_vec(), others.chain([cut, known]));
    let what = "11: records 11 to 40 are not those that were signed";
    assert_eq!(check(&forged, heads), (10, Some(what.to_owned())));
}

#[test]
fn a_fork_without_an_acknowledged_cut_is_found() {
    let (before, after) = cut_log(false);
    let mut forked = head(&after, 45);
    forked.fork = Some(20);
    let heads = [head(&before, 20), head(&before, 40), forked];
    let what =
        "21: the head over 45 records forks after record 20, and no acknowledged cut says why";
    assert_eq!(check(&after, kept(&heads)).1.as_deref(), Some(what));
}

#[test]
fn heads_over_removed_records_are_checked_against_the_tree_that_is_left() {
    let records = chain(40, "one");
    let mut start = Frontier::default();
    for record in &records[..25] {
        start.push(TreeHash::record(&record.hash));
    }
    let heads = kept(&[10, 30].map(|size| head(&records, size)));
    let sound = head(&records, 10).root;
    for (root, expected) in [
        (sound, None),
        (
            TreeHash::empty(),
            Some("1: records 1 to 10 are not those that were signed"),
        ),
    ] {
        let removed = |size| {
            assert_eq!(size, 10);
            Ok::<_, Infallible>(root)
        };
        let mut check = HeadCheck::new(heads.clone(), start.clone(), removed).expect("read");
        for record in &records[25..] {
            check.step(record, &record.read::<Ending>().expect("a body"));
        }
        let fault = check.finish();
        let fault = fault.map(|fault| format!("{}: {}", fault.sequence, fault.what));
        assert_eq!(fault.as_deref(), expected);
    }
}

#[test]
fn a_fork_whose_acknowledgement_was_removed_still_counts() {
    let (before, after) = cut_log(true);
    let mut forked = head(&after, 45);
    forked.fork = Some(20);
    let heads = kept(&[
        head(&before, 20),
        head(&before, 40),
        forked,
        head(&after, 52),
    ]);
    for (removed, fault) in [(34, false), (20, false), (19, false)] {
        let mut start = Frontier::default();
        for record in &after[..removed] {
            start.push(TreeHash::record(&record.hash));
        }
        let root = |size| {
            let size = usize::try_from(size).expect("small");
            Ok::<_, Infallible>(head(&after, size).root)
        };
        let mut check = HeadCheck::new(heads.clone(), start, root).expect("read");
        for record in &after[removed..] {
            check.step(record, &record.read::<Ending>().expect("a body"));
        }
        assert_eq!(check.finish().is_some(), fault, "{removed}");
    }
}
