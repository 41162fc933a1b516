"""A server written with the Python SDK: `sdk.py stdio`, or `sdk.py PORT` over HTTP."""

import sys

from mcp.server import MCPServer

server = MCPServer("sdk")


@server.tool()
def echo(text: str) -> str:
    """Says it again."""
    return text


if sys.argv[1] == "stdio":
    server.run()
else:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
