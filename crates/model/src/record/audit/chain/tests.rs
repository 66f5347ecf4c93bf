//! The recipe: bodies, hashes, and reading them again.

use serde_json::json;

use super::*;
use crate::caller::Origin;
use crate::record::audit::{Act, spell};

fn opening() -> Opening {
    Opening {
        call_id: "c\"1".to_owned(),
        parent_id: None,
        at_ms: 5,
        origin: Origin::Cli,
        caller: "owner".to_owned(),
        tool: "hello".to_owned(),
        arguments_digest: "ab".to_owned(),
    }
}

fn canonical_text(text: &str) -> String {
    let value = serde_json::from_str(text).expect("JSON");
    String::from_utf8(canonical::to_bytes(&value).expect("canonical")).expect("text")
}

fn record(kind: RecordKind, sequence: u64, body: String) -> Record {
    Record {
        sequence,
        kind,
        previous: ChainHash::ZERO,
        hash: link(&ChainHash::ZERO, &body),
        body,
    }
}

/// Computed with `printf` and `sha256sum`, not with this code.
#[test]
fn a_hash_is_what_the_guide_says() {
    let first = link(&ChainHash::ZERO, "{}");
    assert_eq!(
        first.hex(),
        "291cd3ee7c8db6974583f3acf72c5f4c09ce98665c1b6a204b0664306ba9709e"
    );
    assert_eq!(
        link(&first, "é").hex(),
        "0b104d6f00f2f29214b5cb895d0635d7cf31d68c40ce3785d702ffea594fd1ff"
    );
}

#[test]
fn bodies_are_canonical_as_written() {
    let part = spell::opening(&opening()).expect("canonical");
    let open = open_body(7, &part);
    assert_eq!(open, canonical_text(&open));
    let closing = Closing::bare(9, Status::Done, None);
    let part = spell::closing(&closing).expect("canonical");
    let close = close_body(8, 7, "c\"1", &part);
    assert_eq!(close, canonical_text(&close));
    let checkpoint = checkpoint_body(9, &checkpoint()).expect("canonical");
    assert_eq!(checkpoint, canonical_text(&checkpoint));
    let part = spell::notice(&notice()).expect("canonical");
    let notice = notice_body(10, &part);
    assert_eq!(notice, canonical_text(&notice));
}

fn notice() -> Notice {
    let notice = Notice::new(Act::KeyMade, "owner", "cli", "a \"key\"");
    notice.about("ann").detail("b", "1").detail("a", "2")
}

fn checkpoint() -> Checkpoint {
    Checkpoint {
        at_ms: 1,
        through: Head::START,
        records: 2,
        entries: 3,
        notices: 6,
        from_ms: 4,
        to_ms: 5,
        kept: vec![Head::START],
        root: None,
    }
}

#[test]
fn a_body_is_read_as_it_was_written() {
    let part = spell::opening(&opening()).expect("canonical");
    let open = record(RecordKind::Open, 7, open_body(7, &part));
    assert_eq!(open.read::<Closing>(), Ok(Body::Open(opening())));

    let closing = Closing::bare(9, Status::Failed, None);
    let part = spell::closing(&closing).expect("canonical");
    let close = record(RecordKind::Close, 8, close_body(8, 7, "c\"1", &part));
    let expected = Close {
        opened: 7,
        call_id: "c\"1".to_owned(),
        closing,
    };
    assert_eq!(close.read(), Ok(Body::Close(expected)));

    let body = checkpoint_body(9, &checkpoint()).expect("canonical");
    let read = record(RecordKind::Checkpoint, 9, body).read::<Closing>();
    assert_eq!(read, Ok(Body::Checkpoint(checkpoint())));

    let part = spell::notice(&notice()).expect("canonical");
    let read = record(RecordKind::Notice, 10, notice_body(10, &part)).read::<Closing>();
    assert_eq!(read, Ok(Body::Notice(notice())));
}

#[test]
fn a_body_of_another_record_is_refused() {
    let part = spell::opening(&opening()).expect("canonical");
    let body = open_body(7, &part);
    let elsewhere = record(RecordKind::Open, 8, body.clone());
    assert_eq!(elsewhere.read::<Closing>(), Err(BodyError::Place(7)));
    let other = record(RecordKind::Close, 7, body);
    assert_eq!(other.read::<Closing>(), Err(BodyError::RecordKind));
    for body in ["", "{}", "[]", r#"{"kind":"open","sequence":7}"#] {
        let broken = record(RecordKind::Open, 7, body.to_owned());
        assert_eq!(
            broken.read::<Closing>(),
            Err(BodyError::Unreadable),
            "{body}"
        );
    }
}

#[test]
fn a_hash_is_64_digits_and_nothing_else() {
    let hash = link(&ChainHash::ZERO, "x");
    assert_eq!(hash.hex().parse(), Ok(hash));
    assert_eq!(hash.hex().to_uppercase().parse(), Ok(hash));
    assert_eq!(json!(hash), json!(hash.hex()));
    for wrong in ["", "ab", &"g".repeat(64), &"a".repeat(65), &"é".repeat(32)] {
        assert_eq!(wrong.parse::<ChainHash>(), Err(NotAHash), "{wrong}");
    }
}
