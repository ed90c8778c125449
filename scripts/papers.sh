#!/usr/bin/env bash
# Runs the commands of docs/papers.md: what the papers ask for, shown by netsniff.
#
#   scripts/papers.sh [--root] [--only ID,...] [--netsniff PATH]
#
#   --root           run also the rows that need root and two processors
#   --only ID,...    run these rows alone, as A3,E-10
#   --netsniff PATH  the program that "netsniff" stands for (target/release/netsniff, else the one in the path)
#
# Rows that are shown are run, and with --root those that are root. Each has a folder of its own, which is $T in
# its command, and two minutes. A row fails if its command ends with another exit code than the table has, or does not print
# what the table says.
#
# Prints a line for each row. Ends with 0 if none fails, with 1 if one does, with 2 for wrong usage.
set -euo pipefail
# No configuration file of this machine changes what is shown.
export NETSNIFF_CONFIG=

usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | grep -v '^set' >&2
    exit 2
}

root=no only='' program=''
while [ $# -gt 0 ]; do
    case $1 in
        --root) root=yes; shift ;;
        --only) only=${2:?a list of rows}; shift 2 ;;
        --netsniff) program=$(realpath -m "${2:?a path}"); shift 2 ;;
        *) usage ;;
    esac
done
cd "$(dirname "$0")/.."
table=docs/papers.md
if [ -z "$program" ]; then
    program=$(realpath -q target/release/netsniff || true)
    [ -x "$program" ] || program=$(command -v netsniff) || {
        echo "papers.sh: there is no target/release/netsniff, and none in the path: build it, or name one with --netsniff" >&2
        exit 2
    }
fi
[ -x "$program" ] || { echo "papers.sh: $program cannot be run" >&2; exit 2; }
[ $root = no ] || [ "$(id -u)" = 0 ] || { echo "papers.sh: --root needs root" >&2; exit 2; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin"
ln -s "$program" "$scratch/bin/netsniff"
export PATH=$scratch/bin:$PATH

# The rows of all tables that have an ID: ID, state, exit code, the word that is said, and the command, with \x1f between.
rows() {
    awk '
        /^\| [A-F]-?[0-9]+ \|/ {
            gsub(/\\\|/, "\x1e")
            if (split($0, cell, / \| /) != 5) { print "?" NR; next }
            id = substr(cell[1], 3)
            command = cell[3]; says = cell[4]; state = cell[5]
            code = match(says, /exit [0-9]+/) ? substr(says, RSTART + 5, RLENGTH - 5) : 0
            if (!sub(/^`/, "", command) || !sub(/`$/, "", command)) { print "?" NR; next }
            word = match(says, /`[^`]*`/) ? substr(says, RSTART + 1, RLENGTH - 2) : ""
            if (!match(state, /^`[a-z]+`/)) { print "?" NR; next }
            state = substr(state, 2, RLENGTH - 2)
            gsub(/\x1e/, "|", command); gsub(/\x1e/, "|", word)
            print id "\x1f" state "\x1f" code "\x1f" word "\x1f" command
        }' "$table"
}

# Whether --only, if it is given, names a row.
wanted() {
    case ",$only," in
        ,, | *",$1,"*) ;;
        *) return 1 ;;
    esac
}

# Whether rows of a state are run.
runs() {
    [ "$1" = shown ] || { [ "$1" = root ] && [ $root = yes ]; }
}

# show ID CODE WORD COMMAND: runs a row, and prints its line.
show() {
    local id=$1 code=$2 word=$3 command=$4 status=0 begin took fault=''
    export T=$scratch/$id
    mkdir "$T"
    begin=$(date +%s%N)
    timeout -k 10 120 bash -c "$command" >"$scratch/printed" 2>&1 </dev/null || status=$?
    took=$((($(date +%s%N) - begin) / 100000000))
    if [ $status -eq 124 ]; then
        fault='not done in 120 s'
    elif [ $status -ne "$code" ]; then
        fault="exit code $status, not $code"
    elif [ -n "$word" ] && ! grep -qF -e "$word" "$scratch/printed"; then
        fault="does not print: $word"
    fi
    rm -rf "$T"
    if [ -z "$fault" ]; then
        echo "$id ok $((took / 10)).$((took % 10)) s"
        return 0
    fi
    echo "$id FAILED: $fault"
    echo "    $command"
    tail -n 12 "$scratch/printed" | sed 's/^/    /'
    return 1
}

rows >"$scratch/rows"
[ -s "$scratch/rows" ] || { echo "papers.sh: $table has no rows" >&2; exit 1; }
if grep '^?' "$scratch/rows" | sed "s|^?|papers.sh: not a row of five cells: $table:|" >&2; then
    exit 1
fi
for id in ${only//,/ }; do
    cut -d $'\x1f' -f 1 "$scratch/rows" | grep -qx -e "$id" || { echo "papers.sh: $table has no row $id" >&2; exit 2; }
done

ok=0 failed=0 left=0
while IFS=$'\x1f' read -r -u 3 id state code word command; do
    if ! wanted "$id"; then
        left=$((left + 1))
    elif ! runs "$state"; then
        left=$((left + 1))
        [ -z "$only" ] || echo "$id not run: it is $state"
    elif show "$id" "$code" "$word" "$command"; then
        ok=$((ok + 1))
    else
        failed=$((failed + 1))
    fi
done 3<"$scratch/rows"
echo "$ok rows ok, $failed failed, $left not run"
[ $failed -eq 0 ] && [ $ok -gt 0 ]
