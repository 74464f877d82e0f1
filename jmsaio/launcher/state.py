"""State of a local broker: a file in its state directory, a lock held as long as its process lives, and its log.

The broker inherits an open lock file. Trying the lock shows whether the broker runs, which works even if its process
number was given to another program or the broker was killed.

The broker starts a new log file after 10 MB (``data/log4j2.xml``): ``broker.log`` is the newest, followed by
``broker.1.log`` to ``broker.4.log``. ``broker.previous.log`` is the newest file of the previous broker.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import attrs

from jmsaio.config.schemes import WEB_PORTS
from jmsaio.launcher.auth import APP, ROLES, token_file
from jmsaio.launcher.errors import LauncherError
from jmsaio.launcher.settings import state_directory

#: Name of the broker's log file in its state directory.
LOG_NAME = "broker.log"
_OLDER = re.compile(r"broker\.(\d+)\.log")
_FILE = "broker.json"
_ALIVE = "alive.lock"
_CLAIM_TIMEOUT = 2.0  # seconds; a process that only checks holds the lock for an instant


@attrs.frozen
class BrokerStatus:
    """A running local broker.

    Attributes:
        pid: process id, also the process group id.
        broker_port: port of the binary protocol.
        web_port: port of the REST interface.
        version: version of Apache Pulsar.
        started_at: start time, ISO 8601 in UTC.
        state_directory: the broker's own folder.
        auth: how clients authenticate (``token``); None without authentication.
        ready: whether it answers. (False while it starts or hangs.)
    """

    pid: int
    broker_port: int
    web_port: int
    version: str
    started_at: str
    state_directory: Path
    auth: str | None = None
    ready: bool = False

    @property
    def service_url(self) -> str:
        """URL of the binary protocol, without options: see ``client_url``."""
        return f"pulsar://127.0.0.1:{self.broker_port}"

    @property
    def token_files(self) -> dict[str, Path]:
        """Token files by role; empty for a broker without authentication."""
        return {role: token_file(self.state_directory, role) for role in ROLES} if self.auth else {}

    def client_url(self, role: str = APP) -> str:
        """Return the URL for `jmsaio.connect`: `webServiceUrl` if its port is not the default, a role's token file."""
        options = [] if self.web_port == WEB_PORTS["http"] else [f"webServiceUrl={self.web_service_url}"]
        if self.auth:
            options.append(f"authPlugin=token&authParams={self.token_files[role].as_uri()}")
        return "?".join([self.service_url, *filter(None, ["&".join(options)])])

    @property
    def web_service_url(self) -> str:
        """URL of the REST interface."""
        return f"http://127.0.0.1:{self.web_port}"

    @property
    def log_path(self) -> Path:
        """Path of the broker's log file."""
        return self.state_directory / LOG_NAME


def save(status: BrokerStatus) -> None:
    fields = attrs.asdict(status, filter=lambda field, _: field.name not in ("state_directory", "ready"))
    part = status.state_directory / f"{_FILE}.part"
    part.write_text(json.dumps(fields, indent=1), encoding="utf-8")
    part.replace(status.state_directory / _FILE)


def forget(directory: Path) -> None:
    """Delete the status file of a broker that has ended: its process id might have been reused."""
    (directory / _FILE).unlink(missing_ok=True)


def load(directory: Path) -> BrokerStatus | None:
    """Read the last status saved in a state directory, possibly of a broker that has ended."""
    try:
        fields = json.loads((directory / _FILE).read_text(encoding="utf-8"))
        return BrokerStatus(state_directory=directory, **fields)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        reason = f"{directory / _FILE} can't be read ({error}); stop the broker and delete the file"
        raise LauncherError(reason) from error


def is_alive(directory: Path) -> bool:
    """Return whether the broker of this state directory runs (or is just being started)."""
    try:
        handle = os.open(directory / _ALIVE, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def claim(directory: Path) -> int:
    """Acquire the broker's lock; the file descriptor is passed to the broker's process and closed in this one."""
    handle = os.open(directory / _ALIVE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    deadline = time.monotonic() + _CLAIM_TIMEOUT
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        if time.monotonic() > deadline:
            os.close(handle)
            raise LauncherError(f"another broker holds {directory / _ALIVE}")
        time.sleep(0.02)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file while the block runs, so that two processes don't download or start the same thing at once.

    Waits indefinitely for another holder; the system releases the lock when its process ends, however it ends.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def log_files(directory: Path) -> list[Path]:
    older = [(int(found[1]), path) for path in directory.iterdir() if (found := _OLDER.fullmatch(path.name))]
    newest = directory / LOG_NAME
    return ([newest] if newest.exists() else []) + [path for _, path in sorted(older)]


def set_aside(directory: Path) -> None:
    """Make room for a new broker's log: keep only the newest file of the previous one."""
    newest, *older = log_files(directory) or [directory / LOG_NAME]
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
    paths = log_files(home) if home.is_dir() else []
    if not paths:
        raise LauncherError(f"no log: no broker was started in {home}")
    end: deque[str] = deque(maxlen=lines)
    for path in reversed(paths):
        with path.open(encoding="utf-8", errors="replace") as file:
            end.extend(line.rstrip("\n") for line in file)
    return "".join(f"{line}\n" for line in end)
