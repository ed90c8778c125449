#!/usr/bin/env bash
# What a capture loses at its end: packets that came before the signal and are not in the file.
#
#   benches/live/tail.sh [--rounds 5] [--rate 100000] [--tools "record tcpdump dumpcap netsniff-ng"] [--out FILE.tsv]
#
# Needs root and two processors. Frames of 64 bytes are sent for
# a second, at a rate at which nobody loses any, and the tool gets its SIGINT as soon as the sender has ended.
set -euo pipefail
cd "$(dirname "$0")/../.."

rounds=5 rate=100000 out=
tools="record tcpdump dumpcap netsniff-ng"
. benches/live/tools.sh
take_options "--rounds --rate --tools --out" "$@"
out=${out:-docs/measurements/$(date +%F)-live-tail.tsv}
name=nstail pause=0
begin_bed
{
    describe
    printf 'tool\trate\tarrived\tcaptured\tlost\n'
} >"$out"
for _ in $(seq "$rounds"); do
    for tool in $tools; do
        tool_is_here "$tool" || continue
        trial "$tool" 64 1 "$rate"
        printf '%s\t%s\t%s\t%s\t%s\n' "$tool" "$rate" "$came" "$got" $((came - got)) | tee -a "$out"
    done
done
