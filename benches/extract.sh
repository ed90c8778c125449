#!/usr/bin/env bash
# Times how long it takes to carve one connection out of a capture: by an index, in one pass, and with other tools.
#
# Usage: benches/extract.sh --capture FILE [--runs N] [--netsniff PATH] [--scratch FOLDER] [--report FOLDER]
#
#   --capture FILE     a capture that is not packed, as the mix that benches/run offline leaves in its scratch folder
#   --runs N           runs of each command, of which the fastest counts (3)
#   --netsniff PATH    the binary (built for it)
#   --scratch FOLDER   where the index and what is carved go (netsniff-extract in the temporary folder)
#   --report FOLDER    where the page and its raw values go (docs/measurements)
#
# tcpdump and TShark select by addresses and ports, which also finds later connections of the same ports. Each is left out
# where it is missing. Fails where index and one pass write different bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C
. benches/build.sh
. benches/connection.sh

capture='' runs=3 netsniff='' scratch=${TMPDIR:-/tmp}/netsniff-extract report=docs/measurements scale=1
while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || { sed -n '2,13s/^# \?//p' "$0"; exit 2; }
    case $1 in
        --capture) capture=$2;; --runs) runs=$2;; --netsniff) netsniff=$2;; --scratch) scratch=$2;; --report) report=$2;;
        *) sed -n '2,13s/^# \?//p' "$0"; exit 2;;
    esac
    shift 2
done
[ -n "$capture" ] || { sed -n '2,13s/^# \?//p' "$0"; exit 2; }
begin_report extract
if [ -z "$netsniff" ]; then
    build -p netsniff
    netsniff=$built/netsniff
fi
netsniff=$(realpath "$netsniff")
# The index stands beside the name of the capture, which may lie where nobody should write.
file=$scratch/capture
ln -sfn "$(realpath "$capture")" "$file"

# timed LABEL COMMAND...: runs a command some times, each a line of the raw values.
timed() {
    local label=$1 run
    shift
    for run in $(seq "$runs"); do
        /usr/bin/time -o "$scratch/time" -f %e "$@" >"$scratch/said" 2>&1
        printf '%s\t%s\t%s\n' "$run" "$label" "$(tail -1 "$scratch/time")" >>"$raw"
    done
}
# row LABEL TOLD: the fastest of the runs of a command.
row() {
    local seconds
    seconds=$(awk -F'\t' -v label="$1" '$2 == label { print $3 }' "$raw" | sort -g | head -1)
    printf '| %s | %s s | %s |\n' "$1" "$seconds" "$2" >>"$scratch/rows"
}
written() { "$netsniff" info --json "$1" | sed 's/.*"packets":\([0-9]*\).*/\1/'; }

printf 'run\tcommand\twall_s\n' >"$raw"
: >"$scratch/rows"
"$netsniff" analyze -q "$file" -o "$scratch/logs"
read -r uid host port other service < <(middle_connection "$scratch/logs")
rm -rf "$scratch/logs"
filter="host $host and host $other and tcp port $port and port $service"

all=$(stat -L -c %s "$file")
timed 'netsniff index, once' "$netsniff" index -q "$file"
row 'netsniff index, once' "$(stat -c %s "$file.nsi" | awk -v all="$all" '{ printf "index of %.2f %% of the capture", $1 * 100 / all }')"
timed 'netsniff extract, by index' "$netsniff" extract -q "$file" -w "$scratch/index.pcapng" --uid "$uid"
row 'netsniff extract, by index' "$(written "$scratch/index.pcapng")"
timed 'netsniff extract, in one pass' "$netsniff" extract -q --no-index "$file" -w "$scratch/pass.pcapng" --uid "$uid"
row 'netsniff extract, in one pass' "$(written "$scratch/pass.pcapng")"
cmp "$scratch/index.pcapng" "$scratch/pass.pcapng"
if command -v tcpdump >/dev/null; then
    timed 'tcpdump -r -w FILTER' tcpdump -r "$file" -w "$scratch/tcpdump.pcap" "$filter"
    row 'tcpdump -r -w FILTER' "$(written "$scratch/tcpdump.pcap")"
fi
if command -v tshark >/dev/null; then
    display="ip.addr == $host && ip.addr == $other && tcp.port == $port && tcp.port == $service"
    timed 'tshark -r -w -Y FILTER' tshark -r "$file" -w "$scratch/tshark.pcapng" -Y "$display"
    row 'tshark -r -w -Y FILTER' "$(written "$scratch/tshark.pcapng")"
fi
{
    echo "# One connection out of a capture, $day"
    echo
    echo "Made by \`benches/extract.sh --capture $(basename "$capture")\`: $((all >> 20)) MiB, $(written "$file") packets, in the page cache."
    echo "Of $runs runs of each command the fastest counts; each is a line of \`$(basename "$raw")\`. By index and in one pass the same bytes"
    echo "were written. tcpdump and TShark compare addresses and ports alone; extract follows connections."
    echo
    echo "- $(uname -sr), $(nproc) processors"
    echo "- $("$netsniff" --version), $(rustc --version)"
    echo
    echo '| command | time | packets |'
    echo '|---|---|---|'
    cat "$scratch/rows"
} >"$page"
cat "$page"
