#!/usr/bin/env bash
# What a captured packet costs, and what is lost at the sender's full speed: netsniff beside tcpdump, dumpcap and
# netsniff-ng on a veth pair.
#
#   benches/live/cost.sh [--seconds 10] [--rounds 3] [--sizes "64 512 1518"] [--out FILE.tsv]
#
# Needs root, two processors, and a release build of netsniff with its examples `sender` and `reader`. The sender
# runs on processor 0, the capture with all of its threads on processor 1. Placement `none`: the sender's processor
# pays for the softirq; `rps1`: processor 1 pays for softirq and capture. Recordings go to a tmpfs, all as pcap.
# "ns" is the time on the processor of all threads of the capture, by the scheduler (schedstat), for each packet
# that was captured; spinning counts. "lost" is what arrived (rx_packets) and was not captured.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=10 rounds=3 sizes="64 512 1518" out=
while [ $# -gt 0 ]; do
    case $1 in
        --seconds) seconds=$2 ;;
        --rounds) rounds=$2 ;;
        --sizes) sizes=$2 ;;
        --out) out=$2 ;;
        *) echo "what is $1?" >&2; exit 2 ;;
    esac
    shift 2
done
out=${out:-docs/measurements/$(date +%F)-live-cost.tsv}
build=$PWD/target/release
bed=benches/live/testbed.sh
name=nscost
scratch=$(mktemp -d)
mount -t tmpfs -o size=8G tmpfs "$scratch"
trap '$bed down $name; umount "$scratch"; rmdir "$scratch"' EXIT

capture() {
    case $1 in
        reader) echo "$build/examples/reader rx0 af-packet poll" ;;
        count) echo "$build/netsniff analyze -i rx0 --depth packets" ;;
        analyze) echo "$build/netsniff analyze -i rx0 -o $scratch/logs" ;;
        record) echo "$build/netsniff record -i rx0 --format pcap -w $scratch/out.pcap" ;;
        tcpdump) echo "tcpdump -Z root -i rx0 -B 65536 -w $scratch/out.pcap" ;;
        tcpdump-default) echo "tcpdump -Z root -i rx0 -w $scratch/out.pcap" ;;
        dumpcap) echo "dumpcap -q -P -i rx0 -B 64 -w $scratch/out.pcap" ;;
        netsniff-ng) echo "netsniff-ng --silent -i rx0 -S 64MiB --out $scratch/out.pcap" ;;
    esac
}

# How many packets a tool says that it captured.
captured() {
    case $1 in
        reader) sed -n 's/.*"packets":\([0-9]*\).*/\1/p' "$scratch/said" ;;
        count | analyze) sed -n 's/^ *delivered *\([0-9,]*\)$/\1/p' "$scratch/said" | head -1 | tr -d , ;;
        record) sed -n 's/^ *recorded *\([0-9,]*\)$/\1/p' "$scratch/said" | tr -d , ;;
        *) capinfos -c -M "$scratch/out.pcap" 2>/dev/null | sed -n 's/^Number of packets: *//p' ;;
    esac
}

arrived() { ip -n $name-rx -s -j link show rx0 | sed 's/.*"rx":{"bytes":[0-9]*,"packets":\([0-9]*\).*/\1/'; }

# Nanoseconds of all threads of a process.
spent() { cat /proc/"$1"/task/*/schedstat 2>/dev/null | awk '{ sum += $1 } END { printf "%d", sum }'; }

one() {
    local tool=$1 size=$2 place=$3 before after pid ns0 ns1 got
    rm -rf "$scratch"/out* "$scratch"/logs
    local command
    command=$(capture "$tool")
    # The reader ends with its standard input, the others by a signal.
    ip netns exec $name-rx taskset -c 1 $command < <(sleep $((seconds + 5))) >"$scratch/said" 2>&1 &
    pid=$!
    sleep 2
    ns0=$(spent "$pid") before=$(arrived)
    ip netns exec $name-tx "$build/examples/sender" -i tx0 --cpu 0 --seconds "$seconds" --size "$size" >"$scratch/sent"
    after=$(arrived)
    sleep 1.5
    ns1=$(spent "$pid")
    [ "$tool" = reader ] || kill -INT "$pid"
    wait "$pid" || true
    got=$(captured "$tool")
    awk -v tool="$tool" -v size="$size" -v place="$place" -v came=$((after - before)) -v got="${got:-0}" \
        -v ns=$((ns1 - ns0)) -v seconds="$seconds" 'BEGIN {
            printf "%s\t%s\t%s\t%d\t%d\t%d\t%.3f\t%d\t%.1f\n", place, size, tool, came, came / seconds, got,
                (came - got) * 100 / came, ns / 1e6, got ? ns / got : 0 }'
}

$bed up $name
{
    printf '# %s\n' "$(. benches/machine.sh >/dev/null 2>&1; uname -sr)" "$(nproc) processors: $(sed -n 's/model name.*: //p' /proc/cpuinfo | head -1)" "$(git rev-parse --short HEAD)" "$(tcpdump --version 2>&1 | head -2 | tr '\n' ' ')" "$(dumpcap --version 2>/dev/null | head -1)"
    printf 'place\tsize\ttool\tarrived\tpps\tcaptured\tlost_percent\tcpu_ms\tns_per_packet\n'
} >"$out"
for round in $(seq "$rounds"); do
    for place in none rps1; do
        $bed place $name $place
        for size in $sizes; do
            for tool in reader count record tcpdump tcpdump-default dumpcap netsniff-ng; do
                case $tool in
                    tcpdump* | dumpcap | netsniff-ng)
                        # A peer that is not here is left out, which the file shows.
                        command -v "${tool%-default}" >/dev/null || continue ;;
                esac
                one "$tool" "$size" "$place" | tee -a "$out"
            done
        done
    done
done
