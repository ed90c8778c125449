#!/usr/bin/env bash
# Measures two builds of netsniff on the two workloads, in pairs, and writes a dated report with the ratios.
#
# Usage: benches/compare.sh --before PATH [--commit NAME] [--after PATH] [--rounds N] [--scratch FOLDER]
#                           [--captures FOLDER]... [--report FOLDER] [--scale F]
#
#   --before PATH      the binary to compare with, such as one built from an earlier commit by the profile dist
#   --commit NAME      what it was built from, for the report
#   --after PATH       the binary that is compared with it (built for it)
#   --rounds N         how many pairs of runs each workload gets (7); the report has medians
#   --scratch FOLDER   where workloads and outputs go (netsniff-bench in the temporary folder, as offline.sh has it)
#   --captures FOLDER  a source of the mix, may be repeated; without enough of them the mix is left out
#   --report FOLDER    where the report goes (docs/measurements)
#   --scale F          workloads of F times the size, to try the script; such a report is marked
#
# Both run on the last CPU, one after the other; the order changes from pair to pair. A ratio is that of user time,
# by which other processes matter least. Times of one binary are not compared with those of another day.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C
. benches/build.sh

before='' commit='' netsniff='' rounds=7 scratch=${TMPDIR:-/tmp}/netsniff-bench report=docs/measurements scale=1 captures=()
usage() { sed -n '4,18s/^# \?//p' "$0"; exit 2; }
while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || usage
    case $1 in
        --before) before=$2;; --commit) commit=$2;; --after) netsniff=$2;; --rounds) rounds=$2;; --scratch) scratch=$2;; --report) report=$2;;
        --captures) captures+=(--captures "$2");; --scale) scale=$2;; *) usage;;
    esac
    shift 2
done
[ -n "$before" ] || usage
captures+=(--captures fixtures/recorded)
cpu=$(($(nproc) - 1))
begin_report compare

before=$(realpath "$before")
build_measured
packets=$(awk "BEGIN { printf \"%d\", 10000000 * $scale }")
small64=$scratch/small64-$packets.pcap mix=$scratch/mix-$scale.pcap
[ -f "$small64" ] || "$builder" small64 --packets "$packets" --flows $((packets / 10)) -o "$small64"
[ -f "$mix" ] || "$builder" mix "${captures[@]}" --scale "$scale" -o "$mix" >"$scratch/mix-$scale.txt" || mix=''
workloads=(); [ -z "$mix" ] || workloads+=(mix)
workloads+=(small64)

# measure ROUND WORKLOAD BUILD PROGRAM FILE: one run in a fresh folder.
measure() {
    local out=$scratch/out status=0
    rm -rf "$out"; mkdir -p "$out"
    /usr/bin/time -o "$scratch/time" -f '%e\t%U\t%S\t%M' timeout -k 5 900 taskset -c $cpu \
        "$4" analyze "$5" -o "$out" --workers 1 >"$out.log" 2>&1 || status=$?
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$(tail -1 "$scratch/time")" "$status" \
        "$(cat "$out"/*.log | grep -vc '^#' || true)" >>"$raw"
    rm -rf "$out"
}

printf 'round\tworkload\tbuild\twall_s\tuser_s\tsys_s\tpeak_kib\texit\trows\n' >"$raw"
for ((round = 1; round <= rounds; round++)); do
    for workload in "${workloads[@]}"; do
        file=${!workload}
        cat "$file" >/dev/null   # Into the page cache.
        pair=(before after); [ $((round % 2)) -eq 1 ] || pair=(after before)
        for build in "${pair[@]}"; do
            program=$before; [ $build = before ] || program=$netsniff
            measure $round $workload $build "$program" "$file"
        done
    done
    echo "round $round of $rounds done" >&2
done

. benches/machine.sh

# table WORKLOAD: medians of both builds, and the median of the ratios of the pairs.
table() {
    awk -F'\t' -v workload="$1" '
        function median(list, n,    i, j, v, sorted) {
            for (i = 1; i <= n; i++) sorted[i] = list[i]
            for (i = 2; i <= n; i++) { v = sorted[i]; for (j = i - 1; j > 0 && sorted[j] > v; j--) sorted[j + 1] = sorted[j]; sorted[j + 1] = v }
            return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
        }
        function of(build, column,    i, list) {
            for (i = 1; i <= n; i++) list[i] = value[build, i, column]
            return median(list, n)
        }
        $2 == workload {
            value[$3, $1, "wall"] = $4; value[$3, $1, "user"] = $5; value[$3, $1, "cpu"] = $5 + $6; value[$3, $1, "mib"] = $7 / 1024
            failed[$3] += $8 != 0; rows[$3] = $9; if ($1 > n) n = $1
        }
        END {
            print "| build | wall s | user s | user + system s | peak MiB | rows | failed runs |"
            print "|---|---|---|---|---|---|---|"
            for (k = 1; k <= 2; k++) {
                b = k == 1 ? "before" : "after"
                printf "| %s | %.2f | %.2f | %.2f | %.0f | %d | %d |\n", b, of(b, "wall"), of(b, "user"), of(b, "cpu"), of(b, "mib"), rows[b], failed[b]
            }
            for (i = 1; i <= n; i++) {
                ratio[i] = value["after", i, "user"] / value["before", i, "user"]
                low = i == 1 || ratio[i] < low ? ratio[i] : low; high = ratio[i] > high ? ratio[i] : high
            }
            printf "\nUser time after / before, median of %d pairs: **%.3f** (%.3f to %.3f).\n", n, median(ratio, n), low, high
        }' "$raw"
}

{
    echo "# Two builds of netsniff, $day"
    echo
    [ -z "$trial" ] || printf '**A trial of the script at %s of the size: not a measurement.**\n\n' "$scale"
    echo "Made by \`benches/compare.sh\` with $rounds pairs, on CPU $cpu; each run is a line of \`$(basename "$raw")\`."
    echo
    echo "- before: $("$before" --version)${commit:+, built from $commit}"
    machine
    for workload in "${workloads[@]}"; do
        printf '\n## %s\n\n' "$workload"
        table "$workload"
    done
} >"$page"
cat "$page"
