"""Read the end of a broker's log, or follow it line by line.

The broker starts a new file after 10 MB (``data/log4j2.xml``): ``broker.log`` is the newest, followed by
``broker.1.log`` to ``broker.4.log``. ``broker.previous.log`` is the newest file of the previous broker.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from jmsaio.launcher import state
from jmsaio.launcher.errors import LauncherError
from jmsaio.launcher.settings import state_directory

_POLL = 0.2  # seconds between two checks of a quiet log
_OLDER = re.compile(r"broker\.(\d+)\.log")


def parts(directory: Path) -> list[Path]:
    """Return the files of a broker's log, newest first."""
    older = [(int(found[1]), path) for path in directory.iterdir() if (found := _OLDER.fullmatch(path.name))]
    newest = directory / state.LOG_NAME
    return ([newest] if newest.exists() else []) + [path for _, path in sorted(older)]


def set_aside(directory: Path) -> None:
    """Make room for a new broker's log: keep only the newest file of the previous one."""
    newest, *older = parts(directory) or [directory / state.LOG_NAME]
    for path in older:
        path.unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):  # no broker has run here before
        newest.replace(newest.with_suffix(".previous.log"))


def logs(lines: int = 50, *, directory: Path | None = None) -> str:
    """Return the end of the broker's log, whether the broker runs or not.

    Args:
        lines: maximum number of lines.
        directory: the broker's state directory; default `state_directory`.

    Raises:
        LauncherError: no broker was ever started there.
        ValueError: `lines` is negative.
    """
    if lines < 0:
        raise ValueError(f"lines must not be negative, not {lines}")
    home = directory if directory is not None else state_directory()
    paths = parts(home) if home.is_dir() else []
    if not paths:
        raise LauncherError(f"no log: no broker was started in {home}")
    end: deque[str] = deque(maxlen=lines)
    for path in reversed(paths):
        with path.open(encoding="utf-8", errors="replace") as file:
            end.extend(line.rstrip("\n") for line in file)
    return "".join(f"{line}\n" for line in end)


def follow(lines: int = 10, *, directory: Path | None = None) -> Iterator[str]:
    """Yield the last lines of the broker's log, then each new line (without its line end) until the broker ends.

    Blocks between lines; an interrupt (Ctrl-C) stops it.

    Args:
        lines: maximum number of existing lines to yield first.
        directory: the broker's state directory; default `state_directory`.

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
            alive = state.is_alive(home)  # before reading, so that a dying broker's last lines are still read
            newer = _newer(file, home)  # likewise: no file is written to after the next one was created
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
    """Open the file that follows an open one in the log; return None if that is the newest."""
    paths = parts(home)
    here = next((index for index, path in enumerate(paths) if _same(file, path)), None)
    if here is None and os.fstat(file.fileno()).st_nlink == 0:  # deleted, reading was slow: use the oldest file
        here = len(paths)
    if not here:
        return None
    try:
        return paths[here - 1].open("rb")
    except FileNotFoundError:  # just renamed: the next call finds it
        return None


def _same(file: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:  # renamed just now
        return False
