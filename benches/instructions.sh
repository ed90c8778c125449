#!/usr/bin/env bash
# Counts the instructions of an analysis with callgrind, and holds them against the figures that were counted before.
# Time is noisy on a shared machine; instructions are not.
#
# Usage: benches/instructions.sh [--netsniff PATH] [--update]
#
#   --netsniff PATH   the binary (target/release/netsniff, built if missing)
#   --update          writes the figures instead of comparing them
#
# The workloads are the recorded fixtures with all protocols and with none, and 100,000 packets of small64 with none, all
# with one worker and logs in files. Figures are of one compiler: with another one nothing is compared. They hold
# for a build with the default linker: another one lays out relocations otherwise. Needs valgrind.
# Ends with 1 where a figure is more than 2 % off, in either direction: a gain is written down with --update.
set -euo pipefail
# No configuration file of this machine changes what is measured.
export NETSNIFF_CONFIG=
cd "$(dirname "$0")/.."
export LC_ALL=C

netsniff='' update=no figures=benches/instructions.tsv
while [ $# -gt 0 ]; do
    case $1 in
        --netsniff) netsniff=${2:?a path}; shift 2;;
        --update) update=yes; shift;;
        *) sed -n '5,12s/^# \?//p' "$0"; exit 2;;
    esac
done
if [ -z "$netsniff" ]; then
    netsniff=target/release/netsniff
    [ -x "$netsniff" ] || cargo build --release -p netsniff
fi
command -v valgrind >/dev/null || { echo "SKIPPED: valgrind: instructions were not counted" >&2; exit 0; }
compiler=$(rustc --version)
if [ $update = no ] && ! grep -qxF "# $compiler" $figures; then
    echo "SKIPPED: $compiler: the figures are of $(sed -n 's/^# \(rustc .*\)/\1/p' $figures), so nothing was compared" >&2
    exit 0
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cargo build --quiet --release -p netsniff-traffic --example workload
"${CARGO_TARGET_DIR:-target}/release/examples/workload" small64 --packets 100000 --flows 10000 -o "$scratch/small64.pcap" >/dev/null

# How glibc copies depends on the processor and the sizes of its caches, and `rep movsb` counts as one instruction for each
# byte. These are the plain ways, which every processor has; a C library of another kind ignores it.
export GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX_Fast_Unaligned_Load,-AVX512F,-AVX512VL,-ERMS,-FSRM

# count NAME ARGUMENTS...: prints the name and the instructions of an analysis.
count() {
    local name=$1
    shift
    rm -rf "$scratch/logs"
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$netsniff" analyze --quiet --workers 1 -o "$scratch/logs" "$@" \
        2>&1 | awk -v name="$name" '/refs:/ { gsub(",", "", $NF); print name "\t" $NF }'
}

recorded=(fixtures/recorded/office.pcapng fixtures/recorded/protocols.pcapng)
{
    count recorded-all "${recorded[@]}"
    count recorded-none --protocols none "${recorded[@]}"
    count small64-none --protocols none "$scratch/small64.pcap"
} >"$scratch/now.tsv"

if [ $update = yes ]; then
    { echo "# Instructions of an analysis, by workload: benches/instructions.sh --update"; echo "# $compiler"; cat "$scratch/now.tsv"; } >$figures
    cat $figures
    exit 0
fi
awk -F'\t' '
    NR == FNR { if (!/^#/) before[$1] = $2; next }
    { change = 100 * ($2 / before[$1] - 1); off = change > 2 || change < -2
      printf "%-16s %12d before %12d now %+6.2f %%%s\n", $1, before[$1], $2, change, off ? "  OFF" : ""
      if (off) failed = 1; seen++ }
    END { if (seen != length(before)) { print "a workload was not counted"; failed = 1 } exit failed }
' $figures "$scratch/now.tsv"
