//! System calls that the library of checked ones lacks, each as one small function without
//! a decision in it. `jail` builds its walls from them.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

use libc::{c_int, c_long, c_uint, c_ulong};
use rustix::process::Pid;

/// One instruction of a filter of system calls.
pub type FilterInstruction = libc::sock_filter;

/// Attributes of a mount: nothing on it can be changed.
pub const MOUNT_READ_ONLY: u64 = 0x1;
/// Attributes of a mount: programs on it gain no privileges.
pub const MOUNT_NO_SET_USER: u64 = 0x2;
/// Attributes of a mount: devices on it do not work.
pub const MOUNT_NO_DEVICES: u64 = 0x4;
/// Attributes of a mount: its owners are seen through a user namespace.
const MOUNT_ID_MAP: u64 = 0x0010_0000;

/// New namespaces for this process, and, of processes, for its children.
pub const NEW_USERS: c_int = libc::CLONE_NEWUSER;
/// A list of mounts of its own.
pub const NEW_MOUNTS: c_int = libc::CLONE_NEWNS;
/// Process numbers of its own, for the children.
pub const NEW_PROCESSES: c_int = libc::CLONE_NEWPID;
/// A network of its own, without any device that is up.
pub const NEW_NETWORK: c_int = libc::CLONE_NEWNET;
/// Shared memory, semaphores and queues of its own.
pub const NEW_QUEUES: c_int = libc::CLONE_NEWIPC;
/// A host name of its own.
pub const NEW_HOST_NAME: c_int = libc::CLONE_NEWUTS;
/// A view of control groups of its own.
pub const NEW_GROUPS: c_int = libc::CLONE_NEWCGROUP;

/// Makes a second process that continues here, `None` in the new one. Refused where other
/// threads run: a lock that one of them holds would stay locked in the copy.
pub fn fork() -> io::Result<Option<Pid>> {
    refuse_threads()?;
    #[expect(unsafe_code, reason = "rustix has no safe fork")]
    // Safety: this is the only thread, so the copy is a whole program.
    let answer = unsafe { libc::fork() };
    forked(c_long::from(answer))
}

/// Makes a second process that continues here in new namespaces, `None` in the new one: one
/// step, where `enter_new_namespaces` and `fork` are two processes. It begins in the control
/// group of version two whose folder `group` is, where the kernel can do so; whether it did.
pub fn fork_into(
    namespaces: c_int,
    group: Option<BorrowedFd<'_>>,
) -> io::Result<(Option<Pid>, bool)> {
    refuse_threads()?;
    if let Some(group) = group
        && let Ok(pid) = fork_into_group(namespaces, group)
    {
        return Ok((pid, true));
    }
    #[expect(unsafe_code, reason = "std starts no process in namespaces")]
    // Safety: this is the only thread, so the copy, which has its own memory, is a whole
    // program. Without a stack the copy continues on its copy of this one.
    let answer = unsafe { libc::syscall(libc::SYS_clone, namespaces | libc::SIGCHLD, 0, 0, 0, 0) };
    Ok((forked(answer)?, false))
}

fn fork_into_group(namespaces: c_int, group: BorrowedFd<'_>) -> io::Result<Option<Pid>> {
    const INTO_GROUP: u64 = 0x2_0000_0000;
    /// The arguments as the kernel takes them.
    #[repr(C)]
    #[derive(Default)]
    struct CloneArguments {
        flags: u64,
        no_pidfd_or_ids: [u64; 3],
        exit_signal: u64,
        no_stack_or_ids: [u64; 5],
        group: u64,
    }
    let arguments = CloneArguments {
        flags: u64::from(namespaces.unsigned_abs()) | INTO_GROUP,
        exit_signal: u64::from(libc::SIGCHLD.unsigned_abs()),
        group: u64::try_from(group.as_raw_fd()).unwrap_or(u64::MAX),
        ..CloneArguments::default()
    };
    #[expect(unsafe_code, reason = "std starts no process in namespaces")]
    // Safety: as above; the arguments live until the call returns.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw const arguments,
            size_of::<CloneArguments>(),
        )
    };
    forked(answer)
}

