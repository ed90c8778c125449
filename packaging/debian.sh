#!/usr/bin/env bash
# Makes a Debian package of a program that is built: packaging/debian.sh PROGRAM [DIRECTORY]
#
# It has the program, the units, a configuration that captures nothing until an interface is named, manual pages and completions.
# The capabilities are those of the unit: no file of the package has any. The same input gives the same bytes, with the time of
# SOURCE_DATE_EPOCH, or else of the last commit. MAINTAINER is who answers for it. It prints the path of the package, which lies in DIRECTORY (target/packages).
set -euo pipefail
cd "$(dirname "$0")/.."

program=$(realpath "$1")
output=${2:-target/packages}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
architecture=$(dpkg --print-architecture)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
share=$root/usr/share
install -D -m 755 "$program" "$root/usr/bin/netsniff"
install -D -m 644 packaging/netsniff.toml "$root/etc/netsniff/netsniff.toml"
for unit in packaging/systemd/*.service; do
    install -D -m 644 "$unit" "$root/usr/lib/systemd/system/$(basename "$unit")"
done
install -d "$share/man/man1"
"$program" man -o "$share/man/man1" >/dev/null
gzip -9n "$share"/man/man1/*
while read -r shell path; do
    install -d "$(dirname "$share/$path")"
    "$program" completions "$shell" >"$share/$path"
done <<'END'
bash bash-completion/completions/netsniff
zsh zsh/vendor-completions/_netsniff
fish fish/vendor_completions.d/netsniff.fish
END
doc=$share/doc/netsniff
install -D -m 644 LICENSE-MIT "$doc/copyright"
install -m 644 LICENSE-APACHE README.md docs/service.md "$doc"
install -m 644 CHANGELOG.md "$doc/changelog"
gzip -9n "$doc/changelog" "$doc/README.md"

# The oldest C library that has all that the program asks for; a static program asks for none.
libc=$(objdump -T "$program" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1 || true)
gcc=
if objdump -p "$program" 2>/dev/null | grep -q 'NEEDED *libgcc_s'; then
    gcc=", libgcc-s1"
fi
install -d "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<END
Package: netsniff
Version: $version-1
Architecture: $architecture
Maintainer: ${MAINTAINER:-netsniff <root@localhost>}
Section: net
Priority: optional
Homepage: https://github.com/netsniff/netsniff
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
${libc:+Depends: libc6 (>= ${libc#GLIBC_})$gcc
}Description: network traffic analyser whose records tell whether to believe them
 netsniff analyses captures and live traffic, and writes logs of connections
 and of what was said in them. Each record tells whether packets are missing,
 and who lost them.
 .
 The service netsniff.service captures on the interfaces that
 /etc/netsniff/netsniff.toml names. It is not started by the installation.
END
echo /etc/netsniff/netsniff.toml >"$root/DEBIAN/conffiles"
cat >"$root/DEBIAN/postinst" <<'END'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
    # One that runs goes on with the new program.
    [ -z "$2" ] || systemctl try-restart netsniff.service || true
fi
END
cat >"$root/DEBIAN/prerm" <<'END'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    systemctl disable --now netsniff.service || true
fi
END
cat >"$root/DEBIAN/postrm" <<'END'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
END
chmod 755 "$root"/DEBIAN/post* "$root/DEBIAN/prerm"
(cd "$root" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +

mkdir -p "$output"
package=$output/netsniff_$version-1_$architecture.deb
dpkg-deb --root-owner-group -Zxz --build "$root" "$package" >/dev/null
echo "$package"
