#!/usr/bin/env bash
# Builds the Python package, installs it into an environment of its own, and tries it there.
#
# Usage: scripts/wheel.sh [--quick]
#
# Without --quick it builds wheels that are given away, for glibc 2.17 and for musl 1.2, into target/wheels: both with the command,
# the profile of WHEEL_PROFILE (dist unless told), and zig as the linker for other C libraries than that of this machine. The one for
# musl needs Rust's target for it; its tags are checked by auditwheel, and what is installed is the one for glibc.
#
# With --quick it builds one wheel for this machine alone, without optimisation, and takes the command from
# target/release/netsniff. Either way the tests of python/tests run, mypy reads the examples, and the notebook is executed.
#
# All tools come by pip, at fixed versions. Needs Python 3.10 with pip and venv.
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
[ -n "$quick" ] || tools+=(auditwheel cargo-zigbuild ziglang)

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
# Puts a command into the wheel that is built next.
with_command() {
    rm -rf "$data"
    mkdir -p "$data"
    install -m 755 "$1" "$data/netsniff"
}

wheels=$target/wheels
rm -rf "$wheels"
machine=$(uname -m)
if [ -n "$quick" ]; then
    command=$target/release/netsniff
    [ -x "$command" ] || { echo "there is no $command: build it first" >&2; exit 2; }
    with_command "$command"
    maturin build --quiet --manifest-path python/Cargo.toml --locked --profile dev --strip --out "$wheels" --compatibility linux
else
    profile=${WHEEL_PROFILE:-dist}
    # The name of a target, that of the same one with its C library's version, and the tag of its wheels.
    wheel() {
        cargo zigbuild --manifest-path python/Cargo.toml --locked --profile "$profile" --target "$2" --bin netsniff
        with_command "$target/$1/$profile/netsniff"
        maturin build --manifest-path python/Cargo.toml --locked --profile "$profile" --zig --target "$1" --out "$wheels" \
            --compatibility "$3"
    }
    wheel "$machine-unknown-linux-gnu" "$machine-unknown-linux-gnu.2.17" manylinux_2_17
    if [ -d "$(rustc --print sysroot)/lib/rustlib/$machine-unknown-linux-musl" ]; then
        wheel "$machine-unknown-linux-musl" "$machine-unknown-linux-musl" musllinux_1_2
    else
        echo "SKIPPED: musl: rustup target add $machine-unknown-linux-musl"
    fi
    for built in "$wheels"/*.whl; do
        auditwheel show "$built"
    done
fi
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
