"""Lets httpx make refused calls with late bodies, each followed by one that must work, on connections that are kept.

Takes the server's address, the path of the call that works and how many calls to make; the keys are in GOOD_KEY and
SPENT_KEY. Fails at the first call that is not answered as it should be.
"""

import json
import os
import pathlib
import sys
import time

import httpx

URL, NEXT, COUNT = sys.argv[1], sys.argv[2], int(sys.argv[3])
CALLS = json.loads((pathlib.Path(__file__).parent / "calls.json").read_text())
KEYS = {"good": os.environ["GOOD_KEY"], "spent": os.environ["SPENT_KEY"]}
JSON = {"content-type": "application/json"}


class GivenUp(Exception):
    pass


def late(body):
    """Comes in pieces, the first of them when the refusal is ready."""
    time.sleep(0.001)
    yield body[:5]
    yield body[5:]


def broken():
    yield b"{"
    raise GivenUp


def run(client):
    for number in range(COUNT):
        call = CALLS["refused"][number % len(CALLS["refused"])]
        headers = JSON | ({"x-api-key": KEYS[call["key"]]} if call["key"] else {})
        body = CALLS["body"].encode()
        # httpx sends head and body in segments of their own, also where the body is there from the beginning.
        content = late(body) if number % 2 else body
        if number % 50 == 49:
            # More than is thrown away: over HTTP/1.1 the answer says that the connection ends.
            content = b" " * 400_000
        answer = client.request(call["method"], URL + call["path"], headers=headers, content=content)
        assert answer.status_code == call["status"], (number, call, answer.status_code)
        following(client, number)
        if number % 50 == 24:
            try:
                client.post(URL + "/api/v1/mailboxes", headers=JSON, content=broken())
                raise AssertionError("a body that breaks off was sent")
            except GivenUp:
                following(client, number)


def following(client, number):
    headers = JSON | {"x-api-key": KEYS["good"]}
    answer = client.post(URL + NEXT, headers=headers, content=CALLS["next"]["body"])
    assert answer.status_code == CALLS["next"]["status"], (number, answer.status_code, answer.text)


for http2 in (False, True):
    begun = time.monotonic()
    with httpx.Client(http1=not http2, http2=http2, timeout=20, trust_env=False) as client:
        run(client)
    name = "HTTP/2" if http2 else "HTTP/1.1"
    print(f"httpx {httpx.__version__}, {name}: {COUNT} refused, {time.monotonic() - begun:.1f} s")
