# A connection to look for, as benchmarks choose it. Sourced by them.

# middle_connection LOGS: uid, host, port, other host and its port of the connection in the middle of those of TCP with ten
# packets or more, out of a directory of logs.
middle_connection() {
    awk -F'\t' '
        /^#fields/ { for (n = 2; n <= NF; n++) at[$n] = n - 1 }
        !/^#/ && $at["proto"] == "tcp" && $at["orig_pkts"] > 9 {
            line[++count] = $at["uid"] " " $at["id.orig_h"] " " $at["id.orig_p"] " " $at["id.resp_h"] " " $at["id.resp_p"]
        }
        END { print line[int((count + 1) / 2)] }' "$1/conn.log"
}
