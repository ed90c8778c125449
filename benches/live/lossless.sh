#!/usr/bin/env bash
# The highest rate at which a capture loses nothing, on a veth pair: netsniff beside its peers.
#
#   benches/live/lossless.sh [--place rps1] [--sizes "64 256 512 1518"] [--file MIX.pcap] [--out FILE.tsv]
#                            [--tools "record tcpdump tcpdump-default dumpcap dumpcap-default netsniff-ng"]
#
# Needs root and two processors. The sender runs on
# processor 0, the capture with all of its threads on processor 1, which also pays for the softirq (placement
# `rps1`). The tools are listed in tools.sh. With a file its packets are sent instead of frames of some size; a tool
# that counts by its file's size cannot be asked then.
#
# Short runs halve the interval in which the rate must lie until it is 4 % wide. The lower end then is the rate if
# three runs lose nothing, each of 10 s and as long as it takes until a ring of 64 MiB would hold at most a tenth of
# what was sent; else it is lowered by 5 % and tried again. Where the sender's full speed loses nothing, the sender is
# the limit, and the rate stands as ">=". The table has every run, one to a line, and one of "result" for each tool.
set -euo pipefail
cd "$(dirname "$0")/../.."

place=rps1 sizes="64 256 512 1518" file= out=
tools="record tcpdump tcpdump-default dumpcap dumpcap-default netsniff-ng"
. benches/live/tools.sh
take_options "--place --sizes --file --tools --out" "$@"
# Packets of a file are as long as they are.
[ -z "$file" ] || sizes=0
out=${out:-docs/measurements/$(date +%F)-live-lossless.tsv}
name=nslossless

# A run; succeeds where nothing was lost.
run() {
    local kind=$1 tool=$2 size=$3 seconds=$4 rate=$5
    trial "$tool" "$size" "$seconds" "$rate" "$file"
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$kind" "$tool" "$size" "$rate" "$seconds" "$pps" "$came" "$got" \
        "$slips" | tee -a "$out"
    [ "$got" -ge "$came" ]
}

# Seconds until a ring of 64 MiB holds at most a tenth of the packets sent: each takes 82 bytes more than it has.
# Of a file, packets are taken to be as long as they are on average.
long_enough() {
    local len=$1
    [ "$len" -gt 0 ] || len=$mean
    awk -v rate="$2" -v len="$len" 'BEGIN { need = 10 * 67108864 / (len + 82 + 10) / rate
        print (need > 10) ? int(need) + 1 : 10 }'
}

# Three runs without loss; sets `reached` to the lowest rate among them.
confirmed() {
    reached=
    for _ in 1 2 3; do
        run confirm "$@" || return 1
        [ -n "$reached" ] && [ "$reached" -le "$pps" ] || reached=$pps
    done
}

search() {
    local tool=$1 size=$2 low high rate short=2
    # Rings hold many small packets, which hide that too much comes.
    [ "$size" -ge 512 ] || short=5
    run top "$tool" "$size" $short 0 && low=$pps high= || low=0 high=$pps
    if [ -z "$high" ]; then
        if confirmed "$tool" "$size" "$(long_enough "$size" "$low")" 0; then
            printf 'result\t%s\t%s\t>=%s\n' "$tool" "$size" "$reached" | tee -a "$out"
            return
        fi
        high=$low low=0
    fi
    # Twelve steps at most: a sender that a stall of the machine kept from its rate proves that rate only which it
    # reached, and is asked again.
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
        [ $((high - low)) -gt $((high / 25)) ] || break
        rate=$(((low + high) / 2))
        if run steer "$tool" "$size" $short "$rate"; then
            [ "$pps" -le "$low" ] || low=$pps
        else
            high=$rate
        fi
    done
    rate=$low
    for _ in 1 2 3 4 5 6 7 8; do
        if confirmed "$tool" "$size" "$(long_enough "$size" "$rate")" "$rate"; then
            printf 'result\t%s\t%s\t%s\n' "$tool" "$size" "$reached" | tee -a "$out"
            return
        fi
        rate=$((rate * 95 / 100))
    done
    printf 'result\t%s\t%s\tbelow %s\n' "$tool" "$size" "$rate" | tee -a "$out"
}

mean=
[ -z "$file" ] || mean=$(($(capinfos -T -r -z "$file" | awk '{ printf "%d", $NF }')))
begin_bed
benches/live/testbed.sh place $name "$place"
{
    describe
    echo "# placement $place${file:+, packets of $(basename "$file"), $mean bytes on average}"
    printf 'run\ttool\tsize\trate\tseconds\tpps\tarrived\tcaptured\tslips\n'
} >"$out"
for size in $sizes; do
    for tool in $tools; do
        if tool_is_here "$tool"; then
            search "$tool" "$size"
        else
            printf 'left out\t%s\t%s\tnot installed\n' "$tool" "$size" | tee -a "$out"
        fi
    done
done
