"""Waits until the reader of a pipe has read the output, so that messages can be acknowledged safely.

A pipe buffers up to 64 KB. If its reader exits, they are lost, although writing and flushing them raised no error.
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

#: Checks before the first pause: a waiting reader reads a line within microseconds.
_QUICK = 20
#: Maximum seconds between two checks of a slow reader.
_PAUSE = 0.01


async def taken() -> None:
    """Wait until the reader of standard output has read everything written; return at once if it is not a pipe.

    There is no timeout. Cancelling has no side effects. On systems that don't report how much is in a pipe (Linux
    does), everything flushed counts as read.

    Raises:
        BrokenPipeError: the reader closed the pipe before reading everything.
    """
    output = _pipe()
    if output is None:
        return
    looks, pause = 0, _PAUSE / 16
    while _left(output):
        if _reader_gone(output) and _left(output):  # checked again: it can have read the rest before it exited
            raise BrokenPipeError(errno.EPIPE, "the reader of the output is gone")
        looks += 1
        if looks < _QUICK:
            await asyncio.sleep(0)
        else:
            await asyncio.sleep(pause)
            pause = min(_PAUSE, pause * 2)


def _pipe() -> int | None:
    """Return the file descriptor of standard output if it is a pipe, else None."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):  # replaced by an object without one
        return None
    return descriptor if stat.S_ISFIFO(os.fstat(descriptor).st_mode) else None


def _left(output: int) -> int:
    """Return the number of unread bytes."""
    count = array.array("i", [0])
    fcntl.ioctl(output, termios.FIONREAD, count)
    return count[0]


def _reader_gone(output: int) -> bool:
    poll = select.poll()
    poll.register(output, 0)  # a closed pipe is reported even if no event is requested
    return bool(poll.poll(0))
