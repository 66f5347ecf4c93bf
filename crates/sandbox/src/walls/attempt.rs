//! System calls that native code would try after breaking out of wall one. For tests:
//! each attempt is one system call, made for real, with arguments that would do no harm
//! if it went through.

use std::io;
use std::ptr;

use libc::{c_int, c_long};

const PATH: &[u8] = b"/etc/passwd\0";
const NEW_PATH: &[u8] = b"/tmp/sandbox-attempt\0";
const ROOT: &[u8] = b"/\0";
const PROGRAM: &[u8] = b"/bin/true\0";
const NAME: &[u8] = b"sandbox-attempt\0";
const KIND: &[u8] = b"user\0";

/// A loopback address and the discard port.
static ADDRESS: libc::sockaddr_in = libc::sockaddr_in {
    sin_family: 2,
    sin_port: 9_u16.to_be(),
    sin_addr: libc::in_addr {
        s_addr: 0x7f00_0001_u32.to_be(),
    },
    sin_zero: [0; 8],
};

/// Room the kernel may write to.
static mut ROOM: [u64; 64] = [0; 64];

type Call = (c_long, [usize; 6]);

/// The names of all attempts.
pub fn names() -> Vec<&'static str> {
    attempts().into_iter().map(|(name, _)| name).collect()
}

