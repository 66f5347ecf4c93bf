# Reaches for another process of the same user: the parent of the jail.
import ctypes
import errno
import os
import resource
import sys

libc = ctypes.CDLL(None, use_errno=True)


def call(name, *arguments):
    done = getattr(libc, name)(*arguments)
    if done == -1:
        raise OSError(ctypes.get_errno(), name)


def pidfd_signal():
    # Signal nought: asks whether one could be sent.
    handle = os.pidfd_open(target)
    if libc.syscall(424, handle, 0, None, 0) == -1:
        raise OSError(ctypes.get_errno(), "pidfd_send_signal")


def read_memory():
    # Nothing is read: the kernel checks the right before the length.
    class Piece(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    here, there = Piece(0, 0), Piece(4096, 1)
    buffer = ctypes.create_string_buffer(1)
    here = Piece(ctypes.addressof(buffer), 1)
    done = libc.process_vm_readv(target, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    number = ctypes.get_errno()
    # Allowed, but nothing is mapped there.
    if done == -1 and number != 14:
        raise OSError(number, "process_vm_readv")


def limits():
    held = resource.prlimit(target, resource.RLIMIT_CORE)
    resource.prlimit(target, resource.RLIMIT_CORE, held)


def affinity():
    os.sched_setaffinity(target, os.sched_getaffinity(target))


def priority():
    os.setpriority(os.PRIO_PROCESS, target, os.getpriority(os.PRIO_PROCESS, target))


def user_priority():
    try:
        os.setpriority(os.PRIO_USER, 0, os.getpriority(os.PRIO_PROCESS, 0))
    except PermissionError as error:
        # Some of the user's processes are nicer than this one, and only root makes them less
        # so. The filter says EPERM.
        if error.errno != errno.EACCES:
            raise


target = int(sys.argv[1])
attempts = {
    "signal": lambda: os.kill(target, 0),
    "pidfd_signal": pidfd_signal,
    "environment": lambda: open(f"/proc/{target}/environ").read(),
    "memory": lambda: open(f"/proc/{target}/mem", "rb").close(),
    "folder": lambda: os.listdir(f"/proc/{target}/root"),
    "descriptors": lambda: os.readlink(f"/proc/{target}/fd/0"),
    "read_memory": read_memory,
    "limits": limits,
    "affinity": affinity,
    "priority": priority,
    "user_priority": user_priority,
    "out_of_memory": lambda: open(f"/proc/{target}/oom_score_adj", "w").close(),
}
for name, attempt in attempts.items():
    try:
        attempt()
        print(name, "done")
    except OSError as error:
        # Another process is closed, or not there.
        print(name, "refused" if error.errno in (1, 2, 3, 13) else f"failed: {error}")
