#!/usr/bin/env bash
# Measures netsniff and its peers on the workloads, interleaved, and writes a dated report. Of a flood, and of
# the mix with one packet in twenty lost, only netsniff and tcpdump are measured.
#
# Usage: benches/offline.sh [--rounds N] [--netsniff PATH] [--scratch FOLDER] [--captures FOLDER]... [--report FOLDER]
#                           [--scale F] [--workloads NAME,...] [--without PROGRAM,...]
#
#   --rounds N         how often each program runs on each workload (5); the report has medians
#   --netsniff PATH    the binary to measure (built for it); stages, which are of the tree, are then left out
#   --scratch FOLDER   where workloads and outputs go: 3 GB (netsniff-bench in the temporary folder)
#   --captures FOLDER  a source of the mix, may be repeated (fixtures/recorded alone misses the mix's goal: without
#                      enough captures the mix is left out, and the report says so)
#   --report FOLDER    where the report goes (docs/measurements)
#   --scale F          workloads of F times the size, to try the script; such a report is marked
#   --workloads NAMES  these alone, of mix, mix_lossy, small64 and flood; the report says which
#   --without NAMES    leaves programs out that a run of minutes is not to wait for, as argus; the report says which
#
# Peers are Debian's packages: softflowd nfdump argus-server argus-client tcpdump time, and suricata (8, from a newer
# release), which reads the mix with its own settings and no rules, and again in its mode of one thread. One that is
# missing is left out and named. Everything runs on CPU 1 (the last CPU, where there is one only), the two-worker runs on 0 and 1.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
. benches/build.sh

rounds=5 netsniff='' scratch=${TMPDIR:-/tmp}/netsniff-bench report=docs/measurements scale=1 captures=() only='' without=''
while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || { sed -n '4,21s/^# \?//p' "$0"; exit 2; }
    case $1 in
        --rounds) rounds=$2;; --netsniff) netsniff=$2;; --scratch) scratch=$2;; --report) report=$2;; --scale) scale=$2;;
        --workloads) only=$2;; --without) without=$2;;
        --captures) captures+=(--captures "$2");; *) sed -n '4,21s/^# \?//p' "$0"; exit 2;;
    esac
    shift 2
done
captures+=(--captures fixtures/recorded)
cpus=$(nproc)
cpu=$((cpus > 1 ? 1 : 0))
begin_report offline
of_tree=yes; [ -z "$netsniff" ] || of_tree=no

# ---- What is measured -------------------------------------------------------------------------------------

build_measured

build_workloads() {
    local packets flows
    packets=$(awk "BEGIN { printf \"%d\", 10000000 * $scale }"); flows=$(awk "BEGIN { printf \"%d\", 1000000 * $scale }")
    small64=$scratch/small64-$packets.pcap
    [ -f "$small64" ] || "$builder" small64 --packets "$packets" --flows "$flows" -o "$small64"
    flood=$scratch/flood-$packets.pcap
    [ -f "$flood" ] || "$builder" flood --packets "$packets" --flows "$flows" -o "$flood"
    mix=$scratch/mix-$scale.pcap
    [ -f "$mix" ] || "$builder" mix "${captures[@]}" --scale "$scale" -o "$mix" >"$scratch/mix-$scale.txt" || mix=''
    mix_lossy=$scratch/mix-$scale-lossy.pcap
    [ -z "$mix" ] || [ -f "$mix_lossy" ] || "$builder" mix "${captures[@]}" --scale "$scale" --loss 0.05 -o "$mix_lossy" >"$scratch/mix-$scale-lossy.txt"
}

