#!/usr/bin/env python3
"""Delivers rows to programs of others, and compares what each of them has with the logs.

Usage: receivers.py NETSNIFF [NAME...]

NAME is one of nfdump, goflow2, ipfix, tshark, rsyslog and duckdb; without names all are run. All listen on loopback. What is not
installed is skipped, with a line that says so. Prints what was compared; ends with 1 where something differs.
"""

import datetime
import io
import ipaddress
import json
import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures" / "recorded"
CAPTURES = [FIXTURES / "office.pcapng", FIXTURES / "protocols.pcapng"]
SENSOR = "sensor-1"
RUN = "run-1"
PEN = 32473
PATIENCE = 30
LETTERS = {"S": 0x02, "H": 0x12, "A": 0x10, "F": 0x01, "R": 0x04, "I": 0x05}


class Skip(Exception):
    """A program is not here."""


def need(*names):
    for name in names:
        if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin"):
            raise Skip(f"{name}: it is not installed")


def port(kind=socket.SOCK_DGRAM):
    with socket.socket(type=kind) as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


def until(what, condition):
    """Waits for a condition."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"FAILED: {what} did not come within {PATIENCE} s")
        time.sleep(0.05)


def deliver(netsniff, capture, url, folder, *more):
    """Analyses a capture, delivers its rows, and returns those of the logs, as text, by log."""
    command = [netsniff, "analyze", capture, "-q", "-o", folder / "logs", "--format", "json"]
    command += ["--spool", folder / "spool", "--deliver", url, "--sensor", SENSOR, "--run-id", RUN, *more]
    subprocess.run([str(word) for word in command], check=True, timeout=120)
    return {path.stem: path.read_text().splitlines() for path in (folder / "logs").glob("*.log")}


def connections(logs):
    """The rows of conn, each with its number, and times as whole microseconds."""
    rows = [json.loads(line, parse_float=str) for line in logs["conn"]]
    for number, row in enumerate(rows):
        row["seq"] = number
        row["start"] = micros(str(row["ts"]))
        row["last"] = row["start"] + micros(str(row.get("duration", 0)))
    return rows


def micros(text):
    """Whole microseconds of seconds with decimals."""
    seconds, _, decimals = text.partition(".")
    return int(seconds) * 1_000_000 + int(f"{decimals:0<6.6}")


def flags(row):
    """TCP flags of both sides, as letters of the history tell them."""
    both = [0, 0]
    if row["ip_proto"] == 6:
        for letter in row.get("history", ""):
            both[letter.islower()] |= LETTERS.get(letter.upper(), 0)
    return both


def has_end(row):
    return "duration" in row or row["orig_pkts"] + row["resp_pkts"] == 1


def same(what, found, expected):
    """Compares lists of tuples, whatever their order."""
    found, expected = sorted(found, key=repr), sorted(expected, key=repr)
    if found != expected:
        only = [row for row in found if row not in expected][:3]
        missing = [row for row in expected if row not in found][:3]
        sys.exit(f"FAILED: {what}: {len(found)} and {len(expected)} rows; theirs {only}, the log {missing}")


def nfdump(netsniff, capture, folder):
    """nfcapd takes datagrams, nfdump tells flows."""
    need("nfcapd", "nfdump")
    (folder / "flows").mkdir()
    at = port()
    collector = subprocess.Popen(
        ["nfcapd", "-w", folder / "flows", "-b", "127.0.0.1", "-p", str(at), "-t", "3600", "-B", "8000000"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    time.sleep(1)
    try:
        rows = connections(deliver(netsniff, capture, f"ipfix+udp://127.0.0.1:{at}", folder))
        time.sleep(1)
    finally:
        collector.terminate()
        said = collector.communicate(timeout=PATIENCE)[0]
    form = "fmt:%ts,%te,%sa,%sp,%da,%dp,%pr,%ipkt,%ibyt,%opkt,%obyt,%flg"
    text = subprocess.run(["nfdump", "-6", "-q", "-N", "-R", folder / "flows", "-o", form], check=True,
                          capture_output=True, text=True, timeout=60, env={**os.environ, "TZ": "UTC"}).stdout
    found = []
    for line in text.splitlines():
        start, last, source, source_port, target, target_port, proto, *counts, letters = map(str.strip, line.split(","))
        kind, _, code = target_port.partition(".")
        found.append((stamp(start), stamp(last), source, source_port, target, int(kind) * 256 + int(code) if code else int(kind),
                      int(proto), *map(int, counts), sum(bit for bit, letter in BITS.items() if letter in letters)))
    same("nfdump", found, [(
        row["start"] // 1000, row["last"] // 1000 if has_end(row) else 0, row["id.orig_h"],
        "0" if row["proto"] == "icmp" else str(row["id.orig_p"]), row["id.resp_h"], icmp(row) if row["proto"] == "icmp" else row["id.resp_p"], row["ip_proto"],
        row["orig_pkts"], row["orig_ip_bytes"], row["resp_pkts"], row["resp_ip_bytes"], flags(row)[0]) for row in rows])
    if f"Flows: {len(rows)}," not in said or "Sequence Errors: 0, Bad Packets: 0" not in said:
        sys.exit(f"FAILED: nfcapd says {said}")
    return f"{len(rows)} flows, no sequence errors"


BITS = {0x01: "F", 0x02: "S", 0x04: "R", 0x08: "P", 0x10: "A", 0x20: "U"}


def stamp(text):
    """Whole milliseconds of a time of nfdump."""
    at = datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.timezone.utc)
    return (at - datetime.datetime.fromtimestamp(0, datetime.timezone.utc)) // datetime.timedelta(milliseconds=1)


class Datagrams:
    """Takes datagrams, and keeps them."""

    def __init__(self):
        self.socket = socket.socket(type=socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]

    def taken(self):
        """All that have come."""
        self.socket.settimeout(0.5)
        found = []
        try:
            while True:
                found.append(self.socket.recv(65535))
        except TimeoutError:
            return found


class Stream:
    """Takes one connection, with a certificate in TLS, and keeps what comes."""

    def __init__(self, certificate=None, key=None):
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if certificate else None
        if self.tls:
            self.tls.load_cert_chain(certificate, key)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.bytes = b""
        self.thread = threading.Thread(target=self.take, daemon=True)
        self.thread.start()

    def take(self):
        connection, _ = self.listener.accept()
        if self.tls:
            connection = self.tls.wrap_socket(connection, server_side=True)
        with connection:
            while piece := connection.recv(65536):
                self.bytes += piece

    def taken(self):
        """Everything, once the connection has ended."""
        self.thread.join(PATIENCE)
        return self.bytes


OWN = ["sensor(1)<string>", "run(2)<string>", "seq(3)<unsigned64>", "uid(4)<string>", "quality(5)<string>", "depth(6)<string>",
       "state(7)<string>", "history(8)<string>", "missedBytes(9)<unsigned64>", "captureMissedBytes(10)<unsigned64>",
       "networkMissedBytes(11)<unsigned64>", "badChecksums(12)<unsigned64>", "sampling(13)<unsigned64>", "rows(14)<unsigned64>"]


def ipfix(netsniff, capture, folder):
    """The module ipfix of Brian Trammell, an author of RFC 7011, reads connections by TCP and TLS: every element of every
    record."""
    try:
        import ipfix.ie
        import ipfix.reader
    except ImportError:
        raise Skip("python-ipfix: it is not installed")
    ipfix.ie.use_iana_default()
    ipfix.ie.use_5103_default()
    for spec in OWN:
        length = 65535 if "string" in spec else 8
        ipfix.ie.for_spec(spec.replace("(", f"({PEN}/") + f"[{length}]")
    certificate, key = certified(folder)
    for way, stream, more in (("ipfix", Stream(), ""), ("ipfix+tls", Stream(certificate, key), f"?ca={certificate}")):
        (folder / way).mkdir()
        rows = connections(deliver(netsniff, capture, f"{way}://127.0.0.1:{stream.port}{more}", folder / way))
        reader = ipfix.reader.from_stream(io.BytesIO(stream.taken()))
        found = [dict(record) for record in reader.namedict_iterator()]
        ends = [record for record in found if "rows" in record]
        found = [record for record in found if "rows" not in record]
        assert [(end["rows"], end["exportedFlowRecordTotalCount"], end["run"]) for end in ends] == [(len(rows), len(rows), RUN)], ends
        same(way, [tuple(sorted((name, str(value)) for name, value in record.items())) for record in found],
             [tuple(sorted((name, str(value)) for name, value in elements(row).items())) for row in rows])
    return f"{len(rows)} records, each with every element, by TCP and by TLS"


def certified(folder):
    """A certificate of this machine, and its key."""
    need("openssl")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
                    "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-addext", "basicConstraints=critical,CA:FALSE"], check=True, capture_output=True)
    return certificate, key


def elements(row):
    """What a row of conn is as elements of IPFIX."""
    at = lambda micros: datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=micros // 1000)
    version = ipaddress.ip_address(row["id.orig_h"]).version
    forth, back = flags(row)
    told = {
        "flowStartMilliseconds": at(row["start"]),
        "flowEndMilliseconds": at(row["last"]) if has_end(row) else None,
        f"sourceIPv{version}Address": row["id.orig_h"],
        f"destinationIPv{version}Address": row["id.resp_h"],
        "protocolIdentifier": row["ip_proto"],
        "packetDeltaCount": row["orig_pkts"],
        "octetDeltaCount": row["orig_ip_bytes"],
        "reversePacketDeltaCount": row["resp_pkts"],
        "reverseOctetDeltaCount": row["resp_ip_bytes"],
        "biflowDirection": 1,
        "vlanId": row.get("vlan"),
        "dot1qCustomerVlanId": row.get("inner_vlan"),
        "transportOctetDeltaCount": row.get("orig_bytes"),
        "reverseTransportOctetDeltaCount": row.get("resp_bytes"),
        "applicationName": row.get("service", ""),
        "sensor": SENSOR, "run": RUN, "seq": row["seq"], "uid": row["uid"],
        "quality": row["quality"], "depth": row["depth"], "state": row.get("conn_state", ""),
        "history": row.get("history", ""),
        "missedBytes": row.get("missed_bytes"),
        "captureMissedBytes": row.get("capture_missed_bytes"),
        "networkMissedBytes": row.get("network_missed_bytes"),
        "badChecksums": row.get("bad_checksums"),
        "sampling": row.get("sampling"),
    }
    if row["proto"] == "icmp":
        told[f"icmpTypeCodeIPv{version}"] = icmp(row)
    else:
        told["sourceTransportPort"], told["destinationTransportPort"] = row["id.orig_p"], row["id.resp_p"]
    if row["proto"] == "tcp" and "history" in row:
        told["tcpControlBits"], told["reverseTcpControlBits"] = forth, back
    if row["proto"] == "tcp" and row.get("conn_state") in ("SF", "REJ", "RSTO", "RSTR", "RSTOS0", "RSTRH"):
        told["flowEndReason"] = 3
    return {name: value for name, value in told.items() if value is not None}


# Types of messages that ask or answer, by the protocol: their code is not in the log, and is 0.
ASKED = {1: {0, 8, 9, 10, 13, 14, 15, 16, 17, 18}, 58: {128, 129, 130, 131, 133, 134, 135, 136, 139, 140, 144, 145}}


def icmp(row):
    """Type and code in one number."""
    kind = row["id.orig_p"]
    return kind * 256 + (0 if kind in ASKED[row["ip_proto"]] else row["id.resp_p"])


def goflow2(netsniff, capture, folder):
    """goflow2 takes datagrams; it knows no element of enterprises, and so the forward direction alone."""
    need("goflow2")
    at, out = port(), folder / "goflow2.json"
    collector = subprocess.Popen(["goflow2", "-listen", f"netflow://127.0.0.1:{at}", "-format", "json", "-transport.file", out,
                                  "-addr", ""], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        rows = connections(deliver(netsniff, capture, f"ipfix+udp://127.0.0.1:{at}", folder))
        until("what goflow2 writes", lambda: out.exists() and out.read_text().count('{"type"') >= len(rows))
    finally:
        collector.terminate()
        collector.wait(PATIENCE)
    # Its two threads write ends of lines apart from lines, so that these may change places.
    found, text = [], out.read_text()
    while text := text.lstrip():
        row, end = json.JSONDecoder().raw_decode(text)
        found.append(row)
        text = text[end:]
    of_row = lambda row: (
        row["start"] // 1000 * 1_000_000, row["last"] // 1000 * 1_000_000 if has_end(row) else 0, row["id.orig_h"], row["id.resp_h"],
        *((0, 0) if row["proto"] == "icmp" else (row["id.orig_p"], row["id.resp_p"])),
        row["orig_pkts"], row["orig_ip_bytes"], flags(row)[0])
    same("goflow2", [(it["time_flow_start_ns"], it["time_flow_end_ns"], it["src_addr"], it["dst_addr"], it["src_port"], it["dst_port"],
                      it["packets"], it["bytes"], it["tcp_flags"]) for it in found], map(of_row, rows))
    return f"{len(rows)} flows"


def tshark(netsniff, capture, folder):
    """TShark dissects datagrams."""
    need("tshark")
    taker = Datagrams()
    rows = connections(deliver(netsniff, capture, f"ipfix+udp://127.0.0.1:{taker.port}", folder))
    datagrams = taker.taken()
    path = folder / "messages.pcap"
    with path.open("wb") as file:
        # Packets of IP (LINKTYPE_RAW).
        file.write(struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
        for datagram in datagrams:
            head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + len(datagram), 0, 0, 64, 17, 0, b"\x7f\0\0\1", b"\x7f\0\0\1")
            packet = head + struct.pack(">HHHH", 40000, 4739, 8 + len(datagram), 0) + datagram
            file.write(struct.pack("=IIII", 0, 0, len(packet), len(packet)) + packet)
    fields = ["cflow.protocol", "cflow.od_id", "_ws.malformed", "_ws.expert.message", "cflow.version"]
    command = ["tshark", "-r", path, "-d", "udp.port==4739,cflow", "-T", "fields", "-E", "separator=;"]
    for field in fields:
        command += ["-e", field]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    lines = [line.split(";") for line in text.splitlines()]
    assert len(lines) == len(datagrams), (len(lines), len(datagrams))
    wrong = [line for line in lines if line[2] or line[3] or line[4] != "10"]
    assert not wrong, wrong[:3]
    protocols = [int(number) for line in lines for number in line[0].split(",") if number]
    same("tshark", protocols, [row["ip_proto"] for row in rows])
    return f"{len(datagrams)} messages with {len(rows)} records, none malformed"


def rsyslog(netsniff, capture, folder):
    """rsyslogd takes messages by TCP and by TLS, and writes their data and text into a file."""
    need("rsyslogd")
    certificate, key = certified(folder)
    told = []
    for way in ("tcp", "tls"):
        place = folder / way
        place.mkdir()
        at, out = port(socket.SOCK_STREAM), place / "out"
        tls = f"""DefaultNetstreamDriver="gtls" DefaultNetstreamDriverCAFile="{certificate}"
            DefaultNetstreamDriverCertFile="{certificate}" DefaultNetstreamDriverKeyFile="{key}" """
        driver = 'StreamDriver.Name="gtls" StreamDriver.Mode="1" StreamDriver.AuthMode="anon"'
        (place / "conf").write_text(f"""
