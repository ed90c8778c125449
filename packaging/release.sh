#!/usr/bin/env bash
# Makes what a release has: packaging/release.sh [--key FILE] [PROGRAM]
#
# PROGRAM is a static program; without it scripts/static-build.sh builds one. In target/packages there are then
#   netsniff-VERSION-MACHINE-linux.tar.gz   the program, units, configuration, manual pages and completions
#   netsniff_VERSION-1_ARCHITECTURE.deb     the same for Debian
#   netsniff-VERSION-MACHINE-linux.cdx.json what the program is made of (packaging/sbom.py)
#   netsniff.rb                             the formula of Homebrew, with the checksum
#   tree/                                   the tree of packaging/Containerfile, of which packaging/container.sh makes an image
#   SHA256SUMS                              checksums of both packages and of the list
#   SHA256SUMS.sig                          their signature, by ssh-keygen with the key of --key
# The signature is checked by
#   ssh-keygen -Y verify -f ALLOWED_SIGNERS -I NAME -n netsniff -s SHA256SUMS.sig <SHA256SUMS
set -euo pipefail
cd "$(dirname "$0")/.."

key=
if [ "${1:-}" = --key ]; then
    key=$2
    shift 2
fi
if [ $# -gt 0 ]; then
    program=$(realpath "$1")
else
    scripts/static-build.sh
    # shellcheck disable=SC2012
    program=$(ls -t "${CARGO_TARGET_DIR:-target}"/"$(uname -m)"-unknown-linux-*/dist/netsniff | head -1)
fi
if ldd "$program" >/dev/null 2>&1; then
    echo "$program needs libraries: a release is static" >&2
    exit 1
fi

out=target/packages
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
name=netsniff-$version-$(uname -m)-linux
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
rm -rf "$out"
mkdir -p "$out"

# The package of Debian has all files at their places; the others are made of it, so that there is one list of files.
deb=$(packaging/debian.sh "$program" "$out")
dpkg-deb -x "$deb" "$out/tree"
cp -r "$out/tree" "$out/$name"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$out" -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
rm -rf "${out:?}/$name"
# Of a container, the program and the configuration are enough.
rm -rf "$out/tree/usr/share" "$out/tree/usr/lib"
install -d "$out/tree/var/log/netsniff"

# What the program is made of differs by its C library, which its path tells where the script has built it.
case $program in
    *-unknown-linux-gnu/*) target=$(uname -m)-unknown-linux-gnu;;
    *) target=$(uname -m)-unknown-linux-musl;;
esac
packaging/sbom.py "$target" >"$out/$name.cdx.json"

checksum=$(sha256sum "$out/$name.tar.gz" | cut -d' ' -f1)
arch=$(uname -m | sed 's/^aarch64$/arm64/')
sed "s/@VERSION@/$version/g; s/@MACHINE@/$(uname -m)/g; s/@ARCH@/$arch/g; s/@SHA256@/$checksum/g; 1,/^class/ { /^#/d }" \
    packaging/homebrew/netsniff.rb >"$out/netsniff.rb"
if grep -q '@' "$out/netsniff.rb"; then
    echo "the formula of Homebrew has something that was not filled in" >&2
    exit 1
fi

cd "$out"
sha256sum -- *.deb *.tar.gz *.cdx.json >SHA256SUMS
if [ -n "$key" ]; then
    ssh-keygen -q -Y sign -f "$key" -n netsniff SHA256SUMS
fi
cat SHA256SUMS
