//! The filter as the kernel would run it: a small machine for its instructions. Some calls
//! cannot be tried on every kernel, and all can be tried here with any argument.

#[path = "../../../sandbox/src/walls/seccomp/machine.rs"]
mod machine;

use std::collections::{BTreeMap, BTreeSet};

use libc::c_long;
use sandbox::walls::system::FilterInstruction;

use super::ordinary::{ORDINARY, ORDINARY_AARCH64, ORDINARY_HERE};
use super::{REFUSED as REFUSED_CALLS, REFUSED_HERE, calls, program};
use crate::filter;
use crate::settings::{JailNetwork, JailRung};

const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;
const REFUSED: u32 = libc::SECCOMP_RET_ERRNO | 1;
const ABSENT: u32 = libc::SECCOMP_RET_ERRNO | 38;
const KILLED: u32 = libc::SECCOMP_RET_KILL_PROCESS;
const X32: c_long = 0x4000_0000;

const HERE: u32 = match cfg!(target_arch = "x86_64") {
    true => machine::X86_64,
    false => machine::AARCH64,
};

fn run(program: &[FilterInstruction], call: c_long, arguments: [u64; 6]) -> u32 {
    run_on(program, HERE, call, arguments)
}

fn run_on(program: &[FilterInstruction], arch: u32, call: c_long, arguments: [u64; 6]) -> u32 {
    let same = |one: &FilterInstruction| seccompiler::sock_filter {
        code: one.code,
        jt: one.jt,
        jf: one.jf,
        k: one.k,
    };
    let program: Vec<_> = program.iter().map(same).collect();
    machine::run(&program, arch, call, arguments)
}

#[track_caller]
fn check(network: JailNetwork, call: c_long, arguments: &[u64], expected: u32) {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    for rung in [JailRung::Landlock, JailRung::Namespaces] {
        let answer = run(&program(network, rung), call, all);
        assert_eq!(answer, expected, "{call} {arguments:?} {rung:?}");
    }
}

#[track_caller]
fn check_both(call: c_long, arguments: &[u64], expected: u32) {
    check(JailNetwork::None, call, arguments, expected);
    check(JailNetwork::Open, call, arguments, expected);
}

#[test]
fn ordinary_calls_pass() {
    for call in [
        libc::SYS_read,
        libc::SYS_openat,
        libc::SYS_execve,
        libc::SYS_kill,
        libc::SYS_memfd_create,
    ] {
        check_both(call, &[], ALLOWED);
    }
}

#[test]
fn numbers_of_x32_are_absent() {
    for call in [libc::SYS_read, libc::SYS_socket, libc::SYS_ptrace, 521, 539] {
        check_both(X32 + call, &[], ABSENT);
    }
}

#[test]
fn what_hides_its_arguments_is_absent() {
    check_both(libc::SYS_clone3, &[], ABSENT);
    check_both(libc::SYS_io_uring_setup, &[], ABSENT);
}

#[test]
fn sockets_are_those_of_the_network() {
    const UNIX: u64 = 1;
    const INET: u64 = 2;
    const INET6: u64 = 10;
    const NETLINK: u64 = 16;
    const PACKET: u64 = 17;
    const VSOCK: u64 = 40;
    for family in [UNIX, INET, INET6, NETLINK, PACKET, VSOCK] {
        check(
            JailNetwork::None,
            libc::SYS_socket,
            &[family, 1, 0],
            REFUSED,
        );
        let expected = match family {
            INET | INET6 | NETLINK => ALLOWED,
            _ => REFUSED,
        };
        check(
            JailNetwork::Open,
            libc::SYS_socket,
            &[family, 1, 0],
            expected,
        );
        // The kernel looks at the low half only.
        let high = family | 7 << 32;
        check(JailNetwork::Open, libc::SYS_socket, &[high, 1, 0], expected);
    }
    // Netlink for anything but addresses.
    check(
        JailNetwork::Open,
        libc::SYS_socket,
        &[NETLINK, 3, 9],
        REFUSED,
    );
}

#[test]
fn pairs_of_sockets_stay_connected() {
    const CLOSE_ON_EXEC: u64 = 0o2_000_000;
    const NOT_BLOCKING: u64 = 0o4_000;
    for (family, kind, expected) in [
        (1, 1, ALLOWED),
        (1, 5, ALLOWED),
        (1, 1 | CLOSE_ON_EXEC | NOT_BLOCKING, ALLOWED),
        // Datagrams go to any socket that is named.
        (1, 2, REFUSED),
        (1, 2 | CLOSE_ON_EXEC, REFUSED),
        (1, 3, REFUSED),
        (2, 1, REFUSED),
        (30, 1, REFUSED),
    ] {
        check_both(libc::SYS_socketpair, &[family, kind, 0], expected);
        check(
            JailNetwork::Proxy,
            libc::SYS_socketpair,
            &[family, kind, 0],
            expected,
        );
    }
}

