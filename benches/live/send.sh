#!/usr/bin/env bash
# How fast and how evenly frames are sent on a veth pair: netsniff beside tcpreplay, trafgen and the least that a sender
# can do.
#
#   benches/live/send.sh [--sizes "64 256 1518"] [--places "rps1 none"] [--rounds 5] [--seconds 3]
#                        [--rates "1 10000 100000 300000 80%"] [--pacing none] [--minimal PROGRAM] [--out FILE.tsv]
#
# Needs root, two processors and jq. Senders run on processor 0. Placement `none`: that
# processor also pays for the softirq; `rps1`: processor 1 does. PROGRAM is called as `PROGRAM -i tx0 -m xsk -s LENGTH -T
# SECONDS -c 0` and prints one line of JSON with "pps" and "sent". What is not installed is left out, and said.
#
# Lines "speed" are runs at full speed, tools in turn: frames a second as the tool says, and how many frames less than it
# says the interface has counted. Replays send 1,000 frames of the size again and again, tcpreplay with -K.
# Lines "pace" are runs at a rate, with frames of 256 bytes and `netsniff receive` at the other end, whose stamps are the
# kernel's: the rate by them, by how many percent it is off (for `generate`, slips taken out, by its own account), and the
# errors of the gaps between frames, in nanoseconds. tcpreplay replays the same stamped frames. A rate of 80% is that
# part of what the tool reaches at full speed with the same receiver, in a run before.
set -euo pipefail
cd "$(dirname "$0")/../.."

sizes="64 256 1518" places="rps1 none" rounds=5 seconds=3 rates="1 10000 100000 300000 80%" pacing=none minimal= out=
. benches/live/tools.sh
take_options "--sizes --places --rounds --seconds --rates --pacing --minimal --out" "$@"
out=${out:-docs/measurements/$(date +%F)-live-send.tsv}
name=nssend
begin_bed

on_tx() { ip netns exec $name-tx "$@"; }
counted() { ip -n $name-tx -s -j link show tx0 | jq '.[0].stats64.tx.packets'; }

# Whether a tool is here.
is_here() {
    case $1 in
        minimal) [ -n "$minimal" ] ;;
        tcpreplay) command -v tcpreplay >/dev/null ;;
        trafgen) command -v trafgen >/dev/null ;;
    esac
}

# Runs a tool at full speed; sets pps and sent.
full_speed() {
    local tool=$1 size=$2 said=$scratch/said
    case $tool in
        generate:* | replay:*)
            local what=(generate --size "$size")
            [ "${tool%:*}" = generate ] || what=(replay "$scratch/$size.pcap" --loop 0)
            # An XDP socket of the run before may still be bound.
            sleep 0.5
            on_tx "$netsniff" "${what[@]}" -i tx0 --way "${tool#*:}" --cpu 0 --topspeed --duration "${seconds}s" --json >"$said" || exit 1
            pps=$(jq '.frames_per_second | floor' "$said") sent=$(jq .frames "$said")
            ;;
        minimal)
            sleep 0.5
            on_tx "$minimal" -i tx0 -m xsk -s $((size - 4)) -T "$seconds" -c 0 >"$said" || exit 1
            pps=$(jq .pps "$said") sent=$(jq .sent "$said")
            ;;
        tcpreplay)
            on_tx taskset -c 0 tcpreplay -q -K --topspeed --loop 1000000 --duration "$seconds" -i tx0 "$scratch/$size.pcap" >"$said" 2>&1 || exit 1
            pps=$(sed -n 's/^Rated:.* \([0-9]*\)\.[0-9]* pps$/\1/p' "$said")
            sent=$(sed -n 's/^Actual: \([0-9]*\) packets .*/\1/p' "$said")
            ;;
        trafgen)
            # It knows no time, only a count.
            local count=$((seconds * 500000)) before
            printf '{ 0x02,0,0,0,0,0x99, 0x02,0,0,0,0,0x0a, 0x88,0xb5, fill(0x55, %s) }\n' $((size - 18)) >"$scratch/trafgen.cfg"
            before=$(counted)
            on_tx taskset -c 0 trafgen -Q -o tx0 -i "$scratch/trafgen.cfg" -P 1 -n "$count" >"$said" 2>&1 || return 1
            pps=$(tr -d '\r' <"$said" | awk -v n="$count" '/ sec, .* usec on CPU/ { printf "%d", n / ($1 + $3 / 1e6) }')
            # It says what it was told to send.
            sent=$(($(counted) - before))
            ;;
    esac
}

