#!/bin/sh
# Builds a fuzz target with stable Rust and runs it: fuzz/run.sh TARGET[-PROTOCOL] SECONDS [LIBFUZZER OPTION...]
#
# The target conversations tries all protocols, or those that are named: conversations-http,websocket.
#
# cargo-fuzz wants a nightly compiler. The coverage flags it passes are understood by the stable one,
# so this needs nothing but cargo and a C++ compiler (for libFuzzer itself). Address sanitizer is
# left out: it does need nightly, and the code under test holds no unsafe code.
#
# New inputs are kept in fuzz/corpus/TARGET, findings in fuzz/artifacts/TARGET; seeds that are part of
# the project are in fuzz/seeds/TARGET. Conversations of captures become inputs by
# cargo run --release --bin seeds -- corpus CAPTURE...
set -eu

if [ $# -lt 2 ]; then
    echo "usage: $0 TARGET[-PROTOCOL] SECONDS [LIBFUZZER OPTION...]" >&2
    exit 2
fi
target=$1
seconds=$2
program=${target%%-*}
case $target in
    *-*) export NETSNIFF_FUZZ_PROTOCOL="${target#*-}";;
esac
shift 2

cd "$(dirname "$0")"
host=$(rustc -vV | sed -n 's/^host: //p')
flags="-Cpasses=sancov-module
    -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares
    -Ccodegen-units=1
    --cfg fuzzing"

# With --target, build scripts and macros are compiled without these flags.
RUSTFLAGS=$(echo $flags) cargo build --release --target "$host" --bin "$program"

mkdir -p "corpus/$target" "artifacts/$target"
folders="corpus/$target"
if [ -d "seeds/$target" ]; then
    folders="$folders seeds/$target"
fi
exec "${CARGO_TARGET_DIR:-target}/$host/release/$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -artifact_prefix="artifacts/$target/" -print_final_stats=1 "$@" $folders
