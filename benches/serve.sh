#!/usr/bin/env bash
# Times pages of `netsniff serve` over a large conn.log beside awk and jq over the same rows, interleaved, and writes a dated report.
#
# Usage: benches/serve.sh [--rounds N] [--netsniff PATH] [--scratch FOLDER] [--report FOLDER] [--scale F]
#
#   --rounds N         how often each job runs (5); the report has medians
#   --netsniff PATH    the binary to measure (built for it)
#   --scratch FOLDER   where logs go: 1 GB (netsniff-serve-bench in the temporary folder)
#   --report FOLDER    where the report goes (docs/measurements)
#   --scale F          a log of F times 1,000,000 rows, to try the script; such a report is marked
#
# Needs awk, jq, curl and time. The log is that of fixtures/recorded/office.pcapng, repeated: each copy begins 30 seconds
# later, and each row has a uid of its own. Every answer is compared before anything is timed; where one differs, it stops.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
. benches/build.sh

usage() { sed -n '4,10s/^# \?//p' "$0"; exit 2; }
rounds=5 netsniff='' scratch=${TMPDIR:-/tmp}/netsniff-serve-bench report=docs/measurements scale=1
while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || usage
    case $1 in
        --rounds) rounds=$2;; --netsniff) netsniff=$2;; --scratch) scratch=$2;; --report) report=$2;; --scale) scale=$2;;
        *) usage;;
    esac
    shift 2
done
for program in awk jq curl /usr/bin/time; do
    command -v $program >/dev/null || { echo "$program is missing" >&2; exit 2; }
done
begin_report serve
of_tree=yes; [ -z "$netsniff" ] || of_tree=no
if [ -z "$netsniff" ]; then
    build -p netsniff
    netsniff=$built/netsniff
fi
netsniff=$(realpath "$netsniff")
scratch=$(realpath "$scratch")

# ---- The logs ---------------------------------------------------------------------------------------------

rows=$(awk "BEGIN { printf \"%d\", 1000000 * $scale }")
for format in tsv json; do
    rm -rf "$scratch/office-$format" "$scratch/$format"
    mkdir -p "$scratch/$format"
    "$netsniff" analyze -q --format "$format" fixtures/recorded/office.pcapng -o "$scratch/office-$format"
done
# mawk reads numbers as the shell has them; times have six digits behind the point.
awk -F'\t' -v OFS='\t' -v rows="$rows" '
    /^#close/ { close_line = $0; next }
    /^#/ { print; next }
    { row[++many] = $0 }
    END {
        for (n = 0; n < rows; n++) {
            $0 = row[n % many + 1]
            $1 = sprintf("%.6f", $1 + 30 * int(n / many))
            $2 = sprintf("C%017d", n)
            print
        }
        print close_line
    }' "$scratch/office-tsv/conn.log" >"$scratch/tsv/conn.log"
awk -v rows="$rows" '
    { row[++many] = $0 }
    END {
        for (n = 0; n < rows; n++) {
            text = row[n % many + 1]
            match(text, /"ts":[0-9.]+/)
            time = sprintf("%.6f", substr(text, RSTART + 5, RLENGTH - 5) + 30 * int(n / many))
            # As JSON has it: without zeros at the end.
            sub(/0+$/, "", time); sub(/\.$/, ".0", time)
            sub(/"ts":[0-9.]+,"uid":"[^"]*"/, "\"ts\":" time sprintf(",\"uid\":\"C%017d\"", n), text)
            print text
        }
    }' "$scratch/office-json/conn.log" >"$scratch/json/conn.log"

# ---- Jobs -------------------------------------------------------------------------------------------------

jobs=(newest none some sort count download)
tools=(netsniff netsniff-json awk jq)

question_of() {
    case $1 in
        newest) echo 'The 50 newest rows';;
        none) echo 'A condition that no row meets';;
        some) echo 'A condition: the 50 newest of its rows';;
        sort) echo 'The 50 rows with the most bytes';;
        count) echo 'How many rows meet a condition';;
        download) echo 'All rows that meet a condition, as JSON';;
    esac
}

# Rows of a port of the client below 40,000 that are DNS; and of one port that nobody uses.
some='where=service+%3D+%27dns%27+AND+id.orig_p+%3C+40000'
none='where=id.resp_p+%3D+1'