/// A copy has one thread. A lock that another one held would stay locked in it.
fn refuse_threads() -> io::Result<()> {
    // Where there is no `/proc`, the process came of a fork itself.
    match fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() > 1) {
        true => Err(io::Error::other("other threads are running")),
        false => Ok(()),
    }
}

fn forked(answer: c_long) -> io::Result<Option<Pid>> {
    match i32::try_from(answer) {
        Ok(0) => Ok(None),
        Ok(pid) if pid > 0 => Pid::from_raw(pid)
            .map(Some)
            .ok_or_else(io::Error::last_os_error),
        Ok(_) | Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Bytes of the stack of a process that shares memory.
const SHARING_STACK_BYTES: usize = 1 << 20;

/// Starts a process that does `work` in the memory of this one, which waits until the new one
/// has executed a program or ended: nothing is copied. What `work` does to descriptors, to the
/// working folder and to its own rights stays its own; what it does to memory stays.
pub fn start_sharing(work: &mut dyn FnMut()) -> io::Result<Pid> {
    extern "C" fn begin(work: *mut libc::c_void) -> c_int {
        #[expect(unsafe_code, reason = "the kernel hands over an address")]
        // Safety: the address of the caller's `work`, who waits and uses it no more.
        let work = unsafe { &mut *work.cast::<&mut dyn FnMut()>() };
        work();
        1
    }
    let mut work = work;
    let mut stack = vec![0_u128; SHARING_STACK_BYTES / size_of::<u128>()];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    #[expect(unsafe_code, reason = "std has no such process")]
    // Safety: the new process has a stack of its own, of which `end` is the end, aligned; this
    // one is stopped until it uses the memory no more.
    let answer = unsafe {
        let end = stack.as_mut_ptr().add(stack.len());
        libc::clone(begin, end.cast(), flags, (&raw mut work).cast())
    };
    drop(stack);
    forked(c_long::from(answer))?.ok_or_else(|| io::Error::other("no process number"))
}

/// Starts a process that has a user namespace of its own and does nothing, until it is killed.
pub fn start_user_namespace() -> io::Result<Pid> {
    const STACK_WORDS: usize = 1 << 10;
    extern "C" fn wait(_: *mut libc::c_void) -> c_int {
        loop {
            #[expect(
                unsafe_code,
                reason = "rustix remembers errors where this may not write"
            )]
            // Safety: takes nothing and touches no memory.
            unsafe {
                libc::syscall(libc::SYS_ppoll, 0, 0, 0, 0, 0);
            }
        }
    }
    // Never freed: the process may use it until it is dead.
    let stack = Box::leak(vec![0_u128; STACK_WORDS].into_boxed_slice());
    let flags = NEW_USERS | libc::CLONE_VM | libc::SIGCHLD;
    #[expect(unsafe_code, reason = "std starts no process in namespaces")]
    // Safety: the new process has a stack of its own, of which `end` is the end, and touches
    // no other memory.
    let answer = unsafe {
        let end = stack.as_mut_ptr().add(stack.len());
        libc::clone(wait, end.cast(), flags, std::ptr::null_mut())
    };
    forked(c_long::from(answer))?.ok_or_else(|| io::Error::other("no process number"))
}

/// Ends this process at once, without running what ends a program.
pub fn exit_now(code: u8) -> ! {
    #[expect(
        unsafe_code,
        reason = "std would run the handlers of the process it was copied from"
    )]
    // Safety: takes no pointer and does not return.
    unsafe {
        libc::_exit(c_int::from(code))
    }
}

/// Moves this process into namespaces of its own.
pub fn enter_new_namespaces(namespaces: c_int) -> io::Result<()> {
    #[expect(unsafe_code, reason = "rustix leaves the check to its caller")]
    // Safety: none of the namespaces of this module shares memory or descriptors differently.
    let answer = unsafe { libc::unshare(namespaces) };
    done(c_long::from(answer))
}

