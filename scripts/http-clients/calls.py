"""Lets httpx and libcurl make refused calls with late bodies, each followed by one that must work, on kept connections.

Takes the server's address, the path of the call that works and how many calls to make; the keys are in GOOD_KEY and
SPENT_KEY, and the calls in the file that CALLS names. Fails at the first call that is not answered as it should be.
"""

import json
import os
import sys
import time

import httpx
import pycurl

URL, NEXT, COUNT = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open(os.environ["CALLS"]) as file:
    CALLS = json.load(file)
KEYS = {"good": os.environ["GOOD_KEY"], "spent": os.environ["SPENT_KEY"]}


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


def headers(key):
    return {"content-type": "application/json"} | ({"x-api-key": KEYS[key]} if key else {})


class Httpx:
    """Sends head and body in segments of their own, also where the body is there from the beginning."""

    name = f"httpx {httpx.__version__}"

    def __init__(self, http2):
        self.client = httpx.Client(http1=not http2, http2=http2, timeout=20, trust_env=False)

    def call(self, method, path, key, body, on_demand):
        more = {"expect": "100-continue"} if on_demand else {}
        return self.client.request(method, URL + path, headers=headers(key) | more, content=body).status_code


class Curl:
    """One handle, whose connections are kept. The program of that name has a version on every system, some of which cannot
    use a connection of HTTP/2 twice."""

    name = " ".join(pycurl.version.split(" ")[:2])

    def __init__(self, http2):
        self.http2, self.handle = http2, pycurl.Curl()

    def call(self, method, path, key, body, on_demand):
        handle, more = self.handle, {"expect": "100-continue" if on_demand else ""}
        handle.reset()
        handle.setopt(pycurl.URL, URL + path)
        handle.setopt(pycurl.NOPROXY, "*")
        handle.setopt(pycurl.TIMEOUT, 20)
        version = pycurl.CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE if self.http2 else pycurl.CURL_HTTP_VERSION_1_1
        handle.setopt(pycurl.HTTP_VERSION, version)
        handle.setopt(pycurl.HTTPHEADER, [f"{name}: {value}" for name, value in (headers(key) | more).items()])
        handle.setopt(pycurl.WRITEFUNCTION, len)
        handle.setopt(pycurl.POST, 1)
        handle.setopt(pycurl.CUSTOMREQUEST, method)
        if isinstance(body, bytes):
            handle.setopt(pycurl.POSTFIELDS, body)
            handle.perform()
        else:
            self.send(body)
        return handle.getinfo(pycurl.RESPONSE_CODE)

    def send(self, pieces):
        gone = []

        def read(_):
            try:
                return next(pieces, b"")
            except GivenUp:
                gone.append(True)
                return pycurl.READFUNC_ABORT

        self.handle.setopt(pycurl.READFUNCTION, read)
        try:
            self.handle.perform()
        except pycurl.error:
            if gone:
                raise GivenUp from None
            raise


def following(client, number):
    status = client.call("POST", NEXT, "good", CALLS["next"]["body"].encode(), False)
    assert status == CALLS["next"]["status"], f"{client.name} after call {number}: {status}"


def run(client):
    for number in range(COUNT):
        call = CALLS["refused"][number % len(CALLS["refused"])]
        body = CALLS["body"].encode()
        if number % 2:
            body = late(body)
        if number % 50 == 49:
            # More than is thrown away: over HTTP/1.1 the answer says that the connection ends.
            body = b" " * 400_000
        status = client.call(call["method"], call["path"], call["key"], body, on_demand=number % 30 == 10)
        assert status == call["status"], f"{client.name}, call {number}, {call}: {status}"
        following(client, number)
        if number % 50 == 24:
            try:
                client.call("POST", "/api/v1/mailboxes", None, broken(), False)
                raise AssertionError("a body that breaks off was sent")
            except GivenUp:
                following(client, number)


for kind in (Httpx, Curl):
    for http2 in (False, True):
        begun = time.monotonic()
        run(kind(http2))
        version = "HTTP/2" if http2 else "HTTP/1.1"
        print(f"{kind.name}, {version}: {COUNT} refused, {time.monotonic() - begun:.1f} s")
