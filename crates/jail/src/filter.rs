//! A filter of system calls as instructions for the kernel: from the number of a call to
//! its verdict by halving, then the tests of its arguments.
//!
//! What is in no list does not exist: a call that a later kernel brings is refused as an
//! older kernel would.

use std::collections::BTreeMap;

use libc::c_long;
use sandbox::walls::system::FilterInstruction;

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallVerdict {
    /// It is carried out.
    Allow,
    /// It fails: not permitted.
    Refuse,
    /// It fails as if the kernel did not have it.
    Absent,
    /// The supervisor answers it.
    Hand,
    /// It is carried out if no test refuses its arguments.
    Check(Vec<ArgumentTest>),
}

/// A test of the low half of an argument, which is all the kernel looks at in these calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentTest {
    /// Refused if any of the bits is set.
    NoBits { argument: u8, bits: u32 },
    /// Refused if it is one of these.
    NoneOf { argument: u8, values: Vec<u32> },
    /// Refused unless it, masked, is one of these.
    OneOf {
        argument: u8,
        mask: u32,
        values: Vec<u32>,
    },
    /// The same, only where another argument has a value.
    OneOfWhen {
        other: u8,
        value: u32,
        argument: u8,
        values: Vec<u32>,
    },
}

const LOAD_WORD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_NOT_LESS: u16 = 0x35;
const JUMP_IF_ANY: u16 = 0x45;
const RETURN: u16 = 0x06;

/// Where the number and the architecture of a call stand in what a filter sees.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

#[cfg(target_arch = "x86_64")]
const OWN_ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(not(target_arch = "x86_64"))]
const OWN_ARCHITECTURE: u32 = 0xc000_00b7;

const REFUSED: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();
const ABSENT: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();

/// The instructions for a list of calls. Numbers that are not in it, those of x32 among
/// them, are absent; another architecture is the end of the process.
pub(crate) fn assemble(calls: &BTreeMap<c_long, CallVerdict>) -> Vec<FilterInstruction> {
    let mut program = vec![
        instruction(LOAD_WORD, 0, 0, ARCHITECTURE),
        instruction(JUMP_IF_EQUAL, 1, 0, OWN_ARCHITECTURE),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        instruction(LOAD_WORD, 0, 0, NUMBER),
    ];
    program.extend(halve(&segments(calls)));
    program
}

/// A run of numbers with one verdict, from its first on.
struct Segment<'a> {
    first: u32,
    verdict: &'a CallVerdict,
}

fn segments(calls: &BTreeMap<c_long, CallVerdict>) -> Vec<Segment<'_>> {
    let mut segments: Vec<Segment<'_>> = Vec::new();
    let mut push = |first: u32, verdict| match segments.last() {
        Some(last) if last.verdict == verdict => {}
        Some(_) | None => segments.push(Segment { first, verdict }),
    };
    let mut next = 0;
    for (number, verdict) in calls {
        // Numbers of a table of ours: all small.
        let Ok(number) = u32::try_from(*number) else {
            continue;
        };
        if number > next || next == 0 {
            push(next, &CallVerdict::Absent);
        }
        push(number, verdict);
        next = number.saturating_add(1);
    }
    push(next, &CallVerdict::Absent);
    segments
}

fn halve(segments: &[Segment<'_>]) -> Vec<FilterInstruction> {
    let (left, right) = segments.split_at(segments.len() / 2);
    let Some(middle) = right.first() else {
        return verdict(&CallVerdict::Absent);
    };
    if left.is_empty() {
        return verdict(middle.verdict);
    }
    let (lower, upper) = (halve(left), halve(right));
    let mut program = vec![
        instruction(JUMP_IF_NOT_LESS, 0, 1, middle.first),
        // A jump of its own: the offsets of a conditional one have 8 bits, and the lower half may
        // be longer.
        instruction(JUMP, 0, 0, word(lower.len())),
    ];
    program.extend(lower);
    program.extend(upper);
    program
}

fn verdict(verdict: &CallVerdict) -> Vec<FilterInstruction> {
    let answer = |answer| vec![instruction(RETURN, 0, 0, answer)];
    match verdict {
        CallVerdict::Allow => answer(libc::SECCOMP_RET_ALLOW),
        CallVerdict::Refuse => answer(REFUSED),
        CallVerdict::Absent => answer(ABSENT),
        CallVerdict::Hand => answer(libc::SECCOMP_RET_USER_NOTIF),
        CallVerdict::Check(tests) => {
            let mut program: Vec<FilterInstruction> = tests.iter().flat_map(test).collect();
            program.extend(answer(libc::SECCOMP_RET_ALLOW));
            program
        }
    }
}

fn test(test: &ArgumentTest) -> Vec<FilterInstruction> {
    match test {
        ArgumentTest::NoBits { argument, bits } => vec![
            load(*argument),
            instruction(JUMP_IF_ANY, 0, 1, *bits),
            instruction(RETURN, 0, 0, REFUSED),
        ],
        ArgumentTest::NoneOf { argument, values } => {
            let mut program = vec![load(*argument)];
            for value in values {
                program.push(instruction(JUMP_IF_EQUAL, 0, 1, *value));
                program.push(instruction(RETURN, 0, 0, REFUSED));
            }
            program
        }
        ArgumentTest::OneOf {
            argument,
            mask,
            values,
        } => {
            let mut program = vec![load(*argument), instruction(AND, 0, 0, *mask)];
            program.extend(one_of(values));
            program
        }
        ArgumentTest::OneOfWhen {
            other,
            value,
            argument,
            values,
        } => {
            let mut inner = vec![load(*argument)];
            inner.extend(one_of(values));
            let mut program = vec![
                load(*other),
                instruction(JUMP_IF_EQUAL, 1, 0, *value),
                instruction(JUMP, 0, 0, word(inner.len())),
            ];
            program.extend(inner);
            program
        }
    }
}

/// Refuses unless what is loaded is one of a few values.
fn one_of(values: &[u32]) -> Vec<FilterInstruction> {
    let mut program = Vec::new();
    for (index, value) in values.iter().enumerate() {
        // Over the comparisons that are left and the refusal behind them; lists have a few values.
        let behind = u8::try_from(values.len() - index).unwrap_or(u8::MAX);
        program.push(instruction(JUMP_IF_EQUAL, behind, 0, *value));
    }
    program.push(instruction(RETURN, 0, 0, REFUSED));
    program
}

fn load(argument: u8) -> FilterInstruction {
    // Both machines store the low half first.
    instruction(LOAD_WORD, 0, 0, ARGUMENTS + 8 * u32::from(argument))
}

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> FilterInstruction {
    FilterInstruction { code, jt, jf, k }
}

fn word(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
