#!/usr/bin/env bash
# What the lab finds on this machine, and whether it finds what is planted.
#
#   benches/lab.sh proof|predict|small|paradox|lossless|papers … [--long] [--out DIR]
#
#   proof     a server of 25 us for each packet: its threshold, with rings of 4 and of 64 MiB, its loss over rates and of bursts,
#             and what is predicted of both, against arithmetic; REPEAT (3) runs of each point
#   predict   60 points of a plan that is written down before the calibration, three runs of each; SEED, TIME (3s),
#             LOSSLESS and BURSTS (9 searches of each) are taken from the environment
#   small     rates without loss of rings of two blocks, which the kernel's clock decides: predicted, and then sought
#   paradox   small packets, one by one, near what a naive capture manages: whether it loses less where it has more to do, and
#             whether netsniff as it comes does; REPEAT (5) runs of each point
#   lossless  the highest rates without loss: netsniff, and tcpdump and dumpcap as they come and with a ring of 64 MiB
#   papers    the experiments of five papers, in their short form, REPEAT (1) runs of each point; --long takes most of a day;
#             PAPERS=s1 is one of them, and GO_ON=DIR has the runs there, and goes on with them in a later call
#
# Needs root, and two processors; tools that are not installed are left out, and said to be. Reports
# go to docs/measurements/DATE-lab unless told: for each part its page, its plots, CSV and JSON, and what was printed.
set -euo pipefail
cd "$(dirname "$0")/.."

form=--short out=
parts=()
while [ $# -gt 0 ]; do
    case $1 in
        proof | predict | small | paradox | lossless | papers) parts+=("$1") ;;
        --long) form= ;;
        --out) out=$2 && shift ;;
        *) sed -n '2,19s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
    shift
