#!/usr/bin/env bash
# Delivers rows to brokers of Kafka, reads them back with a client of others, and compares each with the JSON log. Brokers and
# netsniff are killed meanwhile.
#
# Usage: scripts/kafka.sh [NETSNIFF]
#
# Brokers come from Maven Central into target/, clients by pip, all at fixed versions. Needs Java 17, mvn, openssl, and Python 3 with pip;
# what is missing is said, and nothing is tried then. Runs for about a minute.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/kafka/setup.sh

netsniff=$(realpath "${1:-target/release/netsniff}")
[ -x "$netsniff" ] || { echo "there is no $netsniff: build it first" >&2; exit 2; }
kafka_setup "the delivery to Kafka" openssl
PYTHONPATH=$kafka_clients:scripts/kafka timeout -k 10 600 python3 scripts/kafka/delivery.py --netsniff "$netsniff" --jars "$kafka_jars"
