#!/usr/bin/env bash
# Two sensors capture the same traffic and deliver to two brokers of Kafka. One sensor is stopped for a while, so that it loses packets, and
# one broker is killed. Then packaging/duckdb/sensors.sql must tell which sensor lost what and when, and which rows can be believed.
#
# Usage: scripts/sensors.sh [NETSNIFF]
#
# Needs root, iproute2, ethtool, and what scripts/kafka.sh needs; what is missing is said, and nothing is tried then. Runs for about a minute.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/kafka/setup.sh

netsniff=$(realpath "${1:-target/release/netsniff}")
[ -x "$netsniff" ] || { echo "there is no $netsniff: build it first" >&2; exit 2; }
if [ "$(id -u)" != 0 ] || ! unshare -nm true 2>/dev/null; then
    echo "SKIPPED: root: two sensors and Kafka"
    exit 0
fi
kafka_setup "two sensors and Kafka" ip ethtool
# shellcheck source=benches/live/testbed.sh
. benches/live/testbed.sh

name=sensors$$
# shellcheck disable=SC2317
clean() {
    for sensor in a b; do
        testbed_down "$name$sensor"
    done
    ip netns del "$name" 2>/dev/null || true
}
trap clean EXIT

# Brokers are at 10.99.0.1, in a namespace that each sensor has a wire to.
ip netns add "$name"
ip -n "$name" link set lo up
ip -n "$name" link add bridge0 type bridge
ip -n "$name" addr add 10.99.0.1/24 dev bridge0
ip -n "$name" link set bridge0 up
number=10
for sensor in a b; do
    testbed_up "$name$sensor"
    number=$((number + 1))
    ip link add name "to-$sensor" netns "$name" type veth peer name out0 netns "$name$sensor-rx"
    ip -n "$name" link set "to-$sensor" master bridge0 up
    ip -n "$name$sensor-rx" addr add "10.99.0.$number/24" dev out0
    ip -n "$name$sensor-rx" link set out0 up
done
export NETSNIFF_CONFIG=
PYTHONPATH=$kafka_clients:scripts/kafka ip netns exec "$name" timeout -k 10 300 python3 scripts/kafka/sensors.py \
    --netsniff "$netsniff" --jars "$kafka_jars" --name "$name"
