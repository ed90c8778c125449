#!/usr/bin/env bash
# Shows that a flood of new connections stays inside the memory that netsniff was given.
#
# Usage: benches/flood.sh [--flows N] [--memory MIB] [--netsniff PATH] [--scratch FOLDER] [--report FOLDER]
#
#   --flows N          flows, one packet each, half SYN and half UDP (10000000)
#   --memory MIB       what --memory gives the table of flows, in MiB (256)
#   --netsniff PATH    the binary (target/release/netsniff, built if missing)
#   --scratch FOLDER   where workload and logs go: 3 GB for 10 million (netsniff-flood in the temporary folder)
#   --report FOLDER    also writes the table there, dated, with machine and command
#
# Fails where the peak of resident memory exceeds the limit plus 192 MiB, where a flow or a packet is missing in
# conn.log, or where early ends are not marked. The 192 MiB are for what grows with the rate and not with the flows:
# rows wait for the end of their tenth of a second, here half a million of about 200 bytes in buffers that double
# (160), the program, its batches of packets, and what an allocator keeps (32).
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

flows=10000000 memory=256 netsniff='' scratch=${TMPDIR:-/tmp}/netsniff-flood report=''
buffers=192
while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || { sed -n '2,16s/^# \?//p' "$0"; exit 2; }
    case $1 in
        --flows) flows=$2;; --memory) memory=$2;; --netsniff) netsniff=$2;; --scratch) scratch=$2;;
        --report) report=$2;; *) sed -n '2,16s/^# \?//p' "$0"; exit 2;;
    esac
    shift 2
done
mkdir -p "$scratch"

if [ -z "$netsniff" ]; then
    netsniff=target/release/netsniff
    [ -x "$netsniff" ] || cargo build --release -p netsniff
fi
netsniff=$(realpath "$netsniff")
file=$scratch/flood-$flows.pcap
if [ ! -f "$file" ]; then
    cargo build --quiet --release -p netsniff-traffic --example workload
    target/release/examples/workload small64 --packets "$flows" --flows "$flows" -o "$file"
fi

out=$scratch/out
rm -rf "$out"
command=(analyze "$file" -o "$out" --memory "${memory}M" --workers 1)
/usr/bin/time -o "$scratch/time" -f '%e %U %S %M' "$netsniff" "${command[@]}" >"$scratch/said" 2>&1
read -r wall user system peak < <(tail -1 "$scratch/time")
rows=0 packets=0 early=0
read -r rows packets early < <(awk -F'\t' '
    /^#fields/ { for (n = 2; n <= NF; n++) at[$n] = n - 1 }
    !/^#/ { rows++; packets += $at["orig_pkts"] + $at["resp_pkts"]; early += $at["history"] ~ /X$/ }
    END { print rows + 0, packets + 0, early + 0 }' "$out/conn.log")
rm -rf "$out"

table() {
    echo "| | |"
    echo "|---|---|"
    echo "| flows made | $flows |"
    echo "| limit (--memory) | $memory MiB |"
    echo "| peak resident | $((peak / 1024)) MiB, allowed $((memory + buffers)) MiB |"
    echo "| rows in conn.log | $rows |"
    echo "| packets in them | $packets |"
    echo "| ended early, marked X | $early |"
    echo "| wall, user, system | $wall s, $user s, $system s |"
}

table
if [ -n "$report" ]; then
    mkdir -p "$report"
    day=$(date -u +%F)
    {
        echo "# A flood of $flows flows, $day"
        echo
        echo "Made by \`benches/flood.sh --flows $flows --memory $memory\`: one packet of 64 bytes for each flow, half TCP SYN, half UDP,"
        echo "5 million a second. The command was \`netsniff analyze flood-$flows.pcap -o out --memory ${memory}M --workers 1\`."
        echo
        echo "- CPU: $(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -1), $(nproc) online; memory $(awk '/MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo)"
        echo "- Kernel $(uname -r); load when it ended: $(cut -d' ' -f1-3 /proc/loadavg)"
        echo "- netsniff $("$netsniff" --version | awk '{ print $2 }') at $(git rev-parse --short=12 HEAD)$(git diff --quiet HEAD -- || echo ' with changes'), $(rustc --version)"
        echo
        table
    } >"$report/$day-flood.md"
fi

failed=0
complain() { echo "FAILED: $1" >&2; failed=1; }
[ "$peak" -le $(((memory + buffers) * 1024)) ] || complain "the peak is above the limit and $buffers MiB"
[ "$rows" -eq "$flows" ] || complain "$rows rows for $flows flows"
[ "$packets" -eq "$flows" ] || complain "$packets packets in the rows, $flows in the file"
[ "$early" -gt 0 ] || complain "no flow ended early: the limit was not reached"
exit $failed
