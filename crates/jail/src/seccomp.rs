//! Seccomp: system calls no child needs and an attack does.
//!
//! A list of what is denied, not of what is allowed: the programs are other people's
//! and may use anything ordinary. Landlock keeps the files, this keeps the rest.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

use crate::settings::JailNetwork;

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Denied whatever their arguments.
const DENIED: &[c_long] = &[
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
    // The user's keys, and memory that programs of one user share.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
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
    // The kernel.
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
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
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

/// Denied on machines that have them.
#[cfg(target_arch = "x86_64")]
const DENIED_HERE: &[c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_kexec_file_load,
];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_HERE: &[c_long] = &[];

/// Answered as a kernel without them would, so that programs fall back: their arguments
/// lie in memory, which a filter does not see.
const ABSENT: &[c_long] = &[
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Namespaces a new process could be given.
const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

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
const WHOLE_USER: &[(c_long, u64)] = &[(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)];

/// Requests that type into a terminal.
const TERMINAL_INPUT: &[u64] = &[libc::TIOCSTI, libc::TIOCLINUX];

/// Binds this process, and all it becomes and starts, for good.
pub(crate) fn deny(network: JailNetwork) -> Result<(), String> {
    let program = program(network).map_err(|error| error.to_string())?;
    seccompiler::apply_filter(&program).map_err(|error| error.to_string())
}

fn program(network: JailNetwork) -> Result<BpfProgram, BackendError> {
    let architecture: TargetArch = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(
        rules(network)?,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM.unsigned_abs()),
        architecture,
    )?;
    let denied: BpfProgram = filter.try_into()?;
    let mut program = absent();
    program.extend(denied);
    Ok(program)
}

fn rules(network: JailNetwork) -> Result<Rules, BackendError> {
    let mut rules = Rules::new();
    for call in DENIED.iter().chain(DENIED_HERE) {
        rules.insert(*call, Vec::new());
    }
    let mut namespaces = Vec::new();
    for flag in NAMESPACES {
        let flag = u64::from(flag.unsigned_abs());
        namespaces.push(when(0, SeccompCmpOp::MaskedEq(flag), flag)?);
    }
    rules.insert(libc::SYS_clone, namespaces);
    for (call, argument) in OWN_PROCESS_ONLY {
        rules.insert(*call, vec![when(*argument, SeccompCmpOp::Ne, 0)?]);
    }
    for (call, which) in WHOLE_USER {
        let rule = when(0, SeccompCmpOp::Eq, *which)?;
        rules.entry(*call).or_default().push(rule);
    }
    let mut typed = Vec::new();
    for request in TERMINAL_INPUT {
        // The kernel looks at the low half only, and so does this.
        typed.push(when(1, SeccompCmpOp::Eq, *request)?);
    }
    rules.insert(libc::SYS_ioctl, typed);
    rules.insert(libc::SYS_socket, sockets(network)?);
    Ok(rules)
}

/// Which sockets are refused.
///
/// Local ones are refused in any case. Landlock does not keep a child from connecting to
/// a socket in the file system before version 9, and behind such sockets are programs
/// that act for the user: the session bus starts programs, Docker's is as good as
/// root, agents hold keys. Pairs of connected sockets are another call and stay.
fn sockets(network: JailNetwork) -> Result<Vec<SeccompRule>, BackendError> {
    let is_not = |family: i32| condition(0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs()));
    match network {
        JailNetwork::None => Ok(Vec::new()),
        JailNetwork::Open => Ok(vec![
            SeccompRule::new(vec![
                is_not(libc::AF_INET)?,
                is_not(libc::AF_INET6)?,
                is_not(libc::AF_NETLINK)?,
            ])?,
            // Which addresses the machine has: all that programs ask of netlink.
            SeccompRule::new(vec![
                condition(
                    0,
                    SeccompCmpOp::Eq,
                    u64::from(libc::AF_NETLINK.unsigned_abs()),
                )?,
                condition(
                    2,
                    SeccompCmpOp::Ne,
                    u64::from(libc::NETLINK_ROUTE.unsigned_abs()),
                )?,
            ])?,
        ]),
    }
}

fn when(argument: u8, compare: SeccompCmpOp, value: u64) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(vec![condition(argument, compare, value)?])
}

fn condition(
    argument: u8,
    compare: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, compare, value)
}

/// What the filter's compiler cannot say: calls that seem not to exist, and the numbers of
/// x32, which name the same calls again and would walk around every rule.
fn absent() -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const JUMP_IF_NOT_LESS: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const X32: u32 = 0x4000_0000;
    let absent = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let instruction = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    // The number of the call is the first word of what a filter sees.
    let mut program = vec![
        instruction(LOAD_WORD, 0, 0, 0),
        instruction(JUMP_IF_NOT_LESS, 0, 1, X32),
        instruction(RETURN, 0, 0, absent),
    ];
    for call in ABSENT {
        // The numbers of a table of ours: all small.
        let number = u32::try_from(*call).unwrap_or(u32::MAX);
        program.push(instruction(JUMP_IF_EQUAL, 0, 1, number));
        program.push(instruction(RETURN, 0, 0, absent));
    }
    program
}
