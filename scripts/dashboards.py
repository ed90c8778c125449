"""Runs the queries of the dashboards in packaging/grafana, as scripts/dashboards.sh asks for."""

import argparse
import collections
import http.server
import json
import math
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path


def panels(path):
    """The title and the queries of each panel of a dashboard."""
    for panel in json.loads(Path(path).read_text())["panels"]:
        if panel["type"] != "row":
            yield panel["title"], [target.get("expr") or target["rawSql"] for target in panel["targets"]]


# Of each run, so many requests are answered as if they had failed.
ANSWERS_LOST = 4


class Failures:
    """What went wrong, each told as it is seen."""

    def __init__(self):
        self.count = 0

    def check(self, is_right, text):
        if not is_right:
            self.count += 1
            print(f"FAILED: {text}")


def rows_of(log):
    """The rows of a log in JSON, each with what `--deliver` tells it by."""
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


def write_log(query, log):
    """Writes a log into its table twice, as a sender does that heard no answer."""
    lines = "\n".join(map(json.dumps, rows_of(log)))
    for _ in range(2):
        query(f"INSERT INTO `{log.stem}` SETTINGS input_format_skip_unknown_fields = 0 FORMAT JSONEachRow {lines}")


def compare_log(query, log, failures):
    """Reads a log out of its table. Returns how many values were compared."""
    rows = list(rows_of(log))
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


def serve(query):
    """Stands for the HTTP interface of ClickHouse. Of each run some answers are lost, though their rows were taken."""
    lost, taken = collections.Counter(), collections.Counter()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            try:
                query(f"{asked['query']} {body}")
                status, said = 200, b""
            except Exception as error:  # The library has no type of its own for what SQL gets wrong.
                status, said = 400, str(error).encode()
            run = json.loads(body.partition("\n")[0])["run"]
            taken[run] += len(body.splitlines()) if status == 200 else 0
            if status == 200 and lost[run] < ANSWERS_LOST:
                lost[run] += 1
                status = 500
            self.send_response(status)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, taken


def deliver(args, query, folder, failures):
    """Analyses captures, whose rows go to the tables and into logs."""
    server, taken = serve(query)
    for capture in args.capture:
        name = Path(capture).stem
        command = [args.netsniff, "analyze", capture, "--notices", "-q", "--format", "json", "-o", f"{folder}/{name}"]
        command += ["--sensor", "test", "--run-id", name, "--spool", f"{folder}/spool-{name}", "--deliver"]
        command += [f"http://127.0.0.1:{server.server_port}/?as=clickhouse&database=netsniff"]
        code = subprocess.run(command, check=False).returncode
        failures.check(code == 0, f"{capture}: exit code {code}")
    server.shutdown()
    ends = query("SELECT run, of, rows FROM run_end FINAL")
    for run, log, rows in ends:
        [[found]] = query(f"SELECT count() FROM `{log}` FINAL WHERE run = '{run}'")
        failures.check(found == rows, f"{run}: {log} has {found} rows, and {rows} were made")
    print(f"ClickHouse: {len(ends)} logs of {len(args.capture)} captures are whole by the rows that end a run")
    failures.check(len(ends) > len(args.capture), "no rows that end a run")
    made = len(ends) + sum(rows for *_, rows in ends)
    twice = taken.total() - made
    print(f"ClickHouse: {made} rows were made, and {twice} of them came once more")
    failures.check(twice > 0, "no row came twice")


def clickhouse(args):
    """Makes the tables, fills them with logs, compares each value, and asks what the dashboard asks."""
    from chdb import session

    connection = session.Session()

    one_at_a_time = threading.Lock()

    def query(text):
        with one_at_a_time:
            answer = str(connection.query(text, "JSONCompactEachRow"))
        return [json.loads(line) for line in answer.splitlines()]

    query("CREATE DATABASE netsniff")
    query("USE netsniff")
    for statement in Path(args.tables).read_text().split(";\n"):
        if statement.strip():
            query(statement)
    failures = Failures()
    for log in sorted(Path(args.logs).glob("*/*.log")):
        write_log(query, log)
    deliver(args, query, args.logs, failures)
    logs = sorted(Path(args.logs).glob("*/*.log"))
    values = sum(compare_log(query, log, failures) for log in logs)
    print(f"ClickHouse: {values} values of {len(logs)} logs compared")
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

    def has_packets():
        try:
            return query("rate(netsniff_capture_delivered_packets_total[10s]) > 0")
        except urllib.error.URLError:  # It does not listen yet.
            return False

    deadline = time.monotonic() + args.wait
    while not has_packets():
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
    of.add_argument("--logs", required=True, help="folder with a folder of logs in JSON for each run, where others come")
    of.add_argument("--netsniff", required=True, help="the program, which delivers")
    of.add_argument("--capture", action="append", default=[], help="a capture that it analyses")
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