/// Whether a process may have namespaces of its own and mount in them. Nothing of it stays.
pub fn try_namespaces() -> io::Result<()> {
    let flags = NEW_USERS | NEW_MOUNTS | NEW_PROCESSES | NEW_NETWORK | libc::SIGCHLD;
    #[expect(unsafe_code, reason = "std starts no process in namespaces")]
    // Safety: the copy has its own memory, makes two system calls and ends; it takes no
    // lock that another thread could hold.
    let pid = unsafe {
        let pid = libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0);
        if pid == 0 {
            let none = std::ptr::null();
            let flags = libc::MS_REC | libc::MS_PRIVATE;
            let answer = libc::mount(none, c"/".as_ptr(), none, flags, none.cast());
            let code = if answer == 0 {
                0
            } else {
                *libc::__errno_location()
            };
            libc::_exit(code & 0x7f);
        }
        pid
    };
    done(pid)?;
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let ended = rustix::process::waitpid(pid, rustix::process::WaitOptions::empty())?;
    match ended.and_then(|(_, status)| status.exit_status()) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(error)),
        None => Err(io::Error::other("the trial was killed")),
    }
}

/// Closes every descriptor from the third on but those of `kept`.
pub fn close_all_but(kept: &[RawFd]) -> io::Result<()> {
    let mut kept: Vec<u32> = kept
        .iter()
        .filter_map(|fd| u32::try_from(*fd).ok())
        .collect();
    kept.sort_unstable();
    let mut first = 3;
    for fd in kept.into_iter().filter(|fd| *fd >= 3).chain([u32::MAX]) {
        let last = if fd == u32::MAX { fd } else { fd - 1 };
        if first <= last {
            #[expect(unsafe_code, reason = "rustix has no close_range")]
            // Safety: the caller continues as another process and uses `kept` alone.
            let answer = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0_u32) };
            done(answer)?;
        }
        first = fd.saturating_add(1);
    }
    Ok(())
}

/// Replaces standard input by nothing: it may be a socket that a copy of this process
/// must not have.
pub fn close_standard_input() -> io::Result<()> {
    let nothing = fs::File::open("/dev/null")?;
    #[expect(
        unsafe_code,
        reason = "std owns standard input and rustix does not replace it"
    )]
    // Safety: number nought stays open all the time; only what it means changes.
    let answer = unsafe { libc::dup2(nothing.as_raw_fd(), 0) };
    done(c_long::from(answer))
}

/// Does something to files as another user, as far as this thread's rights to files go.
/// `None` if the thread could not become that user; then nothing was done.
pub fn with_file_user<T>(user: u32, group: u32, action: impl FnOnce() -> T) -> Option<T> {
    /// Gives the thread its own rights back, also when the action panics.
    struct OwnUser;
    impl Drop for OwnUser {
        fn drop(&mut self) {
            let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
            set_file_user(user.as_raw(), group.as_raw());
        }
    }
    // As oneself there is nothing to become, and no right to change the group is needed.
    if user == rustix::process::geteuid().as_raw() {
        return Some(action());
    }
    let _own = OwnUser;
    set_file_user(user, group).then(action)
}

/// Whether it was done: the calls themselves do not say.
fn set_file_user(user: u32, group: u32) -> bool {
    #[expect(unsafe_code, reason = "rustix has no setfsuid")]
    // Safety: takes numbers; without the right to change, nothing changes. Each call answers
    // with the number before it, and no user has the last one.
    let now = unsafe {
        libc::setfsgid(group);
        libc::setfsuid(user);
        (libc::setfsuid(u32::MAX), libc::setfsgid(u32::MAX))
    };
    now == (user.cast_signed(), group.cast_signed())
}

/// The attributes of a mount, as the kernel takes them.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    users: u64,
}

