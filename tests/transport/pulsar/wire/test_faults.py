"""A whole client beside every kind of fault: nothing is lost, each outcome is true, a repetition says so."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import socket
import sys
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from jmsaio.config import ConsumerConfig, ProducerConfig
from jmsaio.errors import BrokerUnavailableError, JMSError, JMSSecurityError, SendError, SendInDoubtError
from jmsaio.protocol.commands import Command, LookupType
from jmsaio.testing import Direction, FaultProxy
from jmsaio.transport.base import Receiver, Sender, SenderOptions, StartPosition, Subscription, SubscriptionType
from jmsaio.transport.pulsar.wire.transport import WireTransport, open_transport
from tests.kit.records import record
from tests.protocol.all_commands import encode_command
from tests.protocol.server_errors import ServerError
from tests.transport.pulsar.wire.conftest import TOPIC
from tests.transport.pulsar.wire.peer import Fields, Link
from tests.transport.pulsar.wire.serving import Server, serving

ROOT = Path(__file__).parents[4]
SENDS = 12


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """A broker that delivers."""
    async with serving() as server:
        yield server


@attrs.define(eq=False)
class Traffic:
    """Records that go through a topic one by one, and what became of them."""

    transport: WireTransport
    stored: set[str] = attrs.field(factory=set)
    failed: dict[str, JMSError] = attrs.field(factory=dict)
    received: Counter[str] = attrs.field(factory=Counter)
    unmarked: list[str] = attrs.field(factory=list)
    receiver: Receiver = attrs.field(init=False)
    sender: Sender = attrs.field(init=False)

    def settled(self, tokens: Any, place: object, error: JMSError | None) -> None:
        for token in tokens:
            if error is None:
                self.stored.add(token)
            else:
                self.failed[token] = error

    async def run(self, fault: Callable[[], object] = lambda: None) -> None:
        """Send and receive; the fault comes twice."""
        woken = asyncio.Event()
        wanted = Subscription((TOPIC,), "s", SubscriptionType.SHARED, ConsumerConfig(), StartPosition.EARLIEST)
        self.receiver = await self.transport.open_receiver(wanted, woken.set)
        config = ProducerConfig(batching_enabled=False, send_timeout=20.0)
        self.sender = await self.transport.open_sender(TOPIC, SenderOptions(config, self.settled))
        for number in range(SENDS):
            if number in (4, 8):
                fault()
            self.sender.send(record(str(number)), str(number))
            await asyncio.sleep(0.003)
            self.take()
        await self.sender.drain(25)
        async with asyncio.timeout(25):
            while not self.stored <= set(self.received):
                woken.clear()
                if not self.take():
                    await woken.wait()

    def take(self) -> int:
        records = self.receiver.receive(100)
        for one in records:
            text = (one.payload or b"").decode()
            if self.received[text] and not one.redelivery_count:
                self.unmarked.append(text)
            self.received[text] += 1
        self.receiver.acknowledge(records)
        return len(records)

    def check(self, server: Server) -> None:
        """The outcomes and deliveries are what happened."""
        known = [text for text, error in self.failed.items() if not isinstance(error, SendInDoubtError)]
        assert not set(known) & set(server.texts), "refused, and stored"
        assert self.stored | set(self.failed) == {str(number) for number in range(SENDS)}
        assert sorted(server.texts) == sorted(set(server.texts)), "stored twice"
        assert self.unmarked == []
        order = [text for text in server.texts if text in self.stored]
        assert order == sorted(order, key=int)


def cut(link: Link, fields: Fields) -> bytes:
    link.cut()
    return b""


def silent(link: Link, fields: Fields) -> bytes:
    return b""


def refused(error: ServerError) -> Callable[[Link, Fields], bytes]:
    return lambda link, fields: encode_command(
        Command.ERROR, request_id=fields["request_id"], error=error, message="no"
    )


def cut_all(server: Server) -> None:
    for link in list(server.links):
        link.cut()


def lose_sends(server: Server) -> None:
    server.script(Command.SEND, cut)


def lose_receipts(server: Server) -> None:
    server.script(Command.SEND, lambda link, fields: server.usual(link, Command.SEND, fields) and cut(link, fields))


def lose_acknowledgements(server: Server) -> None:
    server.script(Command.ACK, cut)


def lose_receipts_of_acknowledgements(server: Server) -> None:
    server.script(Command.ACK, lambda link, fields: server.usual(link, Command.ACK, fields) and cut(link, fields))


def drop_in_the_handshake(server: Server) -> None:
    server.script(Command.CONNECT, cut, cut)
    cut_all(server)


def drop_in_each_step_and_again_in_the_recovery(server: Server) -> None:
    for command in (Command.LOOKUP, Command.PRODUCER, Command.SUBSCRIBE):
        server.script(command, cut, cut)
    cut_all(server)


def refuse_for_now(server: Server) -> None:
    server.script(Command.LOOKUP, refused(ServerError.TooManyRequests))
    server.script(Command.PRODUCER, refused(ServerError.ServiceNotReady), refused(ServerError.ProducerBusy))
    server.script(Command.SUBSCRIBE, refused(ServerError.ServiceNotReady), refused(ServerError.ConsumerBusy))
    cut_all(server)


def accept_and_say_nothing(server: Server) -> None:
    server.script(Command.CONNECT, silent)
    cut_all(server)


def send_garbage(server: Server) -> None:
    server.links[-1].write(b"\xff" * 64)


def redirect(server: Server) -> None:
    def elsewhere(link: Link, fields: Fields) -> bytes:
        return encode_command(
            Command.LOOKUP_RESPONSE, request_id=fields["request_id"], response=LookupType.Redirect,
            broker_service_url=server.url, authoritative=True,
        )  # fmt: skip

    server.script(Command.LOOKUP, elsewhere, elsewhere)
    cut_all(server)


def challenge(server: Server) -> None:
    ask = encode_command(Command.AUTH_CHALLENGE, challenge={"auth_method_name": "token"}, protocol_version=21)
    server.script(Command.CONNECT, lambda link, fields: ask)
    server.script(Command.AUTH_RESPONSE, lambda link, fields: server.usual(link, Command.CONNECT, fields))
    cut_all(server)


def break_at_random(server: Server) -> None:
    """Again and again, while it registers anew."""
    loop, chance = asyncio.get_running_loop(), random.Random(7)
    for _ in range(6):
        loop.call_later(chance.random() * 0.3, cut_all, server)


FAULTS = (
    cut_all, lose_sends, lose_receipts, lose_acknowledgements, lose_receipts_of_acknowledgements,
    drop_in_the_handshake, drop_in_each_step_and_again_in_the_recovery, refuse_for_now, accept_and_say_nothing,
    send_garbage, Server.close_parts, redirect, challenge, break_at_random,
)  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
async def test_nothing_is_lost_and_outcomes_are_true_if_the_broker_should(
    server: Server, fault: Callable[[Server], None]
) -> None:
    options: dict[str, Any] = {"max_backoff": 0.2}
    if fault is challenge:
        options |= {"auth_plugin": "token", "auth_params": lambda: "t"}
    server.url += "?connectionTimeoutMs=100"
    transport = await open_transport(server.config(**options))
    server.url = server.url.partition("?")[0]
    traffic = Traffic(transport)
    await traffic.run(lambda: fault(server))
    async with asyncio.timeout(10):  # an acknowledgement that was lost is repeated when its record arrives again
        while server.left:
            traffic.take()
            await asyncio.sleep(0.01)
    traffic.check(server)
    assert traffic.failed == {}
    await transport.aclose(5)
    await asyncio.sleep(0.01)
    assert server.links == [] and server.registered == set()


def restart(proxy: FaultProxy) -> None:
    proxy.take_down()
    asyncio.get_running_loop().call_later(0.3, proxy.bring_up)


NETWORK: dict[str, Callable[[FaultProxy], object]] = {
    "slices": lambda proxy: proxy.slices(100, 0.0),
    "a frame cut to the broker": lambda proxy: proxy.cut(Command.SEND),
    "a frame cut to the client": lambda proxy: proxy.cut(Command.MESSAGE),
    "a receipt swallowed and a reset": lambda proxy: (proxy.swallow(Command.SEND_RECEIPT), proxy.reset()),
    "half-closed to the client": lambda proxy: proxy.half_close(Direction.TO_CLIENT),
    "half-closed to the broker": lambda proxy: proxy.half_close(Direction.TO_BROKER),
    "stalled for a while": lambda proxy: proxy.stall(seconds=0.3),
    "a broker that ends and starts again": restart,
}  # fmt: skip


@pytest.mark.parametrize("fault", NETWORK.values(), ids=NETWORK)
async def test_nothing_is_lost_and_outcomes_are_true_on_a_network_with(
    server: Server, fault: Callable[[FaultProxy], object]
) -> None:
    async with FaultProxy.of(server.url) as proxy:
        server.url = proxy.url
        transport = await open_transport(server.config())
        traffic = Traffic(transport)
        done = 0

        def once() -> None:  # the second one could meet a proxy that is down
            nonlocal done
            done += 1
            if done == 1:
                fault(proxy)

        await traffic.run(once)
        traffic.check(server)
        assert traffic.failed == {}
        await transport.aclose(5)


async def test_a_link_that_swallows_everything_is_noticed_and_replaced(server: Server) -> None:
    """Half-open: no end of the connection arrives."""
    async with FaultProxy.of(server.url) as proxy:
        server.url = f"{proxy.url}?keepAliveIntervalSeconds=1"
        transport = await open_transport(server.config())
        server.url = proxy.url
        traffic = Traffic(transport)
        loop, told = asyncio.get_running_loop(), list[Any]()
        transport.link_listeners.add(told.append)

        def swallow() -> None:
            if not told:
                proxy.stall()

        def back(change: Any) -> None:
            loop.call_soon(proxy.resume)

        transport.link_listeners.add(back)
        await traffic.run(swallow)
        traffic.check(server)
        assert told and "silent" in told[0].text and traffic.failed == {}
        await transport.aclose(5)


async def test_a_broker_that_comes_up_later_is_found_within_the_connect_timeout() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Server()
    server.url = f"pulsar://127.0.0.1:{port}"
    with pytest.raises(BrokerUnavailableError, match=str(port)):
        await open_transport(server.config(connect_timeout=0.2))
    opening = asyncio.ensure_future(open_transport(server.config(connect_timeout=20.0)))
    await asyncio.sleep(0.2)
    async with serving(port) as server:
        transport = await opening
        traffic = Traffic(transport)
        await traffic.run()
        traffic.check(server)
        await transport.aclose(5)


@pytest.mark.parametrize("away", [False, True])
async def test_closes_of_many_tasks_are_bounded_and_each_record_has_an_outcome(server: Server, away: bool) -> None:
    tasks = asyncio.all_tasks()
    transport = await open_transport(server.config())
    traffic = Traffic(transport)
    await traffic.run()
    if away:
        server.script(Command.CONNECT, *[cut] * 100)
        cut_all(server)
        await asyncio.sleep(0.02)
    traffic.sender.send(record("late"), "late")
    async with asyncio.timeout(20):
        await asyncio.gather(
            *(part.aclose(0.3) for part in (traffic.sender, traffic.receiver, transport) for _ in range(3))
        )
    error = traffic.failed.get("late")
    assert "late" in traffic.stored or isinstance(error, SendError)
    assert away is (type(error) is SendError), "it never left"
    await asyncio.sleep(0.01)
    assert server.links == [] and asyncio.all_tasks() == tasks


@pytest.mark.parametrize("raises", [False, True])
async def test_credentials_that_expire_while_it_is_disconnected(server: Server, raises: bool) -> None:
    """The supplier is asked again. While it or the broker refuses, senders end, and receivers wait."""
    tokens = ["first"]

    def token() -> str:
        if raises and tokens[-1] == "expired":
            raise ValueError("no token")
        return tokens[-1]

    transport = await open_transport(server.config(auth_plugin="token", auth_params=token, max_backoff=0.2))
    traffic = Traffic(transport)

    def renew() -> None:
        tokens.append("second")
        cut_all(server)

    await traffic.run(renew)
    assert {fields["auth_data"] for fields in server.all(Command.CONNECT)} == {b"first", b"second"}
    tokens.append("expired")
    refusal = encode_command(Command.ERROR, request_id=0, error=ServerError.AuthenticationError, message="expired")
    server.script(Command.CONNECT, *[lambda link, fields: refusal] * 100)
    cut_all(server)
    async with asyncio.timeout(10):
        while not traffic.sender.outdated:
            await asyncio.sleep(0.01)
        with pytest.raises(JMSSecurityError):
            await transport.open_sender(TOPIC, SenderOptions(ProducerConfig(), traffic.settled))
        tokens.append("renewed")
        server.scripts.clear()
        sender = await transport.open_sender(TOPIC, SenderOptions(ProducerConfig(), traffic.settled))
        sender.send(record("late"), "late")
        while not traffic.received["late"]:
            traffic.take()
            await asyncio.sleep(0.01)
    await transport.aclose(5)


_VICTIM = """
import asyncio, signal, sys
from jmsaio.config import ConsumerConfig, ProducerConfig, load
from jmsaio.transport.base import Receiver, Sender, SenderOptions, StartPosition, Subscription, SubscriptionType
from jmsaio.transport.pulsar.wire.transport import open_transport

