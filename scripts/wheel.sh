#!/usr/bin/env bash
# Builds the Python package, installs it into an environment of its own, and tries it there.
#
# Usage: scripts/wheel.sh [--quick | --portable]
#
# The wheel is for this machine and its C library, in the profile of WHEEL_PROFILE (dist unless told), and has the command.
# With --quick it is not optimised, and the command is that of target/release/netsniff.
#
# With --portable there are two wheels, for other machines with this processor: manylinux_2_17 for glibc 2.17 (2012) and later, and
# musllinux_1_2. Both targets must be there (rustup target add x86_64-unknown-linux-musl). zig, which comes by pip, compiles C and links
# for an old library; so no other linker may be named by RUSTFLAGS, which is not heard. What is linked is then looked at by auditwheel.
# The first wheel is tried as below. Of the second the command runs in an empty root, and the library is only looked at: that needs a
# Python of musl.
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

quick='' portable=''
case ${1:-} in
    '') ;;
    --quick) quick=1 ;;
    --portable) portable=1 ;;
    *) sed -n '4,4s/^# //p' "$0" >&2; exit 2 ;;
esac
python=$(command -v python3) || skip "python3"
"$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || skip "python3"

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR=$target
tools=(maturin==1.16.0 pytest mypy==2.4.1 nbclient nbformat ipykernel duckdb==2.0.1 pandas==3.1.1 polars==2.1.0 pyarrow==26.0.1)
[ -z "$portable" ] || tools+=(cargo-zigbuild==0.24.1 ziglang==0.17.1 auditwheel==6.8.2)

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

# newest FILE: the version of glibc that a program or library asks for at least; nothing where it asks for none.
newest() { objdump -T "$1" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1; }

# portable_wheel LIBC ZIG_TARGET TAG: a wheel for other machines.
portable_wheel() {
    local target wheel library
    target=$(uname -m)-unknown-linux-$1
    [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || { echo "rustup target add $target" >&2; exit 2; }
    cargo-zigbuild zigbuild --manifest-path python/Cargo.toml --locked --profile "$profile" --bin netsniff --target "$2"
    install -D -m 755 "$target_folder/$target/$profile/netsniff" "$data/netsniff"
    maturin build --quiet --zig --manifest-path python/Cargo.toml --locked --profile "$profile" --out "$wheels" --target "$target" --compatibility "$3"
    wheel=$(echo "$wheels"/*"$3"*.whl)
    auditwheel show "$wheel"
    auditwheel show "$wheel" | tr -d '\n' | grep -q "tag: \"$3_$(uname -m)\"" || { echo "$wheel is no $3" >&2; exit 1; }
    # auditwheel looks at libraries alone.
    library=$(newest "$data/netsniff")
    [ -z "$library" ] || [ "$(printf '%s\n' "$library" GLIBC_2.17 | sort -V | tail -1)" = GLIBC_2.17 ] ||
        { echo "the command asks for $library" >&2; exit 1; }
}

if [ -n "$portable" ]; then
    profile=${WHEEL_PROFILE:-dist}
    target_folder=$target
    unset RUSTFLAGS
    portable_wheel gnu "$(uname -m)-unknown-linux-gnu.2.17" manylinux_2_17
    portable_wheel musl "$(uname -m)-unknown-linux-musl" musllinux_1_2
    root=$(mktemp -d)
    install -m 755 "$data/netsniff" "$root"
    enter=(chroot "$root")
    [ "$(id -u)" -eq 0 ] || enter=(unshare --map-root-user chroot "$root")
    "${enter[@]}" /netsniff --version
    rm -rf "$root"
elif [ -n "$quick" ]; then
    profile=dev
    command=$target/release/netsniff
    [ -x "$command" ] || { echo "there is no $command: build it first" >&2; exit 2; }
else
    profile=${WHEEL_PROFILE:-dist}
    cargo build --manifest-path python/Cargo.toml --locked --profile "$profile" --bin netsniff
    command=$target/$profile/netsniff
fi
if [ -z "$portable" ]; then
    mkdir -p "$data"
    install -m 755 "$command" "$data/netsniff"
    maturin build --quiet --manifest-path python/Cargo.toml --locked --profile "$profile" --out "$wheels" --compatibility linux
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
