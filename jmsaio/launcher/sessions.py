"""Remove the nodes that belong to a killed broker's session from its metadata.

A broker that finds the old node of its own storage deletes it while creating the new one. If the notification of the
deletion arrives late, as on a busy machine, the broker mistakes the new node for the deleted one and recreates it,
again and again: Pulsar 4.0 never recovers from this, answers no requests and fills its log (apache/pulsar#17759). So
the old session is ended before the new one starts, as a metadata service would have done.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from jmsaio.launcher import tools
from jmsaio.launcher.errors import StartError, ToolError
from jmsaio.launcher.places import data_text

#: Maximum seconds for ending a session: 3 on a quiet machine.
TIMEOUT = 120.0
_PROGRAM = "EndSessions.java"
# For a short program: no threads for a large heap, no optimisation for a long run.
_BRIEF = ("-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_METADATA = Path("data", "metadata")
_ENDED = "ended-in-order"
_TAIL = 2000  # characters of a failure's output


def mark_ended(home: Path) -> None:
    """Record that the broker of this state directory ended in order and left nothing to remove."""
    (home / _ENDED).touch()


def end_last(home: Path, jars: Path) -> bool:
    """End the session of the last broker of this state directory, unless that broker ended in order.

    Args:
        home: the state directory; no broker runs in it.
        jars: folder with the broker's jars.

    Returns:
        Whether there was a session to end.

    Raises:
        ToolError: the Java installation is not a JDK, which can run a program's source.
        StartError: ending the session failed.
    """
    in_order = (home / _ENDED).exists()
    (home / _ENDED).unlink(missing_ok=True)  # the next broker has not ended yet
    if in_order or not (home / _METADATA).exists():
        return False
    try:
        java = tools.require("javac").resolve().with_name("java")
    except ToolError as error:
        text = "the last broker was killed, and what it left behind can't be removed without a JDK (or start it fresh)"
        raise ToolError(f"{text}: {error.reason}", error.tool) from error
    source = home / _PROGRAM
    source.write_text(data_text(_PROGRAM), encoding="utf-8")
    _run([str(java), *_BRIEF, "-cp", f"{jars}/*", str(source), str(home / _METADATA)])
    return True


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
