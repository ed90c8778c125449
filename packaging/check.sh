#!/usr/bin/env bash
# Checks what packages are made of, without building the program: packaging/check.sh [PROGRAM]
#
# The units are verified by systemd-analyze, where it is there, and must not expose more than 3.0 of 10 in its judgement. The
# configuration is checked by PROGRAM, target/release/netsniff unless told.
set -euo pipefail
cd "$(dirname "$0")/.."

program=${1:-${CARGO_TARGET_DIR:-target}/release/netsniff}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# As the package has it, but for an interface, which nobody can know before.
sed 's/^#interface = .*/interface = ["lo"]/' packaging/netsniff.toml >"$work/netsniff.toml"
"$program" run --config "$work/netsniff.toml" --check
if "$program" run --config packaging/netsniff.toml --check 2>/dev/null; then
    echo "the file of the package starts a capture that nobody asked for" >&2
    exit 1
fi

if ! command -v systemd-analyze >/dev/null; then
    echo "SKIPPED: systemd-analyze: the units were not verified"
    exit 0
fi
for unit in netsniff.service netsniff@x.service; do
    # The program of a unit must be there, or verify fails.
    sed "s|/usr/bin/netsniff|$(realpath "$program")|" "packaging/systemd/${unit/@x/@}" >"$work/$unit"
    said=$(systemd-analyze verify --man=no "$work/$unit" 2>&1) || { echo "$said" >&2; exit 1; }
    # It says only what it does not know of a unit, and ends well all the same.
    [ -z "$said" ] || { echo "$unit: $said" >&2; exit 1; }
    systemd-analyze security --offline=true --threshold=30 --no-pager "$work/$unit" | tail -1
done
