#!/usr/bin/env bash
# The medians of a table of send.sh, as tables in Markdown: benches/live/send-median.sh FILE.tsv
set -euo pipefail
grep -v '^#' "${1:?a table of send.sh}" | awk -F '\t' '
    # The middle of the numbers of a key, those of an even number of runs averaged; nothing for none.
    function median(values,    n, i, j, t, sorted) {
        n = split(values, sorted, " ")
        if (n == 0) return "-"
        for (i = 2; i <= n; i++)
            for (j = i; j > 1 && sorted[j - 1] + 0 > sorted[j] + 0; j--) { t = sorted[j]; sorted[j] = sorted[j - 1]; sorted[j - 1] = t }
        return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
    }
    function largest(values,    n, i, most, sorted) {
        n = split(values, sorted, " ")
        for (i = 1; i <= n; i++) { t = sorted[i] < 0 ? -sorted[i] : sorted[i]; if (t > most) most = t }
        return most + 0
    }
    $1 == "speed" && $3 ~ /^[0-9]+$/ {
        row = $2 " | " $4
        if (!(row in rows)) { order[++count] = row; rows[row] }
        if (!($3 in sizes)) { by_size[++kinds] = $3; sizes[$3] }
        if ($5 ~ /^[0-9]+$/) speed[row, $3] = speed[row, $3] " " $5
        if ($6 > 0) uncounted[row] += $6
    }
    $1 == "pace" && $3 ~ /^[0-9]+%?$/ {
        row = $2 " | " $3 " | " $4
        if (!(row in paced)) { line[++lines] = row; paced[row] }
        asked[row] = asked[row] " " $5
        off[row] = off[row] " " $7; mid[row] = mid[row] " " $8; high[row] = high[row] " " $9; most[row] = most[row] " " $10
        missing[row] += $12
    }
    END {
        printf "| placement | tool |"
        for (k = 1; k <= kinds; k++) printf " %s bytes, k/s |", by_size[k]
        print " uncounted |"
        printf "|---|---|---|"
        for (k = 1; k <= kinds; k++) printf "---|"
        print ""
        for (i = 1; i <= count; i++) {
            printf "| %s |", order[i]
            for (k = 1; k <= kinds; k++) { m = median(speed[order[i], by_size[k]]); printf m == "-" ? " ended early |" : " %.0f |", m / 1000 }
            printf " %d |\n", uncounted[order[i]]
        }
        print "\n| placement | rate | tool | frames a second | rate off, %: median, largest | gaps off, µs: median | 99th percentile | largest | missing |"
        print "|---|---|---|---|---|---|---|---|---|"
        for (i = 1; i <= lines; i++) {
            r = line[i]
            printf "| %s | %.0f | %.4f, %.4f | %.2f | %.1f | %.0f | %d |\n", r, median(asked[r]), median(off[r]), largest(off[r]), median(mid[r]) / 1000, median(high[r]) / 1000, median(most[r]) / 1000, missing[r]
        }
    }'
