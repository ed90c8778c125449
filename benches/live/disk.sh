#!/usr/bin/env bash
# What recording to a disk costs and loses: past the page cache, through it, and by the peers.
#
#   benches/live/disk.sh [--directory DIR] [--rates "100000 250000"] [--seconds 15] [--rounds 3]
#                        [--tools "record:buffered record:direct tcpdump dumpcap netsniff-ng"] [--out FILE.tsv]
#
# Needs root, two processors, and a directory on a disk with
# room for the recording. Frames of 1518 bytes; the sender's processor pays for the softirq. The table has for each run
# the packets that came and were recorded, and the nanoseconds of all threads of the capture for each recorded
# packet. What the kernel does for the disk in threads of its own stands beside it: busy time of the whole
# machine but for the sender's processor.
set -euo pipefail
cd "$(dirname "$0")/../.."

directory=target rates="100000 250000" seconds=15 rounds=3 out=
tools="record:buffered record:direct tcpdump dumpcap netsniff-ng"
. benches/live/tools.sh
take_options "--directory --rates --seconds --rounds --tools --out" "$@"
out=${out:-docs/measurements/$(date +%F)-live-disk.tsv}
name=nsdisk
scratch=$(mktemp -d -p "$directory" netsniff-disk.XXXX)
# Recorders give up root.
chmod 777 "$scratch"
trap 'benches/live/testbed.sh down $name; rm -r "$scratch"' EXIT
benches/live/testbed.sh up $name

# Ticks of 10 ms that the capture's processor was busy.
busy() { awk '$1 == "cpu1" { print $2 + $3 + $4 + $7 + $8 }' /proc/stat; }

{
    describe
    echo "# $(df --output=fstype,source "$directory" | tail -1)"
    printf 'tool\trate\tarrived\tcaptured\tns_per_packet\tcpu1_ns_per_packet\n'
} >"$out"
for _ in $(seq "$rounds"); do
    for rate in $rates; do
        for tool in $tools; do
            if ! tool_is_here "${tool%%:*}"; then
                printf 'left out\t%s\tnot installed\n' "$tool" | tee -a "$out"
                continue
            fi
            sync
            before=$(busy)
            trial "$tool" 1518 "$seconds" "$rate"
            printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$tool" "$rate" "$came" "$got" $((ns / (got > 0 ? got : 1))) \
                $((($(busy) - before) * 10000000 / (got > 0 ? got : 1))) | tee -a "$out"
        done
    done
done
