# What is measured is built as packages are: by the profile `dist`. Sourced by the benchmarks, in the project's root.

# Where these builds lie.
built=$(realpath -m "${CARGO_TARGET_DIR:-target}")/dist

# build ARGUMENTS...: brings builds up to date; arguments are those of cargo.
build() { cargo build --quiet --profile dist "$@"; }
