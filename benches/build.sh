# What is measured is built as packages are: by the profile `dist`. Sourced by the benchmarks, in the project's root.

# No configuration file of this machine changes what is measured.
export NETSNIFF_CONFIG=

# Where these builds lie.
built=$(realpath -m "${CARGO_TARGET_DIR:-target}")/dist

# build ARGUMENTS...: brings builds up to date; arguments are those of cargo.
build() { cargo build --quiet --profile dist "$@"; }

# begin_report NAME: where its raw values and its page go, by the script's options $scratch, $report and $scale, in $raw and
# $page. At another scale than 1 it is a trial, which their names tell.
begin_report() {
    case $scale in 1) trial='';; *) trial=-trial;; esac
    mkdir -p "$scratch" "$report"
    day=$(date -u +%F)
    raw=$report/$day-$1$trial.tsv
    page=$report/$day-$1$trial.md
}

# build_measured: builds the $netsniff that is measured, unless an option named one, and the $builder of workloads.
build_measured() {
    if [ -z "$netsniff" ]; then
        build -p netsniff
        netsniff=$built/netsniff
    fi
    netsniff=$(realpath "$netsniff")
    build -p netsniff-traffic --example workload
    builder=$built/examples/workload
}
