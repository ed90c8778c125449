#!/usr/bin/env bash
# Builds the Python package, installs it into an environment of its own, and tries it there.
#
# Usage: scripts/wheel.sh [--quick]
#
# The wheel is for this machine and its C library, in the profile of WHEEL_PROFILE (dist unless told), and has the command.
# With --quick it is not optimised, and the command is that of target/release/netsniff.
#
# Then the tests of python/tests run, mypy reads the examples, and the notebook is executed. All tools come by pip, the main ones
# at fixed versions. Needs Python 3.10 with pip and venv.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() {
    mkdir -p target
    echo "SKIPPED: $1: the Python package was neither built nor tried" | tee -a target/ci-skipped.log
    exit 0
}

quick=
[ "${1:-}" != --quick ] || quick=1
python=$(command -v python3) || skip "python3"
"$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || skip "python3"

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR=$target
tools=(maturin==1.16.0 pytest mypy==2.4.1 nbclient nbformat ipykernel duckdb==2.0.1 pandas==3.1.1 polars==2.1.0 pyarrow==26.0.1)

# An environment is as good as the list that it was made of.
environment=$target/wheel-env
stamp=$environment/$(tr '/ ' '--' <<<"${tools[*]}" | cksum | cut -d' ' -f1)
if [ ! -e "$stamp" ]; then
    rm -rf "$environment"
    "$python" -m venv "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check "${tools[@]}" || skip "pip"
    touch "$stamp"
fi
export PATH=$environment/bin:$PATH

data=python/package/netsniff.data/scripts
trap 'rm -rf python/package/netsniff.data' EXIT
wheels=$target/wheels
rm -rf "$wheels" "$data"
if [ -n "$quick" ]; then
    profile=dev
    command=$target/release/netsniff
    [ -x "$command" ] || { echo "there is no $command: build it first" >&2; exit 2; }
else
    profile=${WHEEL_PROFILE:-dist}
    cargo build --manifest-path python/Cargo.toml --locked --profile "$profile" --bin netsniff
    command=$target/$profile/netsniff
fi
mkdir -p "$data"
install -m 755 "$command" "$data/netsniff"
maturin build --quiet --manifest-path python/Cargo.toml --locked --profile "$profile" --out "$wheels" --compatibility linux
ls -l "$wheels"

begin=$(date +%s%N)
pip install --quiet --disable-pip-version-check --force-reinstall --no-deps --find-links "$wheels" --no-index netsniff
echo "installed in $((($(date +%s%N) - begin) / 1000000)) ms"
[ "$(command -v netsniff)" = "$environment/bin/netsniff" ] || { echo "the command was not installed" >&2; exit 1; }
netsniff --version
pytest -q -rs python/tests | tee "$target/wheel-tests.log"
grep -o 'SKIPPED: .*' "$target/wheel-tests.log" >>"$target/ci-skipped.log" || true
mypy --strict --cache-dir "$target/mypy" python/examples/*.py
for example in python/examples/*.py; do
    python "$example" fixtures/recorded/office.pcapng
done
python scripts/notebook.py docs/netsniff.ipynb
