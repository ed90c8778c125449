#!/usr/bin/env bash
# Shows that a flood of new connections stays inside the memory that netsniff was given.
#
# Usage: benches/flood.sh [--flows N] [--memory MIB] [--workers N] [--netsniff PATH] [--scratch FOLDER] [--report FOLDER]
#
#   --flows N          flows, one packet each, half SYN and half UDP (10000000)
#   --memory MIB       what --memory gives the program, in MiB (256)
#   --workers N        threads that analyse (1)
#   --netsniff PATH    the binary (built for it)
#   --scratch FOLDER   where workload and logs go: 3 GB for 10 million (netsniff-flood in the temporary folder)
#   --report FOLDER    also adds a row to the table there, dated, with machine and command
#
# Fails where the peak of resident memory exceeds the limit, where a flow or a packet is missing in conn.log, or
# where early ends are not marked.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C
. benches/build.sh

flows=10000000 memory=256 workers=1 netsniff='' scratch=${TMPDIR:-/tmp}/netsniff-flood report=''
while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || { sed -n '2,15s/^# \?//p' "$0"; exit 2; }
    case $1 in
        --flows) flows=$2;; --memory) memory=$2;; --workers) workers=$2;; --netsniff) netsniff=$2;; --scratch) scratch=$2;;
        --report) report=$2;; *) sed -n '2,15s/^# \?//p' "$0"; exit 2;;
    esac
    shift 2
done
mkdir -p "$scratch"

if [ -z "$netsniff" ]; then
    build -p netsniff
    netsniff=$built/netsniff
fi
netsniff=$(realpath "$netsniff")
file=$scratch/flood-$flows.pcap
if [ ! -f "$file" ]; then
    build -p netsniff-traffic --example workload
    "$built/examples/workload" small64 --packets "$flows" --flows "$flows" -o "$file"
fi

out=$scratch/out
rm -rf "$out"
command=(analyze "$file" -o "$out" --memory "${memory}M" --workers "$workers")
/usr/bin/time -o "$scratch/time" -f '%e %U %S %M' "$netsniff" "${command[@]}" >"$scratch/said" 2>&1
read -r wall user system peak < <(tail -1 "$scratch/time")
rows=0 packets=0 early=0
read -r rows packets early < <(awk -F'\t' '
    /^#fields/ { for (n = 2; n <= NF; n++) at[$n] = n - 1 }
    !/^#/ { rows++; packets += $at["orig_pkts"] + $at["resp_pkts"]; early += $at["history"] ~ /X$/ }
    END { print rows + 0, packets + 0, early + 0 }' "$out/conn.log")
rm -rf "$out"

row="| $flows | $workers | $memory MiB | $((peak / 1024)) MiB | $rows | $packets | $early | $wall s, $user s, $system s |"
heading='| flows made | workers | --memory | peak resident | rows in conn.log | packets in them | ended early, marked X | wall, user, system |
|---|---|---|---|---|---|---|---|'
echo "$heading"
echo "$row"

if [ -n "$report" ]; then
    mkdir -p "$report"
    page=$report/$(date -u +%F)-flood.md
    if [ ! -f "$page" ]; then
        {
            echo "# A flood of new connections, $(date -u +%F)"
            echo
            echo "Made by \`benches/flood.sh\`: one packet of 64 bytes for each flow, half TCP SYN, half UDP, 5 million a second, given to"
            echo "\`netsniff analyze FILE -o out --memory MEMORY --workers WORKERS\`. The peak of resident memory must not exceed --memory,"
            echo "and every packet must be in conn.log."
            echo
            echo "- CPU: $(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -1), $(nproc) online; memory $(awk '/MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo)"
            echo "- Kernel $(uname -r)"
            echo "- netsniff $("$netsniff" --version | awk '{ print $2 }') at $(git rev-parse --short=12 HEAD)$(git diff --quiet HEAD -- || echo ' with changes'), $(rustc --version)"
            echo
            echo "$heading"
        } >"$page"
    fi
    echo "$row" >>"$page"
fi

failed=0
complain() { echo "FAILED: $1" >&2; failed=1; }
[ "$peak" -le $((memory * 1024)) ] || complain "the peak is above the limit"
[ "$rows" -eq "$flows" ] || complain "$rows rows for $flows flows"
[ "$packets" -eq "$flows" ] || complain "$packets packets in the rows, $flows in the file"
[ "$early" -gt 0 ] || complain "no flow ended early: the limit was not reached"
exit $failed