path_of() {
    case $1 in
        newest) echo '/connections';;
        none) echo "/connections?$none";;
        some | count) echo "/connections?$some";;
        sort) echo '/connections?sort=-orig_ip_bytes';;
        download) echo "/logs/conn/rows.json?$some";;
    esac
}

# command_of JOB TOOL: a command of the shell, as somebody types it beside conn.log.
command_of() {
    local log=tsv/conn.log uid='{ print $2 }' is_dns='$8 == "dns" && $4 < 40000'
    local jq_dns='select(.service == "dns" and .["id.orig_p"] < 40000)'
    case $1/$2 in
        */netsniff) echo "curl -s '$tsv$(path_of "$1")'";;
        */netsniff-json) echo "curl -s '$json$(path_of "$1")'";;
        newest/awk) echo "awk -F'\\t' '!/^#/ { print \$1 \"\\t\" \$2 }' $log | sort -k1,1gr -s | head -50";;
        none/awk) echo "awk -F'\\t' '!/^#/ && \$6 == 1 $uid' $log";;
        some/awk) echo "awk -F'\\t' '!/^#/ && $is_dns { print \$1 \"\\t\" \$2 }' $log | sort -k1,1gr -s | head -50";;
        sort/awk) echo "awk -F'\\t' '!/^#/ && \$$bytes_column != \"-\" { print \$$bytes_column \"\\t\" \$2 }' $log | sort -k1,1gr -s | head -50";;
        count/awk) echo "awk -F'\\t' '!/^#/ && $is_dns { many++ } END { print many }' $log";;
        download/awk) echo "awk '/\"id.orig_p\":[123]?[0-9]?[0-9]?[0-9]?[0-9],/ && /\"service\":\"dns\"/' json/conn.log";;
        newest/jq) echo "jq -r '[.ts, .uid] | @tsv' json/conn.log | sort -k1,1gr -s | head -50";;
        none/jq) echo "jq -r 'select(.[\"id.resp_p\"] == 1) | .uid' json/conn.log";;
        some/jq) echo "jq -r '$jq_dns | [.ts, .uid] | @tsv' json/conn.log | sort -k1,1gr -s | head -50";;
        sort/jq) echo "jq -r 'select(.orig_ip_bytes) | [.orig_ip_bytes, .uid] | @tsv' json/conn.log | sort -k1,1gr -s | head -50";;
        count/jq) echo "jq -n '[inputs | $jq_dns] | length' json/conn.log";;
        download/jq) echo "jq -c '$jq_dns' json/conn.log";;
    esac
}

# answer_of JOB TOOL: the uids that a run told, in their order, or the number, in words that are the same for all tools.
answer_of() {
    local said=$scratch/said
    case $1/$2 in
        count/netsniff*) sed -n 's/.*role="status">[^<]* of \([0-9,]*\) rows that meet.*/\1/p' "$said" | tr -d ,;;
        count/*) cat "$said";;
        none/netsniff*) grep -c 'None of [0-9,]* rows meets the condition' "$said" >/dev/null && echo none;;
        none/*) [ -s "$said" ] || echo none;;
        download/*) { jq -r .uid "$said" | wc -l; jq -r .uid "$said" | md5sum | cut -c1-8; } | paste -sd' ';;
        */netsniff*) grep -o 'connections&#x2f;C[0-9]*"' "$said" | grep -o 'C[0-9]*' | md5sum | cut -c1-8;;
        *) cut -f2 "$said" | md5sum | cut -c1-8;;
    esac
}

# ---- Servers ----------------------------------------------------------------------------------------------

servers=()
trap 'for server in "${servers[@]}"; do kill "$server" 2>/dev/null || true; done' EXIT
# serve FORMAT: sets a variable of this name to the address of a server of these logs.
serve() {
    "$netsniff" serve "$scratch/$1" --listen 127.0.0.1:0 2>"$scratch/served-$1" &
    servers+=($!)
    for _ in $(seq 100); do
        ! grep -q 'open http' "$scratch/served-$1" || break
        sleep 0.1
    done
    printf -v "$1" '%s' "$(sed -n 's|^netsniff: open \(http://[^/]*\)/.*|\1|p' "$scratch/served-$1")"
}
serve tsv
serve json
# shellcheck disable=SC2154 # Set by serve.
[ -n "$tsv" ] && [ -n "$json" ] || { echo "a server did not start" >&2; exit 1; }
peak() { awk '/^VmHWM/ { printf "%.0f", $2 / 1024 }' "/proc/$1/status"; }
bytes_column=$(awk -F'\t' '/^#fields/ { for (n = 2; n <= NF; n++) if ($n == "orig_ip_bytes") print n - 1 }' "$scratch/tsv/conn.log")

