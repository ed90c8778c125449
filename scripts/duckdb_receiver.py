#!/usr/bin/env python3
"""Takes rows that `netsniff --deliver http://127.0.0.1:PORT/` sends, and keeps them in a database of DuckDB.

Usage: duckdb_receiver.py DATABASE [PORT]

A row that comes twice is kept once: sensor, run, log and seq name it. Ends with SIGINT or SIGTERM, and then prints for each run and log
how many rows there are to be, and how many have come. Needs the module duckdb.
"""

import http.server
import json
import signal
import sys
import threading

import duckdb

TABLES = """
CREATE TABLE IF NOT EXISTS rows (
    sensor VARCHAR, run VARCHAR, log VARCHAR, seq UBIGINT, content JSON, PRIMARY KEY (sensor, run, log, seq)
);
"""

# Of each run and log: how many rows there are to be, how many have come, and how many numbers are missing.
COMPLETENESS = """
WITH told AS (
    SELECT sensor, run, content->>'of' AS log, (content->>'rows')::UBIGINT AS rows FROM rows WHERE log = 'run_end'
), come AS (
    SELECT sensor, run, log, count(*) AS come, max(seq) + 1 AS seen FROM rows WHERE log <> 'run_end' GROUP BY ALL
)
SELECT sensor, run, log, told.rows, coalesce(come, 0) AS come, coalesce(told.rows, seen) - coalesce(come, 0) AS missing
FROM told FULL JOIN come USING (sensor, run, log) ORDER BY ALL
"""


class Store:
    """The database, for threads that take turns."""

    def __init__(self, path):
        self.connection = duckdb.connect(path)
        self.connection.execute(TABLES)
        self.lock = threading.Lock()

    def add(self, body):
        """Keeps the rows of a body all together, or raises an error and keeps none."""
        rows = []
        for line in body.splitlines():
            row = json.loads(line)
            rows.append([row["sensor"], row["run"], row["log"], row["seq"], line.decode()])
        with self.lock:
            self.connection.execute("BEGIN")
            try:
                # A million values is far more than a batch has.
                values = ", ".join(["(?, ?, ?, ?, ?)"] * len(rows))
                self.connection.execute(
                    f"INSERT INTO rows VALUES {values} ON CONFLICT DO NOTHING", [it for row in rows for it in row])
            except Exception:
                self.connection.execute("ROLLBACK")
                raise
            # Only what is on disk is told to have been taken.
            self.connection.execute("COMMIT")

    def completeness(self):
        """Rows of the query above."""
        with self.lock:
            return self.connection.execute(COMPLETENESS).fetchall()


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers each batch once it is kept."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            self.server.store.add(body)
            status, text = 200, b""
        except (ValueError, KeyError, TypeError) as error:
            # These rows will never be taken: netsniff sends halves of them, and keeps the one that is bad.
            status, text = 400, str(error).encode()
        except duckdb.Error as error:
            status, text = 503, str(error).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def serve(path, port, handler=Handler):
    """A server that listens on loopback."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    server.store = Store(path)
    return server


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    server = serve(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 8080)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: threading.Thread(target=server.shutdown).start())
    print(f"listens at http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()
    for sensor, run, log, rows, come, missing in server.store.completeness():
        told = "unknown" if rows is None else rows
        print(f"{sensor} {run} {log}: {told} rows, {come} have come, {missing} are missing")


if __name__ == "__main__":
    main()
