#!/usr/bin/env bash
# Two network namespaces joined by a veth pair, for measurements and kernel tests; source it, or call it.
#
#   testbed.sh up NAME [QUEUES]    makes NAME-tx (interface tx0) and NAME-rx (interface rx0)
#   testbed.sh down NAME           removes them
#   testbed.sh place NAME MODE     who pays for the softirq: none (the sender's processor), rps1 (processor 1)
#
# Offloads, ARP and IPv6 are off, so that nothing crosses the pair but what is sent.
set -euo pipefail

testbed_up() {
    local name=$1 queues=${2:-1} ns
    testbed_down "$name"
    for ns in "$name-tx" "$name-rx"; do
        ip netns add "$ns"
        ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
        ip -n "$ns" link set dev lo up
    done
    ip link add name tx0 netns "$name-tx" numtxqueues "$queues" numrxqueues "$queues" type veth \
        peer name rx0 netns "$name-rx" numtxqueues "$queues" numrxqueues "$queues"
    ip -n "$name-tx" link set dev tx0 address 02:00:00:00:00:0a arp off up
    ip -n "$name-rx" link set dev rx0 address 02:00:00:00:00:0b arp off up
    for feature in tso gso gro sg tx rx txvlan rxvlan; do
        # Not every kernel has every one of them.
        ip netns exec "$name-tx" ethtool -K tx0 $feature off >/dev/null 2>&1 || true
        ip netns exec "$name-rx" ethtool -K rx0 $feature off >/dev/null 2>&1 || true
    done
}

testbed_down() {
    local ns
    for ns in "$1-tx" "$1-rx"; do
        ip netns del "$ns" 2>/dev/null || true
    done
}

testbed_place() {
    local mask
    case $2 in
        none) mask=0 ;;
        rps1) mask=2 ;;
        *) echo "no placement $2; there are none and rps1" >&2; return 2 ;;
    esac
    ip netns exec "$1-rx" sh -c "for q in /sys/class/net/rx0/queues/rx-*; do echo $mask >\$q/rps_cpus; done"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    command=${1:?up, down or place}
    shift
    "testbed_$command" "$@"
fi
