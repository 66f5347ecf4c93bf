//! The list as data, for both architectures: what it lets through and that it lets nothing
//! else through. On x86_64 the attempts of `wall_walls` try the same for real; no machine
//! with aarch64 was at hand, so there the filter runs in a machine of our own.

use super::{Rules, compile, machine, rules};
use libc::c_long;
use seccompiler::{BpfProgram, TargetArch};

const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;
const KILLED: u32 = libc::SECCOMP_RET_KILL_PROCESS;

/// The calls of the list, by name.
const LISTED: [&str; 16] = [
    "brk",
    "clock_gettime",
    "clock_nanosleep",
    "exit_group",
    "futex",
    "ioctl",
    "madvise",
    "mmap",
    "mprotect",
    "mremap",
    "munmap",
    "ppoll",
    "recvfrom",
    "restart_syscall",
    "rt_sigreturn",
    "sendto",
];

/// Arguments with which a call passes.
fn good(name: &str) -> [u64; 6] {
    let pipe = u64::from(super::PIPE_FD.unsigned_abs());
    match name {
        "recvfrom" | "sendto" => [pipe, 1, 1, 0, 0, 0],
        "mmap" => [0, 4096, 3, 0x22, 0, 0],
        "mprotect" => [0, 4096, 3, 0, 0, 0],
        "madvise" => [0, 4096, 4, 0, 0, 0],
        "ioctl" => [5, super::PAGEMAP_SCAN, 0, 0, 0, 0],
        _ => [0; 6],
    }
}

/// Arguments with which it does not.
fn bad(name: &str) -> Vec<[u64; 6]> {
    let pipe = u64::from(super::PIPE_FD.unsigned_abs());
    match name {
        "recvfrom" | "sendto" => vec![[pipe + 1, 1, 1, 0, 0, 0], [pipe, 1, 1, 0, 9, 0]],
        // Executable; shared.
        "mmap" => vec![[0, 4096, 7, 0x22, 0, 0], [0, 4096, 3, 0x21, 0, 0]],
        "mprotect" => vec![[0, 4096, 5, 0, 0, 0]],
        "madvise" => vec![[0, 4096, 9, 0, 0, 0]],
        "ioctl" => vec![[5, 0x5412, 0, 0, 0, 0]],
        _ => Vec::new(),
    }
}

fn check(program: &BpfProgram, arch: u32, numbers: &std::collections::BTreeMap<String, c_long>) {
    let run = |call, arguments| machine::run(program, arch, call, arguments);
    for name in LISTED {
        let call = numbers[name];
        assert_eq!(run(call, good(name)), ALLOWED, "{name}");
        for arguments in bad(name) {
            assert_eq!(run(call, arguments), KILLED, "{name} {arguments:?}");
        }
    }
    let listed: Vec<_> = LISTED.iter().map(|name| numbers[*name]).collect();
    for call in (0..1024).filter(|call| !listed.contains(call)) {
        assert_eq!(run(call, [0; 6]), KILLED, "{call}");
    }
    // The calls of another architecture have other numbers, so none of them passes.
    for call in 0..1024 {
        assert_eq!(machine::run(program, !arch, call, [0; 6]), KILLED);
    }
}

fn moved() -> Rules {
    let (moved, absent) = machine::on_aarch64(rules().unwrap());
    assert_eq!(absent, [""; 0], "calls that aarch64 does not have");
    moved
}

#[test]
fn the_list_holds_on_x86_64() {
    let program = compile(rules().unwrap(), TargetArch::x86_64).unwrap();
    check(&program, machine::X86_64, &machine::numbers_of_x86_64());
}

#[test]
fn the_list_holds_on_aarch64() {
    let program = compile(moved(), TargetArch::aarch64).unwrap();
    check(&program, machine::AARCH64, &machine::numbers_of_aarch64());
}
