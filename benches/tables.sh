#!/usr/bin/env bash
# Times how long logs take to write as tables, beside TSV and JSON, interleaved, and writes a dated report.
#
# Usage: benches/tables.sh --capture FILE [--rounds N] [--netsniff PATH] [--scratch FOLDER] [--report FOLDER]
#
#   --capture FILE     a capture, as the mix that benches/run offline leaves in its scratch folder
#   --rounds N         how often each format is written (5); the report has medians
#   --netsniff PATH    the binary to measure (built for it)
#   --scratch FOLDER   where logs go (netsniff-tables in the temporary folder)
#   --report FOLDER    where the page and its raw values go (docs/measurements)
#
# Needs /usr/bin/time. Before it measures, the rows of both kinds of logs are counted: they must be as many.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C
. benches/build.sh

usage() { sed -n '4,12s/^# \?//p' "$0"; exit 2; }
capture='' rounds=5 netsniff='' scratch=${TMPDIR:-/tmp}/netsniff-tables report=docs/measurements scale=1
while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || usage
    case $1 in
        --capture) capture=$2;; --rounds) rounds=$2;; --netsniff) netsniff=$2;; --scratch) scratch=$2;; --report) report=$2;; *) usage;;
    esac
    shift 2
done
[ -n "$capture" ] || usage
begin_report tables
if [ -z "$netsniff" ]; then
    build -p netsniff
    netsniff=$built/netsniff
fi
netsniff=$(realpath "$netsniff")
formats=(tsv json parquet)

write() {
    rm -rf "$scratch/logs"
    /usr/bin/time -o "$scratch/time" -f '%e\t%U\t%S\t%M' "$netsniff" analyze -q "$capture" --workers "$2" --format "$1" -o "$scratch/logs"
}

write tsv 1
rows=$(grep -hvc '^#' "$scratch"/logs/*.log | awk '{ sum += $1 } END { print sum }')
write parquet 1
listed=$(grep -o '"rows":[0-9]*' "$scratch/logs/manifest.jsonl" | awk -F: '{ sum += $2 } END { print sum }')
[ "$rows" = "$listed" ] || { echo "TSV has $rows rows, and tables have $listed" >&2; exit 1; }

printf 'round\tworkers\tformat\twall_s\tuser_s\tsys_s\tpeak_kib\tbytes\n' >"$raw"
for round in $(seq "$rounds"); do
    for workers in 1 2; do
        for format in "${formats[@]}"; do
            write "$format" "$workers"
            bytes=$(find "$scratch/logs" -type f \( -name '*.log' -o -name '*.parquet' \) -printf '%s\n' | awk '{ sum += $1 } END { print sum }')
            printf '%s\t%s\t%s\t%s\t%s\n' "$round" "$workers" "$format" "$(tail -1 "$scratch/time")" "$bytes" >>"$raw"
        done
    done
done
rm -rf "$scratch/logs"

# median WORKERS FORMAT COLUMNS: of the sum of columns.
median() {
    awk -F'\t' -v workers="$1" -v format="$2" -v columns="$3" '$2 == workers && $3 == format { sum = 0; many = split(columns, at, ","); for (n = 1; n <= many; n++) sum += $at[n]; print sum }' "$raw" |
        sort -g | awk '{ all[NR] = $1 } END { print (all[int((NR + 1) / 2)] + all[int(NR / 2) + 1]) / 2 }'
}
{
    echo "# Tables, $day"
    echo
    echo "Made by \`benches/tables.sh --capture $(basename "$capture")\` with $rounds rounds, in turns: medians. Each run is a line of"
    echo "\`$(basename "$raw")\`. The file has $(stat -L -c %s "$capture") bytes and gives $rows rows in all logs, in each format."
    echo "A ratio is the time beside that of TSV with as many workers."
    echo
    echo "- $(uname -sr), $(nproc) processors; load when it ended $(cut -d' ' -f1-3 /proc/loadavg)"
    echo "- $("$netsniff" --version), $(rustc --version)"
    echo
    echo '| workers | format | s | ratio | CPU s | peak MiB | MB written |'
    echo '|---|---|---|---|---|---|---|'
    for workers in 1 2; do
        for format in "${formats[@]}"; do
            wall=$(median "$workers" "$format" 4)
            echo "| $workers | $format | $wall | $(awk "BEGIN { printf \"%.2f\", $wall / $(median "$workers" tsv 4) }") |" \
                "$(median "$workers" "$format" 5,6) | $(median "$workers" "$format" 7 | awk '{ printf "%.0f", $1 / 1024 }') |" \
                "$(median "$workers" "$format" 8 | awk '{ printf "%.1f", $1 / 1e6 }') |"
        done
    done
} >"$page"
cat "$page"
