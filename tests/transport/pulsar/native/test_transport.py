"""``PulsarTransport``: connecting, refusals, capabilities."""

from __future__ import annotations

import asyncio

import anyio
import anyio.lowlevel
import pytest

from jmsaio.config import ConsumerConfig, load
from jmsaio.errors import (
    BrokerUnavailableError,
    ConfigurationError,
    InvalidDestinationError,
    JMSError,
    ObjectClosedError,
)
from jmsaio.transport.base import Capabilities, ReaderOptions
from jmsaio.transport.pulsar import open_transport
from jmsaio.transport.pulsar.native.transport import _first
from tests.support.broker import TestBroker
from tests.transport.pulsar.conftest import Kit


async def test_pulsar_has_an_admin_and_says_what_it_can_do(kit: Kit) -> None:
    assert kit.transport.capabilities == Capabilities(
        False, False, False, 40_000, stores_properties=True, replaces_properties=True
    )
    assert kit.transport.admin is not None


async def test_the_configuration_says_how_much_may_stay_unacknowledged(pulsar_broker: TestBroker) -> None:
    transport = await open_transport(load(pulsar_broker.service_url, max_unacknowledged_rejected=200_000))
    assert transport.capabilities.most_unacknowledged == 200_000
    await transport.aclose(5)


async def test_a_transport_without_admin_has_none(pulsar_broker: TestBroker) -> None:
    transport = await open_transport(load(pulsar_broker.service_url, use_pulsar_admin=False))
    assert transport.admin is None
    assert not transport.capabilities.stores_properties and not transport.capabilities.replaces_properties
    await transport.aclose(5)


async def test_an_unknown_host_is_named_in_the_error() -> None:
    with pytest.raises(BrokerUnavailableError) as caught:
        await open_transport(load("pulsar://no-such-host.invalid:6650", connect_timeout=0.5))
    assert caught.value.host == "no-such-host.invalid"


async def test_somebody_else_listens() -> None:
    """A port that accepts and says nothing."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        with pytest.raises(BrokerUnavailableError, match="no one speaks"):
            await open_transport(load(f"pulsar://127.0.0.1:{port}", connect_timeout=0.5))


async def test_cancelled_connecting_leaves_nothing() -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        with anyio.fail_after(10), anyio.move_on_after(0.1) as scope:
            await open_transport(load(f"pulsar://127.0.0.1:{port}"))
        assert scope.cancelled_caught


@pytest.mark.parametrize("turns", range(1, 6))
async def test_what_was_opened_is_returned_although_its_caller_is_cancelled_then(turns: int) -> None:
    """Nobody else would know of it, and close it."""
    opened: list[str] = []

    async def opening() -> str:
        await anyio.lowlevel.checkpoint()
        opened.append("it")
        return "it"

    async def checking() -> JMSError:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):  # a connection is closed
                for _ in range(5):
                    await anyio.lowlevel.checkpoint()
        raise AssertionError

    first = asyncio.create_task(_first(opening(), checking()))
    for _ in range(turns):
        await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    assert first.cancelled() or opened == [first.result()]
    assert not (first.cancelled() and opened)


async def test_a_cancelled_close_closes_the_rest_interface(pulsar_broker: TestBroker) -> None:
    transport = await open_transport(load(pulsar_broker.url))
    assert transport.admin is not None
    assert await transport.admin.topics("public/default") is not None
    with anyio.CancelScope() as scope:
        scope.cancel()
        await transport.aclose(5)
    with pytest.raises(ObjectClosedError):
        await transport.admin.topics("public/default")


async def test_bad_topic_names_and_unknown_tenants_are_refused(kit: Kit) -> None:
    with pytest.raises(InvalidDestinationError):
        await kit.sender("persistent://a")
    with pytest.raises(JMSError):
        await kit.sender("persistent://no-such-tenant/ns/t")
    with pytest.raises(JMSError):
        await kit.transport.open_reader(ReaderOptions("persistent://no-such-tenant/ns/t", ConsumerConfig()))


async def test_bad_credentials_are_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="authParams"):
        await open_transport(load("pulsar://127.0.0.1:1", auth_plugin="basic", auth_params="{}"))
