#!/usr/bin/env bash
# Shows that a run stays inside the memory that netsniff was given, whatever it reads.
#
# Usage: benches/memory.sh [--limits "208 256 512"] [--workers N] [--netsniff PATH] [--hostile FOLDER] [--flows N] [--out FILE.tsv]
#
#   --limits "MIB..."   what --memory gives the program, in MiB
#   --workers N         threads that analyse (1)
#   --netsniff PATH     the binary (built for it)
#   --hostile FOLDER    captures to read besides the floods, each with each limit
#   --flows N           flows of each flood (400000)
#   --out FILE          where the table goes
#
# Floods are made by netsniff itself: of one packet for each flow, and of whole sessions of hosts. Each line is a run: the
# capture, the limit, and the peak of resident memory, both in MiB. Fails where a peak exceeds its limit.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

limits="176 256 512" workers=1 netsniff='' hostile='' flows=400000 out=/dev/null
while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || { sed -n '2,14s/^# \?//p' "$0"; exit 2; }
    case $1 in
        --limits) limits=$2;; --workers) workers=$2;; --netsniff) netsniff=$2;; --hostile) hostile=$2;; --flows) flows=$2;;
        --out) out=$2;; *) sed -n '2,14s/^# \?//p' "$0"; exit 2;;
    esac
    shift 2
done
. benches/machine.sh
. benches/build.sh
if [ -z "$netsniff" ]; then
    build -p netsniff
    netsniff=$built/netsniff
fi
netsniff=$(realpath "$netsniff")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$netsniff" generate -q --size 64 --flows "$flows" --count "$flows" --rate 5M -w "$scratch/flood.pcap"
"$netsniff" generate hosts -q --n 2000 --sessions $((flows / 20)) --think 10ms -w "$scratch/hosts.pcap"
captures=("$scratch/flood.pcap" "$scratch/hosts.pcap")
[ -z "$hostile" ] || captures+=("$hostile"/*.pcap*)

failed=0
{
    printf '# %s\n' "benches/memory.sh --limits \"$limits\" --workers $workers --flows $flows"
    printf 'capture\tlimit_mib\tpeak_mib\n'
} | tee "$out"
for file in "${captures[@]}"; do
    for limit in $limits; do
        /usr/bin/time -o "$scratch/time" -f %M "$netsniff" analyze "$file" -o "$scratch/logs" --workers "$workers" \
            --memory "${limit}M" >"$scratch/said" 2>&1 || { [ $? -le 1 ] || cat "$scratch/said" >&2; }
        peak=$(tail -1 "$scratch/time")
        rm -rf "$scratch/logs"
        printf '%s\t%s\t%s\n' "$(basename "$file")" "$limit" "$((peak / 1024))" | tee -a "$out"
        [ "$peak" -le $((limit * 1024)) ] || { echo "FAILED: $(basename "$file") takes more than $limit MiB" >&2; failed=1; }
    done
done
exit $failed
