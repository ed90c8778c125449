#!/usr/bin/env bash
# Times jobs of the cookbook beside the tools that people reach for, interleaved, and writes a dated report.
#
# Usage: benches/cookbook.sh [--rounds N] [--netsniff PATH] [--scratch FOLDER] [--report FOLDER] [--scale F]
#                            [--capture FILE] [--nfstream PYTHON] [--jobs NAME,...]
#
#   --rounds N         how often each command runs (5); the report has medians
#   --netsniff PATH    the binary to measure (built for it)
#   --scratch FOLDER   where the capture and what is written go: 2 GB (netsniff-cookbook in the temporary folder)
#   --report FOLDER    where the report goes (docs/measurements)
#   --scale F          a capture of F times the size, to try the script; such a report is marked
#   --capture FILE     this capture in place of a generated one, which has some 500 MB: HTTP, SMTP, FTP, SSH, TLS, DNS
#   --nfstream PYTHON  a Python that has nfstream (python3); without it that row is left out, and the report says so
#   --jobs NAMES       these alone, of info, connection, conversations, seconds, dns, tls, http, files and flows
#
# Needs tshark, tcpdump, capinfos, jq and time. First every command runs once, and its answer is compared with that of
# netsniff: where it is another one, the report has both, and no ratio. Commands run as people type them, on all processors.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
. benches/build.sh
. benches/connection.sh

usage() { sed -n '4,15s/^# \?//p' "$0"; exit 2; }
all_jobs=(info connection conversations seconds dns tls http files flows)
rounds=5 netsniff='' scratch=${TMPDIR:-/tmp}/netsniff-cookbook report=docs/measurements scale=1 capture='' python=python3 only=''
while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || usage
    case $1 in
        --rounds) rounds=$2;; --netsniff) netsniff=$2;; --scratch) scratch=$2;; --report) report=$2;; --scale) scale=$2;;
        --capture) capture=$(realpath "$2");; --nfstream) python=$2;; --jobs) only=$2;; *) usage;;
    esac
    shift 2
done
for program in tshark tcpdump capinfos jq /usr/bin/time; do
    command -v $program >/dev/null || { echo "$program is missing" >&2; exit 2; }
done
jobs=()
for job in "${all_jobs[@]}"; do [[ -n $only && ",$only," != *",$job,"* ]] || jobs+=("$job"); done
[ ${#jobs[@]} -gt 0 ] || { echo "there is no job $only" >&2; exit 2; }
begin_report cookbook
of_tree=yes; [ -z "$netsniff" ] || of_tree=no
if [ -z "$netsniff" ]; then
    build -p netsniff
    netsniff=$built/netsniff
fi
netsniff=$(realpath "$netsniff")

# ---- The capture ------------------------------------------------------------------------------------------

made=''
if [ -z "$capture" ]; then
    sessions=$(awk "BEGIN { printf \"%d\", 25000 * $scale }")
    capture=$scratch/hosts-$sessions.pcapng
    made="netsniff generate hosts --n 300 --sessions $sessions --seed 1 --start 1767225600"
    # shellcheck disable=SC2086 # Words of a command.
    [ -f "$capture" ] || "$netsniff" ${made#netsniff } -q -w "$capture"
fi
# The index stands beside the name of the capture, which may lie where nobody should write.
indexed=$scratch/indexed.pcapng
ln -sfn "$capture" "$indexed"
rm -f "$indexed.nsi"
rm -rf "$scratch/logs"
"$netsniff" analyze -q "$indexed" -o "$scratch/logs"
read -r uid host port other service < <(middle_connection "$scratch/logs")
cat >"$scratch/flows.py" <<'PYTHON'
import sys
from nfstream import NFStreamer

flows = packets = 0
for flow in NFStreamer(source=sys.argv[1]):
    flows += 1
    packets += flow.bidirectional_packets
print(flows, packets)
PYTHON
nfstream=''
nfstream=$("$python" -c 'import nfstream; print(nfstream.__version__)' 2>/dev/null) ||
    echo "LEFT OUT: nfstream, which $python does not have; name one that has it by --nfstream" >&2

# ---- Jobs -------------------------------------------------------------------------------------------------

# tools_of JOB: the ways to do it; those of netsniff come first, and the first of all is what others are compared with.
tools_of() {
    case $1 in
        info) echo netsniff capinfos;;
        connection) echo netsniff netsniff-index tcpdump tshark;;
        flows) [ -z "$nfstream" ] && echo netsniff || echo netsniff nfstream;;
        *) echo netsniff tshark;;
    esac
}

