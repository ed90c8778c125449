"""Runs the queries of the dashboards in packaging/grafana, as scripts/dashboards.sh asks for."""

import argparse
import json
import math
import re
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path


def panels(path):
    """The title and the queries of each panel of a dashboard."""
    for panel in json.loads(Path(path).read_text())["panels"]:
        if panel["type"] != "row":
            yield panel["title"], [target.get("expr") or target["rawSql"] for target in panel["targets"]]


class Failures:
    """What went wrong, each told as it is seen."""

    def __init__(self):
        self.count = 0

    def check(self, is_right, text):
        if not is_right:
            self.count += 1
            print(f"FAILED: {text}")


def rows_of(log):
    """The rows of a log in JSON, each with what `--to` tells it by."""
    with open(log, encoding="utf-8") as lines:
        for seq, line in enumerate(lines):
            yield {"sensor": "test", "run": log.parent.name, "log": log.stem, "seq": seq} | json.loads(line)


def nearly(told, found):
    """Whether a value of a table is that of the log. Text of bytes that are no UTF-8 is compared as it is."""
    if isinstance(told, float) and isinstance(found, (int, float)):
        return math.isclose(told, found, rel_tol=1e-12, abs_tol=1e-9)
    if isinstance(told, list):
        return len(told) == len(found) and all(map(nearly, told, found))
    return told == found


def compare_log(query, log, failures):
    """Writes a log into its table twice, as a sender may that heard no answer, and reads it again. Returns its values."""
    rows = list(rows_of(log))
    lines = "\n".join(map(json.dumps, rows))
    for _ in range(2):
        query(f"INSERT INTO `{log.stem}` SETTINGS input_format_skip_unknown_fields = 0 FORMAT JSONEachRow {lines}")
    types = dict(query(f"SELECT name, type FROM system.columns WHERE table = '{log.stem}'"))
    columns = [
        f"toUnixTimestamp64Micro(`{name}`)" if "DateTime64" in kind and "Array" not in kind else f"`{name}`"
        for name, kind in types.items()
    ]
    chosen = ", ".join(columns)
    found = query(f"SELECT {chosen} FROM `{log.stem}` FINAL WHERE run = '{log.parent.name}' ORDER BY seq")
    failures.check(len(found) == len(rows), f"{log}: {len(rows)} rows, {len(found)} in the table")
    values = 0
    for row, values_found in zip(rows, found):
        for (name, kind), value in zip(types.items(), values_found):
            unset = [] if kind.startswith("Array") else None
            told = row.get(name, unset)
            if "DateTime64" in kind and told is not unset:
                told = round(told * 1_000_000)
            values += 1
            failures.check(nearly(told, value), f"{log}: row {row['seq']}, {name}: {told!r} is {value!r} in the table")
    return values


def clickhouse(args):
    """Makes the tables, fills them with logs, compares each value, and asks what the dashboard asks."""
    from chdb import session

    connection = session.Session()

    def query(text):
        answer = str(connection.query(text, "JSONCompactEachRow"))
        return [json.loads(line) for line in answer.splitlines()]

    query("CREATE DATABASE netsniff")
    query("USE netsniff")
    for statement in Path(args.tables).read_text().split(";\n"):
        if statement.strip():
            query(statement)
    failures = Failures()
    logs = sorted(Path(args.logs).glob("*/*.log"))
    values = sum(compare_log(query, log, failures) for log in logs)
    print(f"ClickHouse: {values} values of {len(logs)} logs compared, each row written twice")
    try:
        query('INSERT INTO conn FORMAT JSONEachRow {"ts": 1.5, "uid": "C1"}')
        failures.check(False, "a row without its identity was taken")
    except Exception as error:  # The library has no type of its own for what SQL refuses.
        failures.check("is_told_apart" in str(error), f"a row without its identity: {error}")
    failures.check(values > 0, "nothing was compared")

    [[first, last]] = query("SELECT toUnixTimestamp(min(ts)), toUnixTimestamp(max(ts)) + 1 FROM conn")
    times = f"toDateTime({first}) AND toDateTime({last})"
    asked = 0
    for title, queries in panels(args.dashboard):
        for text in queries:
            text = re.sub(r"\$__timeFilter\((\w+)\)", rf"\1 BETWEEN {times}", text)
            text = re.sub(r"\$__timeInterval\((\w+)\)", r"toStartOfInterval(\1, INTERVAL 1 second)", text)
            text = text.replace("$__fromTime", f"toDateTime({first})").replace("$__toTime", f"toDateTime({last})")
            text = text.replace("${sensor:singlequote}", "'test'")
            failures.check("$" not in text, f"{title}: a macro is not known: {text}")
            try:
                answer = query(text)
            except Exception as error:  # As above.
                failures.check(False, f"{title}: {error}")
                continue
            asked += 1
            print(f"  {title}: {len(answer)} rows")
            failures.check(answer or title in args.empty, f"{title}: no rows")
    print(f"ClickHouse: {asked} queries of {args.dashboard}")
    return failures.count


def prometheus(args):
    """Asks a server of Prometheus what the dashboard asks."""
    failures = Failures()

    def query(expression):
        url = f"{args.server}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]["result"]

    deadline = time.monotonic() + args.wait
    while not query("rate(netsniff_capture_delivered_packets_total[10s]) > 0"):
        if time.monotonic() > deadline:
            print(f"FAILED: no packets within {args.wait} s")
            return 1
        time.sleep(0.5)
    asked = 0
    for title, expressions in panels(args.dashboard):
        found = 0
        for text in expressions:
            text = text.replace("$__rate_interval", "10s").replace("$instance", ".*").replace("$interface", ".*")
            failures.check("$" not in text, f"{title}: a variable is not known: {text}")
            result = query(text)
            asked += 1
            found += len(result)
            failures.check(result or text.startswith(tuple(args.empty)), f"{title}: nothing for {text}")
        print(f"  {title}: {found} series")
    print(f"Prometheus: {asked} queries of {args.dashboard}")
    return failures.count


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    of = commands.add_parser("clickhouse")
    of.add_argument("--tables", required=True, help="statements that make the tables")
    of.add_argument("--logs", required=True, help="folder with a folder of logs in JSON for each capture")
    of.set_defaults(run=clickhouse)
    other = commands.add_parser("prometheus")
    other.add_argument("--server", required=True, help="where it listens")
    other.add_argument("--wait", type=float, default=30, help="seconds to wait for packets")
    other.set_defaults(run=prometheus)
    for parser_of in (of, other):
        parser_of.add_argument("--dashboard", required=True)
        parser_of.add_argument("--empty", action="append", default=[], help="a panel, or the begin of a query, without an answer here")
    args = parser.parse_args()
    sys.exit(1 if args.run(args) else 0)


main()
