"""An MCP server in Python whose tools try to reach things: through the proxy that its
environment names, and around it."""
import json
import os
import socket
import sys
import threading
import time
import urllib.request
from multiprocessing import shared_memory


def get(url):
    with urllib.request.urlopen(url, timeout=10) as reply:
        return reply.read().decode()


def dial(host, port):
    with socket.create_connection((host, port), timeout=10) as stream:
        stream.sendall(b"GET / HTTP/1.0\r\nHost: lab\r\n\r\n")
        heard = b""
        while part := stream.recv(4096):
            heard += part
        return heard.decode()


def later(urls, after):
    """Answers first; gets each of them in turn when the file `after` is there."""
    def work():
        for _ in range(1_000):
            if os.path.exists(after):
                break
            time.sleep(0.02)
        for url in urls:
            try:
                get(url)
            except OSError:
                pass
    threading.Thread(target=work, daemon=True).start()
    return "later"


def local():
    block = shared_memory.SharedMemory(create=True, size=64)
    block.buf[0] = 7
    value = block.buf[0]
    block.close()
    block.unlink()
    one, other = socket.socketpair()
    one.sendall(b"x")
    return f"{value} {other.recv(1).decode()}"


TEXT = {"type": "string"}
TOOLS = {
    "get": (get, {"url": TEXT}),
    "dial": (dial, {"host": TEXT, "port": {"type": "integer"}}),
    "later": (later, {"urls": {"type": "array", "items": TEXT}, "after": TEXT}),
    "local": (local, {}),
}


def call(params):
    work, _ = TOOLS[params["name"]]
    try:
        words, failed = work(**params.get("arguments", {})), False
    except Exception as error:
        words, failed = f"{type(error).__name__}: {error}", True
    return {"content": [{"type": "text", "text": words}], "isError": failed}


def listed():
    schema = lambda properties: {"type": "object", "properties": properties}
    return [{"name": name, "inputSchema": schema(fields)} for name, (_, fields) in TOOLS.items()]


for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params", {})
    if method == "initialize":
        result = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "reach", "version": "1.0.0"},
        }
    elif method == "tools/list":
        result = {"tools": listed()}
    elif method == "tools/call":
        result = call(params)
    else:
        result = {}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