/// Makes the attempt of that name. `Ok` means it went through.
pub fn make(name: &str) -> io::Result<()> {
    let found = attempts().into_iter().find(|(known, _)| *known == name);
    let (_, (number, [a, b, c, d, e, f])) = found.ok_or(io::ErrorKind::NotFound)?;
    #[expect(unsafe_code, reason = "the attempt is the point")]
    // Safety: the table holds only calls whose pointers are to statics of this
    // file, long enough for what the kernel reads or writes there, or null.
    let outcome = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if outcome < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

fn at(bytes: &'static [u8]) -> usize {
    bytes.as_ptr().addr()
}

fn room() -> usize {
    (&raw mut ROOM).addr()
}

fn flags(flags: c_int) -> usize {
    usize::try_from(flags).unwrap_or(0)
}

/// `AT_FDCWD`, as the kernel sees it.
const HERE: usize = (-100_isize).cast_unsigned();
const NULL: usize = 0;
const NONE: usize = usize::MAX;

fn attempts() -> Vec<(&'static str, Call)> {
    let mut all = files();
    all.extend(file_systems());
    all.extend(network());
    all.extend(processes());
    all.extend(signals());
    all.extend(memory());
    all.extend(privileges());
    all.extend(kernel());
    all.extend(descriptors());
    all
}

fn files() -> Vec<(&'static str, Call)> {
    let create = flags(libc::O_CREAT | libc::O_WRONLY);
    vec![
        ("openat", (libc::SYS_openat, [HERE, at(PATH), 0, 0, 0, 0])),
        (
            "openat_create",
            (libc::SYS_openat, [HERE, at(NEW_PATH), create, 0o600, 0, 0]),
        ),
        (
            "openat2",
            (libc::SYS_openat2, [HERE, at(PATH), room(), 24, 0, 0]),
        ),
        (
            "newfstatat",
            (libc::SYS_newfstatat, [HERE, at(PATH), room(), 0, 0, 0]),
        ),
        (
            "statx",
            (libc::SYS_statx, [HERE, at(PATH), 0, 0, room(), 0]),
        ),
        (
            "readlinkat",
            (libc::SYS_readlinkat, [HERE, at(PATH), room(), 8, 0, 0]),
        ),
        (
            "faccessat",
            (libc::SYS_faccessat, [HERE, at(PATH), 0, 0, 0, 0]),
        ),
        (
            "unlinkat",
            (libc::SYS_unlinkat, [HERE, at(NEW_PATH), 0, 0, 0, 0]),
        ),
        (
            "mkdirat",
            (libc::SYS_mkdirat, [HERE, at(NEW_PATH), 0o700, 0, 0, 0]),
        ),
        (
            "symlinkat",
            (libc::SYS_symlinkat, [at(PATH), HERE, at(NEW_PATH), 0, 0, 0]),
        ),
        (
            "linkat",
            (
                libc::SYS_linkat,
                [HERE, at(NEW_PATH), HERE, at(NEW_PATH), 0, 0],
            ),
        ),
        (
            "renameat2",
            (
                libc::SYS_renameat2,
                [HERE, at(NEW_PATH), HERE, at(NEW_PATH), 0, 0],
            ),
        ),
        (
            "fchmodat",
            (libc::SYS_fchmodat, [HERE, at(NEW_PATH), 0o600, 0, 0, 0]),
        ),
        ("chdir", (libc::SYS_chdir, [at(ROOT), 0, 0, 0, 0, 0])),
        ("chroot", (libc::SYS_chroot, [at(ROOT), 0, 0, 0, 0, 0])),
        ("getcwd", (libc::SYS_getcwd, [room(), 512, 0, 0, 0, 0])),
    ]
}

fn file_systems() -> Vec<(&'static str, Call)> {
    vec![
        (
            "mount",
            (libc::SYS_mount, [NULL, at(NEW_PATH), NULL, 0, NULL, 0]),
        ),
        (
            "umount2",
            (libc::SYS_umount2, [at(NEW_PATH), 0, 0, 0, 0, 0]),
        ),
        (
            "pivot_root",
            (
                libc::SYS_pivot_root,
                [at(NEW_PATH), at(NEW_PATH), 0, 0, 0, 0],
            ),
        ),
        (
            "open_tree",
            (libc::SYS_open_tree, [HERE, at(ROOT), 0, 0, 0, 0]),
        ),
        ("fsopen", (libc::SYS_fsopen, [at(NAME), 0, 0, 0, 0, 0])),
        (
            "name_to_handle_at",
            (
                libc::SYS_name_to_handle_at,
                [HERE, at(PATH), room(), room(), 0, 0],
            ),
        ),
        (
            "open_by_handle_at",
            (libc::SYS_open_by_handle_at, [HERE, room(), 0, 0, 0, 0]),
        ),
        ("inotify_init1", (libc::SYS_inotify_init1, [0; 6])),
        ("fanotify_init", (libc::SYS_fanotify_init, [0; 6])),
    ]
}

fn network() -> Vec<(&'static str, Call)> {
    let stream = flags(libc::SOCK_STREAM);
    let address = ptr::from_ref(&ADDRESS).addr();
    let length = size_of::<libc::sockaddr_in>();
    vec![
        (
            "socket_inet",
            (libc::SYS_socket, [flags(libc::AF_INET), stream, 0, 0, 0, 0]),
        ),
        (
            "socket_unix",
            (libc::SYS_socket, [flags(libc::AF_UNIX), stream, 0, 0, 0, 0]),
        ),
        (
            "socket_netlink",
            (
                libc::SYS_socket,
                [flags(libc::AF_NETLINK), flags(libc::SOCK_RAW), 0, 0, 0, 0],
            ),
        ),
        (
            "socketpair",
            (
                libc::SYS_socketpair,
                [flags(libc::AF_UNIX), stream, 0, room(), 0, 0],
            ),
        ),
        (
            "connect",
            (libc::SYS_connect, [0, address, length, 0, 0, 0]),
        ),
        ("bind", (libc::SYS_bind, [0, address, length, 0, 0, 0])),
        ("listen", (libc::SYS_listen, [0, 1, 0, 0, 0, 0])),
        ("accept4", (libc::SYS_accept4, [0, NULL, NULL, 0, 0, 0])),
        (
            "sendto_address",
            (libc::SYS_sendto, [0, room(), 0, 0, address, length]),
        ),
        (
            "sendto_other",
            (libc::SYS_sendto, [3, room(), 0, 0, NULL, 0]),
        ),
        (
            "recvfrom_other",
            (libc::SYS_recvfrom, [3, room(), 0, 0, NULL, NULL]),
        ),
        ("sendmsg", (libc::SYS_sendmsg, [0, room(), 0, 0, 0, 0])),
        ("recvmsg", (libc::SYS_recvmsg, [0, room(), 0, 0, 0, 0])),
        (
            "getsockopt",
            (libc::SYS_getsockopt, [0, 1, 17, room(), room(), 0]),
        ),
        ("shutdown", (libc::SYS_shutdown, [9, 0, 0, 0, 0, 0])),
    ]
}

fn processes() -> Vec<(&'static str, Call)> {
    let parent = std::os::unix::process::parent_id() as usize;
    let thread = flags(libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES);
    vec![
        (
            "clone",
            (libc::SYS_clone, [flags(libc::SIGCHLD), 0, 0, 0, 0, 0]),
        ),
        ("clone_bad", (libc::SYS_clone, [thread, 1, 0, 0, 0, 0])),
        ("clone3", (libc::SYS_clone3, [room(), 64, 0, 0, 0, 0])),
        (
            "execve",
            (libc::SYS_execve, [at(PROGRAM), NULL, NULL, 0, 0, 0]),
        ),
        (
            "execveat",
            (libc::SYS_execveat, [HERE, at(PROGRAM), NULL, NULL, 0, 0]),
        ),
        ("ptrace_traceme", (libc::SYS_ptrace, [0; 6])),
        (
            "ptrace_seize",
            (libc::SYS_ptrace, [0x4206, parent, 0, 0, 0, 0]),
        ),
        (
            "process_vm_readv",
            (
                libc::SYS_process_vm_readv,
                [parent, room(), 0, room(), 0, 0],
            ),
        ),
        (
            "process_vm_writev",
            (
                libc::SYS_process_vm_writev,
                [parent, room(), 0, room(), 0, 0],
            ),
        ),
        ("kill_parent", (libc::SYS_kill, [parent, 0, 0, 0, 0, 0])),
        ("kill_all", (libc::SYS_kill, [NONE, 0, 0, 0, 0, 0])),
        ("tkill", (libc::SYS_tkill, [parent, 0, 0, 0, 0, 0])),
        ("tgkill", (libc::SYS_tgkill, [parent, parent, 0, 0, 0, 0])),
        (
            "pidfd_open",
            (libc::SYS_pidfd_open, [parent, 0, 0, 0, 0, 0]),
        ),
        (
            "pidfd_send_signal",
            (libc::SYS_pidfd_send_signal, [3, 0, 0, 0, 0, 0]),
        ),
        ("kcmp", (libc::SYS_kcmp, [parent, parent, 0, 0, 0, 0])),
        ("wait4", (libc::SYS_wait4, [NONE, NULL, 1, NULL, 0, 0])),
        ("getpid", (libc::SYS_getpid, [0; 6])),
        ("setpriority", (libc::SYS_setpriority, [0, 0, 19, 0, 0, 0])),
        (
            "sched_setaffinity",
            (libc::SYS_sched_setaffinity, [0, 8, room(), 0, 0, 0]),
        ),
        ("setsid", (libc::SYS_setsid, [0; 6])),
    ]
}

fn signals() -> Vec<(&'static str, Call)> {
    vec![
        ("exit_thread", (libc::SYS_exit, [0; 6])),
        (
            "rt_sigaction",
            (libc::SYS_rt_sigaction, [10, NULL, room(), 8, 0, 0]),
        ),
        (
            "rt_sigprocmask",
            (libc::SYS_rt_sigprocmask, [0, NULL, room(), 8, 0, 0]),
        ),
        (
            "sigaltstack",
            (libc::SYS_sigaltstack, [NULL, room(), 0, 0, 0, 0]),
        ),
    ]
}

fn memory() -> Vec<(&'static str, Call)> {
    let private = flags(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let shared = flags(libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    let (readable, executable) = (flags(libc::PROT_READ), flags(libc::PROT_EXEC));
    vec![
        (
            "mmap_exec",
            (
                libc::SYS_mmap,
                [NULL, 4096, readable | executable, private, NONE, 0],
            ),
        ),
        (
            "mmap_shared",
            (libc::SYS_mmap, [NULL, 4096, readable, shared, NONE, 0]),
        ),
        (
            "mprotect_exec",
            (
                libc::SYS_mprotect,
                [0x1000, 4096, readable | executable, 0, 0, 0],
            ),
        ),
        (
            "pkey_mprotect",
            (
                libc::SYS_pkey_mprotect,
                [0x1000, 4096, readable | executable, NONE, 0, 0],
            ),
        ),
        (
            "madvise_hugepage",
            (libc::SYS_madvise, [NULL, 0, 14, 0, 0, 0]),
        ),
        (
            "process_madvise",
            (libc::SYS_process_madvise, [3, room(), 0, 4, 0, 0]),
        ),
        (
            "memfd_create",
            (libc::SYS_memfd_create, [at(NAME), 0, 0, 0, 0, 0]),
        ),
        ("memfd_secret", (libc::SYS_memfd_secret, [0; 6])),
        ("userfaultfd", (libc::SYS_userfaultfd, [1, 0, 0, 0, 0, 0])),
        ("mlockall", (libc::SYS_mlockall, [1, 0, 0, 0, 0, 0])),
        ("shmget", (libc::SYS_shmget, [0, 4096, 0o1600, 0, 0, 0])),
        ("move_pages", (libc::SYS_move_pages, [0; 6])),
    ]
}

fn privileges() -> Vec<(&'static str, Call)> {
    vec![
        (
            "prctl_dumpable",
            (
                libc::SYS_prctl,
                [flags(libc::PR_SET_DUMPABLE), 1, 0, 0, 0, 0],
            ),
        ),
        (
            "prctl_parent_death",
            (
                libc::SYS_prctl,
                [flags(libc::PR_SET_PDEATHSIG), 0, 0, 0, 0, 0],
            ),
        ),
        (
            "prctl_seccomp",
            (
                libc::SYS_prctl,
                [flags(libc::PR_SET_SECCOMP), 2, room(), 0, 0, 0],
            ),
        ),
        (
            "prctl_name",
            (
                libc::SYS_prctl,
                [flags(libc::PR_SET_NAME), at(NAME), 0, 0, 0, 0],
            ),
        ),
        ("seccomp", (libc::SYS_seccomp, [1, 0, room(), 0, 0, 0])),
        (
            "landlock_create",
            (libc::SYS_landlock_create_ruleset, [NULL, 0, 1, 0, 0, 0]),
        ),
        (
            "landlock_restrict",
            (libc::SYS_landlock_restrict_self, [3, 0, 0, 0, 0, 0]),
        ),
        (
            "prlimit64",
            (libc::SYS_prlimit64, [0, 7, NULL, room(), 0, 0]),
        ),
        ("setuid", (libc::SYS_setuid, [0; 6])),
        ("setresgid", (libc::SYS_setresgid, [0; 6])),
        ("setgroups", (libc::SYS_setgroups, [0; 6])),
        ("capget", (libc::SYS_capget, [room(), room(), 0, 0, 0, 0])),
        ("capset", (libc::SYS_capset, [room(), room(), 0, 0, 0, 0])),
        (
            "personality",
            (libc::SYS_personality, [0xffff_ffff, 0, 0, 0, 0, 0]),
        ),
        (
            "unshare",
            (
                libc::SYS_unshare,
                [flags(libc::CLONE_NEWUSER), 0, 0, 0, 0, 0],
            ),
        ),
        ("setns", (libc::SYS_setns, [3, 0, 0, 0, 0, 0])),
    ]
}

fn kernel() -> Vec<(&'static str, Call)> {
    vec![
        ("bpf", (libc::SYS_bpf, [0, room(), 0, 0, 0, 0])),
        (
            "perf_event_open",
            (libc::SYS_perf_event_open, [room(), 0, 0, NONE, 0, 0]),
        ),
        (
            "io_uring_setup",
            (libc::SYS_io_uring_setup, [1, room(), 0, 0, 0, 0]),
        ),
        ("keyctl", (libc::SYS_keyctl, [0, 0, 0, 0, 0, 0])),
        (
            "add_key",
            (libc::SYS_add_key, [at(KIND), at(NAME), NULL, 0, 0, 0]),
        ),
        (
            "request_key",
            (libc::SYS_request_key, [at(KIND), at(NAME), NULL, 0, 0, 0]),
        ),
        (
            "init_module",
            (libc::SYS_init_module, [room(), 0, room(), 0, 0, 0]),
        ),
        (
            "finit_module",
            (libc::SYS_finit_module, [NONE, room(), 0, 0, 0, 0]),
        ),
        (
            "kexec_load",
            (libc::SYS_kexec_load, [0, 0, NULL, NONE, 0, 0]),
        ),
        // Without its magic numbers it does nothing but say so.
        ("reboot", (libc::SYS_reboot, [0; 6])),
        ("syslog", (libc::SYS_syslog, [10, NULL, 0, 0, 0, 0])),
        ("getrandom", (libc::SYS_getrandom, [room(), 8, 0, 0, 0, 0])),
        ("uname", (libc::SYS_uname, [room(), 0, 0, 0, 0, 0])),
        ("sysinfo", (libc::SYS_sysinfo, [room(), 0, 0, 0, 0, 0])),
        (
            "clock_settime",
            (libc::SYS_clock_settime, [NONE, room(), 0, 0, 0, 0]),
        ),
        (
            "timer_create",
            (libc::SYS_timer_create, [0, NULL, room(), 0, 0, 0]),
        ),
        ("unknown", (4095, [0; 6])),
    ]
}

fn descriptors() -> Vec<(&'static str, Call)> {
    const TIOCSTI: usize = 0x5412;
    vec![
        ("read", (libc::SYS_read, [3, room(), 0, 0, 0, 0])),
        ("write", (libc::SYS_write, [3, room(), 0, 0, 0, 0])),
        ("pwrite64", (libc::SYS_pwrite64, [3, room(), 0, 0, 0, 0])),
        ("ftruncate", (libc::SYS_ftruncate, [3, 0, 0, 0, 0, 0])),
        (
            "ioctl_terminal",
            (libc::SYS_ioctl, [0, TIOCSTI, room(), 0, 0, 0]),
        ),
        (
            "fcntl",
            (libc::SYS_fcntl, [0, flags(libc::F_DUPFD), 0, 0, 0, 0]),
        ),
        ("dup", (libc::SYS_dup, [0; 6])),
        ("dup3", (libc::SYS_dup3, [0, 9, 0, 0, 0, 0])),
        ("close", (libc::SYS_close, [99, 0, 0, 0, 0, 0])),
        ("pipe2", (libc::SYS_pipe2, [room(), 0, 0, 0, 0, 0])),
        ("eventfd2", (libc::SYS_eventfd2, [0; 6])),
        ("epoll_create1", (libc::SYS_epoll_create1, [0; 6])),
        (
            "signalfd4",
            (libc::SYS_signalfd4, [NONE, room(), 8, 0, 0, 0]),
        ),
        ("timerfd_create", (libc::SYS_timerfd_create, [0; 6])),
        ("splice", (libc::SYS_splice, [3, NULL, 0, NULL, 0, 0])),
        ("sendfile", (libc::SYS_sendfile, [0, 3, NULL, 0, 0, 0])),
        (
            "copy_file_range",
            (libc::SYS_copy_file_range, [3, NULL, 3, NULL, 0, 0]),
        ),
        (
            "getdents64",
            (libc::SYS_getdents64, [3, room(), 8, 0, 0, 0]),
        ),
    ]
}
