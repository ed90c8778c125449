#!/usr/bin/env bash
# How the cost of a packet and the memory of a flow grow: with flows, with transactions a second, and with losses.
# Writes a dated report with a drawing.
#
# Usage: benches/growth.sh [--rounds N] [--netsniff PATH] [--scratch FOLDER] [--captures FOLDER]... [--report FOLDER]
#                          [--scale F]
#
#   --rounds N         how often each is analysed (3); the report has medians
#   --netsniff PATH    the binary to measure (built for it)
#   --scratch FOLDER   where workloads and outputs go: 12 GB (netsniff-bench in the temporary folder)
#   --captures FOLDER  a source of the mix, may be repeated
#   --report FOLDER    where the report goes (docs/measurements)
#   --scale F          workloads of F times the size, to try the script; such a report is marked
#
# Needs Debian's packages time and python3. All runs have one worker on the last CPU and write all logs.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C
. benches/build.sh

rounds=3 netsniff='' scratch=${TMPDIR:-/tmp}/netsniff-bench report=docs/measurements scale=1 captures=()
while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || { sed -n '5,15s/^# \?//p' "$0"; exit 2; }
    case $1 in
        --rounds) rounds=$2;; --netsniff) netsniff=$2;; --scratch) scratch=$2;; --report) report=$2;; --scale) scale=$2;;
        --captures) captures+=(--captures "$2");; *) sed -n '5,15s/^# \?//p' "$0"; exit 2;;
    esac
    shift 2
done
captures+=(--captures fixtures/recorded)
cpu=$(($(nproc) - 1))
begin_report growth
drawing=$report/$day-growth$trial.svg

build_measured

scaled() { awk "BEGIN { n = $1 * $scale; printf \"%d\", n < 1 ? 1 : n }"; }

# flows_of FLOWS, transactions_of RATE, losses_of PERCENT: each makes the file $scratch/growth.pcap.
flows_of() {
    local packets=$(($1 > 1000000 ? 10 * $1 : 10000000))
    "$builder" small64 --packets "$(scaled $packets)" --flows "$(scaled "$1")" -o "$file"
}
transactions_of() {
    "$netsniff" generate hosts --n "$1" --think 1s --sessions "$(scaled 40000)" --mix http --mix dns --start 1767225600 -q -w "$file"
}
losses_of() {
    "$builder" mix "${captures[@]}" --scale "$scale" --loss "$(awk "BEGIN { print $1 / 100 }")" -o "$file" >/dev/null
}

# measure AXIS VALUE: some rounds over what AXIS_of VALUE makes; a run of nothing first.
measure() {
    local round status
    file=$scratch/growth.pcap
    "$1_of" "$2"
    cat "$file" >/dev/null
    for ((round = 1; round <= rounds; round++)); do
        rm -rf "$scratch/out"; status=0
        /usr/bin/time -o "$scratch/time" -f '%U\t%S\t%M' taskset -c "$cpu" "$netsniff" analyze "$file" -o "$scratch/out" \
            --workers 1 --max-flows 20000000 --json >"$scratch/summary" 2>/dev/null || status=$?
        printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$round" "$(tail -1 "$scratch/time")" "$status" "$(counts)" | tee -a "$raw" >&2
    done
    rm -rf "$file" "$scratch/out"
}

# counts: packets, and flows at once with their memory, as the summary tells.
counts() {
    python3 -c 'import json, sys
s = json.load(open(sys.argv[1]))
print(s["input"]["packets"], s["flows"]["peak"], s["flows"]["peak_bytes"], sep="\t")' "$scratch/summary"
}

printf 'axis\tvalue\tround\tuser_s\tsys_s\tpeak_kib\texit\tpackets\tflows_at_once\tflow_bytes\n' >"$raw"
for flows in 1000 10000 100000 1000000 10000000; do measure flows $flows; done
for rate in 1 10 100 1000 10000; do measure transactions $rate; done
for percent in 0 1 5 10 20; do measure losses $percent; done

. benches/machine.sh

{
    echo "# Growth, $day"
    echo
    [ -z "$trial" ] || printf '**A trial of the script at %s of the size: not a measurement.**\n\n' "$scale"
    echo "Made by \`benches/growth.sh\` with $rounds rounds; medians. Each run is a line of \`$(basename "$raw")\`. One worker on CPU $cpu writes all logs. Nanoseconds"
    echo "are of user and system time. A flow's bytes are those that the tables count, by the flows that were open at once."
    echo
    machine
    echo
    echo "![ns a packet and bytes a flow over flows, transactions a second and losses]($(basename "$drawing"))"
    python3 benches/growth.py "$raw" "$drawing"
} >"$page"
cat "$page"
