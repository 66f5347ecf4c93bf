#!/usr/bin/python3
# Executes the program of the tests under a filter of system calls as Docker's default has
# it: no new namespaces, no mounts, and `clone3` seems not to exist.
import ctypes
import os
import platform
import struct
import sys

INTEL = platform.machine() == "x86_64"
# unshare, setns, mount: not permitted. clone3: not there.
NUMBERS = [272, 308, 165] if INTEL else [97, 268, 40]
CALLS = [(number, 1) for number in NUMBERS] + [(435, 38)]
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ERRNO, ALLOW = 0x00050000, 0x7FFF0000


def code(operation, yes, no, value):
    return struct.pack("HBBI", operation, yes, no, value)


text = code(LOAD, 0, 0, 0)
for number, error in CALLS:
    text += code(EQUAL, 0, 1, number) + code(RETURN, 0, 0, ERRNO | error)
text += code(RETURN, 0, 0, ALLOW)
buffer = ctypes.create_string_buffer(text)
program = struct.pack("HxxxxxxQ", len(text) // 8, ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
for arguments in [(38, 1, 0, 0, 0), (22, 2, ctypes.create_string_buffer(program), 0, 0)]:
    if libc.prctl(*arguments) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
os.execv("@PROGRAM@", [sys.argv[0]] + sys.argv[1:])
