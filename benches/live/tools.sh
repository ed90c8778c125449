# The tools that benches/live compares, and what they cost and lose. Sourced by its scripts, which set before they
# begin: build (where the binaries are), name (of the namespaces), scratch (a directory) unless begin_bed makes it.
#
# A tool is named, and so are its settings:
#   reader, reader:BACKEND:WAIT         the least that a capture can do (crates/capture/examples/reader.rs)
#   count, count:BACKEND:WAIT           netsniff analyze --depth packets
#   analyze                             netsniff analyze, all protocols, nothing shed, logs to the tmpfs
#   analyze-flows                       the same with flows alone
#   analyze-before, analyze-flows-before  the same by an older netsniff, which BEFORE names
#   minimal                             a reader of TPACKET_V3 in C that MINIMAL names, which takes -i INTERFACE -m v3
#                                       -w touch -c CPU and ends by SIGINT with "rx":PACKETS
#   record, record:BACKEND              netsniff record, as it comes: a ring of 64 MiB
#   record:buffered, record:direct      to a disk, through the page cache and past it
#   tcpdump, dumpcap, netsniff-ng       with a ring of 64 MiB, too
#   tcpdump-default, dumpcap-default    as they come
#   tcpdump-null                        tcpdump with a ring of 64 MiB, to /dev/null
# All that record write pcap to the tmpfs.

. benches/build.sh

# Takes a script's options: take_options "--NAME ..." ARGUMENT... sets the variable NAME to what follows --NAME. Every
# script takes --build FOLDER: binaries that are there, which otherwise are built. Sets build and netsniff.
take_options() {
    local options="$1 --build"
    build=
    shift
    while [ $# -gt 0 ]; do
        case " $options " in
            *" $1 "*) printf -v "${1#--}" %s "${2?$1 takes a value}" ;;
            *) echo "what is $1?" >&2; exit 2 ;;
        esac
        shift 2
    done
    if [ -z "$build" ]; then
        build -p netsniff -p netsniff-capture --bins --example reader
        build=$built
    fi
    build=$(realpath "$build") netsniff=$build/netsniff
}

# The commands of a tool.
tool_command() {
    local settings
    IFS=: read -ra settings <<<"$1"
    case $1 in
        reader*) echo "$build/examples/reader rx0 ${settings[1]:-af-packet} ${settings[2]:-poll}" ;;
        count) echo "$build/netsniff analyze -i rx0 --depth packets" ;;
        count:*) echo "$build/netsniff analyze -i rx0 --depth packets --backend ${settings[1]} --wait ${settings[2]:-adaptive}" ;;
        analyze) echo "$build/netsniff analyze -i rx0 --no-shed -o $scratch/logs" ;;
        analyze-before) echo "$BEFORE analyze -i rx0 --no-shed -o $scratch/logs" ;;
        analyze-flows) echo "$build/netsniff analyze -i rx0 --no-shed --protocols none -o $scratch/logs" ;;
        analyze-flows-before) echo "$BEFORE analyze -i rx0 --no-shed --protocols none -o $scratch/logs" ;;
        minimal) echo "$MINIMAL -i rx0 -m v3 -w touch -c 1" ;;
        record:buffered | record:direct) echo "$build/netsniff record -i rx0 --io ${settings[1]} --format pcap -w $scratch/out.pcap" ;;
        record | record:*) echo "$build/netsniff record -i rx0 --backend ${settings[1]:-af-packet} --format pcap -w $scratch/out.pcap" ;;
        tcpdump) echo "tcpdump -Z root -i rx0 -B 65536 -w $scratch/out.pcap" ;;
        tcpdump-default) echo "tcpdump -Z root -i rx0 -w $scratch/out.pcap" ;;
        tcpdump-null) echo "tcpdump -Z root -i rx0 -B 65536 -w /dev/null" ;;
        dumpcap) echo "dumpcap -q -P -i rx0 -B 64 -w $scratch/out.pcap" ;;
        dumpcap-default) echo "dumpcap -q -P -i rx0 -w $scratch/out.pcap" ;;
        netsniff-ng) echo "netsniff-ng --silent -i rx0 -S 64MiB --out $scratch/out.pcap" ;;
        *) echo "there is no tool $1" >&2; return 2 ;;
    esac
}

# Whether a tool is here.
tool_is_here() {
    local program=${1%-default}
    case $1 in
        minimal) [ -x "${MINIMAL:-}" ] ;;
        *-before) [ -x "${BEFORE:-}" ] ;;
        tcpdump* | dumpcap* | netsniff-ng) command -v "${program%-null}" >/dev/null ;;
    esac
}

