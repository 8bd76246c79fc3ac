# Shared by the scripts in this folder; sourced, never run.
# shellcheck shell=bash

# Where the repository is, whatever the caller's directory was.
# shellcheck disable=SC2034
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)"

# Colours only where a person looks, and only if they did not ask for none (no-color.org).
if [[ -t 1 && -z "${NO_COLOR:-}" && "${TERM:-dumb}" != dumb ]]; then
    bold=$'\e[1m' dim=$'\e[2m' red=$'\e[31m' plain=$'\e[0m'
else
    bold='' dim='' red='' plain=''
fi
export bold dim red plain

# say TEXT… : one line about progress.
say() { printf '%s\n' "$*"; }

# fail TEXT… : one sentence about what is wrong and what to do, then stop.
fail() {
    printf '%s%s%s\n' "$red" "$*" "$plain" >&2
    exit 1
}

# port_taken PORT : true when something listens on that loopback port.
# Connecting is the test, as no tool for listing sockets is sure to be installed.
port_taken() {
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# alive PID : true while the process exists and is not a zombie waiting for its parent.
alive() {
    local state
    state="$(sed -n 's/^State:[[:space:]]*\([A-Z]\).*/\1/p' "/proc/$1/status" 2>/dev/null)" || return 1
    [[ -n "$state" && "$state" != Z && "$state" != X ]]
}

# start_test_postgres DIR : a cluster for tests in DIR, made anew, on a port that is free.
start_test_postgres() {
    local connections_max=300 # Swift Testing runs tests in parallel, each with a database and a pool of its own.
    local port port_first=5540 port_last=5639
    "$root/ops/scripts/postgres" remove "$1" || true # A run that was killed may have left one.
    for ((port = port_first; port <= port_last; port++)); do
        ! port_taken "$port" || continue
        # Between the look and the start another program may take the port; then the next one will do.
        if MARTLET_POSTGRES_CONNECTIONS=$connections_max "$root/ops/scripts/postgres" start "$1" "$port"
        then return 0; fi
        port_taken "$port" || return 1
    done
    fail "No port between $port_first and $port_last is free for the test database."
}

# programs_are_new : true when no source has changed since `make run` built its programs.
# Asking the compiler four times whether there is something to build takes seconds; looking at the files takes none.
programs_stamp=.build/release/.martlet-built
programs_are_new() {
    [[ -e "$programs_stamp" && -z "$(find Sources Package.swift -newer "$programs_stamp" -print -quit)" ]]
}
