//! Whatever is done to a chain, the walk names the record where it was done.

use proptest::prelude::*;

use super::*;
use crate::caller::Origin;
use crate::record::audit::chain::{ChainHash, checkpoint_body, close_body, notice_body, open_body};
use crate::record::audit::{Act, Closing, Notice, Opening, Status, spell};

/// What is written next.
#[derive(Clone, Copy, Debug)]
enum Step {
    Open,
    Close,
    Notice,
}

/// A chain as a store would write it. Each step opens an entry, closes the oldest
/// open one or writes a notice.
fn chain(steps: &[Step]) -> Vec<Record> {
    let mut chain = Vec::new();
    let mut open = Vec::new();
    for step in steps {
        match (step, open.is_empty()) {
            (Step::Notice, _) => add_notice(&mut chain),
            (Step::Open, _) | (Step::Close, true) => open.push(add_open(&mut chain)),
            (Step::Close, false) => {
                let opened = open.remove(0);
                add_close(&mut chain, opened);
            }
        }
    }
    chain
}

fn add(chain: &mut Vec<Record>, kind: RecordKind, body: impl FnOnce(u64) -> String) -> u64 {
    let previous = chain.last().map_or(ChainHash::ZERO, |record| record.hash);
    let sequence = chain.last().map_or(1, |record| record.sequence + 1);
    let body = body(sequence);
    chain.push(Record {
        sequence,
        kind,
        previous,
        hash: link(&previous, &body),
        body,
    });
    sequence
}

fn add_open(chain: &mut Vec<Record>) -> u64 {
    add(chain, RecordKind::Open, |sequence| {
        let opening = Opening {
            call_id: format!("call-{sequence}"),
            parent_id: None,
            at_ms: 1,
            origin: Origin::Mcp,
            caller: "someone".to_owned(),
            tool: "hello".to_owned(),
            arguments_digest: String::new(),
        };
        open_body(sequence, &spell::opening(&opening).expect("canonical"))
    })
}

fn add_notice(chain: &mut Vec<Record>) {
    add(chain, RecordKind::Notice, |sequence| {
        let notice = Notice::new(Act::ToolPublished, "someone", "cli", "published");
        notice_body(sequence, &spell::notice(&notice).expect("canonical"))
    });
}

fn add_close(chain: &mut Vec<Record>, opened: u64) {
    add(chain, RecordKind::Close, |sequence| {
        let closing = Closing::bare(2, Status::Done, None);
        let part = spell::closing(&closing).expect("canonical");
        close_body(sequence, opened, &format!("call-{opened}"), &part)
    });
}

/// Removes the records up to a place, as retention does.
fn retain(chain: &mut Vec<Record>, through: u64) {
    let last = &chain[usize::try_from(through - 1).expect("small")];
    let through_head = Head {
        sequence: last.sequence,
        hash: last.hash,
    };
    let mut closed = HashMap::new();
    for record in chain.iter() {
        if let Ok(Body::Close(close)) = record.read::<Ending>() {
            closed.insert(close.opened, record.sequence);
        }
    }
    let stays = |record: &Record| {
        record.sequence > through
            || (record.kind == RecordKind::Open
                && closed.get(&record.sequence).is_none_or(|it| *it > through))
    };
    let kept = chain
        .iter()
        .filter(|record| record.sequence <= through && stays(record))
        .map(place)
        .collect();
    let checkpoint = Checkpoint {
        at_ms: 3,
        through: through_head,
        records: 0,
        entries: 0,
        notices: 0,
        from_ms: 0,
        to_ms: 0,
        kept,
        root: None,
    };
    add(chain, RecordKind::Checkpoint, |sequence| {
        checkpoint_body(sequence, &checkpoint).expect("canonical")
    });
    chain.retain(|record| stays(record));
}

fn broken(chain: &[Record]) -> Option<u64> {
    verify(chain, None).broken.map(|broken| broken.sequence)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop::sample::select(vec![Step::Open, Step::Close, Step::Notice]);
    prop::collection::vec(step, 3..40)
}

