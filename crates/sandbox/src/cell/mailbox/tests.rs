//! The reading of what a guest left in its mailbox, which may be anything.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Memory whose mailbox is at its start: three texts, a position, and the work.
fn memory(texts: [(u32, u32); 3], position: (u32, u32), left_at: u32) -> Vec<u8> {
    let mut memory = vec![0; END];
    for (start, length) in texts {
        memory.extend_from_slice(&start.to_le_bytes());
        memory.extend_from_slice(&length.to_le_bytes());
    }
    memory.extend_from_slice(&position.0.to_le_bytes());
    memory.extend_from_slice(&position.1.to_le_bytes());
    memory.extend_from_slice(&1_000_u64.to_le_bytes());
    // No notes; three rejections, of which the first is told and is the end itself;
    // polled at line 1, column 4, in a regular expression.
    let end = word(END);
    for word in [left_at, 7, 9, 0, 0, end, 1, 3, 1, 4, 1] {
        memory.extend_from_slice(&word.to_le_bytes());
    }
    memory.extend_from_slice(b"[1,2]TypeError");
    memory
}

fn fuzzed(memory: &[u8]) {
    let mut data = vec![0, 0];
    data.extend_from_slice(memory);
    fuzz(&data);
}

const TEXT: u32 = 148;

#[test]
fn a_sound_end_is_read() {
    let memory = memory([(TEXT, 5), (TEXT + 5, 9), (0, 0)], (2, 3), TEXT);
    let end = GuestEnd::read(&memory, 0).expect("it is all there");
    assert_eq!(end.value(5), Some(Ended::Value("[1,2]".to_owned())));
    assert_eq!(end.value(4), None, "longer than allowed");
    assert_eq!(end.input(), Some((7, 9)));
    let Some(Ended::Threw(thrown)) = end.thrown("a\nb") else {
        panic!("no error");
    };
    assert_eq!(
        (thrown.name.as_str(), thrown.line, thrown.column),
        ("TypeError", 2, 3)
    );
    assert_eq!(thrown.helper, None);
    let rejections = end.rejections("a\nb").expect("they are all there");
    assert_eq!((rejections.told, rejections.count), (vec![thrown], 3));
    let place = end
        .polled_at("a\nb")
        .map(|at| (at.line, at.column, at.in_regex));
    assert_eq!(place, Some((1, 4, true)));
}

/// The seeds of the fuzz target, run as an ordinary test.
#[test]
fn fuzz_seeds_pass() {
    fuzz(&[]);
    fuzz(&[0]);
    fuzz(&[0xff, 0xff, 1, 2, 3]);
    for (start, length) in [
        (TEXT, 5),
        (TEXT, u32::MAX),
        (u32::MAX, 1),
        (u32::MAX, u32::MAX),
        (0, TEXT + 14),
        (TEXT + 14, 0),
        (TEXT + 14, 1),
    ] {
        for position in [(0, 0), (u32::MAX, u32::MAX), (3, 1)] {
            let texts = [(start, length); 3];
            fuzzed(&memory(texts, position, start));
        }
    }
    let sound = memory([(TEXT, 5); 3], (1, 1), 0);
    for length in 0..sound.len() {
        fuzzed(sound.get(..length).expect("shorter"));
    }
}

proptest! {
    #[test]
    fn any_mailbox_is_read_within_bounds(words in vec(prop_oneof![0_u32..200, any::<u32>()], 29..70)) {
        let memory: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        fuzzed(&memory);
    }
}