question_of() {
    case $1 in
        info) echo 'What is in it? Packets and bytes';;
        connection) echo 'The packets of one connection';;
        conversations) echo 'TCP conversations, with packets of the largest';;
        seconds) echo 'Packets in each second';;
        dns) echo 'Names that DNS could not resolve';;
        tls) echo 'Names that TLS clients asked for';;
        http) echo 'Hosts of HTTP requests';;
        files) echo 'Files out of HTTP';;
        flows) echo 'Flows, with their packets';;
    esac
}

# command_of JOB TOOL: a command of the shell, as somebody types it in the folder $out, where `capture` is the capture and
# `indexed` the same with an index.
command_of() {
    local rows='netsniff analyze -q capture -o - | jq -r'
    case $1/$2 in
        info/netsniff) echo 'netsniff info capture';;
        # Without hashes of the file, which netsniff does not make either.
        info/capinfos) echo 'capinfos -t -c -s -d -u -a -e -y -i -z -x -o capture';;
        connection/netsniff) echo "netsniff extract -q --no-index capture --uid $uid -w one.pcapng";;
        connection/netsniff-index) echo "netsniff extract -q indexed --uid $uid -w one.pcapng";;
        connection/tcpdump) echo "tcpdump -Z root -r capture -w one.pcapng 'host $host and host $other and tcp port $port and port $service'";;
        connection/tshark) echo "tshark -r capture -w one.pcapng -Y 'ip.addr == $host && ip.addr == $other && tcp.port == $port && tcp.port == $service'";;
        conversations/netsniff) echo "$rows 'select(._path == \"conn\" and .proto == \"tcp\") | [.uid, .orig_pkts + .resp_pkts] | @tsv'";;
        conversations/tshark) echo 'tshark -r capture -q -z conv,tcp';;
        seconds/netsniff) echo "netsniff analyze -q capture --series 1s -o - | jq -r 'select(._path == \"series\" and .kind == \"total\") | .packets'";;
        seconds/tshark) echo 'tshark -r capture -q -z io,stat,1';;
        dns/netsniff) echo "$rows 'select(._path == \"dns\" and .rcode_name != null and .rcode_name != \"NOERROR\") | .query'";;
        dns/tshark) echo "tshark -r capture -Y 'dns.flags.response == 1 && dns.flags.rcode != 0' -T fields -e dns.qry.name";;
        tls/netsniff) echo "$rows 'select(._path == \"ssl\") | .server_name // empty'";;
        tls/tshark) echo "tshark -r capture -Y 'tls.handshake.type == 1' -T fields -e tls.handshake.extensions_server_name";;
        http/netsniff) echo "$rows 'select(._path == \"http\") | .host'";;
        http/tshark) echo 'tshark -r capture -Y http.request -T fields -e http.host';;
        files/netsniff) echo 'netsniff analyze -q capture --protocols http --extract-files files -o logs';;
        files/tshark) echo 'tshark -r capture -q --export-objects http,files';;
        flows/netsniff) echo 'netsniff analyze -q capture -o logs';;
        flows/nfstream) echo 'python flows.py capture';;
    esac
}

# listed WHAT: the lines of a list, as often as they stand there, in few words.
listed() {
    sed '/^$/d' | sort >"$scratch/list"
    echo "$(wc -l <"$scratch/list") $1, $(md5sum <"$scratch/list" | cut -c1-8)"
}

