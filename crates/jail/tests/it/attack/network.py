# Tries to reach listeners of the test: TCP and UDP on loopback, a socket in the file
# system, an abstract one, and one for datagrams in the file system. Each sends one word.
import os
import socket
import sys

tcp, udp, path, abstract, datagrams = sys.argv[1:]


def send(family, kind, address):
    with socket.socket(family, kind) as one:
        one.settimeout(5)
        one.connect(address)
        one.send(b"reached")


def by_pair(connects):
    # A socket of a pair of datagrams sends wherever it is told, and connects there.
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    if connects:
        one.connect(datagrams)
        one.send(b"reached")
    else:
        one.sendto(b"reached", datagrams)


attempts = {
    "tcp": lambda: send(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(tcp))),
    "udp": lambda: send(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", int(udp))),
    "path": lambda: send(socket.AF_UNIX, socket.SOCK_STREAM, path),
    "abstract": lambda: send(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + abstract),
    "pair_sends": lambda: by_pair(False),
    "pair_connects": lambda: by_pair(True),
    "raw": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close(),
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close(),
    "pair": lambda: socket.socketpair(),
}
for name, attempt in attempts.items():
    try:
        attempt()
        print(name, "done")
    except OSError as error:
        print(name, "refused" if error.errno in (1, 13) else f"failed: {error}")
