"""The state of a local broker: a file in its state directory, and a lock that lives as long as its process.

The broker inherits an open lock file. To find out whether it runs, try the lock: that can't be fooled by a
process number that was given to another program, nor by a broker that was killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from pathlib import Path

import attrs

from jmsaio.config.schemes import WEB_PORTS
from jmsaio.launcher.auth import APP, ROLES, token_file
from jmsaio.launcher.errors import LauncherError

#: The broker's log inside its state directory.
LOG_NAME = "broker.log"
_FILE = "broker.json"
_ALIVE = "alive.lock"
_CLAIM_TIMEOUT = 2.0  # seconds; another process that only looks holds the lock for an instant


@attrs.frozen
class BrokerStatus:
    """A local broker that runs.

    Attributes:
        pid: its process number, which is also its process group.
        broker_port: port of the binary protocol.
        web_port: port of the REST interface.
        version: Apache Pulsar's version.
        started_at: when it was started, ISO 8601 in UTC.
        state_directory: its own folder.
        auth: how clients show who they are (``token``), or None: they don't.
        ready: it answers. (False while it starts, or when it hangs.)
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
        """Address of the binary protocol, without options: see ``client_url``."""
        return f"pulsar://127.0.0.1:{self.broker_port}"

    @property
    def token_files(self) -> dict[str, Path]:
        """The files with the tokens by role, for a broker that wants tokens; else empty."""
        return {role: token_file(self.state_directory, role) for role in ROLES} if self.auth else {}

    def client_url(self, role: str = APP) -> str:
        """What `jmsaio.connect` takes: with `webServiceUrl` unless its port is the default, and a role's token file."""
        options = [] if self.web_port == WEB_PORTS["http"] else [f"webServiceUrl={self.web_service_url}"]
        if self.auth:
            options.append(f"authPlugin=token&authParams={self.token_files[role].as_uri()}")
        return "?".join([self.service_url, *filter(None, ["&".join(options)])])

    @property
    def web_service_url(self) -> str:
        """The REST interface."""
        return f"http://127.0.0.1:{self.web_port}"

    @property
    def log_path(self) -> Path:
        """The broker's log file."""
        return self.state_directory / LOG_NAME


def save(status: BrokerStatus) -> None:
    """Write the status file, whole or not at all."""
    fields = attrs.asdict(status, filter=lambda field, _: field.name not in ("state_directory", "ready"))
    part = status.state_directory / f"{_FILE}.part"
    part.write_text(json.dumps(fields, indent=1), encoding="utf-8")
    part.replace(status.state_directory / _FILE)


def forget(directory: Path) -> None:
    """Delete the status file of a broker that has ended: another process may have its number by now."""
    (directory / _FILE).unlink(missing_ok=True)


def load(directory: Path) -> BrokerStatus | None:
    """The last status written in a state directory, of a broker that may have ended; None when there is none."""
    try:
        fields = json.loads((directory / _FILE).read_text(encoding="utf-8"))
        return BrokerStatus(state_directory=directory, **fields)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        reason = f"{directory / _FILE} can't be read ({error}); stop the broker and delete the file"
        raise LauncherError(reason) from error


def is_alive(directory: Path) -> bool:
    """Whether the broker of this state directory runs (or is just being started)."""
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
    """Take the broker's lock; the file descriptor is handed to the broker's process and closed in ours.

    Raises:
        LauncherError: another process holds it.
    """
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
