from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import anyio
import pytest

from jmsaio.config import ConsumerConfig, load
from jmsaio.errors import BrokerUnavailableError, ConfigurationError, OperationTimeoutError, TransportError
from jmsaio.testing import FaultProxy
from jmsaio.transport.base import ReaderOptions
from jmsaio.transport.pulsar import open_transport
from jmsaio.transport.pulsar.native import connecting
from jmsaio.transport.pulsar.native.connecting import Reach
from tests.support.broker import TestBroker
from tests.transport.pulsar.conftest import HANG, Kit, new_topic

#: Seconds that no test waits for: an error that takes as long came from another limit than the one that is tested.
LONG = 60.0


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that answers no TCP connection: the queue of its listener is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        address, clients = server.getsockname(), []
        for _ in range(4):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(address)
            clients.append(client)
        yield address[1]
        for client in clients:
            client.close()


@pytest.fixture
async def mute() -> AsyncIterator[int]:
    """A port that takes connections and says nothing."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


async def test_an_address_that_stays_silent_is_given_up(silent: int) -> None:
    """connectionTimeoutMs ends the wait for a TCP connection, long before connect_timeout."""
    config = load(f"pulsar://127.0.0.1:{silent}?connectionTimeoutMs=500", connect_timeout=LONG)
    with (
        anyio.fail_after(LONG / 2),
        pytest.raises(BrokerUnavailableError, match="no answer to a TCP connection") as told,
    ):
        await open_transport(config)
    assert (told.value.host, told.value.port) == ("127.0.0.1", silent)


async def test_an_unknown_host_is_told_without_a_time() -> None:
    """It is known at once, so that no time was waited for."""
    with anyio.fail_after(LONG / 2), pytest.raises(BrokerUnavailableError, match=r"at pulsar://no\.invalid:1: no\.inv"):
        await open_transport(load("pulsar://no.invalid:1", connect_timeout=LONG))


async def test_a_refused_port_is_told_by_its_cause() -> None:
    """Within connect_timeout, for a broker that is starting refuses at first."""
    with anyio.fail_after(LONG / 2), pytest.raises(BrokerUnavailableError, match=r"127\.0\.0\.1:1: Connection refused"):
        await open_transport(load("pulsar://127.0.0.1:1", connect_timeout=1.0))


async def test_what_keeps_the_broker_away_is_logged_while_it_is_waited_for(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once and again and again, where the default level shows it."""
    monkeypatch.setattr(connecting, "_LONG_PAUSE", 0.2)
    with anyio.fail_after(LONG / 2), pytest.raises(BrokerUnavailableError):
        await open_transport(load("pulsar://127.0.0.1:1", connect_timeout=3.0))
    lines = [line.getMessage() for line in caplog.records if line.levelno == logging.WARNING]
    assert (
        lines.count("no broker answers at pulsar://127.0.0.1:1 yet, trying for 3 s: 127.0.0.1:1: Connection refused")
        > 1
    )


async def test_an_unknown_host_is_told_by_its_cause() -> None:
    """The name is in the sentence, and the resolver's words."""
    with anyio.fail_after(LONG / 2), pytest.raises(BrokerUnavailableError, match=r"no\.such\.invalid:6650: \w+"):
        await open_transport(load("pulsar://no.such.invalid:6650", connect_timeout=5.0))


async def test_another_protocol_is_told_by_its_cause(mute: int) -> None:
    """A port that takes connections and says nothing is no broker."""
    with anyio.fail_after(LONG / 2), pytest.raises(BrokerUnavailableError, match="no one speaks Pulsar's protocol"):
        await open_transport(load(f"pulsar://127.0.0.1:{mute}", connect_timeout=1.0))


async def test_trouble_is_what_keeps_all_addresses_away(mute: int) -> None:
    """One address that takes a connection is enough."""
    assert await Reach(load(f"pulsar://127.0.0.1:1,127.0.0.1:{mute}")).trouble() is None
    assert await Reach(load("pulsar://127.0.0.1:1")).trouble() == "127.0.0.1:1: Connection refused"


async def test_an_unknown_listener_is_told_by_its_name(pulsar_broker: TestBroker) -> None:
    """The broker's own words are in the error, which comes with connecting."""
    url = f"{pulsar_broker.service_url}?listenerName=nobody"
    config = load(url, web_service_url=pulsar_broker.web_service_url, connect_timeout=LONG)
    with anyio.fail_after(LONG / 2), pytest.raises(ConfigurationError, match=r"nobody.*do not have nobody listener"):
        await open_transport(config)


async def test_a_receiver_and_a_reader_while_the_broker_is_away(pulsar_broker: TestBroker) -> None:
    """They fail within the operation time-out, too, and say what keeps the broker away."""
    async with FaultProxy.of(pulsar_broker.service_url) as proxy:
        transport = await open_transport(
            load(proxy.url, web_service_url=pulsar_broker.web_service_url, operation_timeout=1.0)
        )
        kit = Kit(transport, new_topic())
        proxy.take_down()
        refused = pytest.raises(BrokerUnavailableError, match="Connection refused")
        with anyio.fail_after(HANG), refused:
            await kit.box()
        with anyio.fail_after(HANG), refused:
            await transport.open_reader(ReaderOptions(kit.topic, ConsumerConfig()))
        await transport.aclose(1)


@pytest.mark.parametrize("how", ["down", "silent"])
async def test_a_sender_while_the_broker_is_away(pulsar_broker: TestBroker, how: str) -> None:
    """It fails within the operation time-out, look-up and producer together, and says what keeps the broker away."""
    async with FaultProxy.of(pulsar_broker.service_url) as proxy:
        transport = await open_transport(
            load(proxy.url, web_service_url=pulsar_broker.web_service_url, operation_timeout=2.0)
        )
        kit = Kit(transport, new_topic())
        error: type[TransportError] = OperationTimeoutError
        if how == "down":
            proxy.take_down()
            error = BrokerUnavailableError
        else:
            proxy.stall()
        with anyio.fail_after(HANG), pytest.raises(error, match=r"Connection refused|no answer"):
            await kit.sender()
        await transport.aclose(1)


@pytest.mark.parametrize("body", [b"<html>", b"{}", b"null"])
async def test_a_web_server_is_no_broker(body: bytes) -> None:
    """pulsar-client takes its answers for those of a look-up, and ends the process."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):  # a look that was cancelled
            await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        with anyio.fail_after(LONG), pytest.raises(BrokerUnavailableError, match="not one of Pulsar's REST interface"):
            await open_transport(load(url, connect_timeout=2.0))
