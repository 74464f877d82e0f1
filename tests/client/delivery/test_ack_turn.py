"""Acknowledgements that reach the receiver together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain

import attrs
import pytest

from jmsaio.client.delivery import inbox as inbox_module
from jmsaio.client.delivery.inbox import AckTurn
from jmsaio.errors import JMSError, TransportError
from jmsaio.model.wire import ReceivedRecord
from tests.client.delivery.test_inbox import numbered


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test takes longer than a turn may, however busy the machine is."""
    monkeypatch.setattr(inbox_module, "_LONGEST_TURN", 3600.0)


@attrs.define(eq=False)
class Peer:
    """What stands behind a turn."""

    closed: bool = False
    calls: list[list[int]] = attrs.field(factory=list)
    refusal: JMSError | None = None
    failures: list[JMSError] = attrs.field(factory=list)

    def acknowledge(self, records: Sequence[ReceivedRecord]) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.calls.append([record.message_id.entry for record in records])

    def fail(self, error: JMSError) -> None:
        self.failures.append(error)

    def turn(self) -> AckTurn:
        return AckTurn(self)  # type: ignore[arg-type]  # what a turn uses of an inbox


async def test_records_that_no_caller_waits_for_are_acknowledged_at_the_end_of_the_turn() -> None:
    peer = Peer()
    turn = peer.turn()
    for _ in range(2):
        for entry in range(3):
            turn.soon(numbered(entry))
        assert peer.calls == []
        await asyncio.sleep(0)
        assert peer.calls == [[0, 1, 2]]
        peer.calls.clear()


async def test_the_first_call_of_a_turn_acknowledges_at_once_and_the_others_at_its_end() -> None:
    peer = Peer()
    turn = peer.turn()
    for _ in range(2):
        for entry in range(3):
            turn.together([numbered(entry)])
        assert peer.calls == [[0]]
        await asyncio.sleep(0)
        assert peer.calls == [[0], [1, 2]]
        peer.calls.clear()


async def test_what_is_refused_at_once_raises_and_what_is_refused_later_is_told() -> None:
    peer = Peer(refusal=TransportError("the connection is lost"))
    turn = peer.turn()
    for _ in range(2):
        with pytest.raises(TransportError, match="lost"):
            turn.together([numbered(1)])
    refusal, peer.refusal = peer.refusal, None
    turn.together([numbered(1)])
    peer.refusal = refusal
    turn.together([numbered(2)])
    assert peer.failures == []
    await asyncio.sleep(0)
    assert peer.failures == [refusal]


async def test_what_waits_is_acknowledged_once_by_whoever_comes_first() -> None:
    peer = Peer()
    turn = peer.turn()
    turn.soon(numbered(1))
    turn.now()
    turn.now()
    await asyncio.sleep(0)
    assert peer.calls == [[1]]


async def test_nothing_waits_once_the_inbox_is_closed() -> None:
    peer = Peer()
    turn = peer.turn()
    turn.together([numbered(1)])
    peer.closed = True
    turn.together([numbered(2)])
    assert peer.calls == [[1], [2]]


async def test_a_task_that_gives_the_loop_no_turn_keeps_few_records_back() -> None:
    peer = Peer()
    turn = peer.turn()
    turn.together([numbered(0)])
    for entry in range(1, 100):
        (turn.soon(numbered(entry)) if entry % 2 else turn.together([numbered(entry)]))
    assert [len(call) for call in peer.calls] == [1, 32, 32, 32]
    await asyncio.sleep(0)
    assert list(chain(*peer.calls)) == list(range(100))


@pytest.mark.parametrize("awaited", [True, False])
async def test_a_task_that_works_on_each_message_keeps_none_back(
    awaited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox_module, "_LONGEST_TURN", -1.0)  # as if each took longer than that
    peer = Peer()
    turn = peer.turn()
    for entry in range(4):
        (turn.together([numbered(entry)]) if awaited else turn.soon(numbered(entry)))
    assert list(chain(*peer.calls)) == list(range(4))
