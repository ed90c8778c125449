#!/usr/bin/env bash
# Measures tables of flows in Python: `netsniff.read` to Arrow and to pandas, beside NFStream, on one capture. Writes a dated report.
#
# Usage: benches/python.sh --python PYTHON [--rounds N] [--netsniff PATH] [--scratch FOLDER] [--report FOLDER] [--scale F]
#                          [--capture FILE]
#
#   --python PYTHON    a Python that has the netsniff wheel of this tree (scripts/wheel.sh), nfstream, pandas and pyarrow
#   --rounds N         how often each runs (5); the report has medians
#   --netsniff PATH    the binary that makes the capture (built for it)
#   --scratch FOLDER   where the capture goes: 500 MB (netsniff-python in the temporary folder)
#   --report FOLDER    where the report goes (docs/measurements)
#   --scale F          a capture of F times the size, to try the script; such a report is marked
#   --capture FILE     this capture in place of a generated one
#
# Each way is a process of its own, in turn, with the import of its packages; the seconds of reading alone are told by it, too. First
# each runs once, and flows and packets are compared: a ratio is given only where both are the same. NFStream runs with
# its defaults, with its statistics, and without the detection of applications; netsniff with all protocols, and without.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C
. benches/build.sh

usage() { sed -n '4,13s/^# \?//p' "$0"; exit 2; }
rounds=5 python='' netsniff='' scratch=${TMPDIR:-/tmp}/netsniff-python report=docs/measurements scale=1 capture=''
while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || usage
    case $1 in
        --rounds) rounds=$2;; --python) python=$2;; --netsniff) netsniff=$2;; --scratch) scratch=$2;; --report) report=$2;;
        --scale) scale=$2;; --capture) capture=$(realpath "$2");; *) usage;;
    esac
    shift 2
done
[ -n "$python" ] || usage
for program in "$python" jq /usr/bin/time; do
    command -v "$program" >/dev/null || { echo "$program is missing" >&2; exit 2; }
done
# version_of PACKAGE: as its metadata have it.
version_of() { "$python" -c "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))" "$1" 2>/dev/null; }
for package in netsniff nfstream pandas pyarrow; do
    version_of "$package" >/dev/null || { echo "$python has no $package" >&2; exit 2; }
done
begin_report python
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

# ---- Ways -------------------------------------------------------------------------------------------------

ways=(netsniff-arrow netsniff-pandas netsniff-flows-pandas nfstream-loop nfstream-pandas nfstream-statistics-pandas nfstream-flows-pandas)
cat >"$scratch/way.py" <<'PYTHON'
"""way.py WAY CAPTURE: reads the flows of a capture in one way; prints flows, packets, columns, and seconds without imports."""
import sys
import time

way, capture = sys.argv[1:]
if way.startswith("netsniff"):
    import pyarrow.compute
    import netsniff

    if way.endswith("pandas"):
        import pandas
else:
    from nfstream import NFStreamer

    if way.endswith("pandas"):
        import pandas

begin = time.perf_counter()
if way.startswith("netsniff"):
    options = {"depth": "tcp"} if "flows" in way else {}
    table = netsniff.read(capture, log="conn", **options).to_arrow()
    if way.endswith("pandas"):
        frame = table.to_pandas()
        flows, columns = frame.shape
        packets = int(frame["orig_pkts"].sum() + frame["resp_pkts"].sum())
    else:
        flows, columns = table.num_rows, table.num_columns
        packets = sum(pyarrow.compute.sum(table[name]).as_py() or 0 for name in ("orig_pkts", "resp_pkts"))
else:
    options = {"statistical_analysis": "statistics" in way}
    if "flows" in way:
        options["n_dissections"] = 0
    streamer = NFStreamer(source=capture, **options)
    if way.endswith("pandas"):
        frame = streamer.to_pandas()
        flows, columns = frame.shape
        packets = int(frame["bidirectional_packets"].sum())
    else:
        flows = packets = columns = 0
        for flow in streamer:
            flows += 1
            packets += flow.bidirectional_packets
            columns = columns or len(flow.keys())
print(flows, packets, columns, f"{time.perf_counter() - begin:.4f}")
PYTHON