# ---- Measuring --------------------------------------------------------------------------------------------

# run JOB TOOL: runs it, and sets `status`.
run() {
    status=0
    (cd "$scratch" && /usr/bin/time -o time -f '%e' timeout -k 5 1800 bash -c "$(command_of "$1" "$2")" >said) || status=$?
}

declare -A answers
for job in "${jobs[@]}"; do
    for tool in "${tools[@]}"; do
        run "$job" "$tool"
        answers[$job/$tool]=$(answer_of "$job" "$tool")
        echo "  $job, $tool: ${answers[$job/$tool]}" >&2
        if [ -z "${answers[$job/$tool]}" ] || [ "${answers[$job/$tool]}" != "${answers[$job/netsniff]}" ]; then
            echo "$job: $tool has another answer than netsniff: $(command_of "$job" "$tool")" >&2
            exit 1
        fi
    done
done

printf 'round\tjob\ttool\twall_s\texit\n' >"$raw"
for ((round = 1; round <= rounds; round++)); do
    for job in "${jobs[@]}"; do
        for ((n = 0; n < ${#tools[@]}; n++)); do
            # Each round starts with another tool, so that none always follows the same one.
            tool=${tools[(n + round) % ${#tools[@]}]}
            run "$job" "$tool"
            printf '%s\t%s\t%s\t%s\t%s\n' "$round" "$job" "$tool" "$(tail -1 "$scratch/time")" "$status" >>"$raw"
        done
    done
    echo "round $round of $rounds done" >&2
done
peaks="$(peak "${servers[0]}") and $(peak "${servers[1]}") MiB"

# ---- The report -------------------------------------------------------------------------------------------

. benches/machine.sh

median() {
    awk -F'\t' -v job="$1" -v tool="$2" '$2 == job && $3 == tool { print $4 }' "$raw" |
        sort -g | awk '{ value[NR] = $1 } END { printf "%.2f", NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2 }'
}

{
    echo "# Pages of \`netsniff serve\` over a large log, $day"
    echo
    [ -z "$trial" ] || printf '**A trial of the script at %s of the size: not a measurement.**\n\n' "$scale"
    echo "Made by \`benches/serve.sh\` with $rounds rounds: medians of seconds, from the request to the last byte of the answer. Each run is"
    echo "a line of \`$(basename "$raw")\`. Commands run alone, in turn, on all processors and on files in the page cache. All answers are the same."
    echo
    echo "\`conn.log\` has $rows rows: those of \`fixtures/recorded/office.pcapng\`, repeated, each copy 30 seconds later and each row with"
    echo "a uid of its own: $(stat -c %s "$scratch/tsv/conn.log") bytes in columns, $(stat -c %s "$scratch/json/conn.log") as JSON."
    echo
    machine
    echo "- awk $(version mawk) (mawk), jq $(version jq), curl $(version curl)"
    echo "- Peaks of the two servers: $peaks"
    echo
    echo '| job | netsniff, columns | netsniff, JSON | awk | jq |'
    echo '|---|---|---|---|---|'
    for job in "${jobs[@]}"; do
        printf '| %s |' "$(question_of "$job")"
        for tool in "${tools[@]}"; do printf ' %s |' "$(median "$job" "$tool")"; done
        echo
    done
    echo
    echo "A page of netsniff has all columns of its rows and counts all that meet the condition, also where the job asks for the first ones"
    echo "alone. awk reads the columns, but for the download, which is of the JSON log."
    printf '\n## Commands\n\n```\n'
    for job in "${jobs[@]}"; do
        for tool in awk jq; do command_of "$job" "$tool"; done
        path_of "$job"
    done
    printf '```\n'
    failed=$(awk -F'\t' 'NR > 1 && $5 != 0' "$raw" | wc -l)
    [ "$failed" = 0 ] || printf '\n**%s runs failed.**\n' "$failed"
} >"$page"
cat "$page"