#[test]
fn a_new_process_is_not_in_a_new_namespace() {
    const THREAD: u64 = 0x003d_0f00;
    check_both(libc::SYS_clone, &[17], ALLOWED);
    check_both(libc::SYS_clone, &[THREAD], ALLOWED);
    for flag in [
        0x0002_0000,
        0x0200_0000,
        0x0400_0000,
        0x0800_0000,
        0x1000_0000,
        0x2000_0000,
        0x4000_0000,
    ] {
        check_both(libc::SYS_clone, &[flag | 17], REFUSED);
    }
}

#[test]
fn limits_and_priorities_are_the_callers_own() {
    check_both(libc::SYS_prlimit64, &[0, 7], ALLOWED);
    check_both(libc::SYS_prlimit64, &[1, 7], REFUSED);
    check_both(libc::SYS_sched_setaffinity, &[0], ALLOWED);
    check_both(libc::SYS_sched_setaffinity, &[1], REFUSED);
    check_both(libc::SYS_setpriority, &[0, 0, 5], ALLOWED);
    check_both(libc::SYS_setpriority, &[0, 1, 5], REFUSED);
    check_both(libc::SYS_setpriority, &[2, 0, 5], REFUSED);
    check_both(libc::SYS_ioprio_set, &[3, 0, 5], REFUSED);
}

#[test]
fn nothing_is_typed_into_a_terminal() {
    check_both(libc::SYS_ioctl, &[0, 0x5401], ALLOWED);
    check_both(libc::SYS_ioctl, &[0, 0x5412], REFUSED);
    check_both(libc::SYS_ioctl, &[0, 0x5412 | 1 << 32], REFUSED);
    check_both(libc::SYS_ioctl, &[0, 0x541c], REFUSED);
}

#[test]
fn another_architecture_is_the_end() {
    let program = program(JailNetwork::None, JailRung::Namespaces);
    for call in 0..1024 {
        assert_eq!(run_on(&program, !HERE, call, [0; 6]), KILLED, "{call}");
    }
}

/// Since this number a call has the same one everywhere. Headers that are older than the list
/// do not name its last calls.
#[cfg(target_arch = "x86_64")]
const SAME_SINCE: c_long = 424;

#[cfg(target_arch = "x86_64")]
fn on_aarch64<T>(table: BTreeMap<c_long, T>) -> (BTreeMap<c_long, T>, Vec<String>) {
    let known: BTreeSet<c_long> = machine::numbers_of_x86_64().into_values().collect();
    let is_new = |call: &c_long| *call >= SAME_SINCE && !known.contains(call);
    let (new, old) = table.into_iter().partition(|(call, _)| is_new(call));
    let (mut moved, absent) = machine::on_aarch64(old);
    let new: BTreeMap<c_long, T> = new;
    moved.extend(new);
    (moved, absent)
}

/// The list is made of names. On aarch64 they have other numbers, some calls are missing, and
/// for some `libc` has no name: this is what became of each, by the kernel's own headers.
#[cfg(target_arch = "x86_64")]
#[test]
fn the_list_holds_on_aarch64() {
    let there = machine::numbers_of_aarch64();
    for (network, rung) in [
        (JailNetwork::None, JailRung::Landlock),
        (JailNetwork::Proxy, JailRung::Landlock),
        (JailNetwork::Proxy, JailRung::Namespaces),
        (JailNetwork::Open, JailRung::Namespaces),
    ] {
        let here = program(network, rung);
        let (moved, _) = on_aarch64(calls(network, rung));
        let listed: BTreeSet<c_long> = moved.keys().copied().collect();
        let moved = filter::assemble(&moved);
        for (name, number) in machine::numbers_of_x86_64() {
            let Some(other) = there.get(&name) else {
                continue;
            };
            for argument in [0, 1, 2, 10, 16, 40, 0x1000_0000, 0x2000_0000, u64::MAX] {
                for arguments in [[argument; 6], [argument, 1, 0, argument, 0, 0]] {
                    assert_eq!(
                        run(&here, number, arguments),
                        run(&moved, *other, arguments),
                        "{name} {arguments:?}"
                    );
                }
            }
        }
        for call in (0..1024).filter(|call| !listed.contains(call)) {
            assert_eq!(run(&moved, call, [0; 6]), ABSENT, "{call}");
        }
    }
}

/// What only x86_64 has is in a list of its own, and what of it aarch64 has after all is in
/// the list of aarch64: a call that is in neither would not exist for programs there.
#[cfg(target_arch = "x86_64")]
#[test]
fn no_call_of_aarch64_is_forgotten() {
    let of = |calls: &[c_long]| {
        let table = calls.iter().map(|call| (*call, ())).collect();
        let (moved, absent) = on_aarch64(table);
        let moved: Vec<c_long> = moved.into_keys().collect();
        (moved, absent)
    };
    for common in [ORDINARY, REFUSED_CALLS] {
        assert_eq!(of(common).1, [""; 0], "calls that aarch64 does not have");
    }
    assert_eq!(of(ORDINARY_HERE).0, ORDINARY_AARCH64);
    assert_eq!(of(REFUSED_HERE).0, [0; 0]);
}
