#!/usr/bin/env bash
# Two builds of netsniff under the same load, in turns: what each loses, and what a packet costs.
#
#   BEFORE=OLDER-NETSNIFF benches/live/pair.sh [--rates "200000 400000"] [--rounds 7] [--seconds 4] [--size 64 | --file MIX.pcap]
#                                              [--tool analyze|analyze-flows] [--place rps1] [--out FILE.tsv] [--build FOLDER]
#
# Needs root and two processors; the sender runs on processor 0, the capture on processor 1, which also pays for the softirq
# (placement `rps1`). Rounds begin with the one and the other build alternately. The table has every run, one to a line: its
# rate, packets that came and that were captured, the share lost, and the nanoseconds of all threads for a captured packet.
# Behind them stand medians, and the median of what the newer build costs divided by what the older one does in the same round.
set -euo pipefail
cd "$(dirname "$0")/../.."

place=rps1 rates="200000 400000" rounds=7 seconds=4 size=64 file= tool=analyze out=
. benches/live/tools.sh
take_options "--place --rates --rounds --seconds --size --file --tool --out" "$@"
[ -z "$file" ] || size=0
out=${out:-docs/measurements/$(date +%F)-live-pair.tsv}
name=nspair
tool_is_here "$tool-before" || { echo "BEFORE is to name an older netsniff" >&2; exit 2; }

median() { sort -g | awk '{ value[NR] = $1 } END { print (NR % 2) ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2 }'; }

run() {
    local rate=$1 round=$2 of=$3
    trial "$of" "$size" "$seconds" "$rate" "$file"
    awk -v OFS='\t' -v of="$of" -v rate="$rate" -v round="$round" -v pps="$pps" -v came="$came" -v got="$got" -v ns="$ns" \
        'BEGIN { print of, rate, round, pps, came, got, came ? (came - got) / came : "-", got ? ns / got : "-" }' | tee -a "$out"
}

begin_bed
benches/live/testbed.sh place "$name" "$place"
{
    describe
    printf '# %s\n' "older netsniff: $(basename "$BEFORE")" "packets: $([ -z "$file" ] && echo "of $size bytes" || basename "$file")"
    printf 'build\trate\tround\tsent/s\tcame\tcaptured\tlost\tns/packet\n'
} >"$out"
for rate in $rates; do
    for round in $(seq "$rounds"); do
        order="$tool-before $tool"
        [ $((round % 2)) -eq 0 ] || order="$tool $tool-before"
        for of in $order; do run "$rate" "$round" "$of"; done
    done
done
for rate in $rates; do
    of_rate() { awk -F'\t' -v of="$1" -v rate="$rate" -v column="$2" '$1 == of && $2 == rate { print $column }' "$out"; }
    ratio=$(paste <(of_rate "$tool" 8) <(of_rate "$tool-before" 8) | awk '{ print $1 / $2 }' | median)
    for of in "$tool" "$tool-before"; do
        printf '# median at %s: %s lost %s, %s ns/packet\n' "$rate" "$of" "$(of_rate "$of" 7 | median)" "$(of_rate "$of" 8 | median)"
    done
    printf '# at %s the newer one costs %s of the older one (median of rounds)\n' "$rate" "$ratio"
done | tee -a "$out"