signal.signal(signal.SIGINT, signal.default_int_handler)

async def main(url, topic):
    transport = await open_transport(load(url, use_pulsar_admin=False))
    woken = asyncio.Event()
    wanted = Subscription((topic,), "s", SubscriptionType.SHARED, ConsumerConfig(), StartPosition.EARLIEST)
    receiver = await transport.open_receiver(wanted, woken.set)
    await transport.open_sender(topic, SenderOptions(ProducerConfig(), lambda *_: None))
    while not receiver.receive(1):
        woken.clear()
        await woken.wait()
    print("holds it", flush=True)
    await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
async def test_what_a_killed_or_interrupted_client_held_goes_to_the_next_one(
    server: Server, number: signal.Signals
) -> None:
    transport = await open_transport(server.config())
    traffic = Traffic(transport)
    sender = await transport.open_sender(TOPIC, SenderOptions(ProducerConfig(), traffic.settled))
    sender.send(record("held"), "held")
    await sender.drain(5)
    victim = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _VICTIM, server.url, TOPIC, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert victim.stdout is not None
    async with asyncio.timeout(60):
        assert await victim.stdout.readline() == b"holds it\n"
        victim.send_signal(number)
        assert await victim.wait() in (-number, 1, 130)
        while len(server.links) > 1:
            await asyncio.sleep(0.01)
    await traffic.run()
    assert traffic.received["held"] == 1
    await transport.aclose(5)


async def test_closed_objects_are_collected(server: Server) -> None:
    gone: list[weakref.ref[Any]] = []

    async def use() -> None:
        transport = await open_transport(server.config())
        traffic = Traffic(transport)
        await traffic.run(lambda: cut_all(server))
        gone.extend(map(weakref.ref, (transport, traffic.sender, traffic.receiver)))
        await transport.aclose(5)

    await use()
    async with asyncio.timeout(10):
        while any(one() is not None for one in gone):
            gc.collect()
            await asyncio.sleep(0.01)


async def test_a_consumer_that_takes_nothing_leaves_the_rest_with_the_broker(server: Server) -> None:
    transport = await open_transport(server.config())
    config = ConsumerConfig(receiver_queue_size=10)
    wanted = Subscription((TOPIC,), "s", SubscriptionType.SHARED, config, StartPosition.EARLIEST)
    await transport.open_receiver(wanted, lambda: None)
    sender = await transport.open_sender(TOPIC, SenderOptions(ProducerConfig(batching_enabled=False), lambda *_: None))
    for number in range(100):
        sender.send(record(str(number)), number)
    await sender.drain(5)
    await transport.ping(5)
    assert len(server.held) == 10 and len(server.left) == 100
    await transport.aclose(5)
