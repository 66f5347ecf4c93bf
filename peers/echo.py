"""The echo of the bench on the official Python SDK, in both eras. The first line says where it is."""

import json
import socket

import uvicorn
from mcp.server.mcpserver import MCPServer

server = MCPServer("echo", log_level="ERROR")


@server.tool()
async def echo(text: str) -> str:
    """Gives back a text."""
    return text


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    # As the other servers do: an answer in two packets must not wait for the reader's kernel.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    app = server.streamable_http_app(json_response=True, max_sessions=None)
    print(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"}), flush=True)
    config = uvicorn.Config(app, log_level="error", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


main()
