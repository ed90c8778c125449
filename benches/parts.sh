#!/usr/bin/env bash
# Runs the benchmarks of the single parts and writes their output to a dated page.
#
# Usage: benches/parts.sh [--report FOLDER]
#
#   --report FOLDER   where the page goes (docs/measurements)
#
# Reading, decoding, checksums, the table of flows and the engine, output and recording: each a `cargo bench` target, on the
# last CPU. The page has what divan prints, raw: fastest, slowest, median and mean, and the throughput under each.
set -euo pipefail
# No configuration file of this machine changes what is measured.
export NETSNIFF_CONFIG=
cd "$(dirname "$0")/.."
export LC_ALL=C

report=docs/measurements
case $# in
    0) ;;
    2) [ "$1" = --report ] || { sed -n '4,9s/^# \?//p' "$0"; exit 2; }; report=$2;;
    *) sed -n '4,9s/^# \?//p' "$0"; exit 2;;
esac
mkdir -p "$report"
page=$report/$(date -u +%F)-parts.md
cpu=$(($(nproc) - 1))

benches=("netsniff-pcapfile read" "netsniff-packet decode" "netsniff-packet checksum" "netsniff-analysis engine" "netsniff-output output" "netsniff-pipeline recording")
for bench in "${benches[@]}"; do
    read -r package name <<<"$bench"
    cargo bench --quiet --no-run --package "$package" --bench "$name"
done
{
    echo "# The parts, $(date -u +%F)"
    echo
    echo "Made by \`benches/parts.sh\`, on CPU $cpu."
    echo
    echo "- CPU: $(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -1), $(nproc) online; memory $(awk '/MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo)"
    echo "- Kernel $(uname -r); load when it began: $(cut -d' ' -f1-3 /proc/loadavg)"
    echo "- netsniff at $(git rev-parse --short=12 HEAD)$(git diff --quiet HEAD -- || echo ' with changes'), $(rustc --version)"
    for bench in "${benches[@]}"; do
        read -r package name <<<"$bench"
        printf '\n## `cargo bench -p %s --bench %s`\n\n```\n' "$package" "$name"
        taskset -c "$cpu" cargo bench --quiet --package "$package" --bench "$name" 2>&1
        echo '```'
    done
} >"$page"
cat "$page"
