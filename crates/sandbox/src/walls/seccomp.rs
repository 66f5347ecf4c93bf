//! Seccomp: the system calls a sealed worker may make. Any other kills it.
//!
//! Found by running every case under `strace` and then taking lines away. The
//! worker can talk on its pipe, manage memory that cannot be executed, sleep,
//! tell the time and end. It cannot name a file, a process or an address.

// The tests translate the kernel's numbers from those of x86_64.
#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod machine;
#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests;

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

use super::process::PIPE_FD;

/// `_IOWR('f', 16, struct pm_scan_arg)`: which pages of ours were written.
const PAGEMAP_SCAN: u64 = 0xc060_6610;

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Whether the kernel can kill a process for a system call.
pub fn offered() -> Result<(), String> {
    const GET_ACTION_AVAIL: u32 = 2;
    let action: u32 = libc::SECCOMP_RET_KILL_PROCESS;
    #[expect(
        unsafe_code,
        reason = "neither rustix nor seccompiler asks only for this"
    )]
    // Safety: the kernel reads four bytes, which live until the call returns.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            GET_ACTION_AVAIL,
            0_u32,
            std::ptr::from_ref(&action),
        )
    };
    if answer == 0 {
        Ok(())
    } else {
        Err(format!(
            "the kernel refuses: {}",
            std::io::Error::last_os_error()
        ))
    }
}

/// Binds every thread of this process to the list, for good.
pub(super) fn allow_listed() -> Result<(), String> {
    let program = program().map_err(|error| error.to_string())?;
    seccompiler::apply_filter_all_threads(&program).map_err(|error| error.to_string())
}

fn program() -> Result<BpfProgram, BackendError> {
    compile(rules()?, std::env::consts::ARCH.try_into()?)
}

fn compile(rules: Rules, arch: TargetArch) -> Result<BpfProgram, BackendError> {
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::KillProcess,
        SeccompAction::Allow,
        arch,
    )?;
    filter.try_into()
}

fn rules() -> Result<Rules, BackendError> {
    let mut rules = Rules::new();
    pipe(&mut rules)?;
    memory(&mut rules)?;
    for free in [
        // Waiting for the pipe no longer than the nearest deadline.
        libc::SYS_ppoll,
        // Locks, and the ticker's waiting for work.
        libc::SYS_futex,
        // The ticker's sleep.
        libc::SYS_clock_nanosleep,
        // Processor time of a thread is not in the vDSO.
        libc::SYS_clock_gettime,
        // Goes on with a sleep or poll after the machine or the process was
        // stopped for a while.
        libc::SYS_restart_syscall,
        // A fault inside the guest is a signal; this is the way back from it.
        libc::SYS_rt_sigreturn,
        // The end. A thread has no end of its own: without the ticker no deadline
        // is kept, so if it ended the worker would have to end as well.
        libc::SYS_exit_group,
    ] {
        rules.insert(free, Vec::new());
    }
    Ok(rules)
}

/// The pipe and nothing else, and never with an address or a descriptor inside
/// the message: `sendmsg` and `recvmsg` are not on the list.
fn pipe(rules: &mut Rules) -> Result<(), BackendError> {
    let pipe = u64::from(PIPE_FD.unsigned_abs());
    for call in [libc::SYS_recvfrom, libc::SYS_sendto] {
        let rule = SeccompRule::new(vec![
            SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, pipe)?,
            SeccompCondition::new(4, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)?,
        ])?;
        rules.insert(call, vec![rule]);
    }
    Ok(())
}

/// Memory may come and go, but none becomes executable and none is shared.
fn memory(rules: &mut Rules) -> Result<(), BackendError> {
    let without = |argument: u8, bit: i32| {
        let bit = u64::from(bit.unsigned_abs());
        SeccompCondition::new(
            argument,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::MaskedEq(bit),
            0,
        )
    };
    // The guest's image is mapped afresh into a slot, always as a private copy.
    rules.insert(
        libc::SYS_mmap,
        vec![SeccompRule::new(vec![
            without(2, libc::PROT_EXEC)?,
            without(3, libc::MAP_SHARED)?,
        ])?],
    );
    // A guest's memory grows into its reservation.
    rules.insert(
        libc::SYS_mprotect,
        vec![SeccompRule::new(vec![without(2, libc::PROT_EXEC)?])?],
    );
    // The allocator's own.
    rules.insert(libc::SYS_munmap, Vec::new());
    rules.insert(libc::SYS_mremap, Vec::new());
    rules.insert(libc::SYS_brk, Vec::new());
    // A used sandbox is wiped by giving its pages back; nothing else is advised.
    let advice = u64::from(libc::MADV_DONTNEED.unsigned_abs());
    rules.insert(
        libc::SYS_madvise,
        vec![SeccompRule::new(vec![SeccompCondition::new(
            2,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Eq,
            advice,
        )?])?],
    );
    // Which pages a sandbox has written, so that only those are wiped.
    rules.insert(
        libc::SYS_ioctl,
        vec![SeccompRule::new(vec![SeccompCondition::new(
            1,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Eq,
            PAGEMAP_SCAN,
        )?])?],
    );
    Ok(())
}
