"""Fetches the source archive of a Python package without running anything of it, which `pip download` would.

    python scripts/fetch-sdist.py NAME==VERSION SHA256 FILE

Asks where pip asks: its index, certificates and proxies are those that pip is configured with, because pip's own parts do
the asking. Needs an interpreter that has pip. Ends with 3 when the archive cannot be had, with 1 when it is another one.
"""

import hashlib
import pathlib
import sys

from pip._internal.commands import create_command
from pip._internal.exceptions import PipError
from pip._internal.models.format_control import FormatControl
from pip._vendor.packaging.version import Version
from pip._vendor.requests.exceptions import RequestException

name, version = sys.argv[1].split("==")
wanted, place = sys.argv[2], pathlib.Path(sys.argv[3])

command = create_command("download")
# Archives for other versions of Python are read, never run.
options, _ = command.parse_args(["--quiet", "--retries=2", "--ignore-requires-python", name])
options.format_control = FormatControl({":all:"}, set())
seen = []
try:
    with command.main_context():
        session = command.get_default_session(options)
        finder = command._build_package_finder(options, session, ignore_requires_python=True)
        found = [one.link for one in finder.find_all_candidates(name) if one.version == Version(version)]
        for link in found:
            if link.is_file:
                content = pathlib.Path(link.file_path).read_bytes()
            else:
                answer = session.get(link.url_without_fragment, headers={"Accept-Encoding": "identity"})
                answer.raise_for_status()
                content = answer.content
            if hashlib.sha256(content).hexdigest() == wanted:
                place.write_bytes(content)
                sys.exit(0)
            seen.append(link.filename)
except (PipError, RequestException) as error:
    print(f"{name} {version} cannot be fetched: {error}", file=sys.stderr)
    sys.exit(3)
if seen:
    print(f"{', '.join(seen)}: the checksum is wrong", file=sys.stderr)
    sys.exit(1)
print(f"pip's index offers no source archive of {name} {version}", file=sys.stderr)
sys.exit(3)
