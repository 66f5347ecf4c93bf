"""FastMCP's proxy in front of a server at an address: proxy.py URL PORT."""

import sys

from fastmcp.server import create_proxy


def main() -> None:
    url, port = sys.argv[1], int(sys.argv[2])
    proxy = create_proxy(url, name="proxy")
    proxy.run(transport="http", host="127.0.0.1", port=port, path="/mcp", show_banner=False, log_level="error")


main()
