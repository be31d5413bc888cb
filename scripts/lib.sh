# shellcheck shell=bash
# What the scripts share. It is sourced, by scripts that have said `set -euo pipefail`.
#
# What gets something returns 3 when that cannot be had, as without a network; the caller then says SKIPPED. Every other
# failure is one, above all a checksum that is wrong. Whatever is told about the work goes to standard error, because
# several scripts print a result.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# What the scripts install for themselves. Deleting it costs nothing but time.
tools=$root/.tools
# Ahead of what else is installed: a program lands there only when nothing else would do.
export PATH=$tools/bin:$PATH

# Runs a command whose words matter only when it fails.
quietly() {
    local output status=0
    output=$("$@" 2>&1) || status=$?
    if ((status != 0)); then
        printf '%s\n' "$output" >&2
    fi
    return "$status"
}

# Ends a script that cannot get what it needs: `… || skipped $? "what was not done"`.
skipped() {
    if (($1 == 3)); then
        echo "SKIPPED: $2"
        exit 0
    fi
    exit "$1"
}

# Installs Debian packages. The services among them are not started: the tests start what they need, from folders of
# their own.
apt_install() {
    local as_root=() policy=/usr/sbin/policy-rc.d made='' status=0
    if ! command -v apt-get >/dev/null; then
        echo "These are needed, and apt-get is not here to install them: $*" >&2
        return 3
    fi
    if ((EUID != 0)); then
        if ! command -v sudo >/dev/null; then
            echo "These packages are needed, and only root can install them: $*" >&2
            return 3
        fi
        as_root=(sudo)
    fi
    echo "Installing $*" >&2
    if [[ ! -e $policy ]]; then
        # shellcheck disable=SC2016 # the inner shell expands it
        "${as_root[@]}" sh -c 'printf "#!/bin/sh\nexit 101\n" >"$1" && chmod +x "$1"' - "$policy" || return 1
        made=$policy
    fi
    quietly "${as_root[@]}" apt-get -qq update &&
        quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get -qq install --yes --no-install-recommends "$@" || status=3
    if [[ -n $made ]]; then
        "${as_root[@]}" rm -f "$made"
    fi
    return "$status"
}

