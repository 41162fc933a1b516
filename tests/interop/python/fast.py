"""A server written with fastmcp: `fast.py stdio`, or `fast.py PORT` over HTTP."""

import sys

from fastmcp import FastMCP

server = FastMCP("fast")


@server.tool
def echo(text: str) -> str:
    """Says it again."""
    return text


if sys.argv[1] == "stdio":
    server.run(show_banner=False)
else:
    server.run("http", show_banner=False, host="127.0.0.1", port=int(sys.argv[1]))
