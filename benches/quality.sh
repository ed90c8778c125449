#!/usr/bin/env bash
# Proves the verdicts of netsniff about lost frames: records real connections whose losses are known, analyses what was
# captured of them, and holds each verdict against the truth.
#
# Usage: benches/quality.sh [--connections N] [--recordings "PATH-BEFORE-CAPTURE-BEHIND ..."] [--netsniff PATH]
#                           [--scratch FOLDER] [--keep yes|no] [--report FOLDER]
#
#   --connections N    connections of each recording (2000 at 0.1 % and below, else 1000)
#   --recordings LIST  which: the path is `far` (1 ms and 8 ms of wire before and behind the tap) or `rack` (none); the
#                      rest are percent of frames lost before the tap, in the capture and behind the tap
#                      (every cause alone and with each other at 0.1, 1 and 5 % on `far`, at 1 % in the `rack`); behind
#                      these `-rN-dM` lets each wire deliver N percent up to 1 ms late and M percent twice (`far` with
#                      3 and 2 % beside every loss of 1 %, and beside none)
#   --netsniff PATH    the binary (target/debug/netsniff, built if missing)
#   --scratch FOLDER   where recordings and logs go: 3 GB (netsniff-quality in the temporary folder)
#   --keep yes|no      whether they stay there (no); recordings that are there already are used again
#   --report FOLDER    also writes a dated page and its raw values there
#
# Needs root and Debian's nginx-light curl iproute2 ethtool tcpdump python3. Ends with 1 where a promise is not kept.
set -euo pipefail
# No configuration file of this machine changes what is measured.
export NETSNIFF_CONFIG=
cd "$(dirname "$0")/.."
export LC_ALL=C

connections='' recordings='' netsniff='' scratch=${TMPDIR:-/tmp}/netsniff-quality keep=no report=''
while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || { sed -n '5,19s/^# \?//p' "$0"; exit 2; }
    case $1 in
        --connections) connections=$2;; --recordings) recordings=$2;; --netsniff) netsniff=$2;; --scratch) scratch=$2;;
        --keep) keep=$2;; --report) report=$2;; *) sed -n '5,19s/^# \?//p' "$0"; exit 2;;
    esac
    shift 2
done
if [ -z "$recordings" ]; then
    for rate in 0.1 1 5; do
        for causes in "$rate-0-0" "0-$rate-0" "0-0-$rate" "$rate-$rate-0" "0-$rate-$rate" "$rate-0-$rate" "$rate-$rate-$rate"; do
            recordings+=" far-$causes"
            [ $rate != 1 ] || recordings+=" rack-$causes far-$causes-r3-d2"
        done
    done
    recordings+=' far-0-0-0-r3-d2'
fi
if [ -z "$netsniff" ]; then
    netsniff=target/debug/netsniff
    [ -x "$netsniff" ] || cargo build -p netsniff
fi
cargo build --quiet -p netsniff --example quality
mkdir -p "$scratch"

folders=() seed=0
for recording in $recordings; do
    seed=$((seed + 1))
    IFS=- read -r path before capture behind late doubled <<<"$recording"
    late=${late#r} doubled=${doubled#d}
    case $path in far) wires=(1 8);; rack) wires=(0 0);; *) echo "quality.sh: no path named $path" >&2; exit 2;; esac
    many=${connections:-$(awk "BEGIN { print ($before <= 0.1 && $capture <= 0.1 && $behind <= 0.1) ? 2000 : 1000 }")}
    folder=$scratch/$recording
    folders+=("$folder")
    if [ ! -f "$folder/books.tsv" ]; then
        echo "recording $recording" >&2
        # Where a frame was lost that no counter of ours knows, the recording is worth nothing; once it may be chance.
        for try in 1 2; do
            if timeout -k 10 600 benches/quality/record.sh "$folder" "$before" "$capture" "$behind" "${wires[@]}" "$many" "$seed" nginx \
                "${late:-0}" "${doubled:-0}"
            then break
            else rm -rf "$folder"; [ $try = 1 ] || exit 1
            fi
        done
    fi
    rm -rf "$folder/logs"
    "$netsniff" analyze "$folder/capture.pcap" -o "$folder/logs" >/dev/null
done

day=$(date -u +%F) status=0
raw=$scratch/raw.tsv
target/debug/examples/quality --raw "$raw" "${folders[@]}" >"$scratch/tables.md" || status=$?
[ $status -le 1 ] || exit $status

version() { dpkg-query -W -f '${Version}' "$1" 2>/dev/null || echo unknown; }
page() {
    cat <<PAGE
# Verdicts about lost frames, $day

Made by \`benches/quality.sh\`: connections of the Linux stack (nginx, curl) in network namespaces, with known losses. The
name of a recording has its path (\`far\`: 1 ms and 8 ms of wire before and behind the tap; \`rack\`: none) and the
percentages of TCP frames that are lost in each direction before the tap, in the capture and behind the tap; \`-r3-d2\` says that
each wire, before and behind the tap, delivered 3 % of all frames up to 1 ms late and 2 % twice.

**The truth is the kernel's.** Each loss is a classic BPF filter at a clsact hook that compares a random number with a
threshold and redirects the frame to an interface of its own, where it is recorded; nothing is removed from a file
afterwards. The counters of the interfaces agree with the frames in the files in every recording: what the hosts sent
is what was lost before the tap and what it saw; what the hosts received is what it saw less what was lost behind it, each with what wires doubled, which the wires tell, too; what
it saw is what was captured and what was lost to the capture. No recorder dropped a frame.

- CPU: $(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -1), $(nproc) online; kernel $(uname -r), $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release)
- netsniff $("$netsniff" --version | awk '{ print $2 }') at $(git rev-parse --short=12 HEAD)$(git diff --quiet HEAD -- || echo ' with changes')
- nginx $(version nginx-light), curl $(version curl), iproute2 $(version iproute2), tcpdump $(version tcpdump); congestion control $(cat /proc/sys/net/ipv4/tcp_congestion_control)

What the columns mean:

- *marked rightly* (precision): of the connections whose \`quality\` is \`touched\` or \`suspect\`, those that lost a frame in the capture;
- *found* (recall): of those of which the capture lacks a SYN, FIN or data that it has a later acknowledgement of, those that
  are marked; *found, with copies*: the same with those of which the capture lost a copy and has another one from before the
  acknowledgement, so that nothing is missing in it;
- *cause right*: of the connections where the captured packets prove at least one cause, those of which \`gaps\` tells every
  proven cause and none that did not happen; *several causes right*: the same where two or three are proven;
- *none invented*: of all others, those of which \`gaps\` tells no cause that did not happen.

What the packets do not tell is in none of these and counted apart (\`crates/testing/src/quality/evidence.rs\`): a loss before the tap that
looks like reordering, one in the capture that looks like a late packet, and what looks like a loss behind the tap and was none.

PAGE
    cat "$scratch/tables.md"
    printf '\nEvery figure is a line of `%s`.\n' "$day-quality.tsv"
}
page
if [ -n "$report" ]; then
    mkdir -p "$report"
    page >"$report/$day-quality.md"
    cp "$raw" "$report/$day-quality.tsv"
fi
[ "$keep" = yes ] || rm -rf "${folders[@]}"
exit $status