# run WAY: what it prints is in $scratch/said, and what it took in $scratch/time.
run() {
    status=0
    /usr/bin/time -o "$scratch/time" -f '%e\t%U\t%S\t%M' timeout -k 5 1800 "$python" "$scratch/way.py" "$1" "$capture" \
        >"$scratch/said" 2>"$scratch/errors" || status=$?
    [ "$status" = 0 ] || { echo "FAILED: $1: $(tail -1 "$scratch/errors")" >&2; exit 1; }
}

declare -A answers columns
for way in "${ways[@]}"; do
    run "$way"
    read -r flows packets columns[$way] _ <"$scratch/said"
    answers[$way]="$flows flows, $packets packets"
    echo "  $way: ${answers[$way]}" >&2
done

printf 'round\tway\twall_s\tuser_s\tsys_s\tpeak_kib\tread_s\n' >"$raw"
for ((round = 1; round <= rounds; round++)); do
    for ((n = 0; n < ${#ways[@]}; n++)); do
        # Each round starts with another way, so that none always follows the same one.
        way=${ways[(n + round) % ${#ways[@]}]}
        run "$way"
        printf '%s\t%s\t%s\t%s\n' "$round" "$way" "$(tail -1 "$scratch/time")" "$(cut -d' ' -f4 "$scratch/said")" >>"$raw"
    done
    echo "round $round of $rounds done" >&2
done

# ---- The report -------------------------------------------------------------------------------------------

. benches/machine.sh

# median WAY COLUMN...: of the sum of columns of the raw values.
median() {
    local way=$1
    shift
    awk -F'\t' -v way="$way" -v columns="$*" '$2 == way { sum = 0; many = split(columns, at, " "); for (n = 1; n <= many; n++) sum += $at[n]; print sum }' "$raw" |
        sort -g | awk '{ value[NR] = $1 } END { printf "%.2f", NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2 }'
}

{
    echo "# Flows in Python, $day"
    echo
    [ -z "$trial" ] || printf '**A trial of the script at %s of the size: not a measurement.**\n\n' "$scale"
    echo "Made by \`benches/python.sh\` with $rounds rounds: medians. Each way is a process of its own, in turn, on a file in the page cache."
    echo "Seconds are those of the process, with imports; *reading* is what it measured without them. A ratio is the time of a way by that of"
    echo "\`netsniff-pandas\`, where flows and packets are the same. Each run is a line of \`$(basename "$raw")\`."
    echo
    machine
    echo "- Python $("$python" -c 'import platform; print(platform.python_version())'), netsniff wheel $(version_of netsniff), nfstream $(version_of nfstream), pandas $(version_of pandas), pyarrow $(version_of pyarrow)"
    echo "- Capture: $(stat -L -c %s "$capture") bytes, $("$netsniff" info --json "$capture" | jq -r .packets) packets${made:+, by \`$made\`}"
    echo
    echo '| way | s | reading s | CPU s | peak MiB | ratio | columns | answer |'
    echo '|---|---|---|---|---|---|---|---|'
    base=$(median netsniff-pandas 3)
    for way in "${ways[@]}"; do
        answer=${answers[$way]} ratio=-
        if [ "$answer" = "${answers[netsniff-pandas]}" ]; then
            ratio=$(awk "BEGIN { printf \"%.1f\", $(median "$way" 3) / ($base > 0 ? $base : 0.01) }")
        else
            answer="**$answer**"
        fi
        echo "| $way | $(median "$way" 3) | $(median "$way" 7) | $(median "$way" 4 5) | $(median "$way" 6 | awk '{ printf "%.0f", $1 / 1024 }') | $ratio | ${columns[$way]} | $answer |"
    done
    echo
    echo "The peak is that of the largest process of a way; NFStream reads in several. \`netsniff-flows-pandas\` stops at TCP (\`depth=\"tcp\"\`), and"
    echo "\`nfstream-flows-pandas\` detects no applications (\`n_dissections=0\`): flows alone. The others find out protocols."
    echo "\`nfstream-statistics-pandas\` has statistics of lengths and times of packets, which netsniff has not."
} >"$page"
cat "$page"
