"""Exceptions."""

from __future__ import annotations


class Error(Exception):
    """Something that netsniff could not do."""


class UsageError(Error, ValueError):
    """Options that make no sense, in the words of the command."""


class CaptureError(Error):
    """A capture that cannot be read, or that is damaged where ``strict`` was asked for.

    ``file`` is its name. Where it is damaged, ``packet`` is the ordinal, from 1, of the packet there, and ``offset`` the place
    in bytes from the start of the file, after unpacking.
    """

    def __init__(
        self, message: str, file: str, packet: int | None = None, offset: int | None = None
    ) -> None:
        super().__init__(message)
        self.file = file
        self.packet = packet
        self.offset = offset


class MissingFile(CaptureError, FileNotFoundError):
    """A capture that is not there."""

    def __str__(self) -> str:
        return str(self.args[0])


class NotFound(Error, LookupError):
    """A connection or file that is not in the captures."""
