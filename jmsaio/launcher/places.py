"""Where the launcher keeps things: downloads in a cache, a broker's own files in its state directory."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path

#: Apache Pulsar as fetched; not every release is complete on Maven Central, this one is.
BROKER_VERSION = "4.0.7"


def cache_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Where downloads are kept: ``$JMSAIO_CACHE``, or ``jmsaio`` in the user's cache (``$XDG_CACHE_HOME``)."""
    given = environ.get("JMSAIO_CACHE")
    if given:
        return Path(given).expanduser().absolute()
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "jmsaio"


def state_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the user's broker lives: ``$JMSAIO_STATE``, or ``jmsaio/broker`` below ``$XDG_STATE_HOME``."""
    given = environ.get("JMSAIO_STATE")
    if given:
        return Path(given).expanduser().absolute()
    base = environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "jmsaio" / "broker"


def data_text(name: str) -> str:
    """One of the package's own data files (pom, broker settings, packing recipe)."""
    return (files("jmsaio.launcher") / "data" / name).read_text(encoding="utf-8")


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file while the block runs, so that two processes don't fetch or start the same thing at once.

    Waits without end for the other holder; the lock goes with its process, whatever happens to it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
