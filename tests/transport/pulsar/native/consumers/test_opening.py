"""The last record of a topic, asked through a consumer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import _pulsar
import anyio
import attrs
import pytest

from jmsaio.errors import JMSSecurityError, OperationTimeoutError
from jmsaio.model.temporary_names import SUBSCRIPTION_PREFIX
from jmsaio.model.wire import WireId
from jmsaio.transport.base import Subscription, Wake
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.consumers.opening import last_message_id
from tests.kit.native_fakes import OK, FakeConsumer, from_thread
from tests.transport.pulsar.conftest import HANG, Kit, send

TOPIC = "persistent://public/default/t"
LAST = _pulsar.MessageId(3, 1, 2, 4)


@attrs.define(eq=False)
class TellingConsumer(FakeConsumer):
    """A consumer that tells the last id, in turn; None: never."""

    answers: deque[tuple[Any, _pulsar.MessageId] | None] = attrs.field(factory=deque)

    def get_last_message_id_async(self, callback: Callable[[Any, Any], None]) -> None:
        answer = self.answers.popleft()
        if answer is not None:
            from_thread(callback, *answer)


@attrs.define(eq=False)
class Desk:
    """Opens one receiver, whose consumer tells these answers; it is closed slowly."""

    answers: list[tuple[Any, _pulsar.MessageId] | None]
    wanted: list[Subscription] = attrs.field(factory=list)
    closed: int = 0

    @property
    def natives(self) -> list[FakeConsumer]:
        return [TellingConsumer(answers=deque(self.answers))]

    async def open(self, wanted: Subscription, wake: Wake) -> Any:
        self.wanted.append(wanted)
        return self

    async def aclose(self, timeout: float) -> None:
        await anyio.sleep(0.01)
        self.closed += 1

    async def ask(self, timeout: float = HANG) -> WireId | None:
        return await last_message_id(Bridge(), self.open, TOPIC, timeout, HANG)


async def test_the_last_message_id_is_returned_with_its_batch_index() -> None:
    desk = Desk([(OK, LAST)])
    assert await desk.ask() == WireId(1, 2, 3, 4)
    assert desk.closed == 1


async def test_an_entry_before_the_first_is_an_empty_topic() -> None:
    desk = Desk([(OK, _pulsar.MessageId(-1, 7, -1, -1))])
    assert await desk.ask() is None
    assert desk.closed == 1


async def test_its_subscription_ends_with_it_and_has_a_name_that_sweep_looks_for() -> None:
    desk = Desk([(OK, LAST)])
    await desk.ask()
    await desk.ask()
    first, second = desk.wanted
    assert not first.durable
    assert first.name.startswith(SUBSCRIPTION_PREFIX)
    assert first.name != second.name


async def test_a_broker_that_cannot_tell_for_the_moment_is_asked_again() -> None:
    assert await Desk([(_pulsar.Result.BrokerMetadataError, LAST), (OK, LAST)]).ask() == WireId(1, 2, 3, 4)


async def test_a_question_that_fails_leaves_no_subscription() -> None:
    refused, silent = Desk([(_pulsar.Result.AuthorizationError, LAST)]), Desk([None])
    with pytest.raises(JMSSecurityError, match=f"last place of {TOPIC}"):
        await refused.ask()
    with pytest.raises(OperationTimeoutError):
        await silent.ask(0.01)
    assert (refused.closed, silent.closed) == (1, 1)


async def test_a_question_that_is_cancelled_leaves_no_subscription() -> None:
    desk = Desk([None])
    asking = asyncio.ensure_future(desk.ask())
    await asyncio.sleep(0.01)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert desk.closed == 1


async def test_a_question_cancelled_at_any_time_leaves_no_subscription_on_the_broker(kit: Kit) -> None:
    await send(await kit.sender(), "a")
    assert kit.transport.admin is not None
    for seconds in (0.0, 0.002, 0.004, 0.006, 0.008, 0.012, 0.02):
        asking = asyncio.ensure_future(kit.transport.end(kit.topic))
        await asyncio.sleep(seconds)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    with anyio.fail_after(HANG):
        while (await kit.transport.admin.stats(kit.topic)).subscriptions:
            await asyncio.sleep(0.05)
