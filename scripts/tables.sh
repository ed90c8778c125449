#!/usr/bin/env bash
# Reads tables and Arrow streams back with DuckDB, pandas, polars, pyarrow and Spark, and compares each value with that of the TSV.
#
# Usage: scripts/tables.sh [NETSNIFF] [CAPTURE...]
#
# Without captures it takes those of fixtures/, and of NETSNIFF_CORPUS, NETSNIFF_CORPUS2 and NETSNIFF_HOSTILE every fifth that has
# less than 2 MB. The readers are installed by pip into target/, at fixed versions. Needs Python 3.10 with pip, and Java 17 for Spark, which is skipped without.
set -euo pipefail
cd "$(dirname "$0")/.."

netsniff=${1:-target/release/netsniff}
shift || true
[ -x "$netsniff" ] || { echo "there is no $netsniff: build it first" >&2; exit 2; }

readers=(duckdb==2.0.1 pandas==3.1.1 polars==2.1.0 pyarrow==26.0.1 pyspark==4.3.0)
place=target/tables-readers
stamp=$place/${readers[*]// /-}
if [ ! -e "$stamp" ]; then
    rm -rf "$place"
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --only-binary :all: --no-binary pyspark \
        --target "$place" "${readers[@]}"
    touch "$stamp"
fi

captures=("$@")
if [ ${#captures[@]} -eq 0 ]; then
    mapfile -t captures < <(find fixtures -name '*.pcap*' -size -6291456c | sort)
    for corpus in "${NETSNIFF_CORPUS:-}" "${NETSNIFF_CORPUS2:-}" "${NETSNIFF_HOSTILE:-}"; do
        [ -n "$corpus" ] || continue
        mapfile -t -O ${#captures[@]} captures < <(find "$corpus" -name '*.pcap*' -size -2097152c | sort | awk 'NR % 5 == 0')
    done
fi
PYTHONPATH=$place python3 scripts/tables.py "$netsniff" "${captures[@]}"