# command TOOL FILE: sets `run`, the command of a tool; its output goes to the fresh folder $out.
command_of() {
    case $1 in
        read)      run=(dd "if=$2" of=/dev/null bs=1M status=none);;
        tcpdump)   run=(tcpdump -Z root -r "$2" -w /dev/null);;
        softflowd) run=(softflowd -d -6 -r "$2" -m 4000000 -p "$out/pid" -c none);;
        nfpcapd)   run=(nfpcapd -r "$2" -w "$out");;
        suricata)  run=(suricata -r "$2" -l "$out");;
        suricata-single) run=(suricata --runmode single -r "$2" -l "$out");;
        argus)     run=(argus -r "$2" -w "$out/argus");;
        netsniff)  run=("$netsniff" analyze "$2" -o "$out" --workers 1);;
        netsniff-2) run=("$netsniff" analyze "$2" -o "$out" --workers 2);;
        netsniff-head) run=("$netsniff" analyze "$2" -o "$out" --workers 1 --bodies head);;
        netsniff-flows) run=("$netsniff" analyze "$2" -o "$out" --workers 1 --protocols none);;
        netsniff-flows-2) run=("$netsniff" analyze "$2" -o "$out" --workers 2 --protocols none);;
    esac
}

# count TOOL: what the tool says of the run that left its output in $out, to see that it read the whole file.
count() {
    case $1 in
        softflowd) sed -n 's/^Packets processed: /packets /p; s/^Ignored packets: \([0-9]*\).*/ignored \1/p; s/^Flows expired: \([0-9]*\).*/flows \1/p' "$out.log" | paste -sd, ;;
        nfpcapd)   sed -n 's/^Total: Processed: \([0-9]*\), skipped: \([0-9]*\).*/packets \1,skipped \2/p' "$out.log";;
        suricata*) sed -n 's/.*read 1 file, \([0-9]*\) packets.*/packets \1/p' "$out.log";;
        argus)     ! command -v racount >/dev/null || racount -r "$out/argus" | awk '$1 == "sum" { print "records " $2 ",packets " $3 }';;
        netsniff*) awk -F'\t' '/^#fields/ { for (n = 2; n <= NF; n++) if ($n ~ /^(orig|resp)_pkts$/) at[n - 1] }
                               !/^#/ { rows++; for (n in at) packets += $n } END { print "rows " rows + 0 ",packets in rows " packets + 0 }' "$out/conn.log";;
        *)         echo -;;
    esac
}

# ---- Measuring --------------------------------------------------------------------------------------------

record() { printf '%s\t' "$@" | sed 's/\t$/\n/' >>"$raw"; }

# measure ROUND WORKLOAD TOOL FILE CPUS: one run in a fresh folder.
measure() {
    out=$scratch/out; rm -rf "$out" "$out.log"; mkdir -p "$out"
    local status=0
    command_of "$3" "$4"
    /usr/bin/time -o "$scratch/time" -f '%e\t%U\t%S\t%M' timeout -k 5 900 taskset -c "$5" "${run[@]}" >"$out.log" 2>&1 || status=$?
    record "$1" "$2" "$3" "$(tail -1 "$scratch/time")" "$status" "$(count "$3")"
    rm -rf "$out"
}

# side_by_side ROUND WORKLOAD FILE: two independent runs of one worker, a CPU each; the time until both are done.
side_by_side() {
    local started ended status=0 jobs=() one
    started=$(date +%s%N)
    for one in 0 1; do
        out=$scratch/out$one; rm -rf "$out"; mkdir -p "$out"
        command_of netsniff "$3"
        taskset -c $one "${run[@]}" >"$out.log" 2>&1 & jobs+=($!)
    done
    for one in "${jobs[@]}"; do wait "$one" || status=$?; done
    ended=$(date +%s%N)
    record "$1" "$2" netsniff-pair "$(awk "BEGIN { printf \"%.3f\", ($ended - $started) / 1e9 }")" - - - "$status" "$(count netsniff)"
    rm -rf "$scratch/out0" "$scratch/out1"
}

tools=() missing=()
for tool in read tcpdump softflowd nfpcapd argus; do
    program=$tool; [ "$tool" = read ] && program=dd
    if command -v $program >/dev/null; then tools+=("$tool"); else missing+=("$tool"); fi
