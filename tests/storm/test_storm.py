from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

import jmsaio
from jmsaio.model.wire import WireId
from jmsaio.testing import embedded_broker
from tests.storm import transfers
from tests.storm.__main__ import CRASHED, main, watch
from tests.storm.gauges import sample
from tests.storm.journal import BROKEN, CLOSED, TWICE, UNEXPLAINED, Journal
from tests.storm.storm import FAULTS, Plan, run
from tests.support.broker import LaunchedBroker, TestBroker

HERE, THERE = WireId(1, 1), WireId(1, 2)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("transport", ["pulsar-client", "wire"])
async def test_a_quarter_of_a_minute_of_every_fault_loses_nothing(own_broker: TestBroker, transport: str) -> None:
    """Whatever breaks, each confirmed message is delivered at least once.

    ``python -m tests.storm --minutes 10`` has a longer storm, with more kills and in a process of its own.
    """
    journal = await run(own_broker, Plan(15.0, kills=1, seed=1, transport=transport))
    told = "\n".join(journal.lines())
    assert journal.confirmed
    assert "lost: nothing" in told, told
    assert "left behind: nothing" in told, told
    assert "1 kill" in told


@pytest.mark.timeout(600)
async def test_transfers_of_half_a_minute_keep_the_sum(own_broker: TestBroker) -> None:
    """Whatever breaks, a transaction happens wholly or not at all, and once.

    ``python -m tests.storm --transfers --minutes 10`` has a longer one.
    """
    balance = await transfers.run(own_broker, Plan(30.0, kills=1, restarts=1, faults=transfers.FAULTS, seed=2))
    assert balance.right, balance
    assert balance.outcomes["committed"] > 10, balance
    assert balance.outcomes["rolled back as asked"], balance


@pytest.mark.parametrize(("delivered", "status", "words"), [(True, 0, "lost: nothing"), (False, 1, "LOST 1: a")])
def test_the_command_tells_what_was_lost(
    monkeypatch: pytest.MonkeyPatch, delivered: bool, status: int, words: str
) -> None:
    """And kills the broker that it started."""
    plans: list[Plan] = []

    async def storm(broker: TestBroker, plan: Plan, say: Callable[[str], object]) -> Journal:
        plans.append(plan)
        journal = Journal(confirmed={"a"})
        if delivered:
            journal.deliver("a", HERE, False, 1.0)
        return journal

    broker = Mock(spec=LaunchedBroker)
    monkeypatch.setattr("tests.storm.__main__.LaunchedBroker", lambda folder, memory: broker)
    monkeypatch.setattr("tests.storm.__main__.run", storm)
    done = CliRunner().invoke(
        main, ["--inside", "--minutes", "2", "--kills", "3", "--restarts", "0", "--seed", "4", "--without", "stall"]
    )
    assert (done.exit_code, plans) == (status, [Plan(120.0, 3, tuple(name for name in FAULTS if name != "stall"), 4)])
    assert words in done.stdout
    assert [call[0] for call in broker.method_calls] == ["start", "kill"]


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


def test_what_was_settled_long_ago_is_a_number() -> None:
    """The memory of a long storm does not grow; that such a message comes again is noticed nevertheless."""
    texts = [f"auto-0-{number}" for number in range(1, 5)]
    journal = Journal(sent=4, confirmed=set(texts[:3]))
    for text in texts[1:]:
        journal.deliver(text, HERE, False, 1.0)
    journal.settle(texts[2:])
    journal.forget(1000.0)
    assert (journal.lost, journal.confirmed) == ({texts[0]}, set(texts[:2]))  # the fourth was never confirmed
    assert journal.lines()[0].startswith("sent 4, confirmed 3,")
    for flagged in (True, False):
        journal.deliver(texts[2], HERE, flagged, 1001.0)
        journal.settle([texts[2]])
        journal.forget(2000.0)
    assert (journal.flagged, journal.repeated) == (1, {UNEXPLAINED: 1})


async def test_a_sample_counts_what_is_open() -> None:
    """Each figure grows with what it counts."""
    with embedded_broker() as broker:
        before = await sample("http://127.0.0.1:9", [])
        async with jmsaio.connect(broker.url):
            ours, other = socket.socketpair()
            during = await sample("http://127.0.0.1:9", [])
            ours.close()
            other.close()
    assert during.sockets == before.sockets + 2
    assert during.objects > before.objects and during.tasks > before.tasks and during.memory > 1000


def test_a_crash_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """pulsar-client ends the process when bytes are damaged; the storm itself can't tell that any more."""
    crash = ["-c", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"]
    real = subprocess.run
    commands: list[list[str]] = []

    def call(command: list[str], check: bool) -> subprocess.CompletedProcess[bytes]:
        commands.append(command)
        return real([sys.executable, *crash], check=check)

    monkeypatch.setattr(subprocess, "run", call)
    assert watch(["--seed", "7"], ("flip-send",)) == CRASHED
    said = capsys.readouterr().out
    assert "CRASHED: the client's process ended with SIGSEGV" in said
    assert "damaged_batch.py" in said
    [command] = commands
    assert command[-3:] == ["--inside", "--seed", "7"]
