#!/usr/bin/env bash
# What a captured packet costs, and what is lost, at a rate or at the sender's full speed, on a veth pair.
#
#   benches/live/cost.sh [--seconds 10] [--rounds 3] [--sizes "64 512 1518"] [--places "none rps1"]
#                        [--rate 0] [--tools "reader count record tcpdump tcpdump-default dumpcap netsniff-ng"] [--out FILE.tsv]
#
# Needs root and two processors. The sender
# runs on processor 0, the capture with all of its threads on processor 1. Placement `none`: the sender's processor
# pays for the softirq; `rps1`: processor 1 pays for softirq and capture. The tools are listed in tools.sh.
# "ns" is the time on the processor of all threads of the capture, by the scheduler (schedstat), for each packet
# that was captured; spinning counts. "lost" is what arrived (rx_packets) and was not captured.
set -euo pipefail
cd "$(dirname "$0")/../.."

rate=0 seconds=10 rounds=3 sizes="64 512 1518" places="none rps1" out=
tools="reader count record tcpdump tcpdump-default dumpcap netsniff-ng"
. benches/live/tools.sh
take_options "--seconds --rounds --rate --sizes --places --tools --out" "$@"
out=${out:-docs/measurements/$(date +%F)-live-cost.tsv}
name=nscost
begin_bed
{
    describe
    printf 'place\tsize\ttool\tarrived\tpps\tcaptured\tlost_percent\tcpu_ms\tns_per_packet\n'
} >"$out"
for _ in $(seq "$rounds"); do
    for place in $places; do
        benches/live/testbed.sh place $name "$place"
        for size in $sizes; do
            for tool in $tools; do
                # A peer that is not here is left out, which the file shows.
                tool_is_here "$tool" || continue
                trial "$tool" "$size" "$seconds" "$rate"
                awk -v tool="$tool" -v size="$size" -v place="$place" -v came="$came" -v got="$got" -v ns="$ns" \
                    -v pps="$pps" 'BEGIN {
                        printf "%s\t%s\t%s\t%d\t%d\t%d\t%.3f\t%d\t%.1f\n", place, size, tool, came, pps, got,
                            (came - got) * 100 / came, ns / 1e6, got ? ns / got : 0 }' | tee -a "$out"
            done
        done
    done
done
