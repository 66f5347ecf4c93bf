//! Seccomp: the system calls a child may make.
//!
//! A list of what is allowed. Calls that an attack needs are refused, all others, those of
//! later kernels and of x32 among them, seem not to exist.

mod ordinary;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use libc::c_long;
use sandbox::walls::system::{self, FilterInstruction, FilterListener};

use crate::filter::{self, ArgumentTest, CallVerdict};
use crate::settings::{JailNetwork, JailRung};

use self::ordinary::{ORDINARY, ORDINARY_HERE, SHARED_MEMORY};

/// Refused whatever their arguments.
const REFUSED: &[c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_perf_event_open,
    // The user's keys.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    // The kernel.
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    libc::SYS_lookup_dcookie,
];

/// Refused on machines that have them.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[c_long] = &[];

/// Namespaces a new process could be given.
const NAMESPACES: i32 = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

/// Calls that take a process as an argument and would reach any process of the user, the
/// parent too; with nought they mean the caller. The number is the argument's place.
const OWN_PROCESS_ONLY: &[(c_long, u8)] = &[
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
];

/// Of these, calls that can mean every process of the user, and the first argument that says so.
const WHOLE_USER: &[(c_long, u32)] = &[(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)];

/// Requests that type into a terminal: TIOCSTI and TIOCLINUX.
const TERMINAL_INPUT: [u32; 2] = [0x5412, 0x541c];

/// Personalities that switch no protection off: the usual one, 32-bit names, an older
/// version number, both, and the question which it is.
const PERSONALITIES: [u32; 5] = [0, 0x8, 0x2_0000, 0x2_0008, u32::MAX];

/// The type of a socket without its flags.
const SOCKET_TYPE: u32 = 0xf;

const MSG_FASTOPEN: u32 = 0x2000_0000;

/// Binds this process, and all it becomes and starts, for good. The listener for calls
/// that the supervisor answers, if there are any.
pub(crate) fn restrict(network: JailNetwork, rung: JailRung) -> Result<Option<OwnedFd>, String> {
    let listener = match has_handed(network, rung) {
        true => FilterListener::Wanted,
        false => FilterListener::None,
    };
    system::install_filter(&program(network, rung), listener).map_err(|error| error.to_string())
}

/// Whether `connect` is the supervisor's to answer: where the kernel has no network of the
/// child's own.
pub(crate) fn has_handed(network: JailNetwork, rung: JailRung) -> bool {
    match (network, rung) {
        (JailNetwork::Proxy, JailRung::Landlock) => true,
        (JailNetwork::None | JailNetwork::Open, _) | (JailNetwork::Proxy, JailRung::Namespaces) => {
            false
        }
    }
}

fn program(network: JailNetwork, rung: JailRung) -> Vec<FilterInstruction> {
    filter::assemble(&calls(network, rung))
}

fn calls(network: JailNetwork, rung: JailRung) -> BTreeMap<c_long, CallVerdict> {
    let mut calls: BTreeMap<c_long, CallVerdict> = BTreeMap::new();
    for call in ORDINARY.iter().chain(ORDINARY_HERE) {
        calls.insert(*call, CallVerdict::Allow);
    }
    for call in REFUSED.iter().chain(REFUSED_HERE) {
        calls.insert(*call, CallVerdict::Refuse);
    }
    for call in SHARED_MEMORY {
        let verdict = match rung {
            JailRung::Namespaces => CallVerdict::Allow,
            // All programs of one user share it.
            JailRung::Landlock => CallVerdict::Refuse,
        };
        calls.insert(*call, verdict);
    }
    let clone = ArgumentTest::NoBits {
        argument: 0,
        bits: NAMESPACES.unsigned_abs(),
    };
    calls.insert(libc::SYS_clone, CallVerdict::Check(vec![clone]));
    for (call, argument) in OWN_PROCESS_ONLY {
        let mut tests = vec![only(*argument, u32::MAX, &[0])];
        tests.extend(
            WHOLE_USER
                .iter()
                .filter(|(whole, _)| whole == call)
                .map(|(_, which)| none_of(0, &[*which])),
        );
        calls.insert(*call, CallVerdict::Check(tests));
    }
    let typed = none_of(1, &TERMINAL_INPUT);
    calls.insert(libc::SYS_ioctl, CallVerdict::Check(vec![typed]));
    let personality = only(0, u32::MAX, &PERSONALITIES);
    calls.insert(libc::SYS_personality, CallVerdict::Check(vec![personality]));
    calls.insert(libc::SYS_socket, sockets(network, rung));
    calls.insert(libc::SYS_socketpair, socket_pairs());
    if has_handed(network, rung) {
        hand_connections(&mut calls);
    }
    calls
}