# Installs the Debian packages of programs that are missing: `need_programs npm node:nodejs`, where the package is called
# otherwise than the program.
need_programs() {
    local wanted missing=()
    for wanted in "$@"; do
        PATH=$PATH:/usr/sbin command -v "${wanted%%:*}" >/dev/null || missing+=("${wanted##*:}")
    done
    if ((${#missing[@]} > 0)); then
        apt_install "${missing[@]}"
    fi
}

have_python() {
    python3 -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

# Makes an empty Python environment, which has pip.
make_environment() {
    if ! have_python; then
        apt_install python3 python3-venv || return
        if ! have_python; then
            echo "There is no Python 3.11 or later with venv." >&2
            return 3
        fi
    fi
    rm -rf "$1"
    mkdir -p "$(dirname "$1")"
    quietly python3 -m venv "$1"
}

# Prints the interpreter of an environment that has what scripts/pins/NAME.txt pins: `python_environment NAME [OPTION…]`,
# with options for pip. It is made again when the pins or Python change.
python_environment() {
    local pins=$root/scripts/pins/$1.txt place=$tools/python/$1 wanted output
    wanted="$(python3 --version 2>/dev/null) $(sha256sum <"$pins")"
    if [[ $(cat "$place/version" 2>/dev/null) != "$wanted" ]] || ! "$place/bin/python" -c '' 2>/dev/null; then
        make_environment "$place" || return
        echo "Installing $1 with pip" >&2
        if ! output=$("$place/bin/python" -m pip --quiet --disable-pip-version-check --no-input --retries 2 \
            install --require-hashes --requirement "$pins" "${@:2}" 2>&1); then
            printf '%s\n' "$output" >&2
            # Something else than what is pinned, or pins that do not fit together, are for somebody to look at.
            if grep --quiet --extended-regexp 'HASHES|require-hashes|ResolutionImpossible' <<<"$output"; then
                return 1
            fi
            return 3
        fi
        # Python may have been installed just now.
        echo "$(python3 --version) $(sha256sum <"$pins")" >"$place/version"
    fi
    echo "$place/bin/python"
}

# Fetches the source archive of a Python package into a file, without running anything of it:
# `fetch_sdist talon==1.4.4 SHA256 FILE`.
fetch_sdist() {
    local place=$tools/python/plain
    if ! "$place/bin/python" -m pip --version >/dev/null 2>&1; then
        make_environment "$place" || return
    fi
    echo "Fetching the source of $1" >&2
    "$place/bin/python" "$root/scripts/fetch-sdist.py" "$@" >&2
}

# Whether there are Node.js 20 or later and npm; installs Debian's if there are none.
need_node() {
    need_programs node:nodejs npm || return
    if ! node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)'; then
        echo "Node.js is older than version 20." >&2
        return 3
    fi
}

# Installs the npm packages of SOURCE's lock file into FOLDER, without running anything of theirs:
# `npm_packages SOURCE FOLDER [OPTION…]`. They are installed again when the lock file changes. $npm_command may say another
# way than `npm ci`.
npm_packages() {
    local source=$1 folder=$2 wanted output
    shift 2
    wanted=$(cat "$source/package.json" "$source/package-lock.json" | sha256sum)
    if [[ $(cat "$folder/node_modules/.version" 2>/dev/null) == "$wanted" ]]; then
        return
    fi
    mkdir -p "$folder"
    if [[ ! $source -ef $folder ]]; then
        cp "$source/package.json" "$source/package-lock.json" "$folder"
    fi
    echo "Installing the packages of $source with npm" >&2
    if ! output=$(cd "$folder" && npm "${npm_command:-ci}" --loglevel=error --no-audit --no-fund --ignore-scripts "$@" 2>&1); then
        printf '%s\n' "$output" >&2
        # Something else than what is locked is for somebody to look at.
        if grep --quiet --extended-regexp 'EINTEGRITY|EUSAGE' <<<"$output"; then
            return 1
        fi
        return 3
    fi
    echo "$wanted" >"$folder/node_modules/.version"
}

# Puts a program of scripts/pins/cargo-tools.txt into .tools/bin. Only this one, so that the environment's Python does
# not hide the machine's.
cargo_tool() {
    local python
    python=$(python_environment cargo-tools) || return
    mkdir -p "$tools/bin"
    ln --symbolic --force "${python%/*}/$1" "$tools/bin/$1"
}

# Whether cargo-nextest is here and this machine can run it; tries to get it.
need_nextest() {
    cargo nextest --version >/dev/null 2>&1 ||
        { cargo_tool cargo-nextest && cargo nextest --version >/dev/null 2>&1; }
}

# Whether somebody listens on a port of this machine.
port_answers() {
    (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# Prints as many different ports as wanted on which nobody listens at the moment. They lie below the range from which the
# kernel takes ports for outgoing connections.
free_ports() {
    local found=() port
    while ((${#found[@]} < $1)); do
        port=$((20000 + RANDOM % 12000))
        if [[ " ${found[*]-} " != *" $port "* ]] && ! port_answers "$port"; then
            found+=("$port")
        fi
    done
    echo "${found[@]}"
}

# Waits until somebody listens on a port, for 20 seconds.
wait_for_port() {
    local tenths
    for ((tenths = 0; tenths < 200; tenths++)); do
        if port_answers "$1"; then
            return
        fi
        sleep 0.1
    done
    echo "Nobody listens on port $1." >&2
    return 1
}

# Prints the text of a field of the JSON in standard input.
json_text() {
    grep --only-matching --max-count=1 "\"$1\": *\"[^\"]*\"" | cut --delimiter='"' --fields=4
}

# The rest is for scripts that work with a running service.

folder=
children=()

# Makes $folder, which is gone when the script ends, as are the processes in $children.
make_folder() {
    folder=$(mktemp --directory)
    trap clean_up_folder EXIT
}

# shellcheck disable=SC2317 # a trap calls it
clean_up_folder() {
    if ((${#children[@]} > 0)); then
        kill "${children[@]}" 2>/dev/null || true
        wait "${children[@]}" 2>/dev/null || true
    fi
    rm -rf "$folder"
}

# Starts the service that was built last, with settings such as AGENT_MAILBOX__AI__MODEL=played, on ports that the
# system chooses. Sets $program and $address. The data are in $folder/data, the log in $folder/log.
start_service() {
    local tenths server
    program=${CARGO_TARGET_DIR:-$root/target}/debug/agent-mailbox
    if [[ ! -x $program ]]; then
        echo "$program is missing: run \`cargo build -p server\`" >&2
        return 1
    fi
    program=$(realpath "$program")
    if [[ -z $folder ]]; then
        make_folder
    fi
    # Before the program has it, the log is looked at.
    : >"$folder/log"
    env AGENT_MAILBOX__HTTP__LISTEN=127.0.0.1:0 AGENT_MAILBOX__SMTP__LISTEN=127.0.0.1:0 AGENT_MAILBOX__LOG__FORMAT=json "$@" \
        "$program" --data-dir "$folder/data" serve >"$folder/out" 2>"$folder/log" &
    server=$!
    children+=("$server")
    # The log tells which port it has.
    for ((tenths = 0; tenths < 200; tenths++)); do
        address=$(json_text address <"$folder/log" || true)
        if [[ -n $address ]]; then
            return
        fi
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    echo "The service did not start:" >&2
    cat "$folder/out" "$folder/log" >&2
    return 1
}

# What an operator does at the command line of the service.
admin() {
    "$program" --data-dir "$folder/data" admin "$@" --json
}

# Makes an account and prints an API key of its workspace: `new_key agent@people.test developer`.
new_key() {
    local workspace
    workspace=$(admin account create --email "$1" --password-stdin --plan "$2" <<<'correct horse battery' | json_text workspace_id)
    admin key create --workspace "$workspace" | json_text key
}
