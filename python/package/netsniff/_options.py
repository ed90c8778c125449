"""Options of the command as keyword arguments."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import timedelta

from ._errors import UsageError

Path = str | os.PathLike[str]
Value = bool | int | float | str | os.PathLike[str] | timedelta | None
Option = Value | Iterable[Value] | Mapping[str, Value]

# What a function of this package does by itself, or what only a command can do.
NOT_HERE = frozenset(
    "apart help end_with_parent follow format index interface json log no_index output pidfile quiet read record require_quality "
    "uid unparsed verbose write".split()
)


def word(value: Value) -> str:
    """A value as the command reads it."""
    if isinstance(value, timedelta):
        return f"{value // timedelta(microseconds=1)}us"
    return os.fspath(value) if isinstance(value, (str, os.PathLike)) else str(value)


def words(options: Mapping[str, Option]) -> list[str]:
    """Keyword arguments as words: ``rtt_interval="1s"`` is ``--rtt-interval=1s``, and ``True`` a word without a value."""
    told: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if name in NOT_HERE:
            raise UsageError(f"{name} is an option of the command alone")
        if value is None or value is False:
            continue
        if value is True:
            told.append(flag)
        elif isinstance(value, Mapping):
            told.append(f"{flag}={','.join(f'{key}={word(of)}' for key, of in value.items())}")
        elif isinstance(value, (str, os.PathLike, int, float, timedelta)):
            told.append(f"{flag}={word(value)}")
        else:
            told.extend(f"{flag}={word(one)}" for one in value)
    return told


def files(paths: Path | Iterable[Path]) -> list[str]:
    """Names of one file or of several."""
    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    names = [os.fspath(path) for path in several]
    if not names:
        raise UsageError("no capture file is named")
    if "-" in names:
        raise UsageError("standard input is for the command")
    return names
