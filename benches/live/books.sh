#!/usr/bin/env bash
# Whether the books of a capture close while traffic goes on, and how tight their bound is.
#
#   benches/live/books.sh [--rates "2000 300000"] [--rounds 3] [--seconds 2] [--only CASE] [--build FOLDER] [--out FILE.tsv]
#
# Needs root, two processors and jq. A sender on processor 0 doesn't stop before the run has
# ended, however that ends: after a time, a count, by a signal, with a new set of logs, with an interface that went and came
# back, for each backend, path and number of rings.
#
# Each line is a run: the rate, the case, the round, rows of the books about the interface, what had arrived at the end, the
# largest `unexplained` and the largest `unexplained_bound` of all rows and of the last one, that bound in milliseconds of
# the traffic that came, and whether every row closes: `unexplained` is no larger than its bound. A row of a ring that
# had no time to answer has no numbers, and is counted apart. Ends with 1 where a row does not close.
set -euo pipefail
cd "$(dirname "$0")/../.."

rates="2000 300000" rounds=3 seconds=2 only= out=
. benches/live/tools.sh
take_options "--rates --rounds --seconds --only --out" "$@"
out=${out:-docs/measurements/$(date +%F)-live-books.tsv}
name=nsbooks
begin_bed
cp "$netsniff" "$scratch/netsniff"
netsniff=$scratch/netsniff
chmod 711 "$scratch"

# The cases: a name, the command that is not `analyze`, how the run ends, and its options.
cases() {
    cat <<'CASES'
duration analyze time
count analyze count
sigint analyze INT
sigterm analyze TERM
new-logs analyze HUP
rings analyze time --workers 3
apart analyze time --apart
af-packet-v2 analyze time --backend af-packet-v2
recvmmsg analyze time --backend recvmmsg
both analyze time --path both
bypass analyze time --path bypass
recording analyze time --record
if-gone analyze gone --if-gone wait
record record time
record-both record time --path both
record-sigint record INT
CASES
}

# Sends until it is told to stop, and two minutes at most.
begin_sending() {
    ip netns exec "$name-tx" "$netsniff" generate -q --size 64 --flows 64 --pps "$1" -i tx0 --cpu 0 --duration 120s &
    sender=$!
}

end_sending() {
    kill -INT "$sender" 2>/dev/null || true
    wait "$sender" || true
}

# Runs one case: run RATE COMMAND END [OPTION...]. Leaves the rows of its interface in $scratch/rows.
run() {
    local rate=$1 command=$2 end=$3 pid what
    shift 3
    install -d -o 65534 "$scratch/run"
    case $command in
        analyze) what=(analyze -o "$scratch/run/logs") ;;
        record) what=(record -w "$scratch/run/out.pcapng" --json) ;;
    esac
    [ "${1:-}" != --record ] || set -- --record "$scratch/run/out.pcapng"
    case $end in
        time) what+=(--duration "${seconds}s") ;;
        count) what+=(--count $((rate * seconds / 2))) ;;
    esac
    begin_sending "$rate"
    sleep 0.3
    ip netns exec "$name-rx" taskset -c 1 timeout -s INT 60 "$netsniff" "${what[@]}" -i rx0 --stats-interval 500ms "$@" \
        >"$scratch/said" 2>"$scratch/errors" &
    pid=$!
    case $end in
        INT | TERM) sleep "$seconds"; pkill -"$end" -P "$pid" ;;
        HUP) sleep 1; pkill -HUP -P "$pid"; sleep "$seconds"; pkill -INT -P "$pid" ;;
        gone) sleep 1; end_sending; replace_bed; begin_sending "$rate"; sleep "$seconds"; pkill -INT -P "$pid" ;;
    esac
    wait "$pid" || echo "netsniff ended with $?: $(tail -3 "$scratch/errors")" >&2
    end_sending
    rows_of "$command" >"$scratch/rows"
    rm -rf "$scratch/run"
}

# The pair goes, and another one comes.
replace_bed() {
    ip -n "$name-rx" link del rx0
    sleep 0.5
    ip link add name tx0 netns "$name-tx" type veth peer name rx0 netns "$name-rx"
    ip -n "$name-tx" link set dev tx0 address 02:00:00:00:00:0a arp off up
    ip -n "$name-rx" link set dev rx0 address 02:00:00:00:00:0b arp off up
}

# Rows of the books: whether it is the last, what arrived, what is unexplained, the bound, and the stamp.
rows_of() {
    if [ "$1" = record ]; then
        jq -r '.capture[] | select(.ring == null and .name != "host") | ["T", .arrived, .unexplained, .unexplained_bound] | map(. // "-") | @tsv' "$scratch/said"
    else
        awk -F'\t' '/^#fields/ { for (n = 2; n <= NF; n++) at[$n] = n - 1 }
            !/^#/ && $at["scope"] == "interface" { print $at["final"] "\t" $at["arrived"] "\t" $at["unexplained"] "\t" $at["unexplained_bound"] }' \
            "$scratch"/run/logs/capture*.log
    fi
}

# Sums the rows of a run up: judged RATE CASE ROUND.
judged() {
    awk -F'\t' -v OFS='\t' -v rate="$1" -v which="$2" -v round="$3" '
        function size(of) { return of < 0 ? -of : of }
        $3 == "-" || $4 == "-" { unset++; if ($1 == "T") arrived = $2; next }
        {
            rows++; off = size($3)
            if (off > $4) open++
            if (off > worst) worst = off
            if ($4 > bound) bound = $4
            if ($1 == "T") { arrived = $2; last = off; last_bound = $4 }
        }
        END { print rate, which, round, rows + 0, unset + 0, arrived, worst + 0, bound + 0, last + 0, last_bound + 0, \
            sprintf("%.1f", 1000 * bound / rate), sprintf("%.1f", 1000 * last_bound / rate), open + 0 }' "$scratch/rows"
}

{
    describe
    printf '# %s\n' "benches/live/books.sh --rates \"$rates\" --rounds $rounds --seconds $seconds${only:+ --only $only}"
    printf 'rate\tcase\tround\trows\trows_unset\tarrived\tunexplained\tbound\tlast_unexplained\tlast_bound\tbound_ms\tlast_bound_ms\trows_open\n'
} >"$out"
for round in $(seq "$rounds"); do
    for rate in $rates; do
        while read -r which command end options; do
            [ -z "$only" ] || [ "$only" = "$which" ] || continue
            run "$rate" "$command" "$end" $options </dev/null
            judged "$rate" "$which" "$round" | tee -a "$out"
        done < <(cases)
    done
done
awk -F'\t' '!/^[#r]/ && $NF > 0 { open++ } END { if (open) { print open " runs do not close" > "/dev/stderr"; exit 1 } }' "$out"