/// Sets attributes of the mount that `tree` is the root of, and of all below it.
pub fn set_mount_attributes(tree: BorrowedFd<'_>, set: u64) -> io::Result<()> {
    change_mount(tree, set, None, libc::AT_RECURSIVE)
}

/// Shows the owners of the files on one mount through `users`, a user namespace.
pub fn set_mount_users(tree: BorrowedFd<'_>, users: BorrowedFd<'_>) -> io::Result<()> {
    change_mount(tree, MOUNT_ID_MAP, Some(users), 0)
}

fn change_mount(
    tree: BorrowedFd<'_>,
    set: u64,
    users: Option<BorrowedFd<'_>>,
    flags: c_int,
) -> io::Result<()> {
    let attributes = MountAttributes {
        set,
        clear: 0,
        propagation: 0,
        users: users.map_or(0, |users| {
            u64::try_from(users.as_raw_fd()).unwrap_or(u64::MAX)
        }),
    };
    #[expect(unsafe_code, reason = "rustix has no mount_setattr")]
    // Safety: the path is an empty C string, the attributes live until the call returns.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | flags,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    done(answer)
}

/// A file system to mount in the old way, and how.
#[derive(Clone, Copy, Debug)]
pub struct OldMount<'a> {
    /// Its kind; `None` for a change of what is mounted.
    pub kind: Option<&'a CStr>,
    /// Flags, as the kernel numbers them.
    pub flags: c_ulong,
    /// Its own options.
    pub options: Option<&'a CStr>,
}

/// Mounts a file system on `target`, or changes what is mounted there.
pub fn mount(target: &CStr, mount: OldMount<'_>) -> io::Result<()> {
    let text = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    #[expect(
        unsafe_code,
        reason = "rustix has it behind a feature that others would rebuild for"
    )]
    // Safety: every text lives until the call returns; none may be missing.
    let answer = unsafe {
        libc::mount(
            text(mount.kind),
            target.as_ptr(),
            text(mount.kind),
            mount.flags,
            text(mount.options).cast(),
        )
    };
    done(c_long::from(answer))
}

/// Takes what is mounted on `target` out of sight; it is gone with the last that uses it.
pub fn detach(target: &CStr) -> io::Result<()> {
    #[expect(
        unsafe_code,
        reason = "rustix has it behind a feature that others would rebuild for"
    )]
    // Safety: the text lives until the call returns.
    let answer = unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    done(c_long::from(answer))
}

/// A copy of the mount of an open file or folder, mounted nowhere; with the mounts below
/// it, if `is_deep`.
pub fn copy_mount(of: BorrowedFd<'_>, is_deep: bool) -> io::Result<OwnedFd> {
    const CLONE: c_int = 1;
    let depth = if is_deep { libc::AT_RECURSIVE } else { 0 };
    #[expect(
        unsafe_code,
        reason = "rustix has it behind a feature that others would rebuild for"
    )]
    // Safety: the path is an empty C string.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_open_tree,
            of.as_raw_fd(),
            c"".as_ptr(),
            CLONE | libc::O_CLOEXEC | libc::AT_EMPTY_PATH | depth,
        )
    };
    descriptor(answer)
}

/// Mounts a mount that is nowhere on `target`.
pub fn attach(tree: BorrowedFd<'_>, target: &CStr) -> io::Result<()> {
    const FROM_DESCRIPTOR: c_int = 4;
    #[expect(
        unsafe_code,
        reason = "rustix has it behind a feature that others would rebuild for"
    )]
    // Safety: the texts live until the call returns.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_FDCWD,
            target.as_ptr(),
            FROM_DESCRIPTOR,
        )
    };
    done(answer)
}

