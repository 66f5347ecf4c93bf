#!/usr/bin/python3
# Stands in for the supervisor and lies to its parent. Its standard input is the socket to
# the parent. The last argument says how it lies.
import array
import json
import os
import socket
import sys
import time

LAYERS = [
    "Namespaces", "Identity", "Files", "Signals", "Network", "SystemCalls", "NoNewPrivileges",
    "Capabilities", "Rlimits", "Session", "Descriptors", "ParentDeath", "ControlGroup", "Facts",
]
control = socket.socket(fileno=0)


def order():
    # The order, and the descriptors that come with it.
    text, descriptors = b"", array.array("i")
    while not text.endswith(b"\n"):
        piece, beside, _, _ = control.recvmsg(65536, socket.CMSG_SPACE(16))
        if not piece:
            sys.exit(1)
        text += piece
        for _, _, numbers in beside:
            descriptors.frombytes(numbers)
    return list(descriptors)


def say(value):
    control.sendall(json.dumps(value).encode() + b"\n")


def walls(rung="Namespaces", missing=(), left_out=()):
    layers = [layer for layer in LAYERS if layer not in left_out]
    each = [{"layer": l, "missing": "gone" if l in missing else None} for l in layers]
    say({"Walls": {"rung": rung, "walls": each}})


def flood(byte):
    try:
        while True:
            control.sendall(byte * 65536)
    except OSError:
        sys.exit(1)


def hand(door, kind, one):
    rights = array.array("i", [one.fileno()])
    door.sendmsg([kind], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])


how = sys.argv[-1]
descriptors = order()
if how == "honest":
    child = os.fork()
    if child == 0:
        os.execv("/bin/sleep", ["sleep", "600"])
    walls()
    say({"Started": {"pid": child}})
    os.kill(child, 9)
    os.wait()
    say({"Used": {"cpu_ms": 1, "memory_peak_bytes": 2}})
    say({"Exited": {"Code": 5}})
    sys.exit(0)
elif how == "garbage":
    control.sendall(b"\xff\x00{]\n")
elif how == "unknown":
    say({"Granted": {"everything": True}})
elif how == "flood":
    flood(b"x")
elif how == "flood_of_lines":
    flood(b"{}\n")
elif how == "started_first":
    say({"Started": {"pid": os.getpid()}})
elif how == "walls_twice":
    walls()
    walls()
elif how == "ended_first":
    say({"Used": {"cpu_ms": 1, "memory_peak_bytes": 1}})
elif how == "no_walls":
    say({"Walls": {"rung": "Namespaces", "walls": []}})
    say({"Started": {"pid": os.getpid()}})
elif how == "left_out":
    walls(left_out=["Files"])
    say({"Started": {"pid": os.getpid()}})
elif how == "missing":
    walls(missing=["Files"])
    say({"Started": {"pid": os.getpid()}})
elif how == "lower_rung":
    walls("Landlock")
    say({"Started": {"pid": os.getpid()}})
elif how.isdigit():
    # Whose group is killed when this process ends without a word?
    walls()
    say({"Started": {"pid": int(how)}})
    sys.exit(0)
elif how == "nonsense_later":
    walls()
    say({"Started": {"pid": os.getpid()}})
    say({"NoNamespaces": "after all"})
elif how == "stays":
    # Closes its socket and goes on.
    walls()
    say({"Started": {"pid": os.getpid()}})
    control.close()
elif how in ("datagram", "file", "local", "two_listeners", "kind"):
    door = socket.socket(fileno=descriptors[3])
    walls()
    say({"Started": {"pid": os.getpid()}})
    if how == "datagram":
        hand(door, b"S", socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    elif how == "file":
        hand(door, b"S", open("/etc/hostname"))
    elif how == "local":
        hand(door, b"S", socket.socketpair()[0])
    elif how == "kind":
        hand(door, b"?", socket.socket())
    else:
        for _ in range(2):
            listener = socket.create_server(("127.0.0.1", 0))
            hand(door, b"L", listener)
time.sleep(20)
