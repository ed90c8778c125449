#!/usr/bin/env bash
# Measures what reading protocols costs, each alone and all together, with and without anonymisation, and what memory
# takes when packets are missing; writes a dated report.
#
# Usage: benches/protocols.sh [--rounds N] [--netsniff PATH] [--scratch FOLDER] [--captures FOLDER]... [--report FOLDER]
#                             [--scale F] [--cpu N]
#
#   --rounds N         how often each program runs (3); the report has medians
#   --netsniff PATH    the binary to measure (built for it)
#   --scratch FOLDER   where workloads and outputs go: 2.5 GB (netsniff-bench in the temporary folder)
#   --captures FOLDER  a source of the mix, may be repeated
#   --report FOLDER    where the report goes (docs/measurements)
#   --scale F          a mix of F times the size, to try the script; such a report is marked
#   --cpu N            the CPU that all runs are bound to (the last one)
#
# softflowd, which only counts flows, and time are Debian's packages. All runs have one worker and write all logs.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
. benches/build.sh

rounds=3 netsniff='' scratch=${TMPDIR:-/tmp}/netsniff-bench report=docs/measurements scale=1 captures=() cpu=$(($(nproc) - 1))
while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || { sed -n '5,16s/^# \?//p' "$0"; exit 2; }
    case $1 in
        --rounds) rounds=$2;; --netsniff) netsniff=$2;; --scratch) scratch=$2;; --report) report=$2;; --scale) scale=$2;;
        --cpu) cpu=$2;; --captures) captures+=(--captures "$2");; *) sed -n '5,16s/^# \?//p' "$0"; exit 2;;
    esac
    shift 2
done
captures+=(--captures fixtures/recorded)
begin_report protocols

build_measured
mix=$scratch/mix-$scale.pcap lossy=$scratch/mix-$scale-lossy.pcap
[ -f "$mix" ] || "$builder" mix "${captures[@]}" --scale "$scale" -o "$mix" >"$scratch/mix-$scale.txt"
[ -f "$lossy" ] || "$builder" mix "${captures[@]}" --scale "$scale" --loss 0.05 -o "$lossy" >"$scratch/mix-$scale-lossy.txt"
lost=$(awk '/^packets left out/ { print $4 }' "$scratch/mix-$scale-lossy.txt")

# measure ROUND NAME COMMAND...: one run with a fresh folder $out.
measure() {
    local round=$1 name=$2 status=0
    shift 2
    rm -rf "$out"; mkdir -p "$out"
    /usr/bin/time -o "$scratch/time" -f '%e\t%U\t%S\t%M' timeout -k 5 900 taskset -c "$cpu" "$@" >"$out.log" 2>&1 || status=$?
    printf '%s\t%s\t%s\t%s\t%s\n' "$round" "$name" "$(tail -1 "$scratch/time")" "$status" \
        "$(cat "$out"/*.log 2>/dev/null | grep -vc '^#' || true)" >>"$raw"
}

# One protocol at a time where all others wait for it: TLS is what SMTP, FTP and SOCKS hand over to, and files are
# what HTTP and mail bring.
protocols=$("$netsniff" protocols | awk 'NR > 1 { print $1 }')
out=$scratch/out
printf 'round\tname\twall_s\tuser_s\tsys_s\tpeak_kib\texit\trows\n' >"$raw"
for ((round = 1; round <= rounds; round++)); do
    cat "$mix" >/dev/null # Into the page cache.
    ! command -v softflowd >/dev/null ||
        measure $round softflowd softflowd -d -6 -r "$mix" -m 4000000 -p "$out/pid" -c none
    run=("$netsniff" analyze "$mix" -o "$out" --workers 1 -q)
    measure $round none "${run[@]}" --protocols none
    for protocol in $protocols; do measure $round "$protocol" "${run[@]}" --protocols "$protocol"; done
    measure $round all "${run[@]}"
    measure $round 'all, hashes' "${run[@]}" --hashes md5,sha1,sha256
    measure $round 'none, anonymised' "${run[@]}" --protocols none -a
    measure $round 'all, anonymised' "${run[@]}" -a
    cat "$lossy" >/dev/null
    measure $round 'all, 5 % lost' "$netsniff" analyze "$lossy" -o "$out" --workers 1 -q
    rm -rf "$out"
    echo "round $round of $rounds done" >&2
done

table() {
    awk -F'\t' -v packets="$packets" '
        function median(name, column,    n, i, j, v, list) {
            for (i = 1; i <= runs[name]; i++) list[++n] = value[name, i, column] + 0
            for (i = 2; i <= n; i++) { v = list[i]; for (j = i - 1; j > 0 && list[j] > v; j--) list[j + 1] = list[j]; list[j + 1] = v }
            return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
        }
        NR > 1 {
            if (!($2 in runs)) order[++names] = $2
            i = ++runs[$2]
            value[$2, i, "wall"] = $3; value[$2, i, "user"] = $4; value[$2, i, "cpu"] = $4 + $5; value[$2, i, "mib"] = $6 / 1024
            failed[$2] += $7 != 0; rows[$2] = $8
        }
        END {
            print "| run | wall s | user s | user + system s | wall / softflowd | user ns a packet above none | peak MiB | rows |"
            print "|---|---|---|---|---|---|---|---|"
            for (k = 1; k <= names; k++) {
                name = order[k]
                note = failed[name] ? " (**" failed[name] " of " runs[name] " runs failed**)" : ""
                ratio = ("softflowd" in runs) ? sprintf("%.2f", median(name, "wall") / median("softflowd", "wall")) : "-"
                above = name == "softflowd" ? "-" : sprintf("%.0f", (median(name, "user") - median("none", "user")) * 1e9 / packets)
                printf "| %s%s | %.2f | %.2f | %.2f | %s | %s | %.0f | %s |\n", name, note, median(name, "wall"), median(name, "user"), median(name, "cpu"), ratio, above, median(name, "mib"), rows[name]
            }
            printf "\nWith 5 %% of the packets missing, memory is %.2f of that without loss.\n", median("all, 5 % lost", "mib") / median("all", "mib")
        }' "$raw"
}

. benches/machine.sh
packets=$(awk '/^packets  / { print $2 }' "$scratch/mix-$scale.txt")
{
    echo "# What protocols cost, $day"
    echo
    echo "Made by \`benches/protocols.sh\`; raw values in \`$(basename "$raw")\`. Medians of $rounds rounds, every run bound to CPU $cpu."
    echo
    machine
    echo "- softflowd $(version softflowd)"
    echo "- The mix: $packets packets; with loss: $lost of them left out by chance"
    echo
    table
    echo
    echo "A protocol alone stands for what it costs where nothing else is looked for; looking for it in all streams is part of it,"
    echo "and what it hands over to is not read. The sum is therefore not that of all."
} >"$page"
cat "$page"
