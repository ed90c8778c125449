#!/usr/bin/env python3
"""Compares Parquet files and Arrow streams of netsniff with its TSV, as DuckDB, pandas, polars and pyarrow read them.

Usage: tables.py NETSNIFF CAPTURE...

Each capture is analysed three times. Each column of each row of each log must have the value that the TSV has. Prints what was
compared; ends with 1 where something differs.
"""

import re
import subprocess
import sys
import tempfile
from datetime import timezone
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


def of_pyarrow_stream(path):
    with pyarrow.ipc.open_stream(path) as stream:
        table = stream.read_all()
    return table.column_names, zip(*(column.to_pylist() for column in table.columns))


def of_polars_stream(path):
    frame = polars.read_ipc_stream(path)
    return frame.columns, frame.iter_rows()


# Who reads which format, and what its files end with.
READERS = {
    ("parquet", "DuckDB"): of_duckdb,
    ("parquet", "pandas"): of_pandas,
    ("parquet", "polars"): of_polars,
    ("parquet", "pyarrow"): of_pyarrow,
    ("arrow", "polars"): of_polars_stream,
    ("arrow", "pyarrow"): of_pyarrow_stream,
}
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


def compared(reader, table, log):
    """The values that are the same, and a sentence of the first one that is not."""
    names, kinds, rows = log
    columns, found = READERS[reader](table)
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


def main():
    netsniff, captures = sys.argv[1], sys.argv[2:]
    values, logs, wrong = dict.fromkeys(READERS, 0), 0, 0
    for capture in captures:
        with tempfile.TemporaryDirectory() as scratch:
            for kind in ("tsv", *EXTENSIONS):
                command = [netsniff, "analyze", "-q", capture, "-o", f"{scratch}/{kind}"]
                command += ["--format", kind, "--series", "1s", "--notices"]
                subprocess.run(command, check=False, stderr=subprocess.DEVNULL)
            paths = sorted(Path(scratch, "tsv").glob("*.log"))
            for kind, extension in EXTENSIONS.items():
                found = {path.stem for path in Path(scratch, kind).glob(f"*.{extension}")}
                if found != {path.stem for path in paths}:
                    print(f"{capture}: other logs in {kind}: {sorted(found)}")
                    wrong += 1
            for path in paths:
                log = tsv(path)
                logs += 1
                for kind, reader in READERS:
                    file = Path(scratch, kind, f"{path.stem}.{EXTENSIONS[kind]}")
                    same, why = compared((kind, reader), file, log)
                    values[kind, reader] += same
                    if why:
                        print(f"{capture}: {path.stem}, {kind}, {reader}: {why}")
                        wrong += 1
    versions = {"DuckDB": duckdb, "pandas": pandas, "polars": polars, "pyarrow": pyarrow}
    for (kind, reader), count in values.items():
        print(f"{kind}, {reader} {versions[reader].__version__}: {count} values as in the TSV")
    print(f"{len(captures)} captures, {logs} logs, {wrong} differences")
    return 1 if wrong or not all(values.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
