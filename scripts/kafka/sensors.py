"""Two sensors, two brokers and one question: what can be believed? As scripts/sensors.sh asks for."""

import argparse
import collections
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import brokers
import duckdb

CAPTURE = "fixtures/recorded/office.pcapng"
HOST = "10.99.0.1"
# The sensor that is stopped, so that its ring runs over.
STOPPED, OTHER = "b", "a"
# What both sensors must tell of a connection alike. Stamps are those of two wires.
ALIKE = "proto, service, conn_state, history, orig_bytes, resp_bytes, orig_pkts, resp_pkts, orig_ip_bytes, resp_ip_bytes"
failed = 0


def check(is_right, text):
    """Tells what is wrong."""
    global failed  # noqa: PLW0603
    if not is_right:
        failed += 1
        print(f"FAILED: {text}", flush=True)


def sensor(args, name, place, addresses):
    """A live analysis that delivers, once it captures."""
    words = [
        "ip", "netns", "exec", f"{args.name}{name}-rx", "timeout", "--foreground", "200", args.netsniff, "analyze", "-i", "rx0",
        "-o", place / name, "--format", "json", "--spool", place / f"spool-{name}", "--sensor", name, "--run-id", "one",
        "--deliver", f"kafka://{addresses}/rows?timeout=5s", "--deliver-wait", "60s", "--stats-interval", "1s",
        "--ring", "256K", "--block", "64K", "--no-shed", "--no-drop", "--sandbox", "strict", "--json",
    ]  # fmt: skip
    errors = open(place / f"errors-{name}", "wb")  # noqa: SIM115
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, start_new_session=True)
    errors.close()
    end = time.monotonic() + 20
    while "capturing" not in (place / f"errors-{name}").read_text():
        if process.poll() is not None or time.monotonic() > end:
            sys.exit(f"sensor {name} does not capture:\n{(place / f'errors-{name}').read_text()}")
        time.sleep(0.1)
    return process


def watch(args, place, cluster):
    """Sends the traffic to both sensors. Returns from when to when one of them was stopped, and their summaries."""
    addresses = ",".join(broker.address for broker in cluster)
    sensors = {name: sensor(args, name, place, addresses) for name in (OTHER, STOPPED)}
    try:
        replays = [
            subprocess.Popen(
                ["ip", "netns", "exec", f"{args.name}{name}-tx", args.netsniff, "replay", CAPTURE, "-i", "tx0",
                 "--multiplier", "1.5", "-q"],
            )  # fmt: skip
            for name in sensors
        ]
        time.sleep(5)
        cluster[1].kill()
        time.sleep(1)
        begin = time.time()
        os.killpg(sensors[STOPPED].pid, signal.SIGSTOP)
        time.sleep(4)
        os.killpg(sensors[STOPPED].pid, signal.SIGCONT)
        end = time.time()
        for replay in replays:
            check(replay.wait(60) == 0, "the traffic was not sent")
        time.sleep(1.5)
        summaries = {}
        for name, process in sensors.items():
            os.killpg(process.pid, signal.SIGINT)
            told, _ = process.communicate(timeout=120)
            errors = (place / f"errors-{name}").read_text()
            check(process.returncode == 0, f"sensor {name} ended with {process.returncode}: {errors}")
            summaries[name] = json.loads(told)
    finally:
        for process in sensors.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    return begin, end, summaries


def store(place, address):
    """Writes what the broker has as DuckDB is to read it: a file of each log."""
    logs = collections.defaultdict(list)
    names = set()
    more = 0
    for _, message in brokers.read(address, ["rows"]):
        row = json.loads(message.value())
        name = row["sensor"], row["run"], row["log"], row["seq"]
        more += name in names
        names.add(name)
        logs[row["log"]].append(message.value().decode())
    folder = place / "rows"
    folder.mkdir()
    for log, rows in logs.items():
        (folder / f"{log}.json").write_text("".join(row + "\n" for row in rows))
    print(f"{len(names)} rows at the broker that is left; {more} came twice")


def ask(place, begin, end):
    """What the views tell, held against what was done."""
    views = Path("packaging/duckdb/sensors.sql").read_text()
    database = duckdb.connect()
    database.execute(views.replace("'rows/", f"'{place}/rows/"))

    def query(text):
        return database.execute(text).fetchall()

    whole = query("SELECT sensor, is_complete FROM completeness ORDER BY sensor")
    check(whole == [(OTHER, True), (STOPPED, True)], f"rows are missing: {whole}")
    losses = query("SELECT sensor, since, until, packets FROM losses ORDER BY since")
    for name, since, until, packets in losses:
        print(f"sensor {name} lost {packets} packets from {since - begin:+.1f} s to {until - begin:+.1f} s of the stop")
        check(name == STOPPED, f"sensor {name} was not stopped, and lost packets")
        check(since <= end and until >= begin, "packets were lost at another time")
    lost = sum(packets for *_, packets in losses)
    final = dict(query("SELECT sensor, delivered FROM capture WHERE final AND scope = 'interface'"))
    check(lost > 0 and final[OTHER] - final[STOPPED] == lost, f"{lost} packets are told, but {final} came")

    judged = query("SELECT sensor, count(*) FILTER (can_be_believed), count(*) FROM judged GROUP BY ALL ORDER BY ALL")
    print(", ".join(f"sensor {name}: {good} of {rows} connections can be believed" for name, good, rows in judged))
    good = {name: good for name, good, _ in judged}
    check(0 < good[STOPPED] < good[OTHER], f"connections that can be believed: {good}")
    # What is believed of the sensor with losses is what the other one has.
    same = f"""
        SELECT count(*) FROM (
            SELECT community_id, {ALIKE} FROM judged WHERE sensor = '{STOPPED}' AND can_be_believed
            EXCEPT ALL SELECT community_id, {ALIKE} FROM judged WHERE sensor = '{OTHER}'
        )"""
    wrong = query(same)[0][0]
    check(wrong == 0, f"{wrong} rows are believed, and differ from those of the other sensor")
    hidden = query(same.replace("AND can_be_believed", "AND NOT can_be_believed"))[0][0]
    print(f"all of them are those of the other sensor; of those that cannot, {hidden} differ")
    check(hidden > 0, "no row suffered, so that nothing is proved")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--netsniff", required=True)
    parser.add_argument("--jars", required=True)
    parser.add_argument("--name", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        place = Path(place)
        first = brokers.Broker(1, args.jars, place / "first", None, host=HOST)
        second = brokers.Broker(2, args.jars, place / "second", first.controller, host=HOST)
        cluster = [first, second]
        try:
            for broker in cluster:
                broker.start()
            first.create("rows", 4, replicas=2, min_insync_replicas=1)
            begin, end, _ = watch(args, place, cluster)
            store(place, first.address)
            ask(place, begin, end)
        finally:
            for broker in cluster:
                broker.kill()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
