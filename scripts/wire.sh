#!/usr/bin/env bash
# Runs a capture at one end of a wire, and a sender at the other. Needs root, and ip of iproute2.
#
#   scripts/wire.sh [--seconds N] CAPTURE SEND [SEND]...
#
# CAPTURE and SEND are commands for a shell. CAPTURE captures on rx0, SEND sends on tx0: a veth pair between two network
# namespaces, which are removed at the end. SEND begins when CAPTURE says that it captures, which netsniff does without
# --quiet, or after 10 s. After the last SEND the script waits a second, and ends all programs of CAPTURE by SIGINT. --seconds (60)
# is the most that each command may take. To write files as root, CAPTURE needs --no-drop.
#
# Ends with the exit code of CAPTURE, or of the first SEND that failed.
set -euo pipefail
# No configuration file of this machine changes what is run.
export NETSNIFF_CONFIG=

usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | grep -v '^set' >&2
    exit 2
}

seconds=60
[ "${1-}" != --seconds ] || { seconds=${2:?a number}; shift 2; }
[ $# -ge 2 ] || usage
case $1 in -*) usage ;; esac
[ "$(id -u)" = 0 ] || { echo "wire.sh: making network namespaces needs root" >&2; exit 1; }
capture=$1
shift

here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=benches/live/testbed.sh
. "$here/benches/live/testbed.sh"
name=wire$$
scratch=$(mktemp -d)
pid=''

# However this ends, nothing of it goes on.
# shellcheck disable=SC2317
clean() {
    [ -z "$pid" ] || kill -KILL -- "-$pid" 2>/dev/null || true
    testbed_down "$name"
    rm -rf "$scratch"
}
trap clean EXIT
testbed_up "$name"
: >"$scratch/errors"

# The group of its own gets the signal, so that it comes to the program and not to the shell alone.
set -m
ip netns exec "$name-rx" timeout --foreground -k 5 "$seconds" bash -c "$capture" 2>"$scratch/errors" &
pid=$!
set +m
for _ in $(seq 200); do
    ! grep -q '^netsniff: capturing' "$scratch/errors" || break
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.05
done

status=0
for send in "$@"; do
    ip netns exec "$name-tx" timeout -k 5 "$seconds" bash -c "$send" || { status=$?; break; }
done
sleep 1
kill -INT -- "-$pid" 2>/dev/null || true
captured=0
wait "$pid" || captured=$?
pid=''
cat "$scratch/errors" >&2
[ $captured -eq 0 ] || status=$captured
exit $status
