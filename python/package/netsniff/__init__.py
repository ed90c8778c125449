"""Network captures and live traffic as tables.

Every record tells whether it can be believed: the column ``quality`` of the log ``conn`` is ``clean`` where the capture has
lost nothing that its numbers need.

>>> import netsniff
>>> conn = netsniff.read("office.pcapng", log="conn")
>>> conn.to_polars().filter(quality="clean")  # doctest: +SKIP

What comes back is handed over without a copy to whatever takes the Arrow C stream interface: pyarrow, polars, pandas (by
pyarrow), DuckDB.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, overload

from ._errors import CaptureError, Error, MissingFile, NotFound, UsageError
from ._native import Batch, Packet, Packets, Rows, Stream, StreamRows, Table, __version__, logs
from ._native import analyse as _analyse
from ._native import capture as _capture
from ._native import packets as _packets
from ._options import Option, Path
from ._options import files as _files
from ._options import words as _words

__all__ = [
    "Batch",
    "CaptureError",
    "Error",
    "Logs",
    "MissingFile",
    "NotFound",
    "Packet",
    "Packets",
    "Rows",
    "Stream",
    "StreamRows",
    "Table",
    "UsageError",
    "__version__",
    "live",
    "logs",
    "packets",
    "program",
    "read",
    "stream",
]


class Logs(Mapping[str, Table]):
    """The logs of an analysis: tables by their names, with what the analysis amounts to."""

    def __init__(
        self, tables: dict[str, Table], summary: dict[str, Any] | None, warnings: list[str]
    ) -> None:
        self._tables = tables
        self.summary = summary
        """The summary with the books, as ``netsniff analyze --json`` prints it."""
        self.warnings = warnings
        """What must be known to believe the logs: files that could not be read, damage, bounds that were reached."""

    def __getitem__(self, log: str) -> Table:
        return self._tables[log]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __repr__(self) -> str:
        told = ", ".join(f"{name}: {len(table)}" for name, table in self._tables.items())
        return f"<netsniff.Logs: {told}>"


@overload
def read(
    paths: Path | Iterable[Path], *, log: str, strict: bool = ..., **options: Option
) -> Table: ...


@overload
def read(
    paths: Path | Iterable[Path],
    *,
    log: Iterable[str] | None = ...,
    strict: bool = ...,
    **options: Option,
) -> Logs: ...


def read(
    paths: Path | Iterable[Path],
    *,
    log: str | Iterable[str] | None = None,
    strict: bool = False,
    **options: Option,
) -> Table | Logs:
    """Analyses captures, and returns one log as a table, or several by their names.

    ``log`` names a log, or several; without it all that have rows come back. Several captures are merged by time. ``options``
    are those of ``netsniff analyze`` with underscores: ``filter="tcp"``, ``workers=2``, ``anonymize=True``,
    ``timeout={"tcp": "15min"}``, ``rtt_interval="1s"``. What could be read of a damaged capture is analysed, and the damage is
    among the warnings; with ``strict`` it is a :class:`CaptureError`.

    All rows are held in memory: :func:`stream` gives them as they come.
    """
    with stream(paths, log=log, strict=strict, **options) as coming:
        tables = coming.collect(log is not None)
        if isinstance(log, str):
            return tables[log]
        return Logs(tables, coming.summary, coming.warnings)


def stream(
    paths: Path | Iterable[Path],
    *,
    log: str | Iterable[str] | None = None,
    strict: bool = False,
    **options: Option,
) -> Stream:
    """Analyses captures in a thread, and gives batches of rows as they come, in bounded memory.

    The arguments are those of :func:`read`. A stream can be read once: by a loop over its batches, by ``.rows()``, or, with one
    log, by whatever takes the Arrow C stream interface. ``.summary`` and ``.warnings`` are there once it has ended.
    """
    words = [f"--read={name}" for name in _files(paths)]
    return _analyse([*words, "--output=-", *_log_words(log), *_words(options)], strict)


def live(interface: str, *, log: str = "conn", **options: Option) -> Stream:
    """Captures live traffic, and gives rows of one log as they come, until it is closed.

    ``options`` are those of ``netsniff analyze -i``, such as ``duration="10s"`` or ``filter="tcp"``. The command captures, in a
    process of its own that gives up its rights, and ends with the stream. It needs the rights to capture.
    """
    if not isinstance(log, str):
        raise UsageError("a live stream has one log")
    words = ["analyze", "--quiet", "--end-with-parent", f"--interface={interface}", "--output=-"]
    words += ["--format=arrow", f"--log={log}", *_words(options)]
    return _capture(program(), words, log)


def packets(
    paths: Path | Iterable[Path], uid: str | Iterable[str] | None = None, **options: Option
) -> Packets:
    """The packets of connections, as ``netsniff extract`` finds them.

    ``uid`` is that of a row, or several. ``options`` are those of the command, such as ``community_id=`` or ``where=``. A uid that
    is not in the captures is a :class:`NotFound` at the end.
    """
    uids = [] if uid is None else [uid] if isinstance(uid, str) else list(uid)
    if uid is not None and not uids:
        raise UsageError("no uid is named")
    words = ["--quiet", "--write=-", *(f"--uid={one}" for one in uids), *_words(options)]
    return _packets([*words, "--", *_files(paths)])


def program() -> str:
    """Where the command ``netsniff`` is that came with the package."""
    name = "netsniff"
    schemes = {None, *(it for it in sysconfig.get_scheme_names() if it.endswith("_user"))}
    for scheme in sorted(schemes, key=lambda it: it or ""):
        folder = sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts")
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK):
            return path
    found = shutil.which(name)
    if found is None:
        raise Error("the command netsniff was not installed with the package")
    return found


def _log_words(log: str | Iterable[str] | None) -> list[str]:
    if log is None:
        return []
    names = [log] if isinstance(log, str) else list(log)
    if not names:
        raise UsageError("no log is named")
    return [f"--log={name}" for name in names]
