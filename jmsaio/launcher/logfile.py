"""Read the end of a broker's log.

The broker starts a new file after 10 MB (``data/log4j2.xml``): ``broker.log`` is the newest, followed by
``broker.1.log`` to ``broker.4.log``. ``broker.previous.log`` is the newest file of the previous broker.
"""

from __future__ import annotations

import contextlib
import re
from collections import deque
from pathlib import Path

from jmsaio.launcher import state
from jmsaio.launcher.errors import LauncherError
from jmsaio.launcher.settings import state_directory

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
