#!/usr/bin/env bash
# Records TCP connections of this machine's own stack where frames are lost before the tap, in the capture and behind the
# tap, each loss by a filter of the kernel that throws dice, and each lost frame recorded on its own.
#
#   client -- near wire -- [before] -- TAP -- [behind] -- far wire -- server        (and the same from server to client)
#                                       |
#                                   [capture]
#                                       |
#                                  capture.pcap
#
# Usage: record.sh FOLDER BEFORE CAPTURE BEHIND NEAR_MS FAR_MS CONNECTIONS SEED nginx|python [LATE DOUBLED]
#
#   FOLDER                    gets the files below; made if missing
#   BEFORE, CAPTURE, BEHIND   how many percent of the TCP frames of each direction are lost there
#   NEAR_MS, FAR_MS           delay of each wire one way in milliseconds; 0 and 0: no wires, as in one rack
#   CONNECTIONS               at least so many; SEED decides which
#   nginx | python            nginx and curl, or small hosts of our own that need no packages
#   LATE, DOUBLED             how many percent of all frames each wire delivers up to 1 ms late, so that others overtake
#                             them, and how many twice (0); with these there are wires also where they have no delay
#
#   tap.pcap       every frame that reached the tap, as far as its TCP header
#   capture.pcap   what is left of them in the capture: the input of an analysis
#   before.pcap, lost.pcap, behind.pcap   the frames that were lost before the tap, in the capture, and behind the tap
#   books.tsv      the counters of the kernel beside the frames in the files; the script fails where they differ
#
# Each loss is a classic BPF filter at a clsact hook ("ld random; jge threshold") whose action redirects the frame to an
# interface that is a dead end; what is recorded there is the truth. Needs root, iproute2, ethtool, tcpdump, python3,
# with nginx also nginx and curl; ends with 3 where this machine cannot do it. Nothing leaves the namespaces; they are
# removed however the script ends.
set -euo pipefail
[ $# -eq 9 ] || [ $# -eq 11 ] || { sed -n '11,28s/^# \?//p' "$0"; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
out=$1 before=$2 capture=$3 behind=$4 near_ms=$5 far_ms=$6 connections=$7 seed=$8 traffic=$9 late=${10:-0} doubled=${11:-0}
export PATH=$PATH:/usr/sbin:/sbin LC_ALL=C
mkdir -p "$out"
out=$(realpath "$out")
work=$(mktemp -d -t quality.XXXXXX)
chmod 755 "$work"
prefix=quality$$-
spaces=(client path server)

remove_everything() {
    local space pid
    for space in "${spaces[@]}"; do
        for pid in $(ip netns pids "$prefix$space" 2>/dev/null); do kill -9 "$pid" 2>/dev/null || true; done
        ip netns del "$prefix$space" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap remove_everything EXIT
trap 'exit 1' INT TERM HUP

in_ns() { local space=$1; shift; ip netns exec "$prefix$space" "$@"; }
# server SPACE COMMAND...: starts what runs until its namespace is removed.
server() { local space=$1; shift; ip netns exec "$prefix$space" "$@" & disown; }

# unable WHAT: ends with 3, for whoever asks whether it can be done here.
unable() { echo "record.sh: this machine cannot $1" >&2; exit 3; }
[ "$(id -u)" = 0 ] || unable "make network namespaces without root"

# ---- The path ---------------------------------------------------------------------------------------------

# pair SPACE INTERFACE SPACE INTERFACE: a cable.
pair() { ip link add "$2" netns "$prefix$1" type veth peer name "$4" netns "$prefix$3"; }

# dice PERCENT: a filter that takes so many of the TCP frames over IPv4 and IPv6, by chance.
dice() {
    local threshold
    threshold=$(awk "BEGIN { printf \"%.0f\", $1 / 100 * 4294967296 }")
    echo "11,40 0 0 12,21 0 2 2048,48 0 0 23,5 0 0 2,21 0 5 34525,48 0 0 20,21 0 3 6,32 0 0 4294963256,53 1 0 $threshold,6 0 0 4294967295,6 0 0 0"
}
everything='1,6 0 0 4294967295'

# rule INTERFACE NUMBER BYTECODE ACTION...: what happens to frames that come in at an interface.
rule() {
    local interface=$1 number=$2 bytecode=$3; shift 3
    in_ns path tc filter add dev "$interface" ingress pref "$number" protocol all bpf bytecode "$bytecode" \
        action mirred egress "$@" || unable "filter frames"
}

# one_way FROM TO: frames that come in at FROM pass the dice and the tap, and go out at TO.
one_way() {
    in_ns path tc qdisc add dev "$1" clsact || unable "filter frames"
    [ "$before" = 0 ] || rule "$1" 1 "$(dice "$before")" redirect dev before-in
    rule "$1" 2 "$everything" mirror dev tap-in continue
    [ "$behind" = 0 ] || rule "$1" 3 "$(dice "$behind")" redirect dev behind-in
    rule "$1" 4 "$everything" redirect dev "$2"
}

make_path() {
    local space interface
    for space in "${spaces[@]}"; do
        ip netns add "$prefix$space" || unable "make network namespaces"
        in_ns "$space" ip link set lo up
    done
    in_ns path sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
    pair client eth0 path to-client
    pair server eth0 path to-server
    for interface in tap capture before lost behind; do pair path $interface-in path $interface; done
    ends=(to-client to-server)
    if [ "$near_ms$far_ms$late$doubled" != 0000 ]; then
        pair path near-wire path near
        pair path far-wire path far
        ends=(near far)
    fi
    for space in "${spaces[@]}"; do
        for interface in $(in_ns "$space" ls /sys/class/net); do
            [ "$interface" != lo ] || continue
            # No segmentation offload and no partial checksums: the tap must see frames as a wire carries them.
            in_ns "$space" ethtool -K "$interface" tso off gso off gro off tx off rx off >/dev/null
            [ "$space" != path ] || in_ns path ip link set "$interface" up
        done
    done
    one_way "${ends[0]}" "${ends[1]}"
    one_way "${ends[1]}" "${ends[0]}"
    in_ns path tc qdisc add dev tap clsact
    [ "$capture" = 0 ] || rule tap 1 "$(dice "$capture")" redirect dev lost-in
    rule tap 2 "$everything" redirect dev capture-in
    if [ "${ends[0]}" = near ]; then
        server path nice -n -10 python3 "$here/delay.py" --late "$late" --doubled "$doubled" --seed "$seed" \
            --doubles "$work/doubles" "to-client near-wire $near_ms" "far-wire to-server $far_ms"
        sleep 0.5
        [ -n "$(ip netns pids "${prefix}path")" ] || { echo "record.sh: the wires do not run" >&2; exit 1; }
    fi
}

connect_hosts() {
    local space n
    # Until both are up neither may talk: what a host says to a link that is down is lost, and no counter of ours has it.
    for space in client server; do
        in_ns $space sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1 net.ipv6.conf.eth0.accept_dad=0 \
            net.ipv6.conf.eth0.router_solicitations=0
        in_ns $space ip link set eth0 up
    done
    sleep 0.2
    for space in client server; do in_ns $space sysctl -qw net.ipv6.conf.eth0.disable_ipv6=0; done
    for n in 1 2 3; do
        in_ns client ip addr add "192.0.2.1$n/24" dev eth0; in_ns client ip -6 addr add "2001:db8::1$n/64" dev eth0 nodad
        in_ns server ip addr add "192.0.2.8$n/24" dev eth0; in_ns server ip -6 addr add "2001:db8::8$n/64" dev eth0 nodad
    done
    sleep 0.3
}

# ---- Who talks --------------------------------------------------------------------------------------------

start_nginx() {
    local n
    mkdir -p "$work/www/slow" "$work/nginx"
    for n in 300 1400 9000 60000 250000; do head -c $n /dev/urandom >"$work/www/$n"; cp "$work/www/$n" "$work/www/slow/"; done
    chmod -R a+rX "$work/www"
    cat >"$work/nginx.conf" <<CONF
daemon off; worker_processes 1; pid $work/nginx/pid; error_log $work/nginx/error.log; user root;
events { worker_connections 1024; }
http {
    access_log off; keepalive_timeout 8; client_max_body_size 10m; root $work/www; sendfile on; tcp_nodelay on;
    client_body_temp_path $work/nginx/body; proxy_temp_path $work/nginx/proxy; fastcgi_temp_path $work/nginx/fastcgi;
    uwsgi_temp_path $work/nginx/uwsgi; scgi_temp_path $work/nginx/scgi;
    server {
        listen 80 backlog=1024; listen [::]:80 backlog=1024;
        location /slow/ { limit_rate 100k; }
        location = /form { return 204; }
    }
}
CONF
    server server nginx -c "$work/nginx.conf" -e "$work/nginx/error.log"
    sleep 1
}

talk() {
    case $traffic in
        nginx)
            start_nginx
            python3 "$here/transfers.py" "$connections" "$seed" "$work" "$work/www/60000"
            local list clients=()
            for list in "$work"/*.curl; do
                # A transfer may fail: some are given up on purpose.
                in_ns client timeout -k 5 240 curl -s -Z --parallel-max 14 -K "$list" >>"$work/curl.out" 2>&1 & clients+=($!)
            done
            for list in "${clients[@]}"; do wait "$list" || true; done ;;
        python)
            server server python3 "$here/hosts.py" server "$connections" "$seed"
            sleep 0.5
            in_ns client timeout -k 1 25 python3 "$here/hosts.py" client "$connections" "$seed" ;;
        *) echo "record.sh: no traffic named $traffic" >&2; exit 2 ;;
    esac
}

# ---- The recording ----------------------------------------------------------------------------------------

# count: reads the counters of all interfaces: by space and name, what was sent and received.
declare -A sent received
count() {
    local space interface out in
    for space in "${spaces[@]}"; do
        while read -r interface out in; do sent[$space,$interface]=$out; received[$space,$interface]=$in; done < <(
            in_ns "$space" sh -c 'cd /sys/class/net && for i in *; do echo "$i $(cat "$i/statistics/tx_packets") $(cat "$i/statistics/rx_packets")"; done')
    done
}

recorders=()
start_recorders() {
    local file
    for file in tap capture before lost behind; do
        local snap=128
        [ $file != capture ] || snap=0
        ip netns exec "${prefix}path" tcpdump -Z root -n -p -i $file -s $snap -B 65536 -w "$out/$file.pcap" 2>"$work/$file.tcpdump" & recorders+=($!)
    done
    for file in tap capture before lost behind; do
        for _ in $(seq 100); do grep -q 'listening on' "$work/$file.tcpdump" && break; sleep 0.05; done
        grep -q 'listening on' "$work/$file.tcpdump"
    done
}

# until_quiet: waits until nothing has been sent for two seconds, for at most a minute.
until_quiet() {
    local last=none
    for _ in $(seq 30); do
        count
        [ "${sent[*]} ${received[*]}" != "$last" ] || return 0
        last="${sent[*]} ${received[*]}"
        sleep 2
    done
    echo "record.sh: still talking after a minute" >&2
}

frames() { sed -n 's/^\([0-9]*\) packets\{0,1\} captured/\1/p' "$work/$1.tcpdump"; }

# book NAME COUNTED RECORDED: a line of the books.
book() {
    printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$out/books.tsv"
    [ "$2" = "$3" ] || { echo "record.sh: $1: $2 counted, $3 expected" >&2; balanced=no; }
}

close_books() {
    local file interface balanced=yes tap
    printf 'what\tcounted\texpected\n' >"$out/books.tsv"
    for file in tap capture before lost behind; do
        book "$file: counted by the interface, recorded" "${received[path,$file]}" "$(frames $file)"
        book "$file: dropped by the recorder" "$(sed -n 's/^\([0-9]*\) packets\{0,1\} dropped by kernel/\1/p' "$work/$file.tcpdump")" 0
    done
    tap=$(frames tap)
    # What a wire sent more than it took came twice; before the tap and behind it, as the hosts' directions have it.
    local doubled_before=0 doubled_behind=0
    if [ "${ends[0]}" = near ]; then
        doubled_before=$((sent[path,near-wire] - received[path,to-client] + sent[path,far-wire] - received[path,to-server]))
        doubled_behind=$((sent[path,to-client] - received[path,near-wire] + sent[path,to-server] - received[path,far-wire]))
        book 'doubled by the wires: counted by the interfaces, told by the wires' \
            $((doubled_before + doubled_behind)) "$(stat -c %s "$work/doubles" 2>/dev/null || echo 0)"
    fi
    book 'sent by the hosts + doubled = lost before the tap + seen there' \
        $((sent[client,eth0] + sent[server,eth0] + doubled_before)) $(($(frames before) + tap))
    book 'received by the hosts = seen at the tap - lost behind it + doubled' \
        $((received[client,eth0] + received[server,eth0])) $((tap - $(frames behind) + doubled_behind))
    book 'seen at the tap = captured + lost in the capture' "$tap" $(($(frames capture) + $(frames lost)))
    [ $balanced = yes ] || {
        for interface in "${!sent[@]}"; do echo "$interface: sent ${sent[$interface]}, received ${received[$interface]}"; done >&2
        return 1
    }
}

make_path
start_recorders
# The hosts come last, so that the recorders see whatever they send.
connect_hosts
talk
until_quiet
for recorder in "${recorders[@]}"; do kill -INT "$recorder"; done
for recorder in "${recorders[@]}"; do wait "$recorder" || true; done
close_books