/// Makes a file system from settings, and a mount of it that is nowhere. A setting without
/// a value is a flag.
pub fn make_mount(
    kind: &CStr,
    settings: &[(&CStr, Option<&CStr>)],
    attributes: u64,
) -> io::Result<OwnedFd> {
    const CLOSE_ON_EXEC: c_int = 1;
    const SET_FLAG: c_int = 0;
    const SET_TEXT: c_int = 1;
    const CREATE: c_int = 6;
    let none: *const libc::c_char = std::ptr::null();
    #[expect(
        unsafe_code,
        reason = "rustix has it behind a feature that others would rebuild for"
    )]
    // Safety: every text lives until its call returns, and none is given where the kernel
    // takes none.
    unsafe {
        let made = libc::syscall(libc::SYS_fsopen, kind.as_ptr(), CLOSE_ON_EXEC);
        let made = descriptor(made)?;
        let configure = |command: c_int, key: *const libc::c_char, value: *const libc::c_char| {
            let made = made.as_raw_fd();
            done(libc::syscall(
                libc::SYS_fsconfig,
                made,
                command,
                key,
                value,
                0,
            ))
        };
        for (key, value) in settings {
            match value {
                Some(value) => configure(SET_TEXT, key.as_ptr(), value.as_ptr())?,
                None => configure(SET_FLAG, key.as_ptr(), none)?,
            }
        }
        configure(CREATE, none, none)?;
        let made = made.as_raw_fd();
        descriptor(libc::syscall(
            libc::SYS_fsmount,
            made,
            CLOSE_ON_EXEC,
            attributes,
        ))
    }
}

/// Brings the loopback device of this process's network up.
pub fn bring_loopback_up() -> io::Result<()> {
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        None,
    )?;
    #[expect(unsafe_code, reason = "rustix has no calls for network devices")]
    // Safety: the structure is plain numbers, for which nought is a value, and lives until
    // the call returns.
    let answer = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
            *to = from.cast_signed();
        }
        request.ifr_ifru.ifru_flags = i16::try_from(libc::IFF_UP).unwrap_or_default();
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)
    };
    done(c_long::from(answer))
}

/// Whether a filter hands calls to a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterListener {
    /// It decides by itself.
    None,
    /// Calls it marks are answered through a descriptor.
    Wanted,
}

/// Binds this thread, and all it starts, to a filter of system calls, for good. Needs
/// `no_new_privs`. The descriptor of the listener, if one was wanted.
pub fn install_filter(
    program: &[FilterInstruction],
    listener: FilterListener,
) -> io::Result<Option<OwnedFd>> {
    let length = u16::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog {
        len: length,
        filter: program.as_ptr().cast_mut(),
    };
    let flags = match listener {
        FilterListener::None => 0,
        FilterListener::Wanted => libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
    };
    #[expect(unsafe_code, reason = "rustix has no seccomp")]
    // Safety: the kernel reads the program, which lives until the call returns, and checks it.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    match listener {
        FilterListener::None => Ok(None),
        FilterListener::Wanted => descriptor(answer).map(Some),
    }
}

/// A call that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldCall {
    /// What the kernel calls it.
    pub id: u64,
    /// The thread that made it, in the numbers of this process.
    pub pid: u32,
    /// Its first argument.
    pub first: u64,
}

/// Takes the next call that waits; blocks until there is one.
pub fn take_held_call(listener: BorrowedFd<'_>) -> io::Result<HeldCall> {
    #[expect(unsafe_code, reason = "rustix has no seccomp")]
    // Safety: the structure is plain numbers, for which nought is a value, as the kernel
    // asks; it lives until the call returns.
    let (answer, call) = unsafe {
        let mut call: libc::seccomp_notif = std::mem::zeroed();
        let answer = libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_RECV,
            &raw mut call,
        );
        (answer, call)
    };
    done(c_long::from(answer))?;
    let [first, ..] = call.data.args;
    Ok(HeldCall {
        id: call.id,
        pid: call.pid,
        first,
    })
}

