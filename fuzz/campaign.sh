#!/bin/sh
# Runs fuzz targets for a long time and writes what came of it to a dated page: fuzz/campaign.sh SECONDS [TARGET...]
#
# All targets unless some are named, one after the other. The page is docs/measurements/DATE-fuzzing.md; the logs it is
# made of stay in fuzz/logs/TARGET.log. With 0 seconds nothing runs, and the page is made of the logs that are there.
set -eu

if [ $# -lt 1 ]; then
    echo "usage: $0 SECONDS [TARGET...]" >&2
    exit 2
fi
seconds=$1
shift
cd "$(dirname "$0")"
[ $# -gt 0 ] || set -- $(basename -s .rs fuzz_targets/*.rs)

mkdir -p logs
failed=0
if [ "$seconds" -gt 0 ]; then
    for target in "$@"; do
        ./run.sh "$target" "$seconds" >"logs/$target.log" 2>&1 || failed=1
        tail -1 "logs/$target.log"
    done
fi

page=../docs/measurements/$(date -u +%F)-fuzzing.md
{
    echo "# Fuzzing, $(date -u +%F)"
    echo
    echo "Made by \`fuzz/campaign.sh\`: each target with \`fuzz/run.sh TARGET SECONDS\`, its seeds and what earlier runs had found. Edges"
    echo "and features are libFuzzer's \`cov\` and \`ft\`; findings are crashes, endless loops, and more than 2 GiB of memory."
    echo
    echo "- CPU: $(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -1), $(nproc) online"
    echo "- netsniff at $(git rev-parse --short=12 HEAD), $(rustc --version)"
    echo
    echo "| target | seconds | runs | runs a second | edges | features | inputs kept | peak MiB | findings |"
    echo "|---|---|---|---|---|---|---|---|---|"
    for target in "$@"; do
        [ -f "logs/$target.log" ] || continue
        awk -v target="$target" -v found="$(ls "artifacts/$target" 2>/dev/null | wc -l)" '
            / cov: / { for (n = 1; n < NF; n++) { if ($n == "cov:") edges = $(n + 1); if ($n == "ft:") features = $(n + 1); if ($n == "corp:") { split($(n + 1), kept, "/") } } }
            /^Done / { runs = $2; seconds = $5 }
            /average_exec_per_sec/ { rate = $2 }
            /peak_rss_mb/ { peak = $2 }
            END { printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", target, seconds, runs, rate, edges, features, kept[1], peak, found }' "logs/$target.log"
    done
} >"$page"
cat "$page"
exit $failed
