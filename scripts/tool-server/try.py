"""Connects the tool server, looks at its tools, and has the mailbox agent use one.

The language model is played by a small endpoint here: it calls the tool that the message names, and repeats the result.
"""

import http.server
import json
import sys
import threading
import urllib.error
import urllib.request

base, key, tools_url, model_port = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])


class Model(http.server.BaseHTTPRequestHandler):
    """An OpenAI-compatible endpoint."""

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        last = request["messages"][-1]
        if last["role"] == "tool":
            message = {"role": "assistant", "content": "The tool says: " + last["content"]}
        else:
            name, arguments = last["content"].split(" ", 1)
            call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        body = json.dumps({"choices": [{"index": 0, "message": message}]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


threading.Thread(target=http.server.ThreadingHTTPServer(("127.0.0.1", model_port), Model).serve_forever, daemon=True).start()


def call(method, path, body=None):
    """A call of the API."""
    headers = {"x-api-key": key, "content-type": "application/json"} if body is not None else {"x-api-key": key}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
            return json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{method} {path}: {error.code} {error.read().decode()}") from error


made = call("POST", "/api/v1/integrations/connections", {"name": "Zoo", "url": tools_url})
assert made["status"] == "ready", made
assert sorted(made["tools"]) == ["fail", "feed", "legs"], made
assert sorted(made["allowed_tools"]) == ["fail", "legs"], made
synced = call("POST", f"/api/v1/integrations/connections/{made['id']}/sync")
assert synced["status"] == "ready", synced

mailbox = call("POST", "/api/v1/mailboxes", {"name": "Zoo"})
talks = f"/api/v1/mailboxes/{mailbox['public_id']}/agent-conversations"
talk = call("POST", talks, {})


def say(content):
    """Says something to the agent, with the connection."""
    body = {"content": content, "connections": [made["id"]]}
    return call("POST", f"{talks}/{talk['id']}/messages", body)["reply"]


reply = say('zoo1__legs {"animal": "zebra"}')
assert reply["tools"] == [{"name": "zoo1__legs", "outcome": "done"}] and "four" in reply["content"], reply
reply = say("zoo1__fail {}")
assert "not today" in reply["content"] and '\\"is_error\\":true' in json.dumps(reply["content"]), reply
reply = say('zoo1__feed {"animal": "zebra"}')
assert reply["tools"][0]["outcome"] == "failed" and "was fed" not in reply["content"], reply
call("PATCH", f"/api/v1/integrations/connections/{made['id']}", {"allowed_tools": ["feed"]})
reply = say('zoo1__feed {"animal": "zebra"}')
assert "zebra was fed" in reply["content"], reply
call("DELETE", f"/api/v1/integrations/connections/{made['id']}")
print(f"The agent used the tools of {tools_url}.")
