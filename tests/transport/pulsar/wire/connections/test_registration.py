"""A request waits until the consumer is registered; what is sent for entries is dropped while it is not."""

from __future__ import annotations

import asyncio
from itertools import count
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest

from jmsaio.errors import JMSError, JMSSecurityError, NotFoundError, OperationTimeoutError, TransportError
from jmsaio.protocol.commands import Command
from jmsaio.transport.pulsar.wire.connections.answers import Backoff
from jmsaio.transport.pulsar.wire.connections.connection import Connection
from jmsaio.transport.pulsar.wire.connections.registration import MOST_IDS, Registration
from jmsaio.transport.pulsar.wire.transport import WireTransport
from jmsaio.transport.waiting import Tasks
from tests.transport.pulsar.wire.conftest import TOPIC
from tests.transport.pulsar.wire.peer import Peer


async def connected(transport: WireTransport) -> tuple[Registration, Connection]:
    connection = await transport._client.topics.owner(TOPIC)
    return Registration(transport._client, cast(Any, Part()), TOPIC, "s"), connection


async def test_a_request_waits_for_the_next_registration(peer: Peer, transport: WireTransport) -> None:
    at, connection = await connected(transport)
    asked = asyncio.create_task(at.request("unsubscribe", 5, Command.UNSUBSCRIBE))
    await asyncio.sleep(0)
    at.connection = connection
    at.changed.wake()
    await asked
    assert [each["consumer_id"] for each in peer.all(Command.UNSUBSCRIBE)] == [at.number]


async def test_a_request_ends_with_the_time_or_the_consumer(peer: Peer, transport: WireTransport) -> None:
    at, _ = await connected(transport)
    with pytest.raises(OperationTimeoutError, match=f"seek s of {TOPIC}: not connected to the broker within 0 s"):
        await at.request("seek", 0, Command.SEEK)
    at.failure = TransportError("gone")
    with pytest.raises(TransportError, match="gone"):
        await at.request("seek", 5, Command.SEEK)


async def test_many_entries_are_redelivered_and_acknowledged_by_several_frames(
    peer: Peer, transport: WireTransport
) -> None:
    at, connection = await connected(transport)
    places = [(1, number) for number in range(MOST_IDS + 1)]
    at.redeliver(places)
    at.acknowledge(places)
    at.connection = connection
    at.redeliver(places)
    at.acknowledge(places)
    await transport.ping(5)
    for command, field in ((Command.REDELIVER_UNACKNOWLEDGED_MESSAGES, "message_ids"), (Command.ACK, "message_id")):
        frames = [[(one["ledger_id"], one["entry_id"]) for one in each[field]] for each in peer.all(command)]
        assert frames == [places[:-1], places[-1:]]


PASSES = TransportError("moving", "ServiceUnitNotReady")


class Part:
    """A producer or consumer whose registrations end as planned: with an error, or None."""

    def __init__(self, *plan: JMSError | None) -> None:
        self.plan = list(plan)
        self.attempts = 0
        self.failure: JMSError | None = None

    async def register(self, connection: Any) -> dict[str, Any]:
        self.attempts += 1
        await asyncio.sleep(0)
        error = self.plan.pop(0) if self.plan else None
        if error is not None:
            raise error
        return {}

    def registered(self, connection: Any, answer: dict[str, Any]) -> None:
        pass

    def failed(self, error: JMSError) -> None:
        self.failure = error


class Topics:
    """Finds a broker at once, and notes who was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def owner(self, topic: str, cluster: str = "") -> object:
        return await self.assigned("")

    async def assigned(self, url: str) -> object:
        self.asked.append(url)
        return Mock(consumers={}, request=AsyncMock(return_value={}))


def kept(part: Part, topics: Topics | None = None, backoff: Backoff | None = None, refused: Any = None) -> Registration:
    client: Any = SimpleNamespace(
        topics=topics or Topics(), tasks=Tasks(), backoff=backoff or Backoff(), ids=count(1),
        loop=asyncio.get_running_loop(),
    )  # fmt: skip
    return Registration(client, cast(Any, part), TOPIC, refused=refused)


async def test_errors_that_pass_are_passed_over() -> None:
    part = Part(PASSES, PASSES)
    at = kept(part)
    await at.open(30)
    assert part.attempts == 3
    await at.close(1)


async def test_a_final_error_of_the_first_opening_is_raised() -> None:
    with pytest.raises(NotFoundError):
        await kept(Part(NotFoundError("gone", "TopicNotFound"))).open(30)


async def test_a_refusal_of_what_was_allowed_before_is_final_unless_it_is_waited_out() -> None:
    """An expired token is replaced, a right is granted again; whoever waits is told of both, once."""
    refusal = JMSSecurityError("expired", "AuthenticationError")
    final = Part(None, refusal)
    at = kept(final)
    await at.open(30)
    at.ended(TransportError("lost"), "")
    while final.failure is None:
        await asyncio.sleep(0.001)
    part, told = Part(None, refusal, refusal), list[JMSError | None]()
    at = kept(part, None, Backoff(0.001, 0.001), told.append)
    await at.open(30)
    at.ended(TransportError("lost"), "")
    while told != [refusal, None]:
        await asyncio.sleep(0.001)
    assert part.failure is None and part.attempts == 4
    await at.close(1)


async def test_an_opening_that_takes_too_long_says_why() -> None:
    with pytest.raises(TransportError, match="moving"):
        await kept(Part(*[PASSES] * 100)).open(0.05)


async def test_an_opening_without_any_answer_is_bounded() -> None:
    part = Part()

    async def never(connection: Any) -> dict[str, Any]:
        return await asyncio.Event().wait() and {}

    part.register = never  # type: ignore[method-assign]  # a broker that stays silent
    with pytest.raises(OperationTimeoutError, match=r"no answer within 0[.]01 s"):
        await kept(part).open(0.01)


async def test_a_loss_is_followed_by_the_broker_that_takes_over() -> None:
    part, topics = Part(), Topics()
    at = kept(part, topics)
    await at.open(30)
    for attempts, assigned in ((2, "pulsar://next:6650"), (3, "")):
        at.ended(TransportError("moved"), assigned)
        at.ended(TransportError("told twice"), "pulsar://other:6650")
        async with asyncio.timeout(10):
            while part.attempts < attempts:
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.001)
    assert topics.asked == ["", "pulsar://next:6650", ""]
    await at.close(1)


async def test_a_final_error_later_ends_the_part() -> None:
    part = Part(None, NotFoundError("gone", "TopicNotFound"))
    at = kept(part)
    await at.open(30)
    at.ended(TransportError("moved"), "")
    async with asyncio.timeout(10):
        while part.failure is None:
            await asyncio.sleep(0.001)
    assert isinstance(part.failure, NotFoundError)


async def test_closing_ends_the_attempts() -> None:
    part = Part(None, *[PASSES] * 100)
    at = kept(part)
    await at.open(30)
    at.ended(TransportError("moved"), "")
    await asyncio.sleep(0.01)
    await at.close(1)
    await at.close(1)
    attempts = part.attempts
    await asyncio.sleep(0.01)
    assert part.attempts == attempts