done
[ ${#parts[@]} -gt 0 ] || { sed -n '2,19s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
out=${out:-docs/measurements/$(date +%F)-lab}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$out"
. benches/machine.sh
. benches/build.sh
build -p netsniff
netsniff=$built/netsniff

# run NAME WORDS…: a command of the lab, and what it prints, in a file. A code of 1 tells of points without proof, or of
# claims that were not come to: the report says which.
run() {
    local name=$1 code=0
    shift
    echo "netsniff lab $*" | sed "s|$scratch|DIR|g" >"$out/$name.txt"
    "$netsniff" lab "$@" 2>>"$scratch/$name.log" | sed "s|$scratch|DIR|g" | tee -a "$out/$name.txt" || code=$?
    [ "$code" -le 1 ] || { tail -5 "$scratch/$name.log" >&2 && exit "$code"; }
    machine >>"$out/$name.txt"
    xz -9 -c "$scratch/$name.log" >"$out/$name.log.xz"
}

# fine LOG: behind a command that ended with another code than 0; 1 tells of points without proof, which the report names.
fine() {
    local code=$?
    [ "$code" -le 1 ] || { tail -5 "$1" >&2 && exit "$code"; }
}

# keep DIR NAME: the page of a report with its data, without the plots that the page has in it.
keep() {
    local from=$1 name=$2 file
    for file in "$from"/*.html "$from"/*.csv; do
        [ ! -e "$file" ] || sed "s|$scratch|DIR|g" "$file" >"$out/$name-$(basename "$file")"
    done
}

# What is lost of so many frames a second by a server that takes 25 us for each, from when it came or the one before was done:
# what it is done with by the end, and one to three blocks that are in the ring then, are not.
curve() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["faults"] == "" {
            rate = $at["reached"]; seconds = $at["sent"] / rate; served = 40000 * seconds
            low = 1 - (served + 3 * 1771) / $at["sent"]; high = 1 - (served + 1771) / $at["sent"]
            if (low < 0) low = 0; if (high < 0) high = 0
            off = $at["loss"] < low ? low - $at["loss"] : $at["loss"] > high ? $at["loss"] - high : 0
            printf "%8.0f frames/s: %7.3f %% lost, arithmetic %7.3f to %7.3f %%, off by %.3f points\n", rate, $at["loss"] * 100, low * 100, high * 100, off * 100
            if (off > most) most = off; number++
        }
        END { printf "%d runs, at most %.3f points off\n", number, most * 100; exit !(number > 0 && most <= 0.03) }' "$1"
}

# What is lost of bursts, at a mean rate that is half of what the server manages, so that the ring is empty before each: what
# is more than its four blocks hold. The kernel closes a block every 50 ms, full or not, which takes some room of some bursts.
bursts() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["faults"] == "" {
            burst = $at["send"]; sub(/burst=/, "", burst); burst += 0; room = 4 * 1771
            # Frames of a burst are about one microsecond apart, so that it fills the ring within this part of 50 ms.
            room -= room / 1e6 / 0.05 * 1771 / 2
            lost = burst > room ? 1 - room / burst : 0
            off = $at["loss"] > lost ? $at["loss"] - lost : lost - $at["loss"]
            printf "bursts of %6d: %7.3f %% lost, arithmetic %7.3f %%, off by %.3f points\n", burst, $at["loss"] * 100, lost * 100, off * 100
            if (off > most) most = off; number++
        }
        END { printf "%d runs with bursts, at most %.3f points off\n", number, most * 100; exit !(number > 0 && most <= 0.03) }' "$1"
}

# threshold FILE BLOCKS: the rate that a search found, against 40,000 frames a second; more than that may be what a ring of so
# many blocks holds of a run that confirms it: a tenth of it at most.
threshold() {
    sed -n 's/.*"rate": \([0-9.]*\)$/\1/p' "$1" | tail -1 | awk -v blocks="$2" '
        { held = blocks * 1771; seconds = held / 0.1 / $1; if (seconds < 10) seconds = 10
          most = 40000 + held / seconds; off = $1 < 40000 ? 40000 - $1 : $1 > most ? $1 - most : 0
          printf "found %.0f, arithmetic 40,000 to %.0f frames/s: off by %.2f %%\n", $1, most, off / 400; number++ }
        END { exit !(number == 1 && off <= 1200) }'
}

proof() {
    local arithmetic=$out/proof-arithmetic.txt ring
    local server="--tools work --vary delay=25us --vary ring=4M --sizes 512 --repeat ${REPEAT:-3}"
    echo "The server manages 40,000 frames a second." >"$arithmetic"
    for ring in 4M 64M; do
        echo "Threshold with a ring of $ring:" >>"$arithmetic"
        "$netsniff" lab lossless --tools work --set delay=25us --set "ring=$ring" --sizes 512 -o "$scratch/threshold-$ring" \
            >"$scratch/threshold.txt" 2>"$scratch/threshold.log" || fine "$scratch/threshold.log"
        cat "$scratch/threshold.txt" >>"$arithmetic"
        threshold "$scratch/threshold-$ring/lossless.json" "${ring%M}" >>"$arithmetic"
        keep "$scratch/threshold-$ring" "proof-$ring"
    done
    # shellcheck disable=SC2086  # words
    "$netsniff" lab sweep $server --rates 30k:80k:10k,120k -o "$scratch/curve" >>"$arithmetic" 2>"$scratch/curve.log" ||
        fine "$scratch/curve.log"
    curve "$scratch/curve/sweep.csv" >>"$arithmetic"
    # shellcheck disable=SC2086  # words
    "$netsniff" lab sweep $server --rates 19k --send burst=4000,6000,8000,10000,12000 --time 12s -o "$scratch/bursts" \
        >>"$arithmetic" 2>"$scratch/bursts.log" || fine "$scratch/bursts.log"
    bursts "$scratch/bursts/sweep.csv" >>"$arithmetic"
    server="-o $scratch/server --delay 25us --ring 4M --time 10s --repeat ${REPEAT:-3}"
    # shellcheck disable=SC2086  # words
    run proof-predict predict $server --rate 30k,38k,45k,60k,100k --score
    # shellcheck disable=SC2086  # words
    run proof-predict-bursts predict $server --rate 19k --burst 6000,8000,12000 --score
    machine >>"$arithmetic"
    cat "$arithmetic"
    keep "$scratch/curve" proof && keep "$scratch/bursts" proof-bursts && keep "$scratch/server" proof
}

predict() {
    run predict predict -o "$scratch/held" --plan 60 --seed "${SEED:-20261124}" --time "${TIME:-3s}" --repeat 3 --score \
        --lossless "${LOSSLESS:-9}" --bursts "${BURSTS:-9}"
    keep "$scratch/held" held-out
    for page in light dark; do
        cp "$scratch"/held/plots/predict-what-was-predicted-*-"$page".svg "$out/held-out-$page.svg"
    done
    xz -9 -c "$scratch/held/ledger.jsonl" >"$out/held-out-ledger.jsonl.xz"
}

small() {
    local load of="-o $scratch/small --ring 2M --time 3s"
    for load in "1280 --burst 8 --zip 2" "1280 --burst 256 --zip 2" "512 --burst 8 --zip 3" "256 --burst 8 --zip 1"; do
        # shellcheck disable=SC2086  # words
        "$netsniff" lab predict $of --rate 20k --size $load >/dev/null 2>>"$scratch/predicted.log" || fine "$scratch/predicted.log"
    done
    run small predict -o "$scratch/small" --score --lossless 4
    keep "$scratch/small" small
}

paradox() {
    local near="--tools work --vary zip=0,1,3 --send burst=1 --sizes 64 --rates 200k:300k:25k --host placement=rps --time 2s"
    # shellcheck disable=SC2086  # words
    run paradox-naive sweep $near --vary backend=af-packet-v2 --vary wait=poll --vary ring=64K --repeat "${REPEAT:-5}" \
        -o "$scratch/paradox-naive"
    # shellcheck disable=SC2086  # words
    run paradox sweep $near --vary ring=4M --repeat "${REPEAT:-5}" -o "$scratch/paradox"
    keep "$scratch/paradox-naive" paradox-naive && keep "$scratch/paradox" paradox
}

lossless() {
    run lossless lossless --tools record,analyze,count,tcpdump,tcpdump-default,dumpcap,dumpcap-default,netsniff-ng \
        --sizes 64,512,1518 --budget "${BUDGET:-30m}" -o "$scratch/lossless"
    keep "$scratch/lossless" rates
    cp -r "$scratch/lossless/plots" "$out/rates-plots"
}

papers() {
    local directory=${GO_ON:-$scratch/papers} resume= file experiment
    [ ! -d "$directory" ] || resume=--resume
    # shellcheck disable=SC2086  # no words where there is nothing
    run "papers${PAPERS:+-$PAPERS}" paper "${PAPERS:-all}" $form ${REPEAT:+--repeat "$REPEAT"} $resume -o "$directory" --budget "${BUDGET:-90m}"
    for file in "$directory"/*.html "$directory"/*.json; do
        sed "s|$directory|DIR|g" "$file" >"$out/$(basename "$file")"
    done
    sed -i "s|$directory|DIR|g" "$out/papers${PAPERS:+-$PAPERS}.txt"
    cp -r "$directory/plots" "$out/papers-plots"
    for experiment in "$directory"/s?-*/; do
        # What each processor did lies beside it, and is much.
        for file in "$experiment"/{sweep,lossless}.csv; do
            [ ! -e "$file" ] || xz -9 -c "$file" >"$out/$(basename "$experiment").csv.xz"
        done
    done
}

for part in "${parts[@]}"; do
    "$part"
done
