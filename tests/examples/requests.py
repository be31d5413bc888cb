"""The few calls of `requests` that the examples make, over the standard library, for machines without that package."""

import http.cookies
import json as encoder
import urllib.error
import urllib.request


class HTTPError(Exception):
    def __init__(self, response):
        super().__init__(f"{response.status_code}: {response.text}")
        self.response = response


class Response:
    def __init__(self, answer, stream):
        self.answer, self.status_code, self.headers = answer, answer.status, answer.headers
        self.content = b"" if stream else answer.read()
        self.cookies = {}
        for line in answer.headers.get_all("set-cookie") or []:
            for name, morsel in http.cookies.SimpleCookie(line).items():
                self.cookies[name] = morsel.value

    @property
    def text(self):
        return self.content.decode(errors="replace")

    def json(self):
        return encoder.loads(self.content)

    def raise_for_status(self):
        if self.status_code >= 400:
            raise HTTPError(self)

    def iter_lines(self, decode_unicode=False):
        for line in self.answer:
            yield line.rstrip(b"\r\n").decode()


def request(method, url, headers=None, json=None, data=None, stream=False):
    headers = dict(headers or {})
    if json is not None:
        headers["content-type"], data = "application/json", encoder.dumps(json)
    body = data.encode() if isinstance(data, str) else data
    asked = urllib.request.Request(url, data=body, headers=headers, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        return Response(opener.open(asked), stream)
    except urllib.error.HTTPError as refused:
        return Response(refused, False)


def get(url, **more):
    return request("GET", url, **more)


def post(url, **more):
    return request("POST", url, **more)


def put(url, **more):
    return request("PUT", url, **more)


def patch(url, **more):
    return request("PATCH", url, **more)


def delete(url, **more):
    return request("DELETE", url, **more)
