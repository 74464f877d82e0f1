"""Reads a broker's log: its end, or line by line as it grows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from jmsaio.launcher import state
from jmsaio.launcher.errors import LauncherError
from jmsaio.launcher.places import state_directory

_BLOCK = 65536
_POLL = 0.2  # seconds between two looks at a quiet log


def tail(path: Path, lines: int) -> str:
    """The last lines of a file, "" when there is none; reads only as much of it as needed.

    Raises:
        ValueError: `lines` is negative.
    """
    if lines < 0:
        raise ValueError(f"lines must not be negative, not {lines}")
    try:
        with path.open("rb") as file:
            position, data = file.seek(0, 2), b""
            while position > 0 and data.count(b"\n") <= lines:
                step = min(_BLOCK, position)
                position = file.seek(position - step)
                data = file.read(step) + data
    except FileNotFoundError:
        return ""
    kept = data.decode("utf-8", "replace").splitlines()[-lines:] if lines > 0 else []
    return "".join(f"{line}\n" for line in kept)


def logs(lines: int = 50, *, directory: Path | None = None) -> str:
    """The end of the broker's log, whether it runs or not.

    Args:
        lines: how many lines.
        directory: the broker's state directory; default `places.state_directory`.

    Raises:
        LauncherError: no broker was ever started there.
    """
    path = (directory if directory is not None else state_directory()) / state.LOG_NAME
    if not path.exists():
        raise LauncherError(f"there is no log: no broker was started in {path.parent}")
    return tail(path, lines)


def follow(lines: int = 10, *, directory: Path | None = None) -> Iterator[str]:
    """The end of the broker's log, then each line as it comes (without its line end), until the broker ends.

    Blocks between lines; an interrupt (Ctrl-C) ends it.

    Args:
        lines: how many of the old lines come first.
        directory: the broker's state directory; default `places.state_directory`.

    Raises:
        LauncherError: no broker was ever started there.
    """
    home = directory if directory is not None else state_directory()
    old = logs(lines, directory=home)
    with (home / state.LOG_NAME).open("rb") as file:
        file.seek(0, 2)
        yield from old.splitlines()
        rest = b""
        while True:
            alive = state.is_alive(home)  # asked before reading: what a dying broker wrote last is still read
            *whole, rest = (rest + file.read()).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in whole)
            if not alive:
                break
            if not whole:
                time.sleep(_POLL)
        if rest:
            yield rest.decode("utf-8", "replace")
