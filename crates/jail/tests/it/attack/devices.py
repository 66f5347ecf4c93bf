# Opens devices that a child should not have, makes nodes for them, and reaches for a
# terminal. What every program needs is tried as well.
import ctypes
import os
import stat

libc = ctypes.CDLL(None, use_errno=True)


def look(path):
    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))


def make(kind, numbers):
    path = "node"
    os.mknod(path, kind | 0o600, os.makedev(*numbers))
    os.unlink(path)


def type_in():
    # TIOCSTI, with a high half that the kernel does not look at. Not on a terminal: outside
    # of the jail the letter would be typed.
    letter = ctypes.create_string_buffer(b"x")
    other = os.open("/dev/null", os.O_RDONLY)
    if libc.ioctl(other, ctypes.c_ulong(0x5412 | 1 << 32), letter) == -1:
        raise OSError(ctypes.get_errno(), "ioctl")


attempts = {
    "null": lambda: look("/dev/null"),
    "zero": lambda: look("/dev/zero"),
    "urandom": lambda: look("/dev/urandom"),
    "kmsg": lambda: look("/dev/kmsg"),
    "mem": lambda: look("/dev/mem"),
    "kvm": lambda: look("/dev/kvm"),
    "fuse": lambda: look("/dev/fuse"),
    "disk": lambda: look("/dev/vda"),
    "loop": lambda: look("/dev/loop-control"),
    "mapper": lambda: look("/dev/mapper/control"),
    "tunnel": lambda: look("/dev/net/tun"),
    "terminals": lambda: look("/dev/ptmx"),
    "terminal": lambda: look("/dev/tty"),
    "console": lambda: look("/dev/console"),
    "kernel_memory": lambda: look("/proc/kcore"),
    "make_null": lambda: make(stat.S_IFCHR, (1, 3)),
    "make_disk": lambda: make(stat.S_IFBLK, (254, 0)),
    "type": type_in,
}
for name, attempt in attempts.items():
    try:
        attempt()
        print(name, "done")
    except OSError as error:
        # Not permitted, not there, or of a kind that is not served.
        print(name, "refused" if error.errno in (1, 2, 6, 13, 19) else f"failed: {error.errno}")
