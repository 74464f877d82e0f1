"""The transport as a whole; what it does with a real broker is in the contract suite."""

from __future__ import annotations

import asyncio
import logging
import sys

import pytest

import jmsaio
from jmsaio.config import ConsumerConfig, ProducerConfig, load
from jmsaio.errors import (
    BrokerUnavailableError,
    ConfigurationError,
    ForkError,
    ObjectClosedError,
    OperationTimeoutError,
)
from jmsaio.protocol.commands import Command
from jmsaio.transport.base import (
    Reader,
    ReaderOptions,
    Receiver,
    SenderOptions,
    StartPosition,
    Subscription,
    SubscriptionType,
)
from jmsaio.transport.pulsar.wire import transport as wire
from jmsaio.transport.pulsar.wire.transport import WireTransport, open_transport
from jmsaio.transport.registry import open_transport as open_any
from tests.protocol.all_commands import encode_command
from tests.protocol.server_errors import ServerError
from tests.transport.pulsar.wire.conftest import TOPIC
from tests.transport.pulsar.wire.peer import Fields, Link, Peer


async def test_the_option_chooses_it(peer: Peer) -> None:
    transport = await open_any(load(f"{peer.url}?transport=wire", use_pulsar_admin=False))
    assert isinstance(transport, WireTransport) and transport.admin is None
    await transport.aclose(5)


async def test_a_message_goes_out_through_the_whole_client(peer: Peer) -> None:
    url = f"{peer.url}?transport=wire&jms.precreateQueueSubscription=false&jms.usePulsarAdmin=false"
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        async with session.create_producer(session.create_queue("q")) as producer:
            await producer.send("hello")
    assert [payload for _, payload in peer.entries.values()] == [b"hello"]


async def test_a_broker_that_is_away_is_named_in_time() -> None:
    with pytest.raises(BrokerUnavailableError, match=r"127[.]0[.]0[.]1:1"):
        await open_transport(load("pulsar://127.0.0.1:1", use_pulsar_admin=False, connect_timeout=0.3))


async def test_a_host_that_stays_silent_is_logged_once(
    peer: Peer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(wire, "_PATIENCE", 0.05)
    peer.script(Command.CONNECT, *[lambda link, fields: b""] * 100)
    with pytest.raises(BrokerUnavailableError), caplog.at_level(logging.WARNING, "jmsaio"):
        await open_transport(peer.config(connect_timeout=0.5))
    assert caplog.messages == [f"no broker answers at {peer.url} yet, trying for 0.5 s: no answer so far"]


async def test_a_ping_is_answered_or_bounded(peer: Peer, transport: WireTransport) -> None:
    await transport.ping(5)
    peer.script(Command.PARTITIONED_METADATA, lambda link, fields: b"")
    with pytest.raises(OperationTimeoutError):
        await transport.ping(0.05)


async def test_closing_closes_everything(peer: Peer) -> None:
    transport = await open_transport(peer.config())
    sender = await transport.open_sender(TOPIC, SenderOptions(ProducerConfig(), lambda *_: None))
    await transport.aclose(5)
    await transport.aclose(5)
    assert len(peer.all(Command.CLOSE_PRODUCER)) == 1 and "closed" in repr(sender)
    with pytest.raises(ObjectClosedError):
        await transport.ping(5)
    await asyncio.sleep(0.01)
    assert peer.links == []


async def test_a_child_process_is_refused(transport: WireTransport) -> None:
    transport._client._forks -= 1  # as if this were a child
    with pytest.raises(ForkError):
        await transport.ping(5)
    transport._client._forks += 1


async def test_a_compression_without_its_library_is_refused_before_anything_is_sent(
    peer: Peer, transport: WireTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cramjam", None)
    words = r"producerConfig.compressionType: SNAPPY needs cramjam: pip install 'jmsaio\[compression\]'"
    with pytest.raises(ConfigurationError, match=words):
        await transport.open_sender(TOPIC, SenderOptions(ProducerConfig(compression_type="SNAPPY"), lambda *_: None))
    assert peer.all(Command.PRODUCER) == []


def not_ready(link: Link, fields: Fields) -> bytes:
    error = ServerError.ServiceNotReady
    return encode_command(Command.ERROR, request_id=fields["request_id"], error=error, message="loading")


async def test_the_back_off_is_as_configured(peer: Peer) -> None:
    """Forty pauses of the default would last longer than opening a sender can."""
    transport = await open_transport(peer.config(initial_backoff=0.001, max_backoff=0.001))
    peer.script(Command.PRODUCER, *[not_ready] * 40)
    await transport.open_sender(TOPIC, SenderOptions(ProducerConfig(initial_subscription_name="s"), lambda *_: None))
    assert [fields["initial_subscription_name"] for fields in peer.all(Command.PRODUCER)] == ["s"] * 41
    await transport.aclose(5)


@pytest.mark.parametrize("reading", [False, True])
async def test_what_closes_while_its_transport_closes_is_closed_whole(
    peer: Peer, transport: WireTransport, reading: bool
) -> None:
    """No close is cut short, and none of them raises the cancellation of a task that it waits for."""
    part: Reader | Receiver
    if reading:
        part = await transport.open_reader(ReaderOptions(TOPIC, ConsumerConfig(), StartPosition.EARLIEST))
    else:
        wanted = Subscription((TOPIC,), "s", SubscriptionType.SHARED, ConsumerConfig())
        part = await transport.open_receiver(wanted, lambda: None)
    await asyncio.gather(part.aclose(2), transport.aclose(2), part.aclose(2))
    assert len(peer.all(Command.CLOSE_CONSUMER)) == 1


async def test_a_cancelled_close_goes_through(peer: Peer) -> None:
    transport = await open_transport(peer.config())
    await transport.open_sender(TOPIC, SenderOptions(ProducerConfig(), lambda *_: None))
    peer.script(Command.CLOSE_PRODUCER, lambda link, fields: b"")
    closing = asyncio.ensure_future(transport.aclose(0.5))
    await peer.seen(Command.CLOSE_PRODUCER)
    closing.cancel()
    await transport.aclose(5)
    await asyncio.sleep(0.01)
    assert peer.links == []
