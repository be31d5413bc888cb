"""A tool server made with the official Python SDK of the Model Context Protocol, over streamable HTTP."""

import sys

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("Animals")


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def legs(animal: str) -> str:
    """Tells how many legs an animal has."""
    return {"zebra": "four", "bird": "two"}.get(animal, "unknown")


@server.tool()
def feed(animal: str) -> str:
    """Feeds an animal."""
    return f"{animal} was fed"


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def fail() -> str:
    """Always fails."""
    raise ValueError("not today")


# Answers as a stream of events with a session, or as plain JSON without one.
plain = sys.argv[2] == "json"
server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]), json_response=plain, stateless_http=plain)
