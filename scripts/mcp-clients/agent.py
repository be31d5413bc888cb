"""Lets the official Python SDK of the Model Context Protocol work with a running server, over HTTP and over the bridge.

Takes the server's address and the program; the key is in AGENT_MAILBOX_API_KEY. Knows version 1 of the SDK, which begins with
a handshake, and version 2, which can do without. Fails at the first thing that is not as it should be.
"""

import asyncio
import importlib.metadata
import os
import sys
import time
from contextlib import AsyncExitStack, asynccontextmanager

import mcp
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

URL, PROGRAM = sys.argv[1:3]
KEY = os.environ["AGENT_MAILBOX_API_KEY"]
NEWEST = hasattr(mcp, "Client")
VERSION = importlib.metadata.version("mcp")


def field(thing, camel, snake):
    """The SDK's two versions spell fields differently."""
    return getattr(thing, camel, None) if hasattr(thing, camel) else getattr(thing, snake)


def content(result):
    return field(result, "structuredContent", "structured_content")


def failed(result):
    return field(result, "isError", "is_error")


def over_http(profile=None):
    if NEWEST:
        import httpx2 as httpx
    else:
        import httpx
    client = httpx.AsyncClient(headers={"x-api-key": KEY}, timeout=60)
    return streamable_http_client(f"{URL}/mcp" + (f"?profile={profile}" if profile else ""), http_client=client)


def over_bridge(profile=None):
    arguments = ["mcp", "--url", URL] + (["--profile", profile] if profile else [])
    environment = {"AGENT_MAILBOX_API_KEY": KEY, "PATH": os.environ["PATH"]}
    return StdioServerParameters(command=PROGRAM, args=arguments, env=environment)


@asynccontextmanager
async def connected(place, mode):
    """A client at either place, with the handshake or without."""
    async with AsyncExitStack() as stack:
        if NEWEST:
            yield await stack.enter_async_context(mcp.Client(place, mode=mode))
            return
        transport = stdio_client(place) if isinstance(place, StdioServerParameters) else place
        streams = await stack.enter_async_context(transport)
        session = await stack.enter_async_context(ClientSession(streams[0], streams[1]))
        greeting = await session.initialize()
        assert "untrusted" in greeting.instructions
        yield session


async def work(client, name):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert {"list_emails", "get_email_context", "send_email", "wait_for_email", "get_verification"} <= tools.keys()
    assert field(tools["list_emails"].annotations, "readOnlyHint", "read_only_hint") is True

    async def call(tool, **arguments):
        result = await client.call_tool(tool, arguments)
        assert not failed(result), f"{tool}: {result}"
        return content(result)

    made = await call("create_mailbox", name=name, idempotencyKey=name)
    assert made == await call("create_mailbox", name=name, idempotencyKey=name)
    address = made["email"]

    # A mail arrives while the agent waits for it.
    waiting = asyncio.create_task(call("wait_for_email", mailboxId=address, subject="Welcome", timeout_seconds=20))
    await asyncio.sleep(0.3)
    text = "Your verification code is 482913."
    sent = await call("send_email", mailboxId=address, to=address, subject="Welcome", text=text, idempotencyKey=f"{name} sends")
    assert sent["status"] == "sent", sent
    email = (await waiting)["email"]
    found = await call("get_verification", mailboxId=address, emailId=email["id"])
    assert [code["value"] for code in found["codes"]] == ["482913"], found
    context = await call("get_email_context", mailboxId=address, emailId=email["id"])
    assert text in context["email"]["body"]

    refused = await client.call_tool("get_email", {"mailboxId": address, "emailId": "eml_none"})
    assert failed(refused) and content(refused)["code"] == "not_found", refused

    # Whoever stops waiting is not kept, and the connection goes on.
    begun = time.monotonic()
    try:
        await asyncio.wait_for(call("wait_for_email", mailboxId=address, subject="Never", timeout_seconds=60), 0.5)
        raise AssertionError("nobody wrote that mail")
    except (asyncio.TimeoutError, TimeoutError):
        pass

    proposed = await call("delete_mailbox", mailboxId=address)
    assert proposed["status"] == "confirmation_required"
    await call("get_mailbox", mailboxId=address)
    await call("delete_mailbox", mailboxId=address, confirmationToken=proposed["confirmationToken"])
    gone = await client.call_tool("get_mailbox", {"mailboxId": address})
    assert failed(gone) and content(gone)["code"] == "not_found", gone
    assert time.monotonic() - begun < 20
    return len(tools)


async def main():
    modes = ["auto", "legacy"] if NEWEST else ["legacy"]
    for place in (over_http, over_bridge):
        for mode in modes:
            begun = time.monotonic()
            async with connected(place("full"), mode) as client:
                # A name of its own for every run: it is also the idempotency key.
                count = await work(client, f"{VERSION} {place.__name__} {mode}")
            async with connected(place(), mode) as client:
                default = [tool.name for tool in (await client.list_tools()).tools]
                assert len(default) <= 25 and "send_email" in default and "delete_mailbox" not in default, default
            async with connected(place("agent-inbox"), mode) as client:
                safe = [tool.name for tool in (await client.list_tools()).tools]
                assert "wait_for_email" in safe and "send_email" not in safe, safe
            taken = time.monotonic() - begun
            print(f"{place.__name__}, {mode}: {count} tools, {len(safe)} of them safe, {taken:.1f} s")


asyncio.run(main())
