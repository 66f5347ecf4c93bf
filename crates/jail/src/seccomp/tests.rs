//! The filter as the kernel would run it: a small machine for its instructions. Some calls
//! cannot be tried on every kernel, and all can be tried here with any argument.

use libc::c_long;
use sandbox::walls::system::FilterInstruction;

use super::program;
use crate::settings::{JailNetwork, JailRung};

const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;
const REFUSED: u32 = libc::SECCOMP_RET_ERRNO | 1;
const ABSENT: u32 = libc::SECCOMP_RET_ERRNO | 38;
const X32: c_long = 0x4000_0000;

/// What the kernel shows a filter, as the words it can load.
fn word(offset: u32, call: c_long, arguments: [u64; 6]) -> u32 {
    let low = |value: u64| u32::try_from(value & 0xffff_ffff).unwrap();
    match offset {
        0 => u32::try_from(call).unwrap(),
        4 if cfg!(target_arch = "x86_64") => 0xc000_003e,
        4 => 0xc000_00b7,
        _ => {
            let place = usize::try_from(offset - 16).unwrap();
            let value = arguments[place / 8];
            if place % 8 == 0 {
                low(value)
            } else {
                low(value >> 32)
            }
        }
    }
}

fn run(program: &[FilterInstruction], call: c_long, arguments: [u64; 6]) -> u32 {
    let (mut held, mut at) = (0, 0);
    loop {
        let one = &program[at];
        at += 1;
        let mut jump = |is_so: bool| at += usize::from(if is_so { one.jt } else { one.jf });
        match one.code {
            0x20 => held = word(one.k, call, arguments),
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
        libc::SYS_socketpair,
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
