"""pulsar-client's own log, read back: the only place where it says why the broker refuses a consumer for the moment.

Such a consumer is never answered (pulsar-client 3.13 logs "Temporary error in creating consumer", then "Ignoring
reconnection request since we're already connected") until its creation times out. A Python function as logger would
abort processes at exit, so the log is a file in memory that is emptied when it has grown, or the file that
``JMSAIO_PULSAR_LOG`` names. pulsar-client has one log a process, that of the first client: where another library made
it, nothing is read here.
"""

from __future__ import annotations

import atexit
import os
import re
import tempfile
from contextlib import suppress
from functools import cache

import _pulsar
import attrs

#: Environment variable with the path of pulsar-client's own log.
VARIABLE = "JMSAIO_PULSAR_LOG"
#: Bytes after which the file in memory is emptied, and bytes read at once.
ENOUGH = 256 * 1024
_ERROR = re.compile(r"\[(\d+)\] \S+ \| .*Received error response from server: (\w+) \((.*)\) -- req_id: \d+")
_CONSUMER = re.compile(r"\[(\d+)\] \S+ \| \[(.+), (.+), \d+\] Temporary error in creating consumer: (\w+)")


@attrs.frozen
class Refusal:
    """Why the broker refused a consumer for the moment.

    Attributes:
        name: pulsar-client's result.
        reason: the broker's own words, "" if it gave none.
    """

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.reason} [{self.name}]" if self.reason else f"[{self.name}]"


class NativeLog:
    """The log of this process.

    Args:
        path: the file of the environment, None for one in memory.

    Attributes:
        path: for pulsar-client, which opens it once for each of its threads and sources.
        level: what is worth writing.
    """

    def __init__(self, path: str | None) -> None:
        self._kept = path is not None
        self.level = _pulsar.LoggerLevel.Info if path else _pulsar.LoggerLevel.Warn
        self.path = path or _temporary()
        self._identity = None if self._kept else _identity(os.stat(self.path))

    def end(self) -> int:
        """Where the log ends now, for ``refusal``."""
        with suppress(OSError):  # no file, no reasons
            found = os.stat(self.path)
            # A program that closes all its descriptors may have opened another file under this number.
            if self._kept or _identity(found) == self._identity:
                return found.st_size
        return 0

    def trim(self) -> None:
        """Empty the log when it has grown; never one that the environment names."""
        if not self._kept and self.end() >= ENOUGH:
            with suppress(OSError):
                os.truncate(self.path, 0)

    def refusal(self, start: int, topic: str | None, subscription: str | None) -> Refusal | None:
        """The last refusal of a consumer since ``start``, of any topic or subscription where that is None."""
        errors: dict[str, str] = {}
        found = None
        for line in self._lines(start):
            if match := _ERROR.search(line):
                errors[match[1]] = match[3]
                continue
            match = _CONSUMER.search(line)
            if match and topic in (None, match[2]) and subscription in (None, match[3]):
                found = Refusal(match[4], errors.get(match[1], ""))
        return found

    def _lines(self, start: int) -> list[str]:
        if self.end() == 0:
            return []
        try:
            with open(self.path, "rb") as log:
                size = log.seek(0, os.SEEK_END)
                log.seek(max(min(start, size), size - ENOUGH, 0) if start <= size else 0)  # emptied since: all of it
                return log.read(ENOUGH).decode(errors="replace").splitlines()
        except OSError:
            return []


def _temporary() -> str:
    """The path of a file that ends with the process."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        return f"/proc/self/fd/{os.memfd_create('jmsaio-pulsar-log')}"
    descriptor, path = tempfile.mkstemp(prefix="jmsaio-pulsar-", suffix=".log")
    os.close(descriptor)
    atexit.register(_remove, path, os.getpid())
    return path


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner:
        with suppress(OSError):
            os.unlink(path)


@cache
def native_log() -> NativeLog:
    """The log of this process, made at the first call."""
    return NativeLog(os.environ.get(VARIABLE))
