#!/usr/bin/env bash
# Builds netsniff as one file that needs no library, and tries it in an empty root file system.
#
# Usage: scripts/static-build.sh
#
# With Rust's target for musl (rustup target add x86_64-unknown-linux-musl) and musl-gcc (Debian: apt
# install musl-tools) the file holds musl, else the C library of this machine, which must be there as
# an archive (Debian: libc6-dev). netsniff asks the C library for memory, files and threads, and for
# nothing that it would load at run time, so both do.
set -euo pipefail
cd "$(dirname "$0")/.."

machine=$(uname -m)
target=$machine-unknown-linux-musl
if [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] && command -v musl-gcc >/dev/null; then
    export "CC_${target//-/_}=musl-gcc"
else
    echo "no musl target here: linking this machine's C library"
    target=$machine-unknown-linux-gnu
fi

# With --target, build scripts and macros are compiled without the flag.
RUSTFLAGS='-C target-feature=+crt-static' cargo build --profile dist --package netsniff --target "$target"
binary=${CARGO_TARGET_DIR:-target}/$target/dist/netsniff

says=$(ldd "$binary" 2>&1 || true)
case $says in
    *"statically linked"* | *"not a dynamic executable"*) ;;
    *) echo "$binary is not static: $says" >&2; exit 1 ;;
esac

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
cp "$binary" fixtures/recorded/office.pcapng "$root"
enter=(chroot "$root")
[ "$(id -u)" -eq 0 ] || enter=(unshare --map-root-user chroot "$root")
"${enter[@]}" /netsniff analyze /office.pcapng -o /logs >/dev/null

# The same rows as outside, where the folder is empty but for the program and its input.
"$binary" analyze fixtures/recorded/office.pcapng -o "$root/outside" >/dev/null
cmp "$root/logs/conn.log" "$root/outside/conn.log"
echo "$binary: $(stat -c %s "$binary") bytes, static, and runs in an empty root file system"
