"""Reads a broker's log: its end, or line by line as it grows.

The broker writes at most 10 MB into a file, then goes on in a new one (``data/log4j2.xml``): ``broker.log`` is the
newest, then come ``broker.1.log`` to ``broker.4.log``. ``broker.previous.log`` is the last of the broker before.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from jmsaio.launcher import state
from jmsaio.launcher.errors import LauncherError
from jmsaio.launcher.places import state_directory

_BLOCK = 65536
_POLL = 0.2  # seconds between two looks at a quiet log
_OLDER = re.compile(r"broker\.(\d+)\.log")


def parts(directory: Path) -> list[Path]:
    """The files of a broker's log, the newest first."""
    older = [(int(found[1]), path) for path in directory.iterdir() if (found := _OLDER.fullmatch(path.name))]
    newest = directory / state.LOG_NAME
    return ([newest] if newest.exists() else []) + [path for _, path in sorted(older)]


def set_aside(directory: Path) -> None:
    """Make room for the log of a new broker: of the last one's only the newest file is kept."""
    newest, *older = parts(directory) or [directory / state.LOG_NAME]
    for path in older:
        path.unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):  # there was no broker before
        newest.replace(newest.with_suffix(".previous.log"))


def tail(path: Path, lines: int) -> str:
    """The last lines of a file, "" when there is none; reads only as much of it as needed.

    Raises:
        ValueError: `lines` is negative.
    """
    if lines < 0:
        raise ValueError(f"lines must not be negative, not {lines}")
    try:
        with path.open("rb") as file:
            return _tail(file, lines)
    except FileNotFoundError:
        return ""


def _tail(file: BinaryIO, lines: int) -> str:
    position, data = file.seek(0, 2), b""
    while position > 0 and data.count(b"\n") <= lines:
        step = min(_BLOCK, position)
        position = file.seek(position - step)
        data = file.read(step) + data
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
    home = directory if directory is not None else state_directory()
    paths = parts(home) if home.is_dir() else []
    if not paths:
        raise LauncherError(f"no log: no broker was started in {home}")
    text = tail(paths[0], lines)
    for path in paths[1:]:
        wanted = lines - text.count("\n")
        if wanted <= 0:
            break
        text = tail(path, wanted) + text
    return text


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
    file: BinaryIO = (home / state.LOG_NAME).open("rb")
    try:
        file.seek(0, 2)
        yield from old.splitlines()
        rest = b""
        while True:
            alive = state.is_alive(home)  # asked before reading: what a dying broker wrote last is still read
            newer = _newer(file, home)  # likewise: nothing is written to a file after the next one was begun
            *whole, rest = (rest + file.read()).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in whole)
            if newer is not None:
                file.close()
                file = newer
            elif not alive:
                break
            elif not whole:
                time.sleep(_POLL)
    finally:
        file.close()
    if rest:
        yield rest.decode("utf-8", "replace")


def _newer(file: BinaryIO, home: Path) -> BinaryIO | None:
    """The part of the log that follows on an open one, or None while that is the newest."""
    paths = parts(home)
    here = next((index for index, path in enumerate(paths) if _same(file, path)), None)
    if here is None and os.fstat(file.fileno()).st_nlink == 0:  # deleted: we were slow, go on with the oldest
        here = len(paths)
    if not here:
        return None
    try:
        return paths[here - 1].open("rb")
    except FileNotFoundError:  # renamed just now: the next look finds it
        return None


def _same(file: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:  # renamed just now
        return False
