#!/usr/bin/env bash
# Times how long it takes to carve one connection out of a capture: by an index, in one pass, and with other tools.
#
# Usage: benches/extract.sh --capture FILE [--runs N] [--netsniff PATH] [--scratch FOLDER]
#
#   --capture FILE     a capture that is not packed, as the mix that benches/run offline leaves in its scratch folder
#   --runs N           runs of each command, of which the fastest counts (3)
#   --netsniff PATH    the binary (built for it)
#   --scratch FOLDER   where the index and what is carved go (netsniff-extract in the temporary folder)
#
# tcpdump and TShark select by addresses and ports, which also finds later connections of the same ports. Each is left out
# where it is missing. Fails where index and one pass write different bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C
. benches/build.sh
. benches/connection.sh

capture='' runs=3 netsniff='' scratch=${TMPDIR:-/tmp}/netsniff-extract
while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || { sed -n '2,12s/^# \?//p' "$0"; exit 2; }
    case $1 in
        --capture) capture=$2;; --runs) runs=$2;; --netsniff) netsniff=$2;; --scratch) scratch=$2;;
        *) sed -n '2,12s/^# \?//p' "$0"; exit 2;;
    esac
    shift 2
done
[ -n "$capture" ] || { sed -n '2,12s/^# \?//p' "$0"; exit 2; }
mkdir -p "$scratch"
if [ -z "$netsniff" ]; then
    build -p netsniff
    netsniff=$built/netsniff
fi
netsniff=$(realpath "$netsniff")
# The index stands beside the name of the capture, which may lie where nobody should write.
file=$scratch/capture
ln -sfn "$(realpath "$capture")" "$file"

# The fastest of some runs of a command, in seconds.
fastest() {
    local run
    for run in $(seq "$runs"); do
        /usr/bin/time -o "$scratch/time" -f %e "$@" >"$scratch/said" 2>&1
        tail -1 "$scratch/time"
    done | sort -g | head -1
}
row() { printf '| %s | %s s | %s |\n' "$1" "$2" "$3"; }
written() { "$netsniff" info --json "$1" | sed 's/.*"packets":\([0-9]*\).*/\1/'; }

"$netsniff" analyze -q "$file" -o "$scratch/logs"
read -r uid host port other service < <(middle_connection "$scratch/logs")
rm -rf "$scratch/logs"
filter="host $host and host $other and tcp port $port and port $service"

echo "$(($(stat -L -c %s "$file") >> 20)) MiB, $(written "$file") packets; $uid"
echo
echo '| command | time | packets |'
echo '|---|---|---|'
index=$(fastest "$netsniff" index -q "$file")
row 'netsniff index, once' "$index" "$(stat -c %s "$file.nsi" | awk -v all="$(stat -L -c %s "$file")" '{ printf "%.2f %% of the capture", $1 * 100 / all }')"
seconds=$(fastest "$netsniff" extract -q "$file" -w "$scratch/index.pcapng" --uid "$uid")
row 'netsniff extract, by index' "$seconds" "$(written "$scratch/index.pcapng")"
seconds=$(fastest "$netsniff" extract -q --no-index "$file" -w "$scratch/pass.pcapng" --uid "$uid")
row 'netsniff extract, in one pass' "$seconds" "$(written "$scratch/pass.pcapng")"
cmp "$scratch/index.pcapng" "$scratch/pass.pcapng"
if command -v tcpdump >/dev/null; then
    seconds=$(fastest tcpdump -r "$file" -w "$scratch/tcpdump.pcap" "$filter")
    row 'tcpdump -r -w FILTER' "$seconds" "$(written "$scratch/tcpdump.pcap")"
fi
if command -v tshark >/dev/null; then
    display="ip.addr == $host && ip.addr == $other && tcp.port == $port && tcp.port == $service"
    seconds=$(fastest tshark -r "$file" -w "$scratch/tshark.pcapng" -Y "$display")
    row 'tshark -r -w -Y FILTER' "$seconds" "$(written "$scratch/tshark.pcapng")"
fi
