#!/usr/bin/env bash
# What `netsniff top` costs beside the analysis that it shows.
#
#   benches/live/top.sh [--rate 100000] [--rounds 5] [--seconds 10] [--size 64 | --file MIX.pcap] [--out FILE.tsv] [--build FOLDER]
#
# Needs root, tmux and two processors; the sender runs on processor 0, capture and view on processor 1. Each round runs the
# view in a terminal of 80 by 24, and the same analysis without it, with its rows into /dev/null. The table has, of each run,
# packets that came, the share of a processor that the view took, and that of the analysis.
set -euo pipefail
cd "$(dirname "$0")/../.."

place=rps1 rate=100000 rounds=5 seconds=10 size=64 file= out=
. benches/live/tools.sh
take_options "--place --rate --rounds --seconds --size --file --out" "$@"
out=${out:-docs/measurements/$(date +%F)-top.tsv}
name=nstop
command -v tmux >/dev/null || { echo "tmux is missing" >&2; exit 2; }

median() { sort -g | awk '{ value[NR] = $1 } END { print (NR % 2) ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2 }'; }
share() { awk -v ns="$1" -v s="$2" 'BEGIN { printf "%.4f", ns / s / 1e9 }'; }

send() {
    local what=(generate --size "$size" --flows 256)
    [ -z "$file" ] || what=(replay "$file" --loop 0 --late slip)
    ip netns exec $name-tx "$netsniff" "${what[@]}" --pps "$rate" --burst 32 -i tx0 --cpu 0 --duration "${1}s" --json >"$scratch/sent" ||
        [ $? -eq 3 ]
}

# measure OF ROUND VIEW ANALYSIS: what these processes take while packets come.
measure() {
    local of=$1 round=$2 view=$3 analysis=$4 v0=0 v1=0 a0 a1 before begin end
    send 2
    before=$(arrived) begin=$(date +%s%N)
    [ -z "$view" ] || v0=$(spent "$view")
    a0=$(spent "$analysis")
    send "$seconds"
    end=$(date +%s%N)
    [ -z "$view" ] || v1=$(spent "$view")
    a1=$(spent "$analysis")
    local took
    took=$(awk -v ns=$((end - begin)) 'BEGIN { print ns / 1e9 }')
    printf '%s\t%s\t%s\t%s\t%s\n' "$of" "$round" "$(($(arrived) - before))" \
        "$([ -z "$view" ] && echo - || share $((v1 - v0)) "$took")" "$(share $((a1 - a0)) "$took")" | tee -a "$out"
}

with_view() {
    tmux -S "$scratch/socket" -f /dev/null new-session -d -x 80 -y 24 \
        "exec ip netns exec $name-rx taskset -c 1 $netsniff top -i rx0"
    sleep 2
    local view analysis
    view=$(pgrep -f "^$netsniff top -i rx0")
    analysis=$(pgrep -P "$view")
    tr '\0' '\n' <"/proc/$analysis/cmdline" >"$scratch/command"
    measure view "$1" "$view" "$analysis"
    tmux -S "$scratch/socket" send-keys q
    while [ -e "/proc/$view" ]; do sleep 0.1; done
}

without_view() {
    local command analysis
    mapfile -t command <"$scratch/command"
    # What the view writes to its analysis stays open as long.
    ip netns exec $name-rx taskset -c 1 "$netsniff" "${command[@]:1}" < <(sleep $((seconds + 30))) >/dev/null 2>&1 &
    analysis=$!
    sleep 2
    measure alone "$1" "" "$analysis"
    kill -INT "$analysis"
    wait "$analysis" || true
}

begin_bed
benches/live/testbed.sh place $name $place
{
    describe
    printf '# packets: %s, %s/s\n' "$([ -z "$file" ] && echo "of $size bytes" || basename "$file")" "$rate"
    printf 'run\tround\tcame\tview\tanalysis\n'
} >"$out"
for round in $(seq "$rounds"); do
    with_view "$round"
    without_view "$round"
done
column() { awk -F'\t' -v of="$1" -v column="$2" '$1 == of { print $column }' "$out"; }
printf '# median shares of a processor: view %s, its analysis %s, the same analysis alone %s\n' \
    "$(column view 4 | median)" "$(column view 5 | median)" "$(column alone 5 | median)" | tee -a "$out"