/// Answers a call: it did what it should, or failed with an error. The call itself is never
/// carried out.
pub fn answer_held_call(
    listener: BorrowedFd<'_>,
    id: u64,
    outcome: Result<(), c_int>,
) -> io::Result<()> {
    let answer = libc::seccomp_notif_resp {
        id,
        val: 0,
        error: outcome.map_or_else(|error| -error, |()| 0),
        flags: 0,
    };
    #[expect(unsafe_code, reason = "rustix has no seccomp")]
    // Safety: the structure lives until the call returns.
    let answer = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_SEND,
            &raw const answer,
        )
    };
    done(c_long::from(answer))
}

/// Puts `replacement` in the place of a descriptor of the process that waits.
pub fn replace_descriptor(
    listener: BorrowedFd<'_>,
    id: u64,
    place: u32,
    replacement: impl AsFd,
    close_on_exec: bool,
) -> io::Result<()> {
    let source = replacement.as_fd().as_raw_fd();
    let request = libc::seccomp_notif_addfd {
        id,
        flags: c_uint::try_from(libc::SECCOMP_ADDFD_FLAG_SETFD).map_err(io::Error::other)?,
        srcfd: u32::try_from(source).map_err(io::Error::other)?,
        newfd: place,
        newfd_flags: match close_on_exec {
            true => libc::O_CLOEXEC.unsigned_abs(),
            false => 0,
        },
    };
    #[expect(unsafe_code, reason = "rustix has no seccomp")]
    // Safety: the structure lives until the call returns.
    let answer = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_ADDFD,
            &raw const request,
        )
    };
    done(c_long::from(answer))
}

/// Processor time in milliseconds and the largest memory in bytes of the processes this one
/// has waited for, their own children included.
pub fn children_usage() -> (u64, u64) {
    #[expect(unsafe_code, reason = "rustix has no getrusage")]
    // Safety: the structure is plain numbers, for which nought is a value, and lives until
    // the call returns.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        // It fails only for a wrong first argument. Then the figures are nought, which no
        // decision uses.
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let milliseconds = |time: libc::timeval| {
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let rest = u64::try_from(time.tv_usec).unwrap_or(0) / 1_000;
        seconds.saturating_mul(1_000).saturating_add(rest)
    };
    let memory = u64::try_from(usage.ru_maxrss).unwrap_or(0);
    (
        milliseconds(usage.ru_utime).saturating_add(milliseconds(usage.ru_stime)),
        memory.saturating_mul(1024),
    )
}

fn descriptor(answer: c_long) -> io::Result<OwnedFd> {
    done(answer)?;
    let fd = RawFd::try_from(answer).map_err(io::Error::other)?;
    #[expect(unsafe_code, reason = "the kernel hands out a number")]
    // Safety: it was made for the call that answered, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn done(answer: c_long) -> io::Result<()> {
    match answer {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The user and the group by which this thread's rights to files go.
    fn file_user() -> (u32, u32) {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let last = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let last = line.unwrap().split_whitespace().last();
            last.unwrap().parse().unwrap()
        };
        (last("Uid:"), last("Gid:"))
    }

    /// Attack: without the right to become the user, or after a panic, the thread would act
    /// on files with rights that are not the user's.
    #[test]
    fn a_thread_acts_as_another_user_or_not_at_all() {
        let own = file_user();
        let is_root = own.0 == 0;
        let other = with_file_user(65_534, 65_534, file_user);
        assert_eq!(other, is_root.then_some((65_534, 65_534)));
        assert_eq!(file_user(), own);
        // As oneself, whatever the group.
        assert_eq!(with_file_user(own.0, 65_534, file_user), Some(own));
        let panicked = std::panic::catch_unwind(|| {
            with_file_user(65_534, 65_534, || panic!("on purpose"));
        });
        assert_eq!(panicked.is_err(), is_root);
        assert_eq!(file_user(), own);
        // No user has this number.
        assert_eq!(with_file_user(u32::MAX, u32::MAX, file_user), None);
        assert_eq!(file_user(), own);
    }
}
