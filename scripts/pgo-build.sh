#!/usr/bin/env bash
# Builds netsniff for the work that it was seen to do: with a profile of runs over captures of this repository.
#
# Usage: scripts/pgo-build.sh [CAPTURE...]
#
# The compiler then lays out and inlines the code that packets pass. It takes two builds of the profile `dist`, and the
# tools of Rust's LLVM (rustup component add llvm-tools). Captures named on the command line are analysed for the profile
# beside those of the repository. The script checks that the
# build writes the same logs as one without a profile.
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
profdata=$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata
if [ ! -x "$profdata" ]; then
    echo "no $profdata: rustup component add llvm-tools" >&2
    exit 2
fi
for capture in "$@"; do
    [ -r "$capture" ] || { echo "cannot read $capture" >&2; exit 2; }
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
target=${CARGO_TARGET_DIR:-target}/pgo
binary=$target/$host/dist/netsniff

# With --target, build scripts and macros are compiled without the flag. Names of symbols, by which the profile is found
# again, depend on all other settings of the build: they must be the same both times.
build() {
    RUSTFLAGS="$1" CARGO_TARGET_DIR="$target" cargo build --profile dist --locked --package netsniff --target "$host"
}

build "-Cprofile-generate=$scratch/raw"
instrumented=$scratch/netsniff
cp "$binary" "$instrumented"

# run FILE OPTION...: analyses a capture for the profile.
run() {
    local file=$1
    shift
    "$instrumented" analyze "$file" -o "$scratch/logs" "$@" >/dev/null 2>>"$scratch/messages" ||
        { tail -n 5 "$scratch/messages" >&2; echo "the run over $file failed" >&2; exit 1; }
    rm -rf "$scratch/logs"
}

"$instrumented" generate hosts -w "$scratch/hosts.pcap" --n 50 --sessions 4000 --quiet
"$instrumented" generate -w "$scratch/small.pcap" --size 64 --count 300k --flows 30000 --rate 100k --quiet
recorded=(fixtures/recorded/*.pcapng)
# The recorded captures are small, and what they say is manifold: they count as much as the made ones.
for _ in $(seq 12); do
    for file in "${recorded[@]}"; do run "$file"; done
done
for file in "$scratch/hosts.pcap" "${recorded[@]}" "$@"; do
    run "$file"
    run "$file" --workers 2
    run "$file" --protocols none
done
run "$scratch/hosts.pcap" --format json
run "$scratch/small.pcap" --protocols none
run "$scratch/small.pcap" --workers 2

"$profdata" merge -o "$scratch/netsniff.profdata" "$scratch/raw"
build "-Cprofile-use=$scratch/netsniff.profdata -Cllvm-args=-pgo-warn-missing-function" 2>"$scratch/messages" ||
    { cat "$scratch/messages" >&2; exit 1; }
lost=$(grep -c 'no profile data available for function' "$scratch/messages" || true)
echo "functions of which the profile knows nothing: $lost"

# The instrumented program complains that it has more values to count than counters.
cat >"$scratch/before" <<EOF
#!/usr/bin/env bash
"$instrumented" "\$@" 2>"$scratch/messages"
code=\$?
grep -v '^LLVM Profile Warning' "$scratch/messages" >&2
exit \$code
EOF
chmod +x "$scratch/before"
scripts/identity.sh --workers 1,2 --ignore peak_bytes --ignore peak "$scratch/before" "$binary" \
    fixtures/recorded "$scratch/hosts.pcap" "$@"
echo "$binary: $(stat -c %s "$binary") bytes"