proptest! {
    #[test]
    fn a_chain_as_written_is_in_order(steps in steps()) {
        let chain = chain(&steps);
        let found = verify(&chain, chain.last().map(place).as_ref());
        prop_assert_eq!(&found.broken, &None);
        prop_assert_eq!(found.records, count(chain.len()));
        prop_assert_eq!(Some(found.head), chain.last().map(place));
        let opens = chain.iter().filter(|record| record.kind == RecordKind::Open).count();
        prop_assert_eq!(found.entries, count(opens));
        let notices = chain.iter().filter(|record| record.kind == RecordKind::Notice).count();
        prop_assert_eq!(found.notices, count(notices));
        prop_assert_eq!(found.open, count(2 * opens + notices - chain.len()));
    }

    /// One flipped bit anywhere in a record.
    #[test]
    fn a_change_is_named_at_its_record(
        steps in steps(),
        index in any::<prop::sample::Index>(),
        byte in any::<prop::sample::Index>(),
        what in 0..5,
    ) {
        let mut chain = chain(&steps);
        let at = index.index(chain.len());
        let record = &mut chain[at];
        let flip = |hash: ChainHash| {
            let mut bytes = *hash.bytes();
            bytes[byte.index(32)] ^= 1;
            ChainHash::from_bytes(bytes)
        };
        match what {
            0 => {
                let mut bytes = record.body.clone().into_bytes();
                // The body is ASCII and stays so.
                bytes[byte.index(record.body.len())] ^= 1;
                record.body = String::from_utf8(bytes).expect("ASCII");
            }
            1 => record.hash = flip(record.hash),
            2 => record.previous = flip(record.previous),
            3 => record.kind = match record.kind {
                RecordKind::Open => RecordKind::Close,
                RecordKind::Close
                | RecordKind::Checkpoint
                | RecordKind::Notice
                | RecordKind::Anchor => RecordKind::Open,
            },
            _ => record.sequence += 7,
        }
        let expected = count(at + 1);
        prop_assert_eq!(broken(&chain), Some(expected));
    }

    /// Who fixes the record's own hash is found at the next one.
    #[test]
    fn a_change_with_a_new_hash_is_named_at_the_next(
        steps in steps(),
        index in any::<prop::sample::Index>(),
    ) {
        let mut chain = chain(&steps);
        let at = index.index(chain.len() - 1);
        let record = &mut chain[at];
        let body = record.body.replace("hello", "other").replace("done", "failed");
        record.body = body.replace("\"cli\"", "\"web\"");
        record.hash = link(&record.previous, &record.body);
        prop_assert_eq!(broken(&chain), Some(count(at + 2)));
    }

    #[test]
    fn a_removal_is_named_where_it_was(steps in steps(), index in any::<prop::sample::Index>()) {
        let mut chain = chain(&steps);
        let at = index.index(chain.len() - 1);
        chain.remove(at);
        prop_assert_eq!(broken(&chain), Some(count(at + 1)));
    }

    #[test]
    fn a_missing_stretch_is_named_at_its_first(
        steps in steps(),
        from in any::<prop::sample::Index>(),
        length in 1_usize..10,
    ) {
        let mut chain = chain(&steps);
        let at = from.index(chain.len() - 1);
        let end = (at + length).min(chain.len() - 1);
        chain.drain(at..end);
        prop_assert_eq!(broken(&chain), Some(count(at + 1)));
    }

    #[test]
    fn an_insertion_is_named(steps in steps(), index in any::<prop::sample::Index>()) {
        let mut chain = chain(&steps);
        let at = index.index(chain.len());
        let copy = chain[at].clone();
        chain.insert(at, copy);
        prop_assert_eq!(broken(&chain), Some(count(at + 1)));
    }

    #[test]
    fn a_swap_is_named_at_the_first(
        steps in steps(),
        a in any::<prop::sample::Index>(),
        b in any::<prop::sample::Index>(),
    ) {
        let mut chain = chain(&steps);
        let (a, b) = (a.index(chain.len()), b.index(chain.len()));
        prop_assume!(a != b);
        let first = a.min(b);
        // The rows keep their places, as under an UPDATE, and change the rest.
        chain.swap(a, b);
        let (low, high) = (count(a + 1), count(b + 1));
        chain[a].sequence = low;
        chain[b].sequence = high;
        prop_assert_eq!(broken(&chain), Some(count(first + 1)));
    }

    #[test]
    fn a_cut_at_the_end_is_found_by_the_expected_head(
        steps in steps(),
        index in any::<prop::sample::Index>(),
    ) {
        let mut chain = chain(&steps);
        let head = chain.last().map(place).expect("a record");
        let left = index.index(chain.len());
        chain.truncate(left);
        prop_assert_eq!(broken(&chain), None);
        let found = verify(&chain, Some(&head)).broken.expect("broken");
        prop_assert_eq!(found.sequence, count(left + 1));
    }

    /// A chain that was rewritten as a whole is in order by itself.
    #[test]
    fn a_rewritten_chain_is_found_by_the_expected_head(steps in steps()) {
        let written = chain(&steps);
        let head = written.last().map(place).expect("a record");
        let mut forged: Vec<Record> = Vec::new();
        for record in &written {
            let body = record.body.replace("someone", "another");
            add(&mut forged, record.kind, |_| body);
        }
        prop_assert_eq!(broken(&forged), None);
        let found = verify(&forged, Some(&head)).broken.map(|broken| broken.sequence);
        prop_assert_eq!(found, Some(head.sequence));
    }

    /// Removal with a checkpoint is in order, again and again; without one it is not.
    #[test]
    fn retention_keeps_the_chain(
        steps in steps(),
        more in steps(),
        first in any::<prop::sample::Index>(),
        second in any::<prop::sample::Index>(),
    ) {
        let mut written = chain(&steps);
        let whole = written.clone();
        let through = count(first.index(whole.len()) + 1);
        retain(&mut written, through);
        prop_assert_eq!(broken(&written), None);
        for step in more {
            match step {
                Step::Open => {
                    let opened = add_open(&mut written);
                    add_close(&mut written, opened);
                }
                Step::Notice => add_notice(&mut written),
                Step::Close => {}
            }
        }
        prop_assert_eq!(broken(&written), None);
        let at = first.index(whole.len());
        prop_assert_eq!(broken(&whole[at..]), (at > 0).then_some(1));
        // One of those that stay may not go either, nor one after.
        let gone = second.index(written.len());
        let lost = written.remove(gone);
        let is_last = gone == written.len();
        prop_assert_eq!(broken(&written).is_none(), is_last && lost.kind != RecordKind::Checkpoint);
    }
}

#[test]
fn an_entry_is_closed_once_and_by_its_own_record() {
    let mut twice = chain(&[Step::Open, Step::Close]);
    add_close(&mut twice, 1);
    assert_eq!(broken(&twice), Some(3));
    let mut unopened = chain(&[Step::Open]);
    add_close(&mut unopened, 9);
    assert_eq!(broken(&unopened), Some(2));
}

#[test]
fn a_head_from_before_a_checkpoint_cannot_be_compared() {
    let mut chain = chain(&[Step::Open, Step::Close, Step::Notice, Step::Open]);
    let (old, last_removed) = (place(&chain[0]), place(&chain[1]));
    retain(&mut chain, 2);
    assert!(verify(&chain, Some(&old)).broken.is_some());
    assert_eq!(verify(&chain, Some(&last_removed)).broken, None);
}

#[test]
fn an_empty_chain_is_in_order() {
    let found = verify(&[], None);
    assert_eq!((found.records, found.head), (0, Head::START));
    assert_eq!(found.broken, None);
}
