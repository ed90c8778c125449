#!/usr/bin/env bash
# Makes an image of packaging/Containerfile without a daemon, and tries it: packaging/container.sh [TREE] [IMAGE]
#
# TREE is what packaging/release.sh lays out (target/packages/tree). IMAGE is an archive in OCI's format
# (target/packages/netsniff-image.tar): `podman load -i IMAGE`, or `skopeo copy oci-archive:IMAGE docker://…`. Its times are those of
# SOURCE_DATE_EPOCH, or else of the last commit.
#
# Needs buildah, and to try it umoci; Debian has both. The program of the image is run with the root that the image has, and nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."

tree=$(realpath "${1:-target/packages/tree}")
image=$(realpath -m "${2:-target/packages/netsniff-image.tar}")
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
for program in buildah umoci; do
    command -v $program >/dev/null || { echo "$program is missing: no image was made" >&2; exit 2; }
done

work=$(mktemp -d)
# What buildah keeps belongs to mapped users where it is not run by root.
trap 'buildah unshare rm -rf "$work/store" 2>/dev/null || true; rm -rf "$work"' EXIT
store=(--root "$work/store" --runroot "$work/run" --storage-driver vfs)
buildah "${store[@]}" bud --quiet --isolation chroot --timestamp "$SOURCE_DATE_EPOCH" -f packaging/Containerfile -t netsniff "$tree" >/dev/null
buildah "${store[@]}" push --quiet netsniff "oci:$work/image:netsniff"
tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX --mtime="@$SOURCE_DATE_EPOCH" -C "$work/image" -cf "$image" .

umoci unpack --rootless --image "$work/image:netsniff" "$work/bundle"
entry=$(sed -n 's/^ENTRYPOINT \["\(.*\)"\]$/\1/p' packaging/Containerfile)
grep -q "\"$entry\"" "$work/bundle/config.json" || { echo "the image does not run $entry" >&2; exit 1; }
enter=(chroot "$work/bundle/rootfs")
[ "$(id -u)" -eq 0 ] || enter=(unshare --map-root-user "${enter[@]}")
version=$("${enter[@]}" "$entry" --version)
# It names no interface, which is all that is wrong with it.
said=$("${enter[@]}" "$entry" run --config /etc/netsniff/netsniff.toml --check 2>&1 || true)
case $said in
    *"names no interface"*) ;;
    *) echo "the configuration of the image is not what it should be: $said" >&2; exit 1 ;;
esac
echo "$image: $(stat -c %s "$image") bytes, runs $version"
