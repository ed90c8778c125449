"""Delivers rows to brokers and compares what these have with the logs, as scripts/kafka.sh asks for."""

import argparse
import collections
import datetime
import decimal
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import brokers
import fastavro

CAPTURE = "fixtures/recorded/office.pcapng"
MANY = ["fixtures/recorded/office.pcapng", "fixtures/recorded/certificates.pcapng", "fixtures/recorded/protocols.pcapng"]


class Checks:
    """What was found wrong, each told as it is seen."""

    def __init__(self):
        self.failed = 0

    def check(self, is_right, text):
        if not is_right:
            self.failed += 1
            print(f"FAILED: {text}", flush=True)


class Runs:
    """Runs of netsniff with logs and spools in one place."""

    def __init__(self, netsniff, place):
        self.netsniff, self.place = netsniff, Path(place)

    def command(self, name, url, captures, *more):
        """An analysis that writes logs and delivers them."""
        where = self.place / name
        return [
            self.netsniff, "analyze", *captures, "-o", where / "logs", "--format", "json", "--spool", where / "spool",
            "--deliver", url, "--sensor", "test", "--run-id", name, "--json", *more,
        ]  # fmt: skip

    def analyze(self, name, url, captures, *more, environment=None):
        """Runs one to its end. Returns its exit code and the books of the delivery."""
        shutil.rmtree(self.place / name / "logs", ignore_errors=True)
        command = self.command(name, url, captures, *more)
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=120, check=False, env=os.environ | (environment or {})
        )
        if done.returncode not in (0, 5):
            sys.exit(f"netsniff ended with {done.returncode}:\n{done.stderr}")
        return done.returncode, json.loads(done.stdout)["delivery"][0]

    def deliver(self, name, *more):
        """Delivers what a run left. Returns its exit code and the books."""
        command = [self.netsniff, "deliver", self.place / name / "spool", "--json", *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode not in (0, 5):
            sys.exit(f"netsniff deliver ended with {done.returncode}:\n{done.stderr}")
        return done.returncode, json.loads(done.stdout)[0]

    def rows(self, name):
        """The rows of the logs of a run, each under its name, with those that end it."""
        found = {}
        counts = {}
        for log in sorted((self.place / name / "logs").glob("*.log")):
            for seq, line in enumerate(log.read_text(encoding="utf-8").splitlines()):
                found[("test", name, log.stem, seq)] = json.loads(line)
                counts[log.stem] = seq + 1
        return found, counts


def name_of(row):
    """What a row is told from all others by."""
    return row["sensor"], row["run"], row["log"], row["seq"]


def books_are_whole(books):
    """Whether the books add up."""
    ways = ("delivered", "spooled", "refused_full", "refused_by_receiver", "lost")
    return books["found"] + books["made"] == sum(books[way] for way in ways)


def received(records, run):
    """The rows of a run that a broker has, by their names, and how many came more than once."""
    rows, more = {}, 0
    for _, message in records:
        row = json.loads(message.value())
        if row["run"] == run:
            more += name_of(row) in rows
            rows[name_of(row)] = row
    return rows, more


def compare(checks, runs, run, found):
    """Compares rows that came with the logs, and proves by themselves that they are all."""
    expected, counts = runs.rows(run)
    told = {row["of"]: row["rows"] for row in found.values() if row["log"] == "run_end"}
    checks.check(told == counts, f"{run}: the end tells of {told}, the logs have {counts}")
    numbers = collections.defaultdict(set)
    for _, _, log, seq in found:
        numbers[log].add(seq)
    for log, count in counts.items():
        checks.check(numbers[log] == set(range(count)), f"{run}: numbers of {log} have gaps")
    own = {name: row for name, row in found.items() if name[2] != "run_end"}
    for name, row in own.items():
        members = {key: value for key, value in row.items() if key not in ("sensor", "run", "log", "seq")}
        checks.check(members == expected.get(name), f"{run}: {name} differs: {members} {expected.get(name)}")
    checks.check(own.keys() == expected.keys(), f"{run}: {len(own)} rows came, {len(expected)} are in the logs")
    return len(own)


def key_of(row):
    """The key that a record of a row must have."""
    key = row.get("community_id", row.get("uid"))
    return key if isinstance(key, str) else None


def forms(checks, runs, broker, certificate):
    """All rows of three captures, by each way to log in and each compression."""
    broker.create("rows", 3)
    code, books = runs.analyze("plain", f"kafka://{broker.address}/rows", MANY)
    checks.check((code, books["delivered"]) == (0, books["made"]) and books_are_whole(books), f"plain: {books}")
    records = brokers.read(broker.address, ["rows"])
    found, more = received(records, "plain")
    total = compare(checks, runs, "plain", found)
    checks.check(more == 0, f"plain: {more} rows came twice")
    places = collections.defaultdict(set)
    for _, message in records:
        row = json.loads(message.value())
        key = message.key().decode() if message.key() is not None else None
        checks.check(key == key_of(row), f"the key of {name_of(row)} is {key}")
        if "ts" in row:
            checks.check(message.timestamp()[1] == int(row["ts"] * 1000 // 1), f"the stamp of {name_of(row)}")
        if key:
            places[key].add(message.partition())
    checks.check(all(len(of) == 1 for of in places.values()), "rows of one key are in several partitions")
    checks.check(len(set().union(*places.values())) == 3, "not all partitions are used")

    _, counts = runs.rows("plain")
    for log in [*counts, "run_end"]:
        broker.create(f"net.{log}", 2)
    ways = [
        ("sasl", f"kafka://{broker.sasl_address}", "", "gzip"),
        ("scram-sha-256", f"kafka://{broker.sasl_address}", "&sasl=scram-sha-256", "snappy"),
        ("tls", f"kafka+tls://{broker.tls_address}", f"&sasl=scram-sha-512&ca={certificate}", "lz4"),
        ("tls-plain", f"kafka+tls://{broker.tls_address}", f"&sasl=plain&ca={certificate}", "none"),
    ]
    for run, place, more, compression in ways:
        url = f"{place}/net.{{log}}?user={brokers.USER}&password=env:KAFKA_PASSWORD&compression={compression}{more}"
        code, books = runs.analyze(run, url, MANY, environment={"KAFKA_PASSWORD": brokers.PASSWORD})
        checks.check((code, books["delivered"]) == (0, books["made"]), f"{run}: {books}")
    records = [pair for pair in brokers.read(broker.address) if pair[0].startswith("net.")]
    for run, *_ in ways:
        found, _ = received(records, run)
        total += compare(checks, runs, run, found)
    for topic, message in records:
        checks.check(topic == "net." + json.loads(message.value())["log"], f"a row is in the topic {topic}")
    print(f"{total} rows compared: {', '.join(['no login', *(f'{run} with {by}' for run, _, _, by in ways)])}")


def refusals(checks, runs, broker):
    """What a broker does not take, now or ever."""
    broker.create("small", 1, max_message_bytes=600)
    code, books = runs.analyze("small", f"kafka://{broker.address}/small?compression=none", MANY)
    refused = (next((runs.place / "small" / "spool").iterdir()) / "refused.json").read_text().splitlines()
    found, _ = received(brokers.read(broker.address, ["small"]), "small")
    expected, _ = runs.rows("small")
    count = books["refused_by_receiver"]
    checks.check(code == 5 and count > 0 and books["spooled"] == 0 and books_are_whole(books), f"small: {books}")
    checks.check(len(refused) == count == books["refused_kept"], f"{len(refused)} rows are kept, {count} were refused")
    checks.check("MessageTooLarge" in (books["last_error"] or ""), f"small: {books['last_error']}")
    checks.check(len(found) == books["delivered"], f"{len(found)} rows came, {books['delivered']} were delivered")
    taken = {name for name in found if name[2] != "run_end"}
    checks.check(taken < expected.keys(), "a row came that no log has")
    # A row of half the size is refused for no neighbour's sake.
    short = {name for name, row in expected.items() if len(json.dumps(row)) < 300}
    checks.check(short and short <= taken, f"{len(short - taken)} short rows of {len(short)} did not come")
    print(f"{count} of {books['made']} rows were too large, and are kept with the reason")

    wait = ("--deliver-wait", "3s")
    code, books = runs.analyze("nowhere", f"kafka://{broker.address}/nowhere?timeout=2s", [CAPTURE], *wait)
    checks.check(code == 5 and books["spooled"] == books["made"] and books_are_whole(books), f"nowhere: {books}")
    checks.check("nowhere" in books["last_error"], f"nowhere: {books['last_error']}")
    broker.create("nowhere")
    code, books = runs.deliver("nowhere")
    checks.check((code, books["spooled"]) == (0, 0), f"nowhere, once it is there: {books}")
    compare(checks, runs, "nowhere", received(brokers.read(broker.address, ["nowhere"]), "nowhere")[0])

    url = f"kafka://{broker.sasl_address}/rows?user={brokers.USER}&password=env:KAFKA_PASSWORD&timeout=2s"
    for kind in ("plain", "scram-sha-512"):
        run = f"wrong-{kind}"
        wrong = {"KAFKA_PASSWORD": "not-this-Word.1"}
        code, books = runs.analyze(run, f"{url}&sasl={kind}", [CAPTURE], *wait, environment=wrong)
        checks.check(code == 5 and books["spooled"] == books["made"], f"{run}: {books}")
        told = books["last_error"]
        checks.check("uthentication" in told and wrong["KAFKA_PASSWORD"] not in told, f"{run}: {told}")
    print("an unknown topic and wrong passwords leave all rows in the spool, and say why")


def avro(checks, runs, broker):
    """Rows in Avro, as fastavro reads them by the schemas that netsniff prints."""
    printed = subprocess.run([runs.netsniff, "schema", "--avro"], capture_output=True, text=True, check=True).stdout
    schemas = {}
    for schema in json.loads(printed):
        fingerprint = fastavro.schema.fingerprint(fastavro.schema.to_parsing_canonical_form(schema), "CRC-64-AVRO")
        schemas[bytes.fromhex(fingerprint)] = (schema, fastavro.parse_schema(schema))
    one = subprocess.run([runs.netsniff, "schema", "--avro", "conn"], capture_output=True, text=True, check=True).stdout
    checks.check(json.loads(one) in [schema for schema, _ in schemas.values()], "the schema of conn differs by itself")
    broker.create("avro", 2)
    code, books = runs.analyze("avro", f"kafka://{broker.address}/avro?format=avro", MANY)
    checks.check((code, books["delivered"]) == (0, books["made"]), f"avro: {books}")
    expected, counts = runs.rows("avro")
    values, told = 0, {}
    found = set()
    for _, message in brokers.read(broker.address, ["avro"]):
        value = message.value()
        checks.check(value[:2] == b"\xc3\x01", "a value is in no single-object encoding")
        schema, parsed = schemas[value[2:10]]
        rest = io.BytesIO(value[10:])
        record = fastavro.schemaless_reader(rest, parsed, None)
        checks.check(not rest.read(1), "a value goes on behind its end")
        name = name_of(record)
        found.add(name)
        checks.check(schema["name"] == name[2], f"{name} has the schema {schema['name']}")
        if name[2] == "run_end":
            told[record["of"]] = record["rows"]
            continue
        row = dict(expected[name])
        for field in schema["fields"][4:]:
            column = next((column for column in row if column.replace(".", "_") == field["name"]), None)
            of_json, of_avro = row.pop(column, None), record[field["name"]]
            if isinstance(of_avro, datetime.datetime):
                since = of_avro - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
                of_avro = since // datetime.timedelta(microseconds=1)
                of_json = int(decimal.Decimal(repr(of_json)) * 1_000_000)
            checks.check(of_avro == of_json, f"{name}: {field['name']} is {of_avro}, in JSON {of_json}")
            values += of_avro is not None
        checks.check(not row, f"{name}: no field has {row}")
    checks.check({name for name in found if name[2] != "run_end"} == expected.keys(), "avro: rows are missing")
    checks.check(told == counts, f"avro: the end tells of {told}, the logs have {counts}")
    print(f"{values} values of {len(expected)} rows in Avro are those of the logs")


def feed(process, pieces):
    """Writes pieces of a capture into an analysis."""
    for piece in pieces:
        process.stdin.write(piece)
    process.stdin.flush()


def pieces(count):
    """A capture in so many pieces."""
    data = Path(CAPTURE).read_bytes()
    size = -(-len(data) // count)
    return [data[at : at + size] for at in range(0, len(data), size)]


def wait_for(what, seconds, text):
    """Waits until something is so."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            sys.exit(f"waited {seconds} s in vain: {text}")
        time.sleep(0.2)


def has_rows(broker, topic, run, least):
    """Whether a broker has so many rows of a run."""
    return len(received(brokers.read(broker.address, [topic]), run)[0]) >= least


def outages(checks, runs, broker):
    """A broker that is killed while rows come, once and again, and netsniff in the middle of them."""
    broker.create("hard", 3)
    url = f"kafka://{broker.address}/hard?timeout=2s"
    parts = pieces(4)

    run = "broker-killed"
    command = runs.command(run, url, ["-"], "--deliver-wait", "60s")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        feed(process, parts[:1])
        wait_for(lambda: has_rows(broker, "hard", run, 1), 30, "no row came")
        before = len(received(brokers.read(broker.address, ["hard"]), run)[0])
        broker.kill()
        feed(process, parts[1:2])
        time.sleep(1)
        broker.start()
        feed(process, parts[2:3])
        wait_for(lambda: has_rows(broker, "hard", run, before + 1), 60, "no row came after the first kill")
        broker.kill()
        feed(process, parts[3:])
        process.stdin.close()
        time.sleep(1)
        broker.start()
        told = process.stdout.read()
        code = process.wait(120)
    books = json.loads(told)["delivery"][0]
    checks.check(code == 0 and books["delivered"] == books["made"] and books["retried"] > 0, f"{run}: {books}")
    found, more = received(brokers.read(broker.address, ["hard"]), run)
    rows = compare(checks, runs, run, found)
    print(f"broker killed twice amid {rows} rows: none lost, {more} came twice, {books['retried']} batches sent again")

    run = "netsniff-killed"
    command = runs.command(run, url, ["-"])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        feed(process, parts[:1])
        wait_for(lambda: has_rows(broker, "hard", run, 1), 30, "no row came")
        broker.kill()
        feed(process, parts[1:3])
        time.sleep(1.5)
        process.kill()
    broker.start()
    before = len(received(brokers.read(broker.address, ["hard"]), run)[0])
    code, books = runs.deliver(run)
    checks.check(code == 0 and books["found"] == books["delivered"] > 0 and books["spooled"] == 0, f"{run}: {books}")
    cut, _ = received(brokers.read(broker.address, ["hard"]), run)
    checks.check(len(cut) > before, f"{run}: what the spool had did not come: {before} rows before, {len(cut)} behind")
    numbers = collections.defaultdict(set)
    for _, _, log, seq in cut:
        numbers[log].add(seq)
    checks.check(all(of == set(range(len(of))) for of in numbers.values()), f"{run}: numbers have gaps")
    checks.check("run_end" not in numbers, f"{run}: an end was told")
    # The same files under the same names are the same rows.
    code, books = runs.analyze(run, url, [CAPTURE])
    found, more = received(brokers.read(broker.address, ["hard"]), run)
    rows = compare(checks, runs, run, found)
    checks.check(code == 0 and more >= len(cut), f"{run}: {more} rows came twice, {len(cut)} had come before")
    print(f"netsniff killed after {len(cut)} of {rows} rows: each was there, and all once it ran again")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--netsniff", required=True)
    parser.add_argument("--jars", required=True)
    args = parser.parse_args()
    os.environ["NETSNIFF_CONFIG"] = ""
    checks = Checks()
    with tempfile.TemporaryDirectory() as place:
        certificate = Path(place) / "certificate.pem"
        made = [
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=broker",
            "-config", "/dev/null", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{place}/key.pem", "-out", certificate,
        ]  # fmt: skip
        subprocess.run(made, check=True, capture_output=True)
        both = Path(place) / "both.pem"
        both.write_text(Path(place, "key.pem").read_text() + certificate.read_text())
        broker = brokers.Broker(1, args.jars, Path(place) / "broker", None, certificate=both)
        runs = Runs(args.netsniff, place)
        try:
            broker.start()
            forms(checks, runs, broker, certificate)
            avro(checks, runs, broker)
            refusals(checks, runs, broker)
            outages(checks, runs, broker)
        finally:
            broker.kill()
    sys.exit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()
