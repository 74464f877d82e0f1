"""``Pipe``: what pulsar-client writes into a file arrives here, whatever becomes of the process's descriptors."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import stat
from typing import Self

import attrs

#: Bytes that a pipe is asked to hold, so that the writers never wait for us to read.
SIZE = 1 << 20
_CHUNK = 1 << 16
#: Seconds between two looks whether the pipe is still ours.
_LOOK = 60.0

#: Device and number of a file.
Identity = tuple[int, int]


@attrs.define(eq=False)
class Pipe:
    """One pipe with both its ends.

    A program that closes all its descriptors, as daemons do, may open other files under their numbers: these are
    left alone.

    Attributes:
        reading: descriptor of the end that is read; reading never waits.
        writing: descriptor of the other end; ``/dev/fd/<writing>`` is its path.
        identity: distinguishes it from other files.
    """

    reading: int
    writing: int
    identity: Identity

    @classmethod
    def make(cls, inherited: Identity | None = None) -> Self:
        """A new pipe.

        Args:
            inherited: a pipe of the parent process: whatever still writes into it writes into the new one then.
        """
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        size = getattr(fcntl, "F_SETPIPE_SZ", None)
        if size is not None:
            with contextlib.suppress(PermissionError):  # this user's limit is lower: it has to be read the sooner
                fcntl.fcntl(writing, size, SIZE)
        if inherited is not None:
            for descriptor in map(int, os.listdir("/dev/fd")):
                if _identity(descriptor) == inherited:
                    os.dup2(writing, descriptor, inheritable=False)
        identity = _identity(reading)
        assert identity is not None
        return cls(reading, writing, identity)

    def read(self) -> bytes:
        """The next bytes that were written; empty if there are none, or the pipe is gone."""
        if _identity(self.reading) != self.identity:
            return b""
        try:
            return os.read(self.reading, _CHUNK)
        except BlockingIOError:
            return b""

    def wait(self) -> bool:
        """Wait until something can be read; False when the pipe is gone."""
        poll = select.poll()
        poll.register(self.reading, select.POLLIN)
        poll.poll(_LOOK * 1000)
        return _identity(self.reading) == self.identity

    def close(self) -> None:
        """Close the reading end. Who still writes gets an error."""
        if _identity(self.reading) == self.identity:
            os.close(self.reading)


def _identity(descriptor: int) -> Identity | None:
    """Which pipe lies under a number; None for anything else."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISFIFO(found.st_mode) else None