global(workDirectory="{place}" maxMessageSize="256k" {tls if way == "tls" else ""})
module(load="imtcp" {driver if way == "tls" else ""})
template(name="all" type="list") {{
    property(name="hostname") constant(value=" ") property(name="procid") constant(value=" ") property(name="msgid")
    constant(value=" ") property(name="structured-data") constant(value=" ") property(name="msg") constant(value="\\n")
}}
input(type="imtcp" address="127.0.0.1" port="{at}" ruleset="rows")
ruleset(name="rows") {{ action(type="omfile" file="{out}" template="all") }}
""")
        server = subprocess.Popen(["/usr/sbin/rsyslogd", "-n", "-f", place / "conf", "-i", place / "pid"],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            until("rsyslogd", lambda: is_open(at))
            url = f"syslog+{way}://127.0.0.1:{at}" + (f"?ca={certificate}" if way == "tls" else "")
            logs = deliver(netsniff, capture, url, place)
            expected = [f'{SENSOR} {RUN} {log} [netsniff@{PEN} sensor="{SENSOR}" run="{RUN}" log="{log}" seq="{seq}"] {row}'
                        for log, rows in logs.items() for seq, row in enumerate(rows)]
            all_rows = len(expected) + len(logs)
            until("what rsyslogd writes", lambda: out.exists() and out.read_text().count("\n") >= all_rows)
        finally:
            server.terminate()
            server.communicate(timeout=PATIENCE)
        lines = out.read_text().splitlines()
        same(f"rsyslog by {way}", [line for line in lines if " run_end " not in line], expected)
        told.append(f"{len(lines)} messages by {way}")
    return ", ".join(told)


def is_open(at):
    try:
        socket.create_connection(("127.0.0.1", at), timeout=1).close()
    except OSError:
        return False
    return True


def duckdb(netsniff, capture, folder):
    """duckdb_receiver.py takes batches. Some of its answers are lost, so that rows come twice."""
    try:
        import duckdb_receiver
    except ImportError:
        raise Skip("python-duckdb: it is not installed")
    lost = []

    class Losing(duckdb_receiver.Handler):
        """Ends each third connection where the answer is due."""

        def send_response(self, status):
            self.server.answers = getattr(self.server, "answers", 0) + 1
            if self.server.answers % 3 == 0:
                lost.append(status)
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                self.wfile = io.BytesIO()
            super().send_response(status)

    server = duckdb_receiver.serve(str(folder / "rows.duckdb"), 0, Losing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    logs = deliver(netsniff, capture, f"http://127.0.0.1:{server.server_port}/?batch=100", folder)
    server.shutdown()
    found = server.store.completeness()
    same("duckdb", found, [(SENSOR, RUN, log, len(rows), len(rows), 0) for log, rows in logs.items()])
    rows = server.store.connection.execute("SELECT log, seq, content FROM rows WHERE log <> 'run_end'").fetchall()
    head = lambda log, seq: f'{{"sensor":"{SENSOR}","run":"{RUN}","log":"{log}","seq":{seq},'
    same("duckdb", rows, [(log, seq, head(log, seq) + row[1:]) for log, all_rows in logs.items() for seq, row in enumerate(all_rows)])
    assert lost, "no answer was lost"
    # What is missing is told.
    server.store.connection.execute("DELETE FROM rows WHERE log = 'conn' AND seq = 7")
    missing = [row[2:] for row in server.store.completeness() if row[-1]]
    assert missing == [("conn", len(logs["conn"]), len(logs["conn"]) - 1, 1)], missing
    return f"{len(rows)} rows, though {len(lost)} answers were lost"


CHECKS = [nfdump, goflow2, ipfix, tshark, rsyslog, duckdb]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    wanted = sys.argv[2:] or [check.__name__ for check in CHECKS]
    for check in CHECKS:
        if check.__name__ not in wanted:
            continue
        for capture in CAPTURES:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    print(f"{check.__name__}: {capture.name}: {check(sys.argv[1], capture, Path(folder))}", flush=True)
                except Skip as why:
                    print(f"SKIPPED: {why}, so that {check.__name__} was not asked", flush=True)
                    break


if __name__ == "__main__":
    main()
