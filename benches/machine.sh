# What the reports of several benchmarks have alike. Sourced by them; $netsniff is the binary that was measured, which is
# not built from the tree where $of_tree is no.

# version PACKAGE: of a package of Debian.
version() { dpkg-query -W -f '${Version}' "$1" 2>/dev/null || echo 'left out, not installed'; }

# machine: where it was measured, and what.
machine() {
    echo "- CPU: $(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -1), $(nproc) online; memory $(awk '/MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo)"
    echo "- Kernel $(uname -r), $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release)"
    echo "- Load when it ended: $(cut -d' ' -f1-3 /proc/loadavg)"
    local at='a binary that was named, beside a tree'
    [ "${of_tree:-yes}" = no ] || at=built
    echo "- netsniff $("$netsniff" --version | awk '{ print $2 }'), $at at $(git rev-parse --short=12 HEAD)$(git diff --quiet HEAD -- || echo ' with changes'), $(rustc --version)"
}
