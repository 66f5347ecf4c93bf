#!/usr/bin/env bash
# Tries a release as one would who has only its files: install, doctor, serve, a governed
# call, uninstall; for the archive, the Debian package, the unit under systemd and the image.
#
#   packaging/try.sh target/release-files
#
# A Docker engine is unpacked into target/peers from Debian's packages, where there are
# some.
# Everything happens in a temporary folder; traffic stays on loopback. Prints one line
# for each kind and the totals in the words `cargo xtask test` adds up.
set -euo pipefail

files=$(cd "$1" && pwd)
work=$(mktemp -d)
cache=$(cd "$(dirname "$0")/.." && pwd)/target/peers
server=
passed=0
failed=0
ignored=0

finish() {
    [ -z "$server" ] || end "$server"
    if [ -e "$work/pid" ]; then
        kill "$(cat "$work/pid")" 2>/dev/null || true
        sleep 2
    fi
    rm -rf "$work"
}
trap finish EXIT

# family PID: a process and all that come from it.
family() {
    local child
    echo "$1"
    for child in $(pgrep -P "$1"); do family "$child"; done
}

# end PID: ends a command in the background with all it started: `unshare --fork` ignores the
# signal itself and would stay with its child.
end() {
    local all
    mapfile -t all < <(family "$1")
    kill "${all[@]}" 2>/dev/null || true
    for _ in $(seq 100); do
        kill -0 "${all[@]}" 2>/dev/null || break
        sleep 0.1
    done
    kill -9 "${all[@]}" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

# A clean environment: nothing of ours is set.
clean() { env -i PATH=/usr/bin:/bin HOME="$work/no-home" "$@"; }

# use NAME COMMAND…: what every kind must be able to do with its program.
use() {
    local name=$1 home="$work/home-$1"
    shift
    mkdir -p "$home"
    [ "$(id -u)" != 0 ] || [ "$name" != image ] || chown 65532:65532 "$home"
    "$@" --version >/dev/null
    "$@" doctor --home "$(inside "$name" "$home")" >"$work/doctor-$name"
    "$@" run countWords --args '{"text":"one two three"}' \
        --home "$(inside "$name" "$home")" >"$work/run-$name"
    grep -q '"words": *3' "$work/run-$name"
    "$@" serve --json --listen 127.0.0.1:0 --home "$(inside "$name" "$home")" \
        >"$work/serve-$name" 2>"$work/serve-$name.err" &
    server=$!
    local url=
    for _ in $(seq 100); do
        url=$(grep -o '"url":"[^"]*/mcp"' "$work/serve-$name" 2>/dev/null | cut -d'"' -f4) && [ -n "$url" ] && break
        sleep 0.1
    done
    [ -n "$url" ] || { cat "$work/serve-$name.err"; return 1; }
    # Without a key nothing is told; with the machine's token a call is made.
    local call='{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"countWords","arguments":{"text":"one two"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"try","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}'
    local post=(curl -sS --noproxy '*' -m 20 -H 'content-type: application/json'
        -H 'accept: application/json, text/event-stream'
        -H 'mcp-protocol-version: 2026-07-28' -H 'mcp-method: tools/call'
        -H 'mcp-name: countWords' -d "$call")
    [ "$("${post[@]}" -o /dev/null -w '%{http_code}' "$url")" = 401 ]
    "${post[@]}" -H "authorization: Bearer $(cat "$home/token")" "$url" >"$work/call-$name"
    grep -q '\\"words\\":2\|"words":2' "$work/call-$name"
    end "$server"
    server=
    "$@" audit verify --home "$(inside "$name" "$home")" >/dev/null
}

# No line of the files is like that. (`! grep` would not end the script.)
none() {
    if grep "$@"; then return 1; fi
}

# This machine cannot try a kind, which says nothing about the release.
cannot() {
    echo "$1"
    exit 77
}

# The home as the program sees it.
inside() {
    case $1 in
    image) echo "/var/lib/ringfence" ;;
    *) echo "$2" ;;
    esac
}

