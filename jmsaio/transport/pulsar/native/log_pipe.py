"""``Pipe``: reads pulsar-client's log, which it writes to a file, even if the process's descriptors are reused."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import stat
from typing import Self

import attrs

#: Requested capacity of a pipe in bytes, so that writers never wait for the reader.
SIZE = 1 << 20
_CHUNK = 1 << 16
#: Seconds between two checks whether the pipe is still this one.
_LOOK = 60.0

#: Device and inode number of a file.
Identity = tuple[int, int]


@attrs.define(eq=False)
class Pipe:
    """A pipe with both its ends.

    A program that closes all its descriptors, as daemons do, might open other files under their numbers: these are left
    alone.

    Attributes:
        reading: descriptor of the reading end, which is non-blocking.
        writing: descriptor of the writing end; its path is ``/dev/fd/<writing>``.
        identity: distinguishes the pipe from other files.
    """

    reading: int
    writing: int
    identity: Identity

    @classmethod
    def make(cls, inherited: Identity | None = None) -> Self:
        """Create a pipe.

        Args:
            inherited: pipe of the parent process, whose writers are redirected to the new one.
        """
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        size = getattr(fcntl, "F_SETPIPE_SZ", None)
        if size is not None:
            with contextlib.suppress(PermissionError):  # this user's limit is lower: the pipe must be read sooner
                fcntl.fcntl(writing, size, SIZE)
        if inherited is not None:
            for descriptor in map(int, os.listdir("/dev/fd")):
                if _identity(descriptor) == inherited:
                    os.dup2(writing, descriptor, inheritable=False)
        identity = _identity(reading)
        assert identity is not None
        return cls(reading, writing, identity)

    def read(self) -> bytes:
        """Return the next bytes written; empty if there are none, or the pipe has been closed."""
        if _identity(self.reading) != self.identity:
            return b""
        try:
            return os.read(self.reading, _CHUNK)
        except BlockingIOError:
            return b""

    def wait(self) -> bool:
        """Wait until data can be read; return False if the pipe has been closed."""
        poll = select.poll()
        poll.register(self.reading, select.POLLIN)
        poll.poll(_LOOK * 1000)
        return _identity(self.reading) == self.identity

    def close(self) -> None:
        """Close the reading end. Remaining writers receive an error."""
        if _identity(self.reading) == self.identity:
            os.close(self.reading)


def _identity(descriptor: int) -> Identity | None:
    """Return the identity of the pipe under a descriptor; None for anything else."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISFIFO(found.st_mode) else None
