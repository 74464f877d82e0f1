"""Permits: never 0 at a time, never more than the queue and the bytes allow, and never too few to go on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from jmsaio.protocol.commands import Command
from jmsaio.protocol.framing import Framing
from jmsaio.rules.share import Share
from jmsaio.transport.pulsar.wire.consumers.permits import Permits
from tests.protocol.all_commands import decode_command


class Connection:
    """Counts the permits that the broker has, and takes them back."""

    max_message_size = 1000

    def __init__(self) -> None:
        self.flows: list[int] = []

    def write(self, data: bytes) -> None:
        [frame] = Framing().feed(data)
        assert frame.kind == Command.FLOW
        self.flows.append(decode_command(frame.kind, frame.data, frame.command, frame.rest)["message_permits"])


def permits(size: int, total: int = 10**9) -> tuple[Permits, Connection]:
    connection = Connection()
    return Permits(at(connection), size, Share(total)), connection


def at(connection: Connection | None = None) -> Any:
    return SimpleNamespace(connection=connection, number=1)


def test_half_of_the_queue_is_given_at_a_time() -> None:
    given, connection = permits(4)
    given.fill(0)
    given.used(3, 30)
    for queued in (3, 2, 1, 0):
        given.fill(queued)
    assert connection.flows == [4, 2]


def test_without_a_queue_one_is_given_when_a_receive_waits() -> None:
    given, connection = permits(0)
    given.fill(0)
    assert connection.flows == []
    given.fill(0, waiting=True)
    given.fill(0, waiting=True)
    assert connection.flows == [1]
    given.used(10, 100)  # a batch comes whole
    given.fill(10)
    given.fill(5, waiting=False)
    assert connection.flows == [1]
    given.fill(0, waiting=True)
    assert sum(connection.flows) == 11


def test_a_receive_that_waits_is_not_forgotten() -> None:
    """Over a reconnect, or an entry of which nothing can be delivered."""
    given, connection = permits(0)
    given.fill(0, waiting=True)
    given.restart()
    given.fill(0)
    given.used(3, 30)
    given.fill(0)
    assert connection.flows == [1, 1, 3]


def test_the_bytes_of_a_connection_are_divided_and_follow_the_sizes_that_arrive() -> None:
    share = Share(10_000)
    other, connection = Permits(at(), 1000, share), Connection()
    given = Permits(at(connection), 1000, share)
    given.fill(0)
    assert connection.flows == [5]  # of 1000 bytes, of which none is larger
    given.used(1, 9)
    given.fill(0)
    assert sum(connection.flows) - 1 == 500
    other.close()
    given.used(250, 2500)
    given.fill(0)
    assert sum(connection.flows) - 251 > 800
    given.used(1, 4000)
    for _ in range(1000):
        given.fill(0)
    before = sum(connection.flows)
    given.used(1, 4000)
    given.fill(0)
    assert sum(connection.flows) == before  # it has far more than 2 now


def test_while_held_and_without_a_connection_none_are_given() -> None:
    connection, registration = Connection(), at()
    given = Permits(registration, 4, Share(10**9))
    given.fill(0)
    registration.connection = connection
    given.fill(0, held=True)
    assert connection.flows == []
    given.fill(0)
    assert connection.flows == [4]


@given(
    st.integers(0, 8), st.sampled_from([1, 50, 10**9]),
    st.lists(st.tuples(st.sampled_from(["arrive", "take", "damage", "again", "hold"]), st.integers(1, 5)), max_size=40),
)  # fmt: skip
def test_whatever_happens_it_goes_on_and_no_more_than_the_queue_is_sent_ahead(
    size: int, total: int, steps: list[tuple[str, int]]
) -> None:
    """The broker of this model sends entries of up to 5 records while it has permits."""
    given, connection = permits(size, total)
    queued = sent = lost = 0
    held = False
    for step, number in [*steps, ("release", 1), ("take", 10**6)]:
        if step == "arrive" and sum(connection.flows) > sent:
            sent, queued = sent + number, queued + number
            given.used(number, 10 * number)
        elif step == "damage" and sum(connection.flows) > sent:
            sent, lost = sent + number, lost + 1
            given.used(number + 1, 0)  # it announces too many
        elif step == "take":
            queued -= min(queued, number)
        elif step == "again":
            connection.flows.clear()
            sent = queued = lost = 0
            given.restart()
        elif step in ("hold", "release"):
            held = step == "hold"
        given.fill(queued, not queued if step == "take" else None, held)
        assert 0 not in connection.flows
        assert queued + sum(connection.flows) - sent <= max(1, size) + lost
    assert sum(connection.flows) > sent


@pytest.mark.parametrize("size", [1, 2, 1000])
def test_each_size_starts(size: int) -> None:
    given, connection = permits(size)
    given.fill(0)
    assert connection.flows == [size]
