"""Runs Python examples one after the other: a line of JSON in, a line of JSON out. Starting Python for each takes longer."""

import contextlib
import io
import json
import os
import sys
import traceback

for line in sys.stdin:
    job = json.loads(line)
    os.environ.update(job["env"])
    printed, error = io.StringIO(), None
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(job["code"], job["id"], "exec"), {"__name__": "__main__"})
    except Exception as failure:
        response = getattr(failure, "response", None)
        error = traceback.format_exc() + (response.text if response is not None else "")
    print(json.dumps({"printed": printed.getvalue(), "error": error}), flush=True)
