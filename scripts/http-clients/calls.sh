#!/usr/bin/env bash
# Lets one curl make refused calls with late bodies, each followed by one that must work, on connections that are kept.
#
# Takes the server's address, the path of the call that works and how many calls to make; the keys are in GOOD_KEY and
# SPENT_KEY, and the calls in the file that CALLS names.
set -euo pipefail
url=$1 next=$2 count=$3
folder=$(mktemp --directory)
trap 'rm -rf "$folder"' EXIT

# One line for each call: method, path, key, status, body.
lines() {
    python3 - "$CALLS" "$next" "$count" <<'PYTHON'
import json, sys
calls, next, count = json.load(open(sys.argv[1])), sys.argv[2], int(sys.argv[3])
for number in range(count):
    call = calls["refused"][number % len(calls["refused"])]
    print(call["method"], call["path"], call["key"] or "none", call["status"], calls["body"], sep="\t")
    print("POST", next, "good", calls["next"]["status"], calls["next"]["body"], sep="\t")
PYTHON
}

for version in http1.1 http2-prior-knowledge; do
    begun=$SECONDS number=0
    : >"$folder/config" && : >"$folder/wanted"
    while IFS=$'\t' read -r method path key status body; do
        {
            ((number == 0)) || echo next
            printf 'url = "%s%s"\nrequest = "%s"\n%s\n' "$url" "$path" "$method" "$version"
            printf 'header = "content-type: application/json"\ndata = "%s"\n' "${body//\"/\\\"}"
            case $key in
                good) printf 'header = "x-api-key: %s"\n' "$GOOD_KEY" ;;
                spent) printf 'header = "x-api-key: %s"\n' "$SPENT_KEY" ;;
            esac
            # Every third pair holds its body back until it is asked for it, or a moment is over.
            if ((number / 2 % 3 == 2 && number % 2 == 0)); then
                printf 'header = "Expect: 100-continue"\nexpect100-timeout = 0.01\n'
            fi
            printf 'noproxy = "*"\noutput = "/dev/null"\nwrite-out = "%%{http_code}\\n"\nsilent\nshow-error\nmax-time = 20\n'
        } >>"$folder/config"
        echo "$status" >>"$folder/wanted"
        number=$((number + 1))
    done < <(lines)
    # Without the file of whoever runs it.
    curl --disable --config "$folder/config" >"$folder/got"
    if ! cmp --silent "$folder/wanted" "$folder/got"; then
        echo "curl, $version: not every call was answered as it should be:" >&2
        diff "$folder/wanted" "$folder/got" | head >&2
        exit 1
    fi
    echo "$(curl --version | head -n 1 | cut -d ' ' -f 1,2), $version: $count refused, $((SECONDS - begun)) s"
done