speed() {
    local place=$1 size=$2 tool=$3 before
    before=$(counted)
    if full_speed "$tool" "$size"; then
        printf 'speed\t%s\t%s\t%s\t%s\t%s\n' "$place" "$size" "$tool" "$pps" $((sent - ($(counted) - before))) | tee -a "$out"
    else
        # trafgen ends where the kernel has no room for a frame.
        printf 'speed\t%s\t%s\t%s\tended early\t-\n' "$place" "$size" "$tool" | tee -a "$out"
    fi
}

# Runs a tool at a rate, or at full speed (top), with the receiver at the other end; sets off.
send_paced() {
    local rate=$1 tool=$2 count=$3 paced=(--pps "$1")
    [ "$rate" != top ] || paced=(--topspeed)
    ip netns exec $name-rx taskset -c 1 "$netsniff" receive -q -i rx0 --idle 3s --json "${@:4}" >"$scratch/came" 2>"$scratch/errors" &
    local receiver=$!
    sleep 1
    case $tool in
        generate:*)
            on_tx "$netsniff" generate -i tx0 --way "${tool#*:}" --cpu 0 --size 256 "${paced[@]}" --count "$count" --json >"$scratch/said" ;;
        replay:*)
            on_tx "$netsniff" replay "$scratch/paced.pcap" -i tx0 --way "${tool#*:}" --cpu 0 "${paced[@]}" --json >"$scratch/said" ;;
        tcpreplay)
            [ "$rate" = top ] || paced=("--pps=$rate")
            on_tx taskset -c 0 tcpreplay -q -K "${paced[@]}" -i tx0 "$scratch/paced.pcap" >"$scratch/said" 2>&1 ;;
    esac
    # Its code tells of missing frames, which are in the table.
    wait "$receiver" || true
}

make_paced() {
    "$netsniff" generate -q -w "$scratch/paced.pcap" --size 256 --rate "$1" --count "$2"
}

pace() {
    local place=$1 rate=$2 tool=$3 count off
    if [ "$rate" = 80% ]; then
        count=$((500000 * seconds))
        make_paced 500000 $count
        send_paced top "$tool" $count
        rate=$(jq '.streams[0].frames_per_second * 0.8 | floor' "$scratch/came")
    fi
    count=$((rate * seconds))
    [ "$rate" -gt 100 ] || count=$((rate * 5 + 1))
    make_paced "$rate" $count
    send_paced "$rate" "$tool" $count --rate "$rate"
    off=$(jq --argjson rate "$rate" '(.streams[0].frames_per_second / $rate - 1) * 100' "$scratch/came")
    case $tool in generate:*) off=$(jq .off_percent "$scratch/said") ;; esac
    jq -r --arg head "$(printf 'pace\t%s\t%s\t%s\t%s' "$place" "$2" "$tool" "$rate")" --argjson off "$off" \
        '.streams[0] | [$head, .frames_per_second, ($off * 10000 | round / 10000), .gap_errors.median_ns, .gap_errors.p99_ns, .gap_errors.max_ns, .received, .missing] | join("\t")' \
        "$scratch/came" | tee -a "$out"
}

for size in $sizes; do
    "$netsniff" generate -q -w "$scratch/$size.pcap" --size "$size" --rate 100000 --count 1000
done
{
    describe
    echo "# tcpreplay $(dpkg-query -W -f '${Version}' tcpreplay 2>/dev/null || echo 'not installed'); minimal: ${minimal:+given}${minimal:-none}" | sed 's# given/.*# given#; s#given/[^ ]*#given#'
    echo "# $rounds rounds of $seconds s, tools in turn"
} >"$out"
tools="generate:af-xdp generate:tx-ring generate:sendmmsg minimal replay:af-xdp replay:tx-ring replay:sendmmsg tcpreplay trafgen"
printf 'speed\tplacement\tbytes\ttool\tframes_per_second\tuncounted\n' >>"$out"
for ((round = 1; round <= rounds; round++)); do
    for place in $places; do
        benches/live/testbed.sh place $name "$place"
        for size in $sizes; do
            for tool in $tools; do
                if is_here "${tool%%:*}" || [ "$tool" != "${tool#*:}" ]; then
                    speed "$place" "$size" "$tool"
                elif [ "$round" = 1 ]; then
                    printf '# left out: %s, not here\n' "$tool" | tee -a "$out"
                fi
            done
        done
    done
done
printf 'pace\tplacement\trate\ttool\tasked\treached\toff_percent\tgap_error_median\tgap_error_p99\tgap_error_max\treceived\tmissing\n' >>"$out"
benches/live/testbed.sh place $name "$pacing"
for ((round = 1; round <= rounds; round++)); do
    for rate in $rates; do
        for tool in generate:af-xdp generate:sendmmsg replay:af-xdp replay:sendmmsg tcpreplay; do
            if is_here "${tool%%:*}" || [ "$tool" != "${tool#*:}" ]; then pace "$pacing" "$rate" "$tool"; fi
        done
    done
done
