//! Keys and the note below are the example of Go's `sumdb/note`, which the format
//! comes from.

use super::*;

const KEY: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const NOTE: &str = "If you think cryptography is the answer to your problem,\n\
    then you don't know what your problem is.\n\
    \n\
    \u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

#[test]
fn a_known_key_has_its_known_id() {
    let key: NoteKey = KEY.parse().expect("a key");
    assert_eq!(key.name(), "PeterNeumann");
    assert_eq!(key.id(), [0xc7, 0x4f, 0x20, 0xa3]);
    assert_eq!(key.to_string(), KEY);
}

#[test]
fn a_key_that_does_not_fit_its_id_is_none() {
    let sound = NoteKey::new("a", NoteKeyKind::Witness, [7; 32]).expect("a name");
    assert_eq!(sound.to_string().parse(), Ok(sound));
    for bad in [
        "",
        "PeterNeumann",
        "PeterNeumann+c74f20a3",
        &KEY.replace("c74f20a3", "c74f20a4"),
        &KEY.replace("c74f20a3", "C74F20A3"),
        &KEY.replace("Peter", "Paul"),
        &KEY.replace("+ARpc", "+ABpc"),
        &KEY.replace("10TW", ""),
        "+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
    ] {
        assert_eq!(bad.parse::<NoteKey>(), Err(NoteFault::Key), "{bad}");
    }
    for name in ["", "a b", "a+b", "a\nb", "a\u{7}", &"x".repeat(1_000)] {
        assert_eq!(NoteKey::new(name, NoteKeyKind::Log, [0; 32]), None);
    }
}

#[test]
fn a_known_note_is_read_and_written_again() {
    let note: SignedNote = NOTE.parse().expect("a note");
    assert_eq!(note.to_string(), NOTE);
    assert!(note.text().ends_with("problem is.\n"));
    let [signature] = note.signatures() else {
        panic!("one signature");
    };
    assert_eq!(signature.name, "PeterNeumann");
    assert_eq!(signature.id, [0xc7, 0x4f, 0x20, 0xa3]);
    assert_eq!(signature.bytes.len(), 64);
}

#[test]
fn malformed_notes_are_refused() {
    let line = NOTE.lines().last().expect("a signature");
    for bad in [
        String::new(),
        "text\n".to_owned(),
        "text\n\n".to_owned(),
        "text\n\nno signature\n".to_owned(),
        NOTE.trim_end().to_owned(),
        NOTE.replace('\u{2014}', "-"),
        NOTE.replace("x08go", "x08g*"),
        NOTE.replace("the answer", "the\u{0}answer"),
        format!("text\n\n{line}\n\n"),
        format!("text\n\n{}", format!("{line}\n").repeat(100)),
        format!("{}\n\n{line}\n", "x".repeat(2_000_000)),
    ] {
        let read = bad.parse::<SignedNote>();
        assert_eq!(read, Err(NoteFault::Note), "{}", bad.len());
    }
}

#[test]
fn a_checkpoint_is_read_as_it_was_written() {
    let root = TreeHash::empty();
    for fork in [None, Some(0), Some(7)] {
        let head = TreeHead {
            origin: "ringfence/x".to_owned(),
            size: 12,
            root,
            fork,
        };
        assert_eq!(head.to_string().parse(), Ok(head));
    }
    let sound = format!("origin\n0\n{root}\nother extension\n");
    assert!(sound.parse::<TreeHead>().is_ok());
    for bad in [
        String::new(),
        format!("origin\n0\n{root}"),
        format!("\n0\n{root}\n"),
        format!("origin\n-1\n{root}\n"),
        format!("origin\n+1\n{root}\n"),
        format!("origin\n01\n{root}\n"),
        format!("origin\n99999999999999999999\n{root}\n"),
        "origin\n1\nAAAA\n".to_owned(),
        format!("origin\n1\n{root}\n\nextension\n"),
        format!("origin\n1\n{root}\nringfence-fork x\n"),
    ] {
        let read = bad.parse::<TreeHead>();
        assert_eq!(read, Err(NoteFault::Checkpoint), "{bad}");
    }
}

/// Stands in for Ed25519: a message is signed by its own length.
fn by_length(_: &[u8; 32], message: &[u8], signature: &[u8]) -> bool {
    signature == message.len().to_be_bytes()
}

#[test]
fn only_sound_signatures_of_the_same_key_count() {
    let log = NoteKey::new("log", NoteKeyKind::Log, [1; 32]).expect("a name");
    let other = NoteKey::new("log", NoteKeyKind::Log, [2; 32]).expect("a name");
    let witness = NoteKey::new("witness", NoteKeyKind::Witness, [3; 32]).expect("a name");
    let text = "a text\n".to_owned();
    let sound = text.len().to_be_bytes().to_vec();
    let mut note = SignedNote::new(text.clone(), NoteSignature::by(&log, sound));
    assert!(log.has_signed(&note, &by_length));
    assert!(!other.has_signed(&note, &by_length));
    assert!(!witness.has_signed(&note, &by_length));
    let seen = 1_700_000_000_u64;
    let mut bytes = seen.to_be_bytes().to_vec();
    bytes.extend(cosigned(seen, &text).len().to_be_bytes());
    note.add(NoteSignature::by(&witness, bytes));
    assert!(witness.has_signed(&note, &by_length));
    assert_eq!(note.signatures()[1].seen_at(), Some(seen));
    assert_eq!(note.to_string().parse(), Ok(note.clone()));
    // Attack: a wrong signature hides behind a sound one.
    note.add(NoteSignature::by(&log, vec![0; 8]));
    assert!(!log.has_signed(&note, &by_length));
}
