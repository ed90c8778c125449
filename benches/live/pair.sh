#!/usr/bin/env bash
# Two builds of netsniff under the same load, in turns: what each loses, and what a packet costs.
#
#   BEFORE=OLDER-NETSNIFF benches/live/pair.sh [--rates "200000 400000"] [--rounds 7] [--seconds 4] [--size 64 | --file MIX.pcap]
#                                              [--tool analyze|analyze-flows] [--place rps1] [--out FILE.tsv] [--build FOLDER]
#
# Needs root and two processors; the sender runs on processor 0, the capture on processor 1, which also pays for the softirq
# (placement `rps1`). Rounds begin with the one and the other build alternately. The table has every run, one to a line: its
# rate, packets that came and that were captured, the share lost, and the nanoseconds of all threads for a captured packet:
# by the scheduler, and of these the part in user mode, which perf samples 3,999 times a second. The scheduler charges a
# process with the softirqs that interrupt it, unless the kernel has CONFIG_IRQ_TIME_ACCOUNTING: so its figure has what
# the kernel does for packets, which depends on the moment, and the part in user mode is what netsniff itself costs.
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

samples=3999
begin_profile() {
    user_ns=-
    ! command -v perf >/dev/null || {
        perf record -q -F $samples -e cpu-clock:u -p "$1" -o "$scratch/profile" >/dev/null 2>&1 &
        profiler=$!
    }
}
end_profile() {
    [ -n "${profiler:-}" ] || return 0
    kill -INT "$profiler"
    wait "$profiler" || true
    user_ns=$(($(perf script -i "$scratch/profile" -F ip 2>/dev/null | wc -l) * 1000000000 / samples))
}
watch_begins=begin_profile watch_ends=end_profile

run() {
    local rate=$1 round=$2 of=$3
    trial "$of" "$size" "$seconds" "$rate" "$file"
    awk -v OFS='\t' -v of="$of" -v rate="$rate" -v round="$round" -v pps="$pps" -v came="$came" -v got="$got" -v ns="$ns" -v user="$user_ns" 'BEGIN {
        print of, rate, round, pps, came, got, came ? (came - got) / came : "-", got ? ns / got : "-", got && user != "-" ? user / got : "-"
    }' | tee -a "$out"
}

begin_bed
benches/live/testbed.sh place "$name" "$place"
{
    describe
    printf '# %s\n' "older netsniff: $(basename "$BEFORE")" "packets: $([ -z "$file" ] && echo "of $size bytes" || basename "$file")"
    printf 'build\trate\tround\tsent/s\tcame\tcaptured\tlost\tns/packet\tuser ns/packet\n'
} >"$out"
for rate in $rates; do
    for round in $(seq "$rounds"); do
        order="$tool-before $tool"
        [ $((round % 2)) -eq 0 ] || order="$tool $tool-before"
        for of in $order; do run "$rate" "$round" "$of"; done
    done
done
of_rate() { awk -F'\t' -v of="$1" -v rate="$2" -v column="$3" '$1 == of && $2 == rate { print $column }' "$out"; }
# ratio RATE COLUMN: the median of what the newer build has there divided by what the older one has in the same round.
ratio() { paste <(of_rate "$tool" "$1" "$2") <(of_rate "$tool-before" "$1" "$2") | awk '$2 > 0 { print $1 / $2 }' | median; }
for rate in $rates; do
    for of in "$tool" "$tool-before"; do
        printf '# median at %s: %s lost %s, %s ns/packet, %s of them in user mode\n' "$rate" "$of" \
            "$(of_rate "$of" "$rate" 7 | median)" "$(of_rate "$of" "$rate" 8 | median)" "$(of_rate "$of" "$rate" 9 | median)"
    done
    printf '# at %s the newer one costs %s of the older one (median of rounds), in user mode %s\n' \
        "$rate" "$(ratio "$rate" 8)" "$(ratio "$rate" 9)"
done | tee -a "$out"
