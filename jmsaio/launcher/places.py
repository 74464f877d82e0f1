"""Directories of the launcher: a cache for downloads, and a state directory for a broker's own files."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path

#: Version of Apache Pulsar to download; not every release is complete on Maven Central, but this one is.
BROKER_VERSION = "4.0.7"


def cache_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the download cache: ``$JMSAIO_CACHE``, or ``jmsaio`` in the user's cache (``$XDG_CACHE_HOME``)."""
    given = environ.get("JMSAIO_CACHE")
    if given:
        return Path(given).expanduser().absolute()
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "jmsaio"


def state_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the broker's directory: ``$JMSAIO_STATE``, or ``jmsaio/broker`` below ``$XDG_STATE_HOME``."""
    given = environ.get("JMSAIO_STATE")
    if given:
        return Path(given).expanduser().absolute()
    base = environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "jmsaio" / "broker"


def data_text(name: str) -> str:
    """Read one of the package's data files (pom, broker settings, packing recipe)."""
    return (files("jmsaio.launcher") / "data" / name).read_text(encoding="utf-8")


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
