"""Waits until the reader of a pipe has taken the output; only then may messages be acknowledged.

A pipe keeps up to 64 KB for its reader. If the reader ends, they are lost, although they were written and flushed
without an error.
"""

from __future__ import annotations

import array
import asyncio
import errno
import fcntl
import os
import select
import stat
import sys
import termios

#: Checks without a pause in between: a waiting reader takes a line within microseconds.
_QUICK = 20
#: Longest pause in seconds between two checks of a slow reader.
_PAUSE = 0.01


async def taken() -> None:
    """Wait until the reader of standard output has taken all that was written; at once if it is not a pipe.

    Where the system doesn't report how much is in a pipe (Linux does), all that was flushed counts as taken.

    Raises:
        BrokenPipeError: the reader has gone and left something behind.

    It waits as long as the reader takes; cancelling changes nothing.
    """
    output = _pipe()
    if output is None:
        return
    looks, pause = 0, _PAUSE / 16
    while _left(output):
        if _reader_gone(output) and _left(output):  # asked again: it may have read the rest before it went
            raise BrokenPipeError(errno.EPIPE, "the reader of the output is gone")
        looks += 1
        if looks < _QUICK:
            await asyncio.sleep(0)
        else:
            await asyncio.sleep(pause)
            pause = min(_PAUSE, pause * 2)


def _pipe() -> int | None:
    """Standard output as a file descriptor if it is a pipe."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):  # replaced by an object without one
        return None
    return descriptor if stat.S_ISFIFO(os.fstat(descriptor).st_mode) else None


def _left(output: int) -> int:
    """Bytes that no one has read yet."""
    count = array.array("i", [0])
    fcntl.ioctl(output, termios.FIONREAD, count)
    return count[0]


def _reader_gone(output: int) -> bool:
    poll = select.poll()
    poll.register(output, 0)  # reports a reader that is gone, without asking for it
    return bool(poll.poll(0))
