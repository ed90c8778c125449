#!/usr/bin/env bash
# Asks what the dashboards in packaging/grafana ask: a server of Prometheus that watches a live capture, and ClickHouse with the
# tables of `netsniff schema --clickhouse`, into which `--deliver` sends rows, whose values are compared with those of the logs.
#
# Usage: scripts/dashboards.sh [NETSNIFF]
#
# ClickHouse comes as a library by pip into target/, at a fixed version. The live part needs root, iproute2 and prometheus;
# where it cannot be, that is said, and its panels are left out.
set -euo pipefail
cd "$(dirname "$0")/.."

netsniff=$(realpath "${1:-target/release/netsniff}")
[ -x "$netsniff" ] || { echo "there is no $netsniff: build it first" >&2; exit 2; }
export NETSNIFF_CONFIG=

reader=chdb==4.4.0
place=$PWD/target/dashboards-reader
if [ ! -e "$place/$reader" ]; then
    rm -rf "$place"
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --only-binary :all: \
        --target "$place" "$reader"
    touch "$place/$reader"
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/logs"

# Within the namespace that captures: netsniff, Prometheus, and whoever asks it. What wire.sh ends by SIGINT is netsniff.
watch() {
    cat >"$scratch/prometheus.yml" <<'YAML'
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: netsniff
    static_configs: [{targets: ["127.0.0.1:9100"]}]
YAML
    cat >"$scratch/capture.sh" <<SHELL
ip link set lo up
prometheus --config.file='$scratch/prometheus.yml' --storage.tsdb.path='$scratch/tsdb' --web.listen-address=127.0.0.1:9090 \
    --log.level=error &
(
    trap '' INT
    python3 scripts/dashboards.py prometheus --server http://127.0.0.1:9090 --wait 40 \
        --dashboard packaging/grafana/capture-prometheus.json \
        --empty 'rate(netsniff_capture_unrecorded_packets' --empty 'rate(netsniff_rows_refused' >'$scratch/asked' 2>&1
    echo \$? >'$scratch/status'
) &
exec '$netsniff' analyze -i rx0 --metrics 127.0.0.1:9100 --stats-interval 1s --notices --format json \
    -o '$scratch/logs/live' --no-drop --sandbox off
SHELL
    scripts/wire.sh --seconds 90 "bash '$scratch/capture.sh'" \
        "for i in \$(seq 60); do [ ! -e '$scratch/status' ] || exit 0; '$netsniff' replay fixtures/recorded/office.pcapng -i tx0 --pps 20000 -q; done" \
        >"$scratch/wire" 2>&1 || { cat "$scratch/wire"; return 1; }
    cat "$scratch/asked"
    [ "$(cat "$scratch/status")" = 0 ]
}

failed=0
absent=()
if [ "$(id -u)" = 0 ] && command -v ip prometheus >/dev/null && unshare -n true 2>/dev/null; then
    watch || failed=1
else
    echo "SKIPPED: the dashboard of Prometheus: that needs root, iproute2 and prometheus"
    absent=(--empty Sensors)
fi
"$netsniff" schema --clickhouse >"$scratch/tables.sql"
PYTHONPATH=$place python3 scripts/dashboards.py clickhouse --tables "$scratch/tables.sql" --logs "$scratch/logs" \
    --netsniff "$netsniff" --capture fixtures/recorded/office.pcapng --capture fixtures/recorded/certificates.pcapng \
    --capture fixtures/recorded/protocols.pcapng --dashboard packaging/grafana/records-clickhouse.json "${absent[@]}" || failed=1
exit $failed
