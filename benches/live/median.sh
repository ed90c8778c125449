#!/usr/bin/env bash
# The medians of a table of cost.sh, as a table in Markdown: benches/live/median.sh FILE.tsv
set -euo pipefail
grep -v '^#' "${1:?a table of cost.sh}" | tail -n +2 | awk -F '\t' '
    # The middle of the numbers of a key, those of an even number of runs averaged.
    function median(values, n,    i, j, t, sorted) {
        split(values, sorted, " ")
        for (i = 2; i <= n; i++)
            for (j = i; j > 1 && sorted[j - 1] > sorted[j]; j--) { t = sorted[j]; sorted[j] = sorted[j - 1]; sorted[j - 1] = t }
        return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
    }
    { key = $1 " | " $2 " | " $3; if (!(key in runs)) order[++keys] = key
      runs[key]++; pps[key] = pps[key] " " $5; lost[key] = lost[key] " " $7; ns[key] = ns[key] " " $9 + 0 }
    END {
        print "| placement | bytes | tool | runs | sent, k/s | lost, % | ns a packet |"
        print "|---|---|---|---|---|---|---|"
        for (i = 1; i <= keys; i++) { k = order[i]; n = runs[k]
            printf "| %s | %d | %.0f | %.2f | %.0f |\n", k, n, median(pps[k], n) / 1000, median(lost[k], n), median(ns[k], n) }
    }'