# How many packets a tool captured: as it says itself, or by the bytes of its file, whose frames are all as long.
tool_captured() {
    local tool=$1 size=$2
    case $tool in
        reader*) sed -n 's/.*"packets":\([0-9]*\).*/\1/p' "$scratch/said" ;;
        minimal) sed -n 's/.*"rx":\([0-9]*\).*/\1/p' "$scratch/said" | tail -1 ;;
        count* | analyze*) sed -n 's/^ *delivered *\([0-9,]*\)$/\1/p' "$scratch/said" | head -1 | tr -d , ;;
        tcpdump-null) sed -n 's/^\([0-9]*\) packets captured$/\1/p' "$scratch/said" ;;
        # 24 bytes of the file's header, 16 of each packet's, and no frame check sequence.
        *) [ ! -e "$scratch/out.pcap" ] || echo $((($(stat -c %s "$scratch/out.pcap") - 24) / (16 + size - 4))) ;;
    esac
}

arrived() { ip -n "$name-rx" -s -j link show rx0 | sed 's/.*"rx":{"bytes":[0-9]*,"packets":\([0-9]*\).*/\1/'; }

# Nanoseconds of all threads of a process, by the scheduler. Not by awk: mawk's %d ends at 2^31, which is two seconds.
spent() {
    local sum=0 nanos
    while read -r nanos _; do
        sum=$((sum + nanos))
    done < <(cat /proc/"$1"/task/*/schedstat 2>/dev/null)
    echo "$sum"
}

# One run: trial TOOL SIZE SECONDS RATE [FILE]. Rate 0 is the sender's full speed; with a file its packets are sent
# instead of frames of the size. The tool is ended 1.3 s after the last packet, or as `pause` says: the blocks of
# libpcap stay open for a second. Sets came, got, pps, ns (all threads of the tool) and slips. The functions that
# watch_begins and watch_ends name, where they are set, are called with the process before the first packet, and behind
# the last one.
trial() {
    local tool=$1 size=$2 seconds=$3 rate=$4 file=${5:-} before pid ns0 ns1
    rm -rf "$scratch"/out* "$scratch"/logs
    local command
    command=$(tool_command "$tool")
    # The reader ends with its standard input, the others by a signal.
    ip netns exec "$name-rx" taskset -c 1 $command < <(sleep $((${seconds%.*} + 5))) >"$scratch/said" 2>&1 &
    pid=$!
    sleep 1.5
    ns0=$(spent "$pid") before=$(arrived)
    ${watch_begins:+"$watch_begins" "$pid"}
    local what=(generate --size "$size" --flows 256) pace=(--topspeed)
    [ -z "$file" ] || what=(replay "$file" --loop 0 --late slip)
    [ "$rate" -eq 0 ] || pace=(--pps "$rate" --burst 32)
    ip netns exec "$name-tx" "$build/netsniff" "${what[@]}" "${pace[@]}" -i tx0 --cpu 0 --duration "${seconds}s" \
        --json >"$scratch/sent" || [ $? -eq 3 ] # 3: frames of the file that the wire is too narrow for are left out
    came=$(($(arrived) - before))
    sleep "${pause:-1.3}"
    ns1=$(spent "$pid")
    ${watch_ends:+"$watch_ends"}
    case $tool in reader*) ;; *) kill -INT "$pid" ;; esac
    wait "$pid" || true
    got=$(tool_captured "$tool" "$size")
    got=${got:-0} ns=$((ns1 - ns0))
    pps=$(sed 's/.*"frames_per_second":\([0-9]*\).*/\1/' "$scratch/sent")
    slips=$(sed 's/.*"stalls":\([0-9]*\).*/\1/' "$scratch/sent")
}

# Makes the namespaces and the tmpfs, and removes them in the end.
begin_bed() {
    scratch=$(mktemp -d)
    mount -t tmpfs -o size=12G tmpfs "$scratch"
    trap 'benches/live/testbed.sh down "$name"; umount -l "$scratch"; rmdir "$scratch"' EXIT
    benches/live/testbed.sh up "$name"
}

# What was measured with, as comments of a table.
describe() {
    printf '# %s\n' "$(uname -sr), $(nproc) processors: $(sed -n 's/model name.*: //p' /proc/cpuinfo | head -1)" \
        "netsniff at $(git rev-parse --short HEAD)$(git diff --quiet HEAD -- || echo ' with changes')" \
        "$(tcpdump --version 2>&1 | head -2 | tr '\n' ' ')" "$(dumpcap --version 2>/dev/null | head -1)" \
        "$(netsniff-ng --version 2>/dev/null | head -1)"
}
