#!/usr/bin/env bash
# Delivers rows to programs of others, and compares what each of them has with the logs: nfdump, goflow2, python-ipfix and TShark for
# IPFIX, rsyslog for syslog by TCP and TLS, DuckDB for HTTP.
#
# Usage: scripts/receivers.sh [NETSNIFF [NAME...]]
#
# Names are those of receivers.py; without names all are asked. Modules of Python are installed by pip into target/, at fixed versions.
# Other programs are those that are here; each that is not is skipped, with a line that says so. Takes half a minute.
set -euo pipefail
cd "$(dirname "$0")/.."

netsniff=$(realpath "${1:-target/release/netsniff}")
shift || true
[ -x "$netsniff" ] || { echo "there is no $netsniff: build it first" >&2; exit 2; }
# The configuration file of this machine is none of ours.
export NETSNIFF_CONFIG=

modules=(duckdb==2.0.1 ipfix==0.9.7)
place=$PWD/target/receivers-modules
stamp=$place/${modules[*]// /-}
if [ ! -e "$stamp" ]; then
    rm -rf "$place"
    # What cannot be installed is skipped by name.
    if python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target "$place" "${modules[@]}"; then
        touch "$stamp"
    fi
fi
PYTHONPATH=$place PYTHONDONTWRITEBYTECODE=1 python3 scripts/receivers.py "$netsniff" "$@"
