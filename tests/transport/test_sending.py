"""All who send are bound by the same times, and make their senders alike."""

from __future__ import annotations

import asyncio

import attrs
import pytest

from jmsaio.config import load
from jmsaio.errors import IllegalArgumentError, IllegalStateError
from jmsaio.model.wire import OutgoingRecord
from jmsaio.transport import sending
from jmsaio.transport.base import Transaction
from jmsaio.transport.sending import HIGHEST, SequenceIds, drain, has_room, sender_options
from tests.kit.records import tell_nobody


@attrs.define
class Stalled:
    """A sender whose broker confirms nothing until it is told to."""

    confirmed: asyncio.Event = attrs.Factory(asyncio.Event)
    drained: list[float] = attrs.Factory(list)
    full: bool = True
    outdated: bool = False
    last_sequence_ids: dict[str, int] = attrs.Factory(dict)

    def send(self, record: OutgoingRecord, token: object, transaction: Transaction | None = None) -> None:
        raise NotImplementedError

    async def ready(self) -> None:
        await self.confirmed.wait()

    async def drain(self, timeout: float) -> None:
        self.drained.append(timeout)

    async def aclose(self, timeout: float) -> None:
        raise NotImplementedError


async def test_a_wait_for_room_ends_where_nothing_is_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "LONGEST_WAIT", 0.02)
    assert not await has_room(Stalled(), load("memory:?producerConfig.sendTimeoutMs=0"))


async def test_a_wait_for_room_is_as_long_as_a_send_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "LONGEST_WAIT", 0.0)
    sender = Stalled()
    asyncio.get_running_loop().call_later(0.01, sender.confirmed.set)
    assert await has_room(sender, load("memory:?producerConfig.sendTimeoutMs=60000"))


async def test_a_wait_for_room_ends_with_room() -> None:
    sender = Stalled()
    sender.confirmed.set()
    assert await has_room(sender, load("memory:"))


@pytest.mark.parametrize(("milliseconds", "seconds"), [(20_000, 20.0), (0, sending.LONGEST_WAIT)])
async def test_outcomes_are_awaited_as_long_as_a_send_may_take(milliseconds: int, seconds: float) -> None:
    sender = Stalled()
    await drain(sender, load(f"memory:?producerConfig.sendTimeoutMs={milliseconds}"))
    assert sender.drained == [seconds]


def test_a_sender_is_made_as_configured() -> None:
    config = load("memory:?send_window_messages=7")
    options = sender_options(config, None, tell_nobody)
    assert (options.config, options.settled, options.window_records, options.window_bytes) == (
        config.producer,
        tell_nobody,
        config.send_window_messages,
        config.send_window_bytes,
    )


def test_a_memory_limit_of_zero_is_none() -> None:
    options = sender_options(load("memory:?memoryLimitBytes=0"), None, tell_nobody)
    assert options.window_bytes >= 2**62


def test_the_highest_confirmed_number_of_each_partition_is_the_last() -> None:
    ids = SequenceIds("t", False, {"t-0": -1, "t-1": 7})
    for partition, number in (("t-0", 0), ("t-0", 5), ("t-0", 3), ("t-1", 6)):
        ids.confirm(partition, number)
    assert ids.last == {"t-0": 5, "t-1": 7}


@pytest.mark.parametrize("number", [0, 1, HIGHEST])
def test_a_number_in_the_range_is_taken(number: int) -> None:
    assert SequenceIds("t", False).checked(number) == number


@pytest.mark.parametrize("number", [-1, HIGHEST + 1])
def test_a_number_out_of_the_range_is_refused(number: int) -> None:
    with pytest.raises(IllegalArgumentError, match=f"record to t: sequence_id is {number}"):
        SequenceIds("t", False).checked(number)


def test_a_sender_of_batches_takes_no_numbers() -> None:
    with pytest.raises(IllegalStateError, match=r"id 3 to t: .*batchingEnabled=false"):
        SequenceIds("t", True).checked(3)