try_archive() {
    mkdir "$work/archive"
    tar -xzf "$files"/ringfence-*-linux.tar.gz -C "$work/archive"
    local program
    program=$(echo "$work"/archive/*/bin/ringfence)
    use archive clean "$program"
    [ -s "$(dirname "$program")/../LICENSES.txt" ]
    [ -s "$(dirname "$program")/../share/man/man1/ringfence.1" ]
}

# The checksums are right, and where RELEASE_KEY names a public key, signed by it.
try_sums() {
    (cd "$files" && sha256sum --quiet -c SHA256SUMS)
    # One who downloads one file checks that one.
    mkdir "$work/one"
    cp "$files/SHA256SUMS" "$files"/ringfence-*-linux.tar.gz "$work/one"
    (cd "$work/one" && sha256sum --quiet --ignore-missing -c SHA256SUMS)
    [ "${RELEASE_KEY-}" ] || return 0
    echo "release $(cat "$RELEASE_KEY")" >"$work/signers"
    local verify=(ssh-keygen -q -Y verify -f "$work/signers" -I release -n ringfence-release
        -s "$files/SHA256SUMS.sig")
    "${verify[@]}" <"$files/SHA256SUMS"
    # It would notice a change.
    ! sed 's/^./x/' "$files/SHA256SUMS" | "${verify[@]}" 2>/dev/null
}

try_deb() {
    local root="$work/deb"
    mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates"
    : >"$root/var/lib/dpkg/status"
    local dpkg=(dpkg --root="$root" --force-not-root --force-depends --force-bad-path --log=/dev/null)
    "${dpkg[@]}" -i "$files"/ringfence_*.deb >"$work/dpkg-deb" 2>&1
    use deb clean "$root/usr/bin/ringfence"
    [ -e "$root/usr/lib/systemd/system/ringfence.service" ]
    "${dpkg[@]}" -r ringfence >>"$work/dpkg-deb" 2>&1
    [ ! -e "$root/usr/bin/ringfence" ]
}

# The image without an engine: its one layer as the root of a process without privileges,
# with a `/proc` of its own. With an engine see docs/guide/install.md.
try_image() {
    unshare --mount --pid --fork true 2>/dev/null || cannot "no namespaces can be made here"
    local layout="$work/layout" root="$work/image"
    mkdir -p "$layout" "$root"
    tar -xzf "$files"/*.image.tar.gz -C "$layout"
    local layer
    layer=$(grep -o '"Layers":\["[^"]*"' "$layout/manifest.json" | cut -d'"' -f4)
    tar -xzf "$layout/$layer" -C "$root"
    [ "$(stat -c %u "$root/var/lib/ringfence")" = 65532 ]
    mkdir -p "$root/proc" "$root/dev" "$work/home-image"
    chown 65532:65532 "$work/home-image"
    cat >"$work/enter" <<ENTER
#!/bin/bash
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount --bind "$work/home-image" "$root/var/lib/ringfence"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
exec setpriv --no-new-privs /usr/sbin/chroot --userspec=65532:65532 "$root" /usr/bin/ringfence "\$@"
ENTER
    chmod +x "$work/enter"
    use image clean unshare --mount --pid --fork --kill-child "$work/enter"
}

# The image in a real engine, hardened as the guide says. The engine is unpacked, not
# installed, and runs in a network of its own, so that it reaches nothing.
try_docker() {
    local parts="$cache/docker"
    if [ ! -x "$parts/usr/sbin/dockerd" ]; then
        mkdir -p "$parts"
        (cd "$parts" && apt-get download docker.io containerd runc libdevmapper1.02.1 >/dev/null 2>&1 &&
            for package in *.deb; do dpkg -x "$package" .; done && rm -f ./*.deb) ||
            cannot "Debian's packages cannot be downloaded"
    fi
    export PATH="$parts/usr/sbin:$parts/usr/bin:$PATH"
    export LD_LIBRARY_PATH="$parts/usr/lib/x86_64-linux-gnu:$parts/lib/x86_64-linux-gnu"
    local had_key=no
    [ ! -e /etc/docker/key.json ] || had_key=yes
    unshare -n dockerd --data-root "$work/engine" --exec-root "$work/exec" -H "unix://$work/sock" \
        --pidfile "$work/pid" --bridge=none --iptables=false >"$work/engine-docker" 2>&1 &
    server=$!
    for _ in $(seq 300); do
        [ -S "$work/sock" ] && docker -H "unix://$work/sock" version >/dev/null 2>&1 && break
        sleep 0.1
    done
    local docker=(docker -H "unix://$work/sock")
    "${docker[@]}" version >/dev/null 2>&1 ||
        cannot "no engine starts here: $(tail -n 1 "$work/engine-docker" | cut -c1-200)"
    "${docker[@]}" load -qi "$files"/*.image.tar.gz >"$work/load-docker"
    local image hardened
    image=$(sed 's/^Loaded image: //' "$work/load-docker")
    hardened=(run -i --rm --network none --read-only --cap-drop ALL
        --security-opt no-new-privileges --pids-limit 256 -v ringfence:/var/lib/ringfence "$image")
    # Every layer of both walls is up in an engine's default container, and in a
    # hardened one.
    "${docker[@]}" run --rm --network none "$image" doctor >"$work/doctor-docker"
    "${docker[@]}" "${hardened[@]}" doctor >"$work/hardened-docker"
    none -q '^DOWN' "$work/doctor-docker" "$work/hardened-docker"
    "${docker[@]}" "${hardened[@]}" run countWords --args '{"text":"a b c"}' >"$work/run-docker"
    grep -q '"words": *3' "$work/run-docker"
    local hello='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"try","version":"1"}}}'
    echo "$hello" | timeout 60 "${docker[@]}" "${hardened[@]}" stdio >"$work/stdio-docker"
    grep -q '"serverInfo"' "$work/stdio-docker"
    "${docker[@]}" "${hardened[@]}" audit verify >/dev/null
    # What an operator does in a container that runs.
    local running
    running=$("${docker[@]}" run -d --network none --read-only --cap-drop ALL \
        -v ringfence:/var/lib/ringfence "$image")
    for _ in $(seq 100); do
        "${docker[@]}" exec "$running" ringfence studio --no-open >"$work/studio-docker" 2>&1 && break
        sleep 0.1
    done
    grep -q '^Code: ' "$work/studio-docker"
    "${docker[@]}" exec "$running" ringfence keys add laptop 2>/dev/null | grep '^rf_' >/dev/null
    "${docker[@]}" exec "$running" ringfence approvals list >/dev/null
    "${docker[@]}" rm -f "$running" >/dev/null
    try_jail "$image"
    kill "$(cat "$work/pid")"
    wait "$server" || true
    server=
    [ "$had_key" = yes ] || rm -f /etc/docker/key.json
}

# The attacks of the jail's tests in an engine's default container, as root and as another user:
# no namespaces, the engine's own filter, so the lower rung. The programs of this system are
# mounted into the container; only the jail's tests know which rows can be tried there.
try_jail() {
    local tests= program
    for program in $(ls -t "$cache"/../debug/deps/it-* 2>/dev/null | grep -v '\.d$'); do
        if "$program" --list 2>/dev/null | grep -q '^liar::'; then
            tests=$program
            break
        fi
    done
    [ "$tests" ] || { echo "the tests of the jail are not built; they are not tried in a container"; return 0; }
    local debug given=() name
    debug=$(cd "$cache/../debug" && pwd)
    for name in usr etc bin lib lib64; do
        [ ! -e "/$name" ] || given+=(-v "/$name:/$name:ro")
    done
    timeout 60 docker -H "unix://$work/sock" run --rm --network none "${given[@]}" \
        -v "$debug:$debug:ro" --tmpfs /tmp:exec,mode=1777 -e RINGFENCE_JAIL_CONTAINER=1 \
        -e PATH=/usr/bin:/bin --user 0 --entrypoint "$debug/deps/$(basename "$tests")" "$1" \
        escape:: surface:: wall::every egress::nothing >"$work/jail-docker" 2>&1
    grep -q '^test result: ok' "$work/jail-docker"
    # It would notice if there were nothing to try.
    [ "$(grep -c ' ... ok$' "$work/jail-docker")" -ge 12 ]
}

# The unit as systemd reads it: nothing unknown, an exposure of at most 2.0, and its
# filter of system calls, applied to the program as a user without rights, leaves both walls up.
try_unit() {
    local unit="$work/ringfence.service" home="$work/unit-home"
    mkdir "$work/unit"
    tar -xzf "$files"/ringfence-*-linux.tar.gz -C "$work/unit"
    chmod 755 "$work"
    cp "$work"/unit/*/lib/systemd/system/ringfence.service "$unit"
    systemd-analyze security --offline=yes --threshold=20 "$unit" >"$work/analyze-unit" 2>&1
    none -i unknown "$work/analyze-unit"
    python3 -c 'import ctypes; ctypes.CDLL("libseccomp.so.2")' 2>/dev/null ||
        cannot "there is no libseccomp to apply the filter with"
    install -d -m 700 -o 65532 -g 65532 "$home"
    cat >"$work/filtered" <<'FILTERED'
import ctypes, os, subprocess, sys
unit, program = sys.argv[1], sys.argv[2:]
def names(item):
    if not item.startswith("@"):
        return {item}
    text = subprocess.run(["systemd-analyze", "syscall-filter", item], check=True,
                          stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True).stdout
    inside = [line.strip() for line in text.splitlines()[1:]]
    return set().union(*(names(it) for it in inside if it and not it.startswith("#")))
allowed = set()
for line in open(unit):
    if line.startswith("SystemCallFilter="):
        value = line.strip().split("=", 1)[1]
        found = set().union(*(names(item) for item in value.lstrip("~").split()))
        allowed = allowed - found if value.startswith("~") else allowed | found
# What systemd always allows, so that a program can be started at all.
allowed |= names("@default")
library = ctypes.CDLL("libseccomp.so.2")
library.seccomp_init.restype = ctypes.c_void_p
context = ctypes.c_void_p(library.seccomp_init(0x00050001))
for name in allowed:
    number = library.seccomp_syscall_resolve_name(name.encode())
    if number >= 0:
        library.seccomp_rule_add(context, 0x7FFF0000, number, 0)
os.setgroups([])
os.setresgid(65532, 65532, 65532)
os.setresuid(65532, 65532, 65532)
assert library.seccomp_load(context) == 0
os.execv(program[0], program)
FILTERED
    local filtered=(clean python3 "$work/filtered" "$unit" "$(echo "$work"/unit/*/bin/ringfence)")
    "${filtered[@]}" doctor --home "$home" >"$work/doctor-unit"
    none '^DOWN' "$work/doctor-unit"
    "${filtered[@]}" run countWords --args '{"text":"a b c"}' --home "$home" >"$work/run-unit"
    grep -q '"words": *3' "$work/run-unit"
}

# The unit under a systemd that runs, as the first process of namespaces of its own: on a
# copy of this system's programs, with its own cgroup, and a network that reaches nothing.
try_systemd() {
    local tree="$work/tree" root="$work/tree/root" group=
    local place
    for place in /sys/fs/cgroup /sys/fs/cgroup/unified; do
        [ ! -e "$place/cgroup.procs" ] || [ "$group" ] || group="$place/ringfence-try-$$"
    done
    [ "$group" ] && mkdir "$group" 2>/dev/null || cannot "no cgroup can be made here"
    mkdir -p "$tree" "$work/package"
    dpkg -x "$files"/ringfence_*.deb "$work/package"
    cat >"$work/start" <<START
#!/bin/bash
set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs "$tree"
mkdir -p "$root"/{usr,etc/systemd/system,proc,sys,dev,run,var/lib,tmp,home,root,old} "$tree/upper" "$tree/scratch"
mount --bind "$root" "$root"
for link in bin sbin lib lib64; do ln -s "usr/\$link" "$root/\$link"; done
mount -t overlay overlay -o "lowerdir=$work/package/usr:/usr,upperdir=$tree/upper,workdir=$tree/scratch" "$root/usr"
cp /etc/passwd /etc/group /etc/nsswitch.conf /etc/ld.so.cache "$root/etc"
: >"$root/etc/machine-id"
printf '[Unit]\\nRequires=ringfence.service\\nDefaultDependencies=no\\n' >"$root/etc/systemd/system/try.target"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
    : >"$root/dev/\$device"
    mount --bind "/dev/\$device" "$root/dev/\$device"
done
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ip link set lo up
cd "$root"
pivot_root . old
umount -l /old
exec env -i container=try PATH=/usr/bin:/usr/sbin /usr/lib/systemd/systemd --system --unit=try.target --log-target=kmsg
START
    chmod +x "$work/start"
    (echo "$BASHPID" >"$group/cgroup.procs" &&
        exec unshare --mount --pid --fork --uts --ipc --net --cgroup --kill-child "$work/start") >"$work/start-systemd" 2>&1 &
    server=$!
    local first=
    for _ in $(seq 100); do
        first=$(pgrep -x -P "$server" systemd) && break
        sleep 0.1
    done
    if [ -z "$first" ]; then
        rmdir "$group" 2>/dev/null || true
        cannot "systemd does not start here: $(tail -n 1 "$work/start-systemd" | cut -c1-200)"
    fi
    cat >"$work/look" <<'LOOK'
for _ in $(seq 300); do
    systemctl is-active -q ringfence 2>/dev/null && curl -sSf -m 5 http://127.0.0.1:7464/readyz >/dev/null 2>&1 && break
    sleep 0.1
done
systemctl status --no-pager ringfence
# A user of its own without a capability, under a filter, and both workers are up.
pid=$(systemctl show ringfence -p MainPID --value)
grep -q '^CapEff:.0000000000000000$' "/proc/$pid/status"
grep -q '^Seccomp:.2$' "/proc/$pid/status"
if grep -q '^Uid:.0' "/proc/$pid/status"; then exit 1; fi
[ "$(curl -sS -m 20 -o /dev/null -w '%{http_code}' http://127.0.0.1:7464/mcp)" = 401 ]
token=$(cat /var/lib/private/ringfence/token)
curl -sS -m 20 -H "authorization: Bearer $token" -H 'content-type: application/json' \
    -H 'accept: application/json, text/event-stream' -H 'mcp-protocol-version: 2026-07-28' \
    -H 'mcp-method: tools/call' -H 'mcp-name: countWords' -d "$CALL" http://127.0.0.1:7464/mcp | grep '"words":2'
# What an operator does beside the unit, the way the guide says; the bus takes the order.
if [ -x /usr/bin/dbus-daemon ]; then
    mkdir -p /run/dbus
    systemctl start dbus.socket dbus.service
    beside() {
        systemd-run --quiet --pipe --wait --collect -p DynamicUser=yes -p User=ringfence \
            -p StateDirectory=ringfence -p StateDirectoryMode=0700 -p UMask=0077 \
            -E RINGFENCE_HOME=/var/lib/ringfence ringfence "$@"
    }
    beside keys add laptop 2>/dev/null | grep '^rf_' >/dev/null
    beside approvals list
    beside studio --no-open | grep '^Code: ' >/dev/null
    beside audit verify | grep '^whole'
fi
# Root alone does not obey a home of another user, and is told the way above.
if ringfence audit verify --home /var/lib/ringfence 2>/tmp/refused; then exit 1; fi
grep -q 'systemd-run .* -p DynamicUser=yes' /tmp/refused
# The journal names the file of the token, and does not show the token.
journalctl --no-pager -o cat -u ringfence | grep -q ringfence/token
if journalctl --no-pager -o cat -u ringfence | grep -q "$token"; then exit 1; fi
systemctl stop ringfence
[ "$(systemctl show ringfence -p Result --value)" = success ]
LOOK
    local status=0
    CALL='{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"countWords","arguments":{"text":"one two"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"try","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}' \
        timeout 120 nsenter -t "$first" -m -p -C -n -u -i --root="/proc/$first/root" --wd=/ \
        bash -euc "$(cat "$work/look")" >"$work/look-systemd" 2>&1 || status=$?
    kill -9 "$first"
    wait "$server" 2>/dev/null || true
    server=
    for _ in $(seq 50); do
        find "$group" -depth -type d -exec rmdir {} + 2>/dev/null && break
        sleep 0.1
    done
    return "$status"
}

# One kind in a process of its own, so that its first failure ends it.
only=${2-}
if [ "$only" ]; then
    trap 'status=$?; [ $status = 0 ] || [ $status = 77 ] || tail -n 20 "$work"/*-"$only" "$work"/*-"$only".err 2>/dev/null; finish' EXIT
    "try_$only"
    exit
fi
for kind in sums archive deb unit systemd image docker; do
    if [ "$kind" != sums ] && [ "$kind" != archive ] && [ "$(id -u)" != 0 ]; then
        ignored=$((ignored + 1))
        echo "test dist::$kind ... ignored, it takes root"
    elif [ "$kind" = unit ] && ! command -v systemd-analyze >/dev/null; then
        ignored=$((ignored + 1))
        echo "test dist::$kind ... ignored, systemd-analyze is not installed"
    elif [ "$kind" = systemd ] && ! [ -x /usr/lib/systemd/systemd ]; then
        ignored=$((ignored + 1))
        echo "test dist::$kind ... ignored, systemd is not installed"
    elif [ "$kind" = docker ] && ! apt-cache show docker.io >/dev/null 2>&1; then
        ignored=$((ignored + 1))
        echo "test dist::$kind ... ignored, Debian's packages cannot be had here"
    else
        status=0
        "$0" "$files" "$kind" || status=$?
        case $status in
        0)
            passed=$((passed + 1))
            echo "test dist::$kind ... ok"
            ;;
        77)
            ignored=$((ignored + 1))
            echo "test dist::$kind ... ignored, as said above"
            ;;
        *)
            failed=$((failed + 1))
            echo "test dist::$kind ... FAILED"
            ;;
        esac
    fi
done
echo "test result: $([ "$failed" = 0 ] && echo ok || echo FAILED). $passed passed; $failed failed; $ignored ignored"
[ "$failed" = 0 ]
