#!/usr/bin/env bash
# Whether two builds of netsniff write the same bytes: every log and the JSON summary of every capture.
#
#   scripts/identity.sh [--workers 1,2,3] [--live] [--ignore NAME]... BEFORE AFTER PATH...
#
# --ignore names a member of the summary that is meant to differ, such as peak_bytes.
# BEFORE and AFTER are netsniff programs. A PATH is a capture, or a folder that is searched for captures.
# Both run once with each number of workers. With --live (needs root) the captures are
# also replayed over a veth pair in namespaces of the script's own: AFTER analyses and records them, and
# BEFORE must write the same logs from the recording.
#
# Prints what was compared and what was left out. Ends with 0 if nothing differs.
set -euo pipefail
# No configuration file of this machine changes what is compared.
export NETSNIFF_CONFIG=

usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | grep -v '^set' >&2
    exit 2
}

workers=1,2,3 live=no ignored=(elapsed_seconds)
while [ $# -gt 0 ]; do
    case $1 in
        --workers) workers=${2:?a list of numbers}; shift 2 ;;
        --live) live=yes; shift ;;
        --ignore) ignored+=("${2:?a name}"); shift 2 ;;
        -*) usage ;;
        *) break ;;
    esac
done
[ $# -ge 3 ] || usage
before=$(realpath "$1") after=$(realpath "$2")
shift 2
here=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"; [ $live = no ] || testbed_down identity' EXIT
runs=0 logs=0 bytes=0 differing=0 failed=0

# Times of the run itself are no part of what was found.
normalize() {
    find "$1" -name '*.log' -exec sed -i -e '/^#open\t/d' -e '/^#close\t/d' {} +
    [ ! -e "$1/summary.json" ] || jq -S "del($(printf '(.. | .%s?),' "${ignored[@]}" | sed 's/,$//'))" "$1/summary.json" >"$1/summary.sorted"
    rm -f "$1/summary.json"
}

# analyse PROGRAM FOLDER ARGUMENTS...: logs, summary, messages and exit code go to FOLDER.
analyse() {
    local program=$1 folder=$2 status=0
    shift 2
    mkdir -p "$folder"
    "$program" analyze --json --unparsed 64M -o "$folder" "$@" \
        >"$folder/summary.json" 2>"$folder/errors" || status=$?
    echo $status >"$folder/status"
    sed -i "s|$folder||g" "$folder/errors" "$folder/summary.json"
    normalize "$folder"
}

compare() {
    runs=$((runs + 1))
    logs=$((logs + $(find "$2" -name '*.log' | wc -l)))
    bytes=$((bytes + $(du -sb "$2" | cut -f1)))
    if ! diff -rq "$1" "$2" >"$scratch/differences"; then
        differing=$((differing + 1))
        echo "differs: $3"
        sed "s|$scratch/||g; s/^/    /" "$scratch/differences"
    fi
}

captures() {
    find "$@" -type f \( -name '*.pcap' -o -name '*.pcapng' -o -name '*.cap' -o -name '*.trace' -o -name '*.pcap.*' \) | sort
}

while IFS= read -r capture; do
    for number in ${workers//,/ }; do
        analyse "$before" "$scratch/before" --workers "$number" "$capture"
        analyse "$after" "$scratch/after" --workers "$number" "$capture"
        [ "$(cat "$scratch/before/status")" = 0 ] || failed=$((failed + 1))
        compare "$scratch/before" "$scratch/after" "$capture --workers $number"
        rm -rf "$scratch/before" "$scratch/after"
    done
done < <(captures "$@")

# replayed CAPTURE: both sides of a live run.
replayed() {
    local live_run="$scratch/live" recording="$scratch/recording.pcapng" pid
    rm -rf "$live_run" "$scratch/file" "$recording"
    mkdir -p "$live_run"
    : >"$live_run/errors"
    ip netns exec identity-rx "$after" analyze -i rx0 --record "$recording" -o "$live_run" --no-drop --workers 1 \
        >/dev/null 2>"$live_run/errors" &
    pid=$!
    for _ in $(seq 200); do
        ! grep -q '^netsniff: capturing' "$live_run/errors" || break
        sleep 0.05
    done
    ip netns exec identity-tx timeout 60 "$after" replay -i tx0 --pps 20000 "$1" >/dev/null 2>"$scratch/replay" || true
    sleep 0.5
    kill -INT $pid 2>/dev/null || true
    wait $pid || true
    if [ ! -s "$recording" ]; then
        tail -qn 1 "$live_run/errors" "$scratch/replay" >&2
        return 1
    fi
    analyse "$before" "$scratch/file" --workers 1 "$recording"
    # Live packets that are kept unparsed have an interface of their own. What ends with the run ends later live.
    rm -f "$live_run"/{capture.log,unparsed.pcapng,errors} "$scratch"/file/{summary.sorted,unparsed.pcapng,errors,status}
    normalize "$live_run"
    find "$live_run" "$scratch/file" -name tunnel.log -exec sed -i '/Tunnel::CLOSE/s/^[0-9.]*/-/' {} +
}

if [ $live = yes ]; then
    # shellcheck source=benches/live/testbed.sh
    . "$here/benches/live/testbed.sh"
    testbed_up identity
    left=0
    while IFS= read -r capture; do
        if replayed "$capture"; then
            compare "$scratch/file" "$scratch/live" "$capture live"
        else
            left=$((left + 1))
            echo "left out live: $capture"
        fi
    done < <(captures "$@")
    echo "live: $left captures left out"
fi

echo "$runs runs compared: $logs logs, $bytes bytes; BEFORE failed in $failed of them (exit codes and messages are compared)"
echo "left out: times of opening and closing logs, and ${ignored[*]} of the summary"
echo "$differing runs differ"
[ $differing -eq 0 ] && [ $runs -gt 0 ]
