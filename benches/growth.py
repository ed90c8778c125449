#!/usr/bin/env python3
"""Tables (standard output) and a drawing of what benches/growth.sh measured: growth.py RAW.tsv OUT.svg"""

import csv
import statistics
import sys
from collections import defaultdict

AXES = {
    "flows": ("flows", "Ten packets a flow with a million flows and more, ten million packets with fewer."),
    "transactions": ("transactions a second", "So many hosts, each of which begins a session of HTTP or DNS about once a "
                                              "second; 40,000 sessions."),
    "losses": ("percent lost", "Packets of the mix of `benches/offline.sh` that are missing."),
}
PANEL = (330, 210)
MARGIN = (58, 34)


def read(path):
    """Medians by axis and value: ns a packet, bytes a flow, flows at once, peak MiB, failed runs."""
    runs = defaultdict(list)
    with open(path, encoding="ascii") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            seconds = float(row["user_s"]) + float(row["sys_s"])
            flows = max(int(row["flows_at_once"]), 1)
            runs[row["axis"], float(row["value"])].append((
                seconds * 1e9 / max(int(row["packets"]), 1), int(row["flow_bytes"]) / flows, flows,
                int(row["peak_kib"]) / 1024, int(row["exit"]) != 0,
            ))
    points = defaultdict(list)
    for (axis, value), of_it in sorted(runs.items()):
        middle = [statistics.median(column) for column in list(zip(*of_it))[:4]]
        points[axis].append((value, *middle, sum(run[4] for run in of_it)))
    return points


def table(axis, points):
    title, note = AXES[axis]
    print(f"\n## By {title}\n\n{note}\n")
    print(f"| {title} | ns a packet | open at once | bytes a flow | peak MiB |\n|---|---|---|---|---|")
    for value, nanos, size, flows, peak, failed in points:
        note = f" (**{failed} runs failed**)" if failed else ""
        print(f"| {value:,.0f}{note} | {nanos:,.0f} | {flows:,.0f} | {size:,.0f} | {peak:,.0f} |")


def short(value):
    """A number on an axis: 1000000 is 1M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def panel(at, title, values, heights):
    """One curve over places that are equally far from each other; the scale begins at 0."""
    left, top = at[0] * PANEL[0] + MARGIN[0], at[1] * PANEL[1] + MARGIN[1]
    width, height = PANEL[0] - MARGIN[0] - 34, PANEL[1] - 2 * MARGIN[1]
    most = max(heights) * 1.1 or 1
    spot = [(left + width * n / max(len(values) - 1, 1), top + height * (1 - y / most)) for n, y in enumerate(heights)]
    yield f'<text x="{left}" y="{top - 12}" class="title">{title}</text>'
    yield f'<path d="M{left} {top}V{top + height}H{left + width}" class="axis"/>'
    yield f'<path d="M{" L".join(f"{x:.1f} {y:.1f}" for x, y in spot)}" class="curve"/>'
    for (x, y), value, number in zip(spot, values, heights):
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
        yield f'<text x="{x:.1f}" y="{y - 7:.1f}" class="mark">{number:,.0f}</text>'
        yield f'<text x="{x:.1f}" y="{top + height + 15}" class="mark">{short(value)}</text>'


def draw(points, path):
    lines = []
    for row, axis in enumerate(axis for axis in AXES if axis in points):
        values = [point[0] for point in points[axis]]
        lines += panel((0, row), f"ns a packet, by {AXES[axis][0]}", values, [point[1] for point in points[axis]])
        lines += panel((1, row), f"bytes a flow, by {AXES[axis][0]}", values, [point[2] for point in points[axis]])
    style = ("text{font:11px sans-serif;fill:#333}.title{font-weight:bold}.mark{text-anchor:middle}"
             ".axis{fill:none;stroke:#888}.curve{fill:none;stroke:#1f6fb4;stroke-width:2}circle{fill:#1f6fb4}")
    size = f'width="{2 * PANEL[0]}" height="{len(points) * PANEL[1]}"'
    with open(path, "w", encoding="ascii") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{style}</style>'
                   f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(lines) + "\n</svg>\n")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    points = read(sys.argv[1])
    for axis in AXES:
        if axis in points:
            table(axis, points[axis])
    draw(points, sys.argv[2])


main()