/// Which pairs of connected sockets can be made: local ones that stay connected to each
/// other. One of datagrams does not: it sends to any local socket that has a name, and
/// connects to it.
fn socket_pairs() -> CallVerdict {
    let stream = libc::SOCK_STREAM.unsigned_abs();
    let packets = libc::SOCK_SEQPACKET.unsigned_abs();
    CallVerdict::Check(vec![
        only(0, u32::MAX, &[libc::AF_UNIX.unsigned_abs()]),
        only(1, SOCKET_TYPE, &[stream, packets]),
    ])
}

/// Which sockets can be made.
///
/// Local ones cannot in any case. Landlock does not keep a child from connecting to
/// a socket in the file system before version 9, and behind such sockets are programs
/// that act for the user: the session bus starts programs, Docker's is as good as
/// root, agents hold keys. Pairs of connected sockets are another call and stay.
fn sockets(network: JailNetwork, rung: JailRung) -> CallVerdict {
    let family = |family: i32| family.unsigned_abs();
    let internet = [family(libc::AF_INET), family(libc::AF_INET6)];
    let stream = libc::SOCK_STREAM.unsigned_abs();
    let datagram = libc::SOCK_DGRAM.unsigned_abs();
    let tcp = libc::IPPROTO_TCP.unsigned_abs();
    let udp = libc::IPPROTO_UDP.unsigned_abs();
    match (network, rung) {
        (JailNetwork::None, _) => CallVerdict::Refuse,
        (JailNetwork::Proxy, JailRung::Namespaces) => CallVerdict::Check(vec![
            only(0, u32::MAX, &internet),
            only(1, SOCKET_TYPE, &[stream, datagram]),
            only(2, u32::MAX, &[0, tcp, udp]),
        ]),
        // SCTP and SMC connect without `connect`.
        (JailNetwork::Proxy, JailRung::Landlock) => CallVerdict::Check(vec![
            only(0, u32::MAX, &internet),
            only(1, SOCKET_TYPE, &[stream]),
            only(2, u32::MAX, &[0, tcp]),
        ]),
        (JailNetwork::Open, _) => {
            let netlink = family(libc::AF_NETLINK);
            let [four, six] = internet;
            CallVerdict::Check(vec![
                only(0, u32::MAX, &[four, six, netlink]),
                // Which addresses the machine has: all that programs ask of netlink.
                ArgumentTest::OneOfWhen {
                    other: 0,
                    value: netlink,
                    argument: 2,
                    values: vec![family(libc::NETLINK_ROUTE)],
                },
            ])
        }
    }
}

/// Every connection is the supervisor's to make, and there is no other way to one.
fn hand_connections(calls: &mut BTreeMap<c_long, CallVerdict>) {
    calls.insert(libc::SYS_connect, CallVerdict::Hand);
    for call in [libc::SYS_bind, libc::SYS_listen, libc::SYS_sendmmsg] {
        calls.insert(call, CallVerdict::Refuse);
    }
    // Fast open connects while it sends.
    for (call, argument) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2)] {
        let flags = ArgumentTest::NoBits {
            argument,
            bits: MSG_FASTOPEN,
        };
        calls.insert(call, CallVerdict::Check(vec![flags]));
    }
}

fn only(argument: u8, mask: u32, values: &[u32]) -> ArgumentTest {
    ArgumentTest::OneOf {
        argument,
        mask,
        values: values.to_vec(),
    }
}

fn none_of(argument: u8, values: &[u32]) -> ArgumentTest {
    ArgumentTest::NoneOf {
        argument,
        values: values.to_vec(),
    }
}
