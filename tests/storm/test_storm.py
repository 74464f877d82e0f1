from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jmsaio.model.wire import WireId
from tests.storm.__main__ import CRASHED, watch
from tests.storm.journal import BROKEN, CLOSED, TWICE, UNEXPLAINED, Journal

ROOT = Path(__file__).parents[2]
HERE, THERE = WireId(1, 1), WireId(1, 2)


@pytest.mark.broker
@pytest.mark.timeout(600)
@pytest.mark.xdist_group("another broker")
def test_half_a_minute_of_every_fault_loses_nothing() -> None:
    """Whatever breaks, each confirmed message is delivered at least once; in a process and on a broker of its own."""
    command = [sys.executable, "-m", "tests.storm", "--minutes", "0.5", "--seed", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=550, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "lost: nothing" in done.stdout
    assert "2 kill" in done.stdout


def test_the_journal_finds_what_is_lost() -> None:
    """Confirmed and not delivered is lost; not confirmed is not."""
    journal = Journal(confirmed={"a", "b"})
    journal.deliver("a", HERE, False, 1.0)
    journal.deliver("c", THERE, False, 1.0)
    assert journal.lost == {"b"}
    assert "LOST 1: b" in journal.lines()


def test_the_journal_explains_repetitions() -> None:
    """Flagged, stored twice, acknowledged while the connection broke, given back at the end, or without a reason."""
    journal = Journal()
    for place, flagged, now in [
        (HERE, False, 1.0), (HERE, True, 2.0), (THERE, False, 3.0), (HERE, False, 4.0), (HERE, False, 99.0),
        (HERE, False, 200.0), (HERE, False, 201.0),
    ]:  # fmt: skip
        if now == 99.0:
            journal.disturb("reset", 50.0)
        if now == 200.0:
            journal.closed = 150.0
        journal.deliver("a", place, flagged, now)
    assert journal.flagged == 1
    assert journal.repeated == {TWICE: 1, UNEXPLAINED: 2, BROKEN: 1, CLOSED: 1}
    assert journal.unexplained[1].startswith(f"a at {HERE}: 1.0 s after its last delivery, which was 140.0 s after")


def test_what_was_settled_is_not_given_back_at_the_end() -> None:
    """That it comes again has no known reason."""
    journal = Journal()
    for text in "ab":
        journal.deliver(text, HERE, False, 1.0)
    journal.settle("a")
    journal.closed = 2.0
    for text in "ab":
        journal.deliver(text, HERE, False, 3.0)
    assert journal.repeated == {UNEXPLAINED: 1, CLOSED: 1}
    assert journal.unexplained[0].endswith("settled")


def test_a_crash_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """pulsar-client ends the process when bytes are damaged; the storm itself can't tell that any more."""
    crash = ["-c", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"]
    real = subprocess.run
    commands: list[list[str]] = []

    def run(command: list[str], check: bool) -> subprocess.CompletedProcess[bytes]:
        commands.append(command)
        return real([sys.executable, *crash], check=check)

    monkeypatch.setattr(subprocess, "run", run)
    assert watch(["--seed", "7"], ("flip-send",)) == CRASHED
    said = capsys.readouterr().out
    assert "CRASHED: the client's process ended with SIGSEGV" in said
    assert "damaged_batch.py" in said
    [command] = commands
    assert command[-3:] == ["--inside", "--seed", "7"]
