#!/usr/bin/env bash
# Measures `analyze --jobs` on folders of captures, beside --workers and one thread, once their logs were compared.
#
# Usage: benches/jobs.sh [--files N] [--rounds N] [--threads N] [--netsniff PATH] [--capture FILE] [--out FILE.tsv]
#
#   --files N         captures of a folder (24)
#   --rounds N        how often each runs; the table has medians (5)
#   --threads N       jobs, and workers beside them (2)
#   --netsniff PATH   the binary (built for it)
#   --capture FILE    what the folders are made of (sessions of hosts that netsniff generates)
#   --out FILE        where the table goes
#
# Three folders are made with editcap: `days` has the capture once for each day, `pieces` has it cut into equal numbers of packets.
# `nets` has it one after the other without a pause, each time between other hosts (with `netsniff anonymize`, which keeps payload).
# Each line is a way to analyse a folder: seconds, how many times as fast as one thread, files that were analysed by
# themselves and by pairs of hosts, and mebibytes that were analysed twice.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

files=24 rounds=5 threads=2 netsniff='' capture='' out=/dev/null
while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || { sed -n '2,16s/^# \?//p' "$0"; exit 2; }
    case $1 in
        --files) files=$2;; --rounds) rounds=$2;; --threads) threads=$2;; --netsniff) netsniff=$2;; --capture) capture=$2;;
        --out) out=$2;; *) sed -n '2,16s/^# \?//p' "$0"; exit 2;;
    esac
    shift 2
done
. benches/build.sh
if [ -z "$netsniff" ]; then
    build -p netsniff
    netsniff=$built/netsniff
fi
netsniff=$(realpath "$netsniff")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if [ -z "$capture" ]; then
    capture=$scratch/hosts.pcap
    "$netsniff" generate hosts -q --n 200 --sessions 4000 --think 10ms -w "$capture"
fi
mkdir "$scratch/days" "$scratch/nets" "$scratch/pieces"
for day in $(seq "$files"); do
    editcap -F nsecpcap -t $((day * 86400)) "$capture" "$scratch/days/$(printf %03d "$day").pcap"
done
seconds=$("$netsniff" info --json "$capture" | jq '.duration | tonumber | ceil + 1')
for net in $(seq "$files"); do
    # A key for each, and the same in every run.
    printf '%s' "$net" | sha256sum | cut -c1-64 >"$scratch/key"
    chmod 600 "$scratch/key"
    "$netsniff" anonymize -m cryptopan -k "$scratch/key" --payload keep "$capture" "$scratch/mapped.pcap" >/dev/null
    editcap -F nsecpcap -t $((net * seconds)) "$scratch/mapped.pcap" "$scratch/nets/$(printf %03d "$net").pcap"
done
rm "$scratch/mapped.pcap" "$scratch/key"
packets=$("$netsniff" info --json "$capture" | jq .packets)
editcap -F nsecpcap -c $(((packets + files - 1) / files)) "$capture" "$scratch/pieces/piece.pcap"

# analyse FOLDER OPTION...: the seconds that it takes; the summary lies beside the logs.
analyse() {
    local folder=$1 begin end
    shift
    rm -rf "$scratch/logs"
    begin=$(date +%s.%N)
    "$netsniff" analyze --json "$@" -o "$scratch/logs" "$scratch/$folder"/*.pcap >"$scratch/summary"
    end=$(date +%s.%N)
    echo "$end - $begin" | bc
}
digest() { (cd "$scratch/logs" && sha256sum -- *) | sha256sum; }
median() { sort -n "$1" | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

ways=("--workers 1" "--workers $threads" "--jobs $threads")
{
    printf '# %s\n' "benches/jobs.sh --files $files --rounds $rounds --threads $threads"
    printf 'folder\tway\tseconds\ttimes\tby_themselves\tby_pairs\ttwice_mib\n'
} | tee "$out"
for folder in days nets pieces; do
    expected=''
    for round in $(seq 0 "$rounds"); do
        for way in "${!ways[@]}"; do
            # shellcheck disable=SC2086  # an option and its value
            seconds=$(analyse "$folder" ${ways[way]})
            if [ "$round" = 0 ]; then
                # The first round fills the caches, and shows that the bytes are the same.
                found=$(digest)
                [ "${expected:=$found}" = "$found" ] || { echo "FAILED: $folder: ${ways[way]}: other logs" >&2; exit 1; }
            else
                echo "$seconds" >>"$scratch/$folder.$way"
                jq -r '.input.jobs // {} | [.apart // "-", .by_pairs // "-", ((.read_again_bytes // 0) / 1048576 | floor)] | @tsv' \
                    "$scratch/summary" >"$scratch/$folder.$way.books"
            fi
        done
    done
    one=$(median "$scratch/$folder.0")
    for way in "${!ways[@]}"; do
        seconds=$(median "$scratch/$folder.$way")
        printf '%s\t%s\t%.3f\t%.2f\t%s\n' "$folder" "${ways[way]}" "$seconds" "$(echo "$one / $seconds" | bc -l)" \
            "$(cat "$scratch/$folder.$way.books")" | tee -a "$out"
    done
done
