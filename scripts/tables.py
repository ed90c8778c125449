#!/usr/bin/env python3
"""Compares Parquet files and Arrow streams of netsniff with its TSV, as DuckDB, pandas, polars, pyarrow and Spark read them.

Usage: tables.py NETSNIFF CAPTURE...

Spark is left out where there is no Java. Each capture is analysed three times. Each column of each row of each log must have the value that
the TSV has. Prints what was compared; ends with 1 where something differs.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import timezone
from importlib import metadata
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow.ipc
import pyarrow.parquet

EPOCH = pandas.Timestamp(0, tz="UTC")


def text(cell):
    """Text with what both formats escape as bytes, since they escape different signs."""
    cell = cell.replace("\\\\", "\\x5c")
    return re.sub(rb"\\x([0-9a-f]{2})", lambda it: bytes([int(it[1], 16)]), cell.encode())


def told(cell, kind):
    """A cell of a TSV file, as a value of its Zeek type."""
    if cell == "-":
        return None
    listed = re.fullmatch(r"(?:set|vector)\[(.*)\]", kind)
    if listed:
        cells = [] if cell == "(empty)" else cell.split(",")
        return [told(each, listed[1]) for each in cells]
    if kind == "time":
        return int(cell.replace(".", ""))
    if kind in ("count", "int", "port"):
        return int(cell)
    if kind == "double":
        # TSV has six decimals of it.
        return f"{float(cell):.6f}"
    if kind == "interval":
        return float(cell)
    if kind == "bool":
        return cell == "T"
    return text("" if cell == "(empty)" else cell)


def read(value, kind):
    """A value that a reader gave, likewise."""
    listed = re.fullmatch(r"(?:set|vector)\[(.*)\]", kind)
    if listed:
        return None if value is None or value is pandas.NA else [read(each, listed[1]) for each in value]
    if value is None or (not isinstance(value, str) and pandas.isna(value)):
        return None
    if kind == "time":
        if hasattr(value, "astimezone") and not isinstance(value, pandas.Timestamp):
            value = pandas.Timestamp(value.astimezone(timezone.utc))
        return (value - EPOCH) // pandas.Timedelta(microseconds=1)
    if kind in ("count", "int", "port"):
        return int(value)
    if kind == "double":
        return f"{float(value):.6f}"
    if kind == "interval":
        return float(value)
    if kind == "bool":
        return bool(value)
    return text(value)


def of_duckdb(path):
    table = duckdb.sql(f"SET TimeZone = 'UTC'; SELECT * FROM read_parquet('{path}')")
    return table.columns, table.fetchall()


def of_pandas(path):
    frame = pandas.read_parquet(path, dtype_backend="pyarrow")
    return list(frame.columns), frame.itertuples(index=False, name=None)


def of_polars(path):
    frame = polars.read_parquet(path)
    return frame.columns, frame.iter_rows()


def of_pyarrow(path):
    table = pyarrow.parquet.read_table(path)
    return table.column_names, zip(*(column.to_pylist() for column in table.columns))


def of_spark(paths):
    """The tables of one log, each with its columns and rows. One job reads all of them, since jobs take long to begin."""
    # Here alone, since others use the comparison without Spark.
    from pyspark.sql import SparkSession

    # Spark gives times without a zone, in that of the process.
    os.environ["TZ"] = "UTC"
    time.tzset()
    builder = SparkSession.builder.master("local[*]").config("spark.sql.session.timeZone", "UTC")
    # No file is divided, so that its rows stay in their order.
    builder = builder.config("spark.sql.files.maxPartitionBytes", str(1 << 40))
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.log.level", "ERROR").config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.driver.host", "127.0.0.1")
    frame = builder.getOrCreate().read.parquet(*map(str, paths)).select("*", "_metadata.file_path")
    tables = {path: (frame.columns[:-1], []) for path in paths}
    for *values, path in frame.collect():
        tables[Path(path.removeprefix("file:"))][1].append(values)
    return tables


def of_pyarrow_stream(path):
    with pyarrow.ipc.open_stream(path) as stream:
        table = stream.read_all()
    return table.column_names, zip(*(column.to_pylist() for column in table.columns))


def of_polars_stream(path):
    frame = polars.read_ipc_stream(path)
    return frame.columns, frame.iter_rows()


# Who reads which format file by file, and what its files end with.
READERS = {
    ("parquet", "DuckDB"): of_duckdb,
    ("parquet", "pandas"): of_pandas,
    ("parquet", "polars"): of_polars,
    ("parquet", "pyarrow"): of_pyarrow,
    ("arrow", "polars"): of_polars_stream,
    ("arrow", "pyarrow"): of_pyarrow_stream,
}
SPARK = ("parquet", "Spark")
PACKAGES = {"DuckDB": "duckdb", "Spark": "pyspark"}
EXTENSIONS = {"parquet": "parquet", "arrow": "arrows"}


def tsv(path):
    names, kinds, rows = [], [], []
    for line in path.read_text().split("\n"):
        if line.startswith("#fields\t"):
            names = line.split("\t")[1:]
        elif line.startswith("#types\t"):
            kinds = line.split("\t")[1:]
        elif line and not line.startswith("#"):
            cells = line.replace("\\x09", "\t") if "\t" not in line else line
            rows.append([told(*pair) for pair in zip(cells.split("\t"), kinds)])
    return names, kinds, rows


def compared(columns, found, log):
    """The values that are the same, and a sentence of the first one that is not."""
    names, kinds, rows = log
    if list(columns) != names:
        return 0, f"columns {columns}"
    found, same = list(found), 0
    if len(found) != len(rows):
        return 0, f"{len(found)} rows, not {len(rows)}"
    for number, (row, expected) in enumerate(zip(found, rows), 1):
        for name, kind, value, cell in zip(names, kinds, row, expected):
            if read(value, kind) != cell:
                return same, f"row {number}, {name}: {value!r}, not {cell!r}"
            same += 1
    return same, None


def analysed(netsniff, capture, folder):
    """The logs of a capture, as TSV and in each other format: their names, with a sentence where they are not the same."""
    for kind in ("tsv", *EXTENSIONS):
        command = [netsniff, "analyze", "-q", capture, "-o", f"{folder}/{kind}"]
        command += ["--format", kind, "--series", "1s", "--notices"]
        subprocess.run(command, check=False, stderr=subprocess.DEVNULL)
    names = sorted(path.stem for path in (folder / "tsv").glob("*.log"))
    for kind, extension in EXTENSIONS.items():
        found = sorted(path.stem for path in (folder / kind).glob(f"*.{extension}"))
        if found != names:
            return names, f"other logs in {kind}: {found}"
    return names, None


def file_of(folder, kind, name):
    return folder / kind / f"{name}.{EXTENSIONS[kind]}"


class Comparison:
    """Values that are the same, by format and reader, and how many logs are not."""

    def __init__(self):
        self.values = dict.fromkeys(READERS, 0)
        self.wrong = 0

    def tell(self, capture, why):
        print(f"{capture}: {why}")
        self.wrong += 1

    def compare(self, reader, capture, name, table, log):
        same, why = compared(*table, log)
        self.values[reader] = self.values.get(reader, 0) + same
        if why:
            self.tell(capture, f"{name}, {', '.join(reader)}: {why}")


def main():
    netsniff, captures = sys.argv[1], sys.argv[2:]
    comparison = Comparison()
    with tempfile.TemporaryDirectory() as scratch:
        # The tables of each log, with the capture that each is of.
        logs = {}
        for number, capture in enumerate(captures):
            folder = Path(scratch, str(number))
            names, why = analysed(netsniff, capture, folder)
            if why:
                comparison.tell(capture, why)
            for name in names:
                log = tsv(folder / "tsv" / f"{name}.log")
                logs.setdefault(name, []).append((capture, file_of(folder, "parquet", name), log))
                for reader, read_table in READERS.items():
                    table = read_table(file_of(folder, reader[0], name))
                    comparison.compare(reader, capture, name, table, log)
        if shutil.which("java"):
            for name, all_of_it in logs.items():
                tables = of_spark([table for _, table, _ in all_of_it])
                for capture, table, log in all_of_it:
                    comparison.compare(SPARK, capture, name, tables[table], log)
        else:
            print("SKIPPED: java: tables: Spark reads none of them")
    for (kind, reader), same in comparison.values.items():
        version = metadata.version(PACKAGES.get(reader, reader))
        print(f"{kind}, {reader} {version}: {same} values as in the TSV")
    count = sum(map(len, logs.values()))
    print(f"{len(captures)} captures, {count} logs, {comparison.wrong} differences")
    return 1 if comparison.wrong or not all(comparison.values.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