# answer_of JOB TOOL: what a run said or wrote, in words that are the same for each tool if it means the same.
answer_of() {
    case $1/$2 in
        info/netsniff) "$netsniff" info --json "$capture" | jq -r '"\(.packets) packets, \(.captured_bytes) bytes"';;
        info/capinfos) capinfos -T -m -r -c -d "$capture" | awk -F, '{ print $2 " packets, " $3 " bytes" }';;
        connection/*) "$netsniff" info --json "$out/one.pcapng" | jq -r '"\(.packets) packets"';;
        conversations/netsniff) awk -F'\t' '$2 > most { most = $2 } END { print NR " conversations, " most " packets" }' "$out/said";;
        conversations/tshark) awk '$2 == "<->" { frames = 0; for (n = 4; n < NF && !frames; n++) column[n] = $n; numbers = 0
                for (n = 4; n <= NF; n++) if ($n ~ /^[0-9]+$/ && (n == 4 || $(n - 1) ~ /^(bytes|kB|MB|GB)$/)) value[++numbers] = $n
                rows++; if (value[3] > most) most = value[3] } END { print rows " conversations, " most " packets" }' "$out/said";;
        seconds/netsniff) awk '{ packets += $1 } END { print packets " packets" }' "$out/said";;
        seconds/tshark) awk -F'|' '$2 ~ /<>/ { packets += $3 } END { print packets " packets" }' "$out/said";;
        dns/* | tls/* | http/*) listed names <"$out/said";;
        files/*) find "$out/files" -type f -exec md5sum {} + | cut -c1-32 | listed files;;
        flows/netsniff) awk -F'\t' '/^#fields/ { for (n = 2; n <= NF; n++) at[$n] = n - 1 }
                !/^#/ { rows++; packets += $at["orig_pkts"] + $at["resp_pkts"] } END { print rows " flows, " packets " packets" }' "$out/logs/conn.log";;
        flows/nfstream) awk '{ print $1 " flows, " $2 " packets" }' "$out/said";;
    esac
}

# ---- Measuring --------------------------------------------------------------------------------------------

# Names that commands have, as people have them.
bin=$scratch/bin
# Made anew: what is written goes through no link of a run before.
rm -rf "$bin"
mkdir "$bin"
ln -sfn "$netsniff" "$bin/netsniff"
# A link would lose the packages of a virtual environment.
printf '#!/bin/sh\nexec "%s" "$@"\n' "$(command -v "$python" || echo false)" >"$bin/python"
chmod +x "$bin/python"
PATH=$bin:$PATH

# run JOB TOOL: runs it in the fresh folder $out, and sets `status`.
run() {
    out=$scratch/out; rm -rf "$out"; mkdir -p "$out"
    ln -s "$capture" "$out/capture"; ln -s "$indexed" "$out/indexed"; ln -s "$scratch/flows.py" "$out/flows.py"
    [ ! -f "$indexed.nsi" ] || ln "$indexed.nsi" "$out/indexed.nsi"
    status=0
    (cd "$out" && /usr/bin/time -o time -f '%e\t%U\t%S\t%M' timeout -k 5 1800 bash -o pipefail -c "$(command_of "$1" "$2")" >said 2>errors) || status=$?
}

declare -A answers
"$netsniff" index -q "$indexed"
echo "answers are compared" >&2
for job in "${jobs[@]}"; do
    for tool in $(tools_of "$job"); do
        run "$job" "$tool"
        answers[$job/$tool]=$([ "$status" = 0 ] && answer_of "$job" "$tool" || echo "failed: $(tail -1 "$out/errors")")
        echo "  $job, $tool: ${answers[$job/$tool]}" >&2
    done
done

printf 'round\tjob\ttool\twall_s\tuser_s\tsys_s\tpeak_kib\texit\n' >"$raw"
for ((round = 1; round <= rounds; round++)); do
    for job in "${jobs[@]}"; do
        read -ra tools < <(tools_of "$job")
        for ((n = 0; n < ${#tools[@]}; n++)); do
            # Each round starts with another tool, so that none always follows the same one.
            tool=${tools[(n + round) % ${#tools[@]}]}
            run "$job" "$tool"
            printf '%s\t%s\t%s\t%s\t%s\n' "$round" "$job" "$tool" "$(tail -1 "$out/time")" "$status" >>"$raw"
        done
    done
    echo "round $round of $rounds done" >&2
done
rm -rf "$scratch/out"

# ---- The report -------------------------------------------------------------------------------------------

. benches/machine.sh

# median JOB TOOL COLUMNS: of the sum of columns of the raw values.
median() {
    awk -F'\t' -v job="$1" -v tool="$2" -v columns="$3" '$2 == job && $3 == tool { sum = 0; many = split(columns, at, ","); for (n = 1; n <= many; n++) sum += $at[n]; print sum }' "$raw" |
        sort -g | awk '{ value[NR] = $1 } END { printf "%.2f", NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2 }'
}

# rows JOB: a line of the table for each tool.
rows() {
    local tool wall first='' failed ratio answer same
    for tool in $(tools_of "$1"); do
        wall=$(median "$1" "$tool" 4)
        [ -n "$first" ] || { first=$wall; same=${answers[$1/$tool]}; }
        answer=${answers[$1/$tool]} ratio=-
        failed=$(awk -F'\t' -v job="$1" -v tool="$tool" '$2 == job && $3 == tool && $8 != 0' "$raw" | wc -l)
        [ "$answer" != "$same" ] || ratio=$(awk "BEGIN { printf \"%.1f\", $wall / ($first > 0 ? $first : 0.01) }")
        [ "$answer" = "$same" ] || answer="**$answer**"
        [ "$failed" = 0 ] || answer="$answer (**$failed of $rounds runs failed**)"
        echo "| $(question_of "$1") | $tool | $wall | $(median "$1" "$tool" 5,6) | $(median "$1" "$tool" 7 | awk '{ printf "%.0f", $1 / 1024 }') | $ratio | $answer |"
    done
}

{
    echo "# Jobs of the cookbook, $day"
    echo
    [ -z "$trial" ] || printf '**A trial of the script at %s of the size: not a measurement.**\n\n' "$scale"
    echo "Made by \`benches/cookbook.sh\` with $rounds rounds: medians. Each command runs alone, in turn, as one types it, on all"
    echo "processors and on a file in the page cache. Each run is a line of \`$(basename "$raw")\`. \`netsniff-index\` has an index,"
    echo "which \`netsniff index\` made before. A ratio is the time of a tool by that of the first netsniff of its job. It is given only if"
    echo "the answers are the same: numbers, and of lists the sorted lines (their number and the begin of a hash). Of files the hashes"
    echo "of their content are compared, of seconds the sum alone, because those of TShark begin with the first packet."
    echo
    machine
    echo "- tshark and capinfos $(version tshark), tcpdump $(version tcpdump), jq $(version jq), nfstream ${nfstream:-**left out, not installed**}"
    [ -z "$only" ] || echo "- Jobs left out by an option: all but ${only//,/ }"
    echo "- Capture: $(stat -L -c %s "$capture") bytes, $("$netsniff" info --json "$capture" | jq -r .packets) packets${made:+, by \`$made\`}"
    echo
    echo '| job | tool | s | CPU s | peak MiB | ratio | answer |'
    echo '|---|---|---|---|---|---|---|'
    for job in "${jobs[@]}"; do rows "$job"; done
    printf '\nThe peak is that of the largest process of a command.\n\n## Commands\n\n```\n'
    for job in "${jobs[@]}"; do
        for tool in $(tools_of "$job"); do command_of "$job" "$tool"; done
    done
    printf '```\n\n## What was left out\n\n'
    echo "- Retransmissions: TShark and netsniff classify them by other rules; [the log tcp](../tcp-metrics.md#compared-with-wireshark) is compared"
    echo "  segment by segment instead."
    echo "- Losses, verdicts, findings and rows of whole transactions, which the other tools do not make in one command."
    echo "- \`netsniff analyze\` writes all logs of all protocols where a job needs one; only \`files\` names a protocol."
} >"$page"
cat "$page"
