# Tries to reach listeners of the test, and what lies beyond, by every way but the proxy's.
# Where a connection is made at all, it says what answered. Arguments: ports of TCP, of TCP
# over IPv6, of UDP; a socket in the file system; an abstract one.
import socket
import sys

tcp, tcp6, udp, path, abstract = sys.argv[1:]


def ask(family, address, kind=socket.SOCK_STREAM, protocol=0):
    with socket.socket(family, kind, protocol) as one:
        one.settimeout(5)
        one.connect(address)
        one.sendall(b"PROBE\r\n\r\n")
        return one.recv(1000).decode(errors="replace").split("\r\n")[0]


def datagram(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.settimeout(5)
        one.sendto(b"reached", address)
        return "sent"


def fast_open():
    with socket.socket() as one:
        one.settimeout(5)
        one.sendto(b"PROBE\r\n\r\n", 0x20000000, ("127.0.0.1", int(tcp)))
        return "sent"


def not_blocking():
    one = socket.socket()
    one.setblocking(False)
    code = one.connect_ex(("127.0.0.1", int(tcp)))
    if code not in (0, 115):
        raise OSError(code, "connect")
    if one.getblocking():
        return "became blocking"
    import select

    select.select([], [one], [], 5)
    one.send(b"PROBE\r\n\r\n")
    select.select([one], [], [], 5)
    return one.recv(1000).decode(errors="replace").split("\r\n")[0]


def relay():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with socket.create_connection(listener.getsockname(), 5):
            return "only inside"


attempts = {
    "tcp": lambda: ask(socket.AF_INET, ("127.0.0.1", int(tcp))),
    "tcp6": lambda: ask(socket.AF_INET6, ("::1", int(tcp6))),
    "any": lambda: ask(socket.AF_INET, ("0.0.0.0", int(tcp))),
    "mapped": lambda: ask(socket.AF_INET6, ("::ffff:127.0.0.1", int(tcp))),
    "multipath": lambda: ask(socket.AF_INET, ("127.0.0.1", int(tcp)), protocol=262),
    "not_blocking": not_blocking,
    "fast_open": fast_open,
    "udp": lambda: datagram(("127.0.0.1", int(udp))),
    "dns": lambda: datagram(("192.0.2.1", 53)),
    "dns_tcp": lambda: ask(socket.AF_INET, ("192.0.2.1", 53)),
    "lookup": lambda: socket.getaddrinfo("api.acme.com", 80),
    "path": lambda: ask(socket.AF_UNIX, path),
    "abstract": lambda: ask(socket.AF_UNIX, "\0" + abstract),
    "raw": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close(),
    "vsock": lambda: socket.socket(40, socket.SOCK_STREAM).close(),
    "sctp": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132).close(),
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close(),
    "relay": relay,
    "proxy": lambda: ask(socket.AF_INET, ("127.0.0.1", 3128)),
}
for name, attempt in attempts.items():
    try:
        print(name, attempt())
    except OSError:
        print(name, "refused")
