#!/usr/bin/env bash
# Whether an analysis stays as it is for long: loss, memory and open files while flows come and go.
#
#   benches/live/soak.sh --file MIX.pcap --rate PACKETS_A_SECOND [--minutes 20] [--out FILE.tsv]
#
# Needs root and two processors. The packets of the file are
# sent again and again on processor 0, each round with other addresses, so that flows are new ones, and analysed with
# all protocols and logs on processor 1, which also pays for the softirq (placement `rps1`). Logs roll each minute, and
# the rolled ones are removed, as a shipper of logs would.
# The table has a line each ten seconds: the memory of the process (VmRSS), its open files, and what it counted.
set -euo pipefail
cd "$(dirname "$0")/../.."

minutes=20 file= rate= out=
. benches/live/tools.sh
take_options "--file --rate --minutes --out" "$@"
: "${file:?--file}" "${rate:?--rate}"
out=${out:-docs/measurements/$(date +%F)-live-soak.tsv}
name=nssoak
begin_bed
benches/live/testbed.sh place $name rps1

ip netns exec $name-rx taskset -c 1 "$build/netsniff" analyze -i rx0 -o "$scratch/logs" --roll 60s \
    --metrics 127.0.0.1:9400 >"$scratch/said" 2>&1 &
pid=$!
sleep 1.5
before=$(arrived)
ip netns exec $name-tx "$build/netsniff" replay "$file" -i tx0 --cpu 0 --loop 0 --unique-ip --pps "$rate" --burst 32 \
    --late slip --duration "${minutes}min" --json >"$scratch/sent" &
sender=$!

# A number from the metrics, of the interface.
metric() { awk -v name="$1" 'index($1, name "{scope=\"interface\"") == 1 { sum += $2; found = 1 } END { printf found ? "%.0f" : "-", sum }' "$scratch/metrics"; }

{
    describe
    echo "# packets of $(basename "$file") at $rate a second for $minutes minutes, placement rps1, other addresses in each round"
    printf 'seconds\trss_kb\topen_files\tarrived\tdelivered\tdropped\topen_flows\trefused_rows\n'
} >"$out"
for ((second = 10; second <= minutes * 60; second += 10)); do
    sleep 10
    ip netns exec $name-rx curl -s http://127.0.0.1:9400/metrics >"$scratch/metrics"
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$second" "$(awk '/VmRSS/ { print $2 }' /proc/$pid/status)" \
        "$(ls /proc/$pid/fd | wc -l)" $(($(arrived) - before)) "$(metric netsniff_capture_delivered_packets_total)" \
        "$(metric netsniff_capture_ring_dropped_packets_total)" "$(metric netsniff_capture_flows)" \
        "$(metric netsniff_capture_refused_rows_total)" | tee -a "$out"
    # Rolled logs have the time in their names.
    rm -f "$scratch"/logs/*.20??-*.log
done
wait "$sender"
came=$(($(arrived) - before))
sleep 2
kill -INT $pid
wait $pid || echo "netsniff ended with $?" | tee -a "$out"
{
    echo "# sent: $(cat "$scratch/sent")"
    echo "# arrived $came"
    sed -n '/^CAPTURE/,$p' "$scratch/said" | sed 's/^/# /'
} | tee -a "$out"
