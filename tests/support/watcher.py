"""Processes that tests start never outlive the test run, however many worker processes it has and whatever ends it."""

from __future__ import annotations

import atexit
import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Runs beside the tests: waits until every process of the run has let go of the journal, then kills the process groups
# that still run according to it.
_WATCHER = """
import fcntl, os, signal, sys
with open(sys.argv[1]) as journal:
    fcntl.flock(journal, fcntl.LOCK_EX)
    os.unlink(sys.argv[1])
    groups = set()
    for line in journal:
        word, group = line.split()
        (groups.add if word == "runs" else groups.discard)(int(group))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it ended by itself
"""

_handle: int | None = None  # the journal, with a shared lock that goes with this process
_path = Path()
_watcher: subprocess.Popen[bytes] | None = None


def journal() -> Path:
    """The file that names the processes of this run; the first call starts their watcher."""
    global _watcher
    if _handle is None:
        handle, name = tempfile.mkstemp(prefix="jmsaio-tests-")
        os.close(handle)
        join(Path(name))
        _watcher = subprocess.Popen(
            [sys.executable, "-c", _WATCHER, name], stdin=subprocess.DEVNULL, start_new_session=True
        )
        atexit.register(_release)
    return _path


def join(path: Path) -> None:
    """Take part in the run with this journal: its watcher waits for the end of this process, too."""
    global _handle, _path
    _handle, _path = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC), path
    fcntl.flock(_handle, fcntl.LOCK_SH)


def tell_watcher(word: str, group: int) -> None:
    """Tell that a process group ``runs``, so that it is killed at the end, or has ``ended``."""
    journal()
    assert _handle is not None
    os.write(_handle, f"{word} {group}\n".encode())  # one call: lines of several processes don't mix


def _release() -> None:
    """Let go of the journal and wait for the watcher to do its work."""
    if _handle is not None and _watcher is not None:
        os.close(_handle)
        _watcher.wait(timeout=30)
