"""Remove the nodes that belong to a killed broker's session from its metadata.

A broker that finds the old node of its own storage deletes it while creating the new one. If the notification of the
deletion arrives late, as on a busy machine, the broker mistakes the new node for the deleted one and recreates it,
again and again: Pulsar 4.0 never recovers from this, answers no requests and fills its log (apache/pulsar#17759). So
the old session is ended before the new one starts, as a metadata service would have done.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

from jmsaio.launcher import tools
from jmsaio.launcher.errors import StartError, ToolError
from jmsaio.launcher.places import data_text, locked

#: Maximum seconds for ending a session, and for compiling the program for it: 2 on a quiet machine.
TIMEOUT = 120.0
_PROGRAM = "EndSessions"
# For a short program: no threads for a large heap, no optimisation for a long run.
_BRIEF = ("-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_METADATA = Path("data", "metadata")
_ENDED = "ended-in-order"
_TAIL = 2000  # characters of a failure's output


def mark_ended(home: Path) -> None:
    """Record that the broker of this state directory ended in order and left nothing to remove."""
    (home / _ENDED).touch()


def end_last(home: Path, java: Path, jars: Path) -> bool:
    """End the session of the last broker of this state directory, unless that broker ended in order.

    Args:
        home: the state directory; no broker runs in it.
        jars: folder with the broker's jars; the compiled program is stored beside it.

    Returns:
        Whether there was a session to end.

    Raises:
        ToolError: the program is not compiled yet, and the Java installation is not a JDK.
        StartError: ending the session failed.
    """
    in_order = (home / _ENDED).exists()
    (home / _ENDED).unlink(missing_ok=True)  # the next broker has not ended yet
    if in_order or not (home / _METADATA).exists():
        return False
    class_path = f"{_compiled(jars)}{os.pathsep}{jars}/*"
    _run([str(java), *_BRIEF, "-cp", class_path, _PROGRAM, str(home / _METADATA)])
    return True


def _compiled(jars: Path) -> Path:
    """Return the folder with the program, compiled once per source text and version of the jars."""
    text = data_text(f"{_PROGRAM}.java")
    target = jars.parent / f"end-sessions-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    with locked(jars.parent / "end-sessions.lock"):
        if not target.exists():
            javac = _compiler()
            with tempfile.TemporaryDirectory(prefix="compile-", dir=jars.parent) as folder:
                source, classes = Path(folder) / f"{_PROGRAM}.java", Path(folder) / "classes"
                source.write_text(text, encoding="utf-8")
                # Compile for the oldest supported Java: the next start might use another version.
                release = ["--release", str(tools.MINIMUM_JAVA)]
                _run([str(javac), *release, "-proc:none", "-cp", f"{jars}/*", "-d", str(classes), str(source)])
                classes.rename(target)
    return target


def _compiler() -> Path:
    """Return the compiler's path; the `ToolError` says why it is needed."""
    try:
        return tools.require("javac")
    except ToolError as error:
        text = "the last broker was killed, and what it left behind can't be removed without a JDK (or start it fresh)"
        raise ToolError(f"{text}: {error.reason}", error.tool) from error


def _run(arguments: list[str]) -> None:
    """Run a program to its end; raise `StartError` if it fails."""
    try:
        code, output = tools.run(arguments, TIMEOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StartError(f"the session of the last broker, which was killed, can't be ended: {error}") from error
    if code != 0:
        end = output[-_TAIL:]
        raise StartError(
            f"the session of the last broker, which was killed, can't be ended (exit code {code}); start it with fresh "
            f"data if the old data can be deleted:\n{end}",
            end,
        )
