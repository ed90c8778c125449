"""Bytes of each service, without the connections whose numbers the capture cannot tell.

Usage: quality.py CAPTURE
"""

import sys
from collections import Counter

import netsniff


def main(capture: str) -> None:
    sent: Counter[str] = Counter()
    left_out = 0
    with netsniff.stream(capture, log="conn") as stream:
        for row in stream.rows():
            if row["quality"] != "clean":
                left_out += 1
                continue
            sent[row["service"] or "unknown"] += row["resp_bytes"] or 0
        for warning in stream.warnings:
            print(warning, file=sys.stderr)
    for service, count in sent.most_common():
        print(f"{count:>12} {service}")
    print(f"left out: {left_out} connections that are not clean")


if __name__ == "__main__":
    main(sys.argv[1])
