//! A small machine for the instructions of a filter, and the numbers of system calls on
//! other architectures. Part of the tests of two crates, by path.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::sock_filter;

/// The words by which the kernel tells a filter the architecture.
pub(crate) const X86_64: u32 = 0xc000_003e;
pub(crate) const AARCH64: u32 = 0xc000_00b7;

/// What a filter answers to a call, as the kernel would run it.
pub(crate) fn run(program: &[sock_filter], arch: u32, call: c_long, arguments: [u64; 6]) -> u32 {
    let (mut held, mut at) = (0, 0);
    loop {
        let one = &program[at];
        at += 1;
        let mut jump = |is_so: bool| at += usize::from(if is_so { one.jt } else { one.jf });
        match one.code {
            0x20 => held = word(one.k, arch, call, arguments),
            0x54 => held &= one.k,
            0x05 => at += usize::try_from(one.k).unwrap(),
            0x15 => jump(held == one.k),
            0x25 => jump(held > one.k),
            0x35 => jump(held >= one.k),
            0x45 => jump(held & one.k != 0),
            0x06 => return one.k,
            other => panic!("an instruction {other:#x}"),
        }
    }
}

/// What the kernel shows a filter, as the words it can load.
fn word(offset: u32, arch: u32, call: c_long, arguments: [u64; 6]) -> u32 {
    let low = |value: u64| u32::try_from(value & 0xffff_ffff).unwrap();
    match offset {
        0 => u32::try_from(call).unwrap(),
        4 => arch,
        _ => {
            let place = usize::try_from(offset - 16).unwrap();
            let value = arguments[place / 8];
            low(if place % 8 == 0 { value } else { value >> 32 })
        }
    }
}

/// The numbers of x86_64 by name, from the kernel's header.
pub(crate) fn numbers_of_x86_64() -> BTreeMap<String, c_long> {
    let places = ["x86_64-linux-gnu/asm", "asm"];
    let headers = places.map(|place| format!("/usr/include/{place}/unistd_64.h"));
    let text = headers
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok());
    numbers(&text.expect("the headers of the kernel, which every C compiler needs"))
}

/// The numbers of aarch64 by name: those of the generic table.
pub(crate) fn numbers_of_aarch64() -> BTreeMap<String, c_long> {
    let text = std::fs::read_to_string("/usr/include/asm-generic/unistd.h");
    numbers(&text.expect("the headers of the kernel, which every C compiler needs"))
}

/// `#define __NR_openat 56`, and calls whose name depends on the size of a word:
/// `#define __NR3264_mmap 222`, then `#define __NR_mmap __NR3264_mmap`.
fn numbers(header: &str) -> BTreeMap<String, c_long> {
    let defined = |line: &str| {
        let (name, value) = line
            .strip_prefix("#define ")?
            .split_once(char::is_whitespace)?;
        Some((name.to_owned(), value.trim().to_owned()))
    };
    let all: Vec<(String, String)> = header.lines().filter_map(defined).collect();
    let number = |value: &str| {
        let named = all.iter().find(|(name, _)| name == value);
        named.map_or(value, |(_, number)| number).parse().ok()
    };
    let calls = all.iter().filter_map(|(name, value)| {
        let name = name.strip_prefix("__NR_")?;
        Some((name.to_owned(), number(value)?))
    });
    calls.collect()
}

/// A table keyed by the numbers of x86_64, keyed by those of aarch64; and the names of
/// calls that aarch64 does not have.
pub(crate) fn on_aarch64<T>(table: BTreeMap<c_long, T>) -> (BTreeMap<c_long, T>, Vec<String>) {
    let (here, there) = (numbers_of_x86_64(), numbers_of_aarch64());
    let name_of = |number: c_long| here.iter().find(|(_, known)| **known == number);
    let (mut moved, mut absent) = (BTreeMap::new(), Vec::new());
    for (number, entry) in table {
        let (name, _) = name_of(number).unwrap_or_else(|| panic!("no call {number}"));
        match there.get(name) {
            Some(other) => {
                moved.insert(*other, entry);
            }
            None => absent.push(name.clone()),
        }
    }
    (moved, absent)
}