done
if command -v suricata >/dev/null; then tools+=(suricata suricata-single); else missing+=(suricata); fi
tools+=(netsniff netsniff-flows netsniff-head)
for tool in ${without//,/ }; do
    for n in "${!tools[@]}"; do [ "${tools[n]}" != "$tool" ] || unset "tools[n]"; done
done
tools=("${tools[@]}")

# tools_of WORKLOAD: sets `of_it`, the tools that it is measured with.
tools_of() {
    local tool
    of_it=()
    for tool in "${tools[@]}"; do
        case $1/$tool in
            small64/netsniff-head) ;; # It has no bodies.
            small64/suricata*) ;; # The question is what protocols cost.
            flood/read | flood/tcpdump | flood/netsniff | mix/* | small64/*) of_it+=("$tool");;
            mix_lossy/read | mix_lossy/tcpdump | mix_lossy/netsniff) of_it+=("$tool");;
        esac
    done
}

# is_whole WORKLOAD: whether it is measured with several workers and by stage, too.
is_whole() { [ "$1" = mix ] || [ "$1" = small64 ]; }

build_workloads
printf 'round\tworkload\ttool\twall_s\tuser_s\tsys_s\tpeak_kib\texit\tcount\n' >"$raw"
workloads=(); [ -z "$mix" ] || workloads+=(mix mix_lossy)
workloads+=(small64 flood)
if [ -n "$only" ]; then
    kept=()
    for workload in "${workloads[@]}"; do [[ ",$only," != *",$workload,"* ]] || kept+=("$workload"); done
    [ ${#kept[@]} -gt 0 ] || { echo "there is no workload $only" >&2; exit 2; }
    workloads=("${kept[@]}")
fi
for ((round = 1; round <= rounds; round++)); do
    for workload in "${workloads[@]}"; do
        file=${!workload}
        cat "$file" >/dev/null   # Into the page cache.
        tools_of $workload
        for ((n = 0; n < ${#of_it[@]}; n++)); do
            # Each round starts with another tool, so that none always follows the same one.
            measure $round $workload "${of_it[(n + round) % ${#of_it[@]}]}" "$file" $cpu
        done
        if [ "$cpus" -gt 1 ] && is_whole $workload; then
            measure $round $workload netsniff-2 "$file" 0,1
            measure $round $workload netsniff-flows-2 "$file" 0,1
            side_by_side $round $workload "$file"
        fi
        echo "round $round of $rounds: $workload done" >&2
    done
done

# The same rounds by stage, by a program of its own that looks at the clock between them.
[ $of_tree = no ] || build -p netsniff --example stages
for workload in "${workloads[@]}"; do
    [ $of_tree = yes ] && is_whole $workload || continue
    TMPDIR=$scratch taskset -c $cpu "$built/examples/stages" "${!workload}" "$rounds" >"$scratch/stages-$workload"
done

# ---- The report -------------------------------------------------------------------------------------------

. benches/machine.sh

peers() {
    echo "- softflowd $(version softflowd), nfpcapd $(version nfdump), argus $(version argus-server), tcpdump $(version tcpdump)"
    ! command -v suricata >/dev/null || echo "- $(suricata -V)"
    [ ${#missing[@]} -eq 0 ] || echo "- **Left out, not installed:** ${missing[*]}"
    [ -z "$without" ] || echo "- Left out by an option: ${without//,/ }"
    [ -z "$only" ] || echo "- Workloads left out by an option: all but ${only//,/ }"
    [ -n "$mix" ] || echo "- **Left out:** the mix, since the captures at hand miss its goal"
}

# table WORKLOAD: medians of wall, CPU and memory, and ratios to softflowd and tcpdump.
table() {
    awk -F'\t' -v workload="$1" '
        function median(tool, column,    n, i, j, v, list) {
            n = 0
            for (i = 1; i <= runs[tool]; i++) list[++n] = value[tool, i, column] + 0
            for (i = 2; i <= n; i++) { v = list[i]; for (j = i - 1; j > 0 && list[j] > v; j--) list[j + 1] = list[j]; list[j + 1] = v }
            return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
        }
        function least(tool,    i, v) {
            v = value[tool, 1, "wall"] + 0
            for (i = 2; i <= runs[tool]; i++) if (value[tool, i, "wall"] + 0 < v) v = value[tool, i, "wall"] + 0
            return v
        }
        function ratio(tool, to) { return (to in runs) ? sprintf("%.2f", median(tool, "wall") / median(to, "wall")) : "-" }
        $2 == workload {
            if (!($3 in runs)) order[++tools] = $3
            i = ++runs[$3]; value[$3, i, "wall"] = $4; value[$3, i, "cpu"] = $5 + $6; value[$3, i, "mib"] = $7 / 1024
            failed[$3] += $8 != 0; said[$3] = $9
        }
        END {
            count = split("read tcpdump softflowd nfpcapd argus suricata suricata-single netsniff netsniff-head netsniff-2 netsniff-pair netsniff-flows netsniff-flows-2", wanted, " ")
            print "| program | wall s (median) | least | CPU s | peak MiB | wall / softflowd | wall / tcpdump | what it says |"
            print "|---|---|---|---|---|---|---|---|"
            for (k = 1; k <= count; k++) {
                tool = wanted[k]
                if (!(tool in runs)) continue
                pair = tool == "netsniff-pair"
                note = failed[tool] ? " (**" failed[tool] " of " runs[tool] " runs failed**)" : ""
                printf "| %s%s | %.2f | %.2f | %s | %s | %s | %s | %s |\n", tool, note, median(tool, "wall"), least(tool),
                    pair ? "-" : sprintf("%.2f", median(tool, "cpu")), pair ? "-" : sprintf("%.0f", median(tool, "mib")),
                    ratio(tool, "softflowd"), ratio(tool, "tcpdump"), said[tool]
            }
            if ("suricata" in runs)
                printf "\nAll protocols take %s of the time of Suricata, %s of that of its mode of one thread.\n", ratio("netsniff", "suricata"), ratio("netsniff", "suricata-single")
            if ("netsniff-2" in runs) {
                one = median("netsniff", "wall")
                two = one / median("netsniff-2", "wall"); both = 2 * one / median("netsniff-pair", "wall")
                printf "\nTwo workers are %.2f times one; two independent runs side by side gain %.2f together (0.9 of it: %.2f).\n", two, both, 0.9 * both
                printf "Flows alone: two workers are %.2f times one.\n", median("netsniff-flows", "wall") / median("netsniff-flows-2", "wall")
            }
        }' "$raw"
}

{
    echo "# Offline analysis, $day"
    echo
    [ -z "$trial" ] || printf '**A trial of the script at %s of the size: not a measurement.**\n\n' "$scale"
    echo "Made by \`benches/offline.sh\` with $rounds rounds. Every program runs alone on CPU $cpu, in turn, on files in the page"
    echo "cache, with a fresh output folder each time. \`read\` is \`dd bs=1M\`, the floor; \`netsniff-2\` is \`--workers 2\` on CPUs 0"
    echo "and 1, \`netsniff-pair\` two independent runs at once, a CPU each, \`netsniff-flows\` \`--protocols none\`, \`netsniff-head\` \`--bodies head\`. Each run is a line of \`$(basename "$raw")\`."
    echo
    machine
    peers
    for workload in "${workloads[@]}"; do
        printf '\n## %s\n\n' "$workload"
        echo "$(stat -c %s "${!workload}") bytes."
        if [ "$workload" = mix ] && [ -f "$scratch/mix-$scale.txt" ]; then printf '\n```\n'; grep -v '^left out' "$scratch/mix-$scale.txt"; printf '```\n'; fi
        echo
        table "$workload"
        [ $of_tree = yes ] && is_whole "$workload" || continue
        printf '\nWhat a packet costs by stage (`cargo run --profile dist -p netsniff --example stages`, on CPU %s): ' $cpu
        cat "$scratch/stages-$workload"
    done
} >"$page"
cat "$page"
