"""The package as a user has it, installed, over captures of the project: every value is that of the command's TSV."""

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import duckdb
import netsniff
import pandas
import polars
import pyarrow
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import tables  # noqa: E402

RECORDED = sorted((ROOT / "fixtures" / "recorded").glob("*.pcap*"))
OFFICE = ROOT / "fixtures" / "recorded" / "office.pcapng"


def command(*words, **options):
    return subprocess.run([netsniff.program(), *map(str, words)], capture_output=True, **options)


def threads():
    return {task.name for task in Path("/proc/self/task").iterdir()}


def wait_for(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


@pytest.mark.parametrize("capture", RECORDED, ids=lambda path: path.name)
def test_every_value_is_that_of_the_command(capture, tmp_path):
    command("analyze", "-q", capture, "-o", tmp_path, "--series", "1s", "--notices")
    logs = netsniff.read(capture, series=timedelta(seconds=1), notices=True)
    assert set(logs) == {path.stem for path in tmp_path.glob("*.log")}
    for name, table in logs.items():
        names, kinds, expected = tables.tsv(tmp_path / f"{name}.log")
        assert table.columns == names and len(table) == len(expected)
        for row, cells in zip(table.rows(), expected, strict=True):
            assert [tables.read(row[of], kind) for of, kind in zip(names, kinds)] == cells, name


def test_any_number_of_workers_gives_the_same():
    one, two, three = (netsniff.read(OFFICE, workers=workers) for workers in (1, 2, 3))
    assert len(one) > 10 and list(one) == list(two) == list(three)
    for name in one:
        first = one[name].to_arrow()
        assert first.equals(two[name].to_arrow()) and first.equals(three[name].to_arrow())


def test_others_take_a_table_as_it_is():
    conn = netsniff.read(OFFICE, log="conn")
    once, again = pyarrow.table(conn), pyarrow.table(conn)
    assert once.num_rows == len(conn) == 193
    for column in ("ts", "orig_bytes", "uid"):
        buffers = [table.column(column).chunk(0).buffers()[1].address for table in (once, again)]
        assert buffers[0] == buffers[1], "it was copied"
    assert once.schema.field("orig_bytes").metadata[b"netsniff.unit"] == b"bytes"
    assert str(once.schema.field("ts").type) == "timestamp[us, tz=UTC]"
    rows = list(conn)
    assert polars.DataFrame(conn).rows(named=True) == rows == conn.to_polars().rows(named=True)
    frame = conn.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and frame["orig_bytes"].isna().sum() == sum(
        row["orig_bytes"] is None for row in rows
    )
    total = duckdb.sql("SELECT sum(resp_bytes), count(*) FROM conn").fetchall()
    assert total == [(sum(row["resp_bytes"] or 0 for row in rows), len(rows))]


def test_a_log_without_rows_is_a_table_without_rows():
    table = netsniff.read(OFFICE, log="irc")
    assert len(table) == 0 and list(table) == [] and "uid" in table.columns
    assert pyarrow.table(table).num_rows == 0
    assert set(netsniff.read(OFFICE, log=["irc", "dns"])) == {"irc", "dns"}
    assert {"conn", "dns", "tcp"} <= set(netsniff.logs())


def test_a_stream_has_the_rows_of_the_tables():
    whole = netsniff.read(OFFICE)
    with netsniff.stream(OFFICE) as stream:
        assert stream.summary is None
        rows = list(stream.rows())
        books = stream.summary["books"]
        assert stream.warnings == whole.warnings
    assert books == whole.summary["books"]
    for name, table in whole.items():
        own = [row for row in rows if row["_path"] == name]
        assert [{k: v for k, v in row.items() if k != "_path"} for row in own] == list(table)
    assert len(rows) == sum(map(len, whole.values()))
    stream = netsniff.stream(OFFICE, log="dns")
    assert pyarrow.RecordBatchReader.from_stream(stream).read_all().equals(whole["dns"].to_arrow())
    with pytest.raises(netsniff.Error, match="read once"):
        pyarrow.table(stream)
    with pytest.raises(netsniff.UsageError, match="has one log"):
        pyarrow.table(netsniff.stream(OFFICE))
    batches = list(netsniff.stream(OFFICE, log="dns"))
    assert pyarrow.record_batch(batches[0]).num_rows == len(batches[0]) == len(whole["dns"])


def test_options_are_those_of_the_command():
    tcp = netsniff.read(OFFICE, log="conn", filter="tcp")
    assert {row["proto"] for row in tcp} == {"tcp"}
    hidden = netsniff.read(OFFICE, log="conn", anonymize=True, method="nullip")
    hosts = {row["id.orig_h"] for row in hidden}
    assert hosts <= {"0.0.0.0", "::"} | {host for host in hosts if host.startswith(("127.", "fe80", "ff"))}
    short = netsniff.read(OFFICE, log="conn", timeout={"udp": timedelta(seconds=1)})
    assert len(short) >= len(netsniff.read(OFFICE, log="conn"))
    for options, said in [
        ({"wokers": 2}, "--wokers"),
        ({"log": "con"}, "'con'"),
        ({"workers": 0}, "1 is the least"),
        ({"output": "logs/"}, "of the command alone"),
        ({"filter": "tcp prot 80"}, "prot"),
        ({"log": []}, "no log"),
    ]:
        with pytest.raises(netsniff.UsageError, match=said):
            netsniff.read(OFFICE, **options)


def test_damage_is_told_and_what_could_be_read_is_given(tmp_path):
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(OFFICE.read_bytes()[:-3001])
    logs = netsniff.read(cut)
    assert 100 < len(logs["conn"]) <= 193
    assert any("packet" in said and "at byte" in said for said in logs.warnings), logs.warnings
    assert logs.summary["input"]["sources"][0]["damage_count"] == 1
    with pytest.raises(netsniff.CaptureError) as raised:
        netsniff.read(cut, strict=True)
    error = raised.value
    assert error.file == str(cut) and error.packet > 100 and error.offset > 1000
    assert f"packet {error.packet} at byte {error.offset}" in str(error)
    # Another file is analysed all the same, and the one that is none is told.
    none = tmp_path / "none.pcap"
    none.write_text("no capture")
    both = netsniff.read([none, OFFICE], log="conn")
    assert len(both) == 193 and any(str(none) in said for said in both.warnings)


def test_files_that_cannot_be_read_are_exceptions(tmp_path):
    missing = tmp_path / "missing.pcap"
    with pytest.raises(FileNotFoundError) as raised:
        netsniff.read(missing)
    assert isinstance(raised.value, netsniff.CaptureError) and raised.value.file == str(missing)
    none = tmp_path / "none.pcap"
    none.write_text("no capture")
    with pytest.raises(netsniff.CaptureError) as raised:
        netsniff.stream(none)
    assert raised.value.packet is None and str(none) in str(raised.value)
    with pytest.raises(netsniff.Error, match="missing.pcap"):
        netsniff.packets(missing, "C0Ri9epsX3xpZSs9zo")
    with pytest.raises(netsniff.UsageError):
        netsniff.read([])


def classic(data):
    """The packets of a pcap file: seconds, fraction, bytes, length on the wire."""
    assert data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1")
    nanos = 1 if data[0] == 0x4D else 1000
    at, packets = 24, []
    while at < len(data):
        seconds, fraction, captured, wire = struct.unpack_from("<IIII", data, at)
        at += 16 + captured
        packets.append((seconds * 10**9 + fraction * nanos, data[at - captured : at], wire))
    return packets


def test_packets_are_those_that_extract_writes():
    conn = netsniff.read(OFFICE, log="conn")
    uids = [row["uid"] for row in conn][:3]
    for uid in (uids[0], uids):
        told = [f"--uid={one}" for one in ([uid] if isinstance(uid, str) else uid)]
        written = command("extract", "-q", *told, "-w", "-", "--format", "pcap", OFFICE).stdout
        packets = list(netsniff.packets(OFFICE, uid))
        assert [(p.time_ns, p.data, p.orig_len) for p in packets] == classic(written)
        assert packets and {packet.link_type for packet in packets} == {1}
    row = next(row for row in conn if row["uid"] == uids[0])
    assert len(list(netsniff.packets(OFFICE, uids[0]))) == row["orig_pkts"] + row["resp_pkts"]
    with pytest.raises(netsniff.NotFound, match="C0Ri9epsX3xpZSs9zz"):
        list(netsniff.packets(OFFICE, "C0Ri9epsX3xpZSs9zz"))
    chosen = netsniff.packets(OFFICE, where=f"uid = '{uids[1]}'")
    assert [p.data for p in chosen] == [p.data for p in netsniff.packets(OFFICE, uids[1])]


@pytest.fixture
def waiting(tmp_path):
    """A capture that has come in part, and of which no more comes."""
    path = tmp_path / "waiting.pcap"
    os.mkfifo(path)
    whole = command("extract", "-q", "-f", "ip", "-w", "-", "--format", "pcap", OFFICE).stdout

    def feed():
        # Longer than a pipe holds: whoever reads has begun when this returns.
        pipe = os.open(path, os.O_WRONLY)
        os.write(pipe, whole[:60_000])
        while not done.wait(0.02):
            pass
        os.close(pipe)

    done = threading.Event()
    feeder = threading.Thread(target=feed)
    feeder.start()
    yield path
    done.set()
    feeder.join()


def test_rows_come_before_the_capture_ends(waiting):
    with netsniff.stream(waiting, log="conn", timeout={"udp": "1s"}) as stream:
        assert next(stream.rows())["uid"].startswith("C")


def test_ctrl_c_ends_a_loop_that_waits(waiting):
    # Whoever is started in the background ignores Ctrl-C, and so would Python.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            netsniff.read(waiting)
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - begin < 3


def test_whoever_has_enough_ends_the_analysis():
    before = threads()
    with netsniff.stream([OFFICE] * 40, workers=1) as stream:
        next(stream)
    wait_for(lambda: threads() <= before)
    stream = netsniff.stream([OFFICE] * 40)
    next(stream)
    del stream
    wait_for(lambda: threads() <= before)
    packets = netsniff.packets([OFFICE] * 40, where="orig_pkts > 0")
    next(packets)
    packets.close()
    assert next(packets, None) is None
    wait_for(lambda: threads() <= before)


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: root: capturing needs it")
def test_live_rows_come_while_it_captures():
    def send():
        # Each time from another port, so that connections end.
        while not done.wait(0.05):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.sendto(b"x" * 20, ("127.0.0.1", 40009))

    done = threading.Event()
    thread = threading.Thread(target=send)
    thread.start()
    try:
        options = {"filter": "udp port 40009", "timeout": {"udp": "200ms"}}
        with netsniff.live("lo", **options) as stream:
            row = next(stream.rows())
        assert (row["id.resp_p"], row["orig_pkts"], row["orig_ip_bytes"]) == (40009, 1, 48)
        with netsniff.live("lo", duration="1s", **options) as stream:
            assert len(list(stream.rows())) > 5
    finally:
        done.set()
        thread.join()
    before = threads()
    with netsniff.live("lo", log="capture"):
        wait_for(lambda: threads() > before)
    wait_for(lambda: threads() <= before)
    with pytest.raises(netsniff.Error, match="none0"):
        list(netsniff.live("none0"))
    with pytest.raises(netsniff.UsageError, match="wokers"):
        list(netsniff.live("lo", wokers=2))
