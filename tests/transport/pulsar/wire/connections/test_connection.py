"""One connection: who the client is, answers and their requests, and a broker that does not keep to the protocol."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any, cast

import pytest

from jmsaio.errors import (
    BrokerUnavailableError,
    JMSError,
    JMSSecurityError,
    OperationTimeoutError,
    ProtocolError,
    TransportError,
)
from jmsaio.protocol.commands import Command
from jmsaio.protocol.handshake import Identity
from jmsaio.transport.pulsar.wire.connections.connection import Address, Connection
from tests.protocol.all_commands import encode_command
from tests.protocol.server_errors import ServerError
from tests.transport.pulsar.wire.peer import Fields, Link, Peer

TOPIC = "persistent://public/default/t"


async def connected(peer: Peer, keep_alive: float = 30.0, challenged: Any = lambda connection: None) -> Connection:
    port = int(peer.url.rpartition(":")[2])
    make = partial(Connection, Address(peer.url), keep_alive, challenged)
    _, connection = await asyncio.get_running_loop().create_connection(make, "127.0.0.1", port)
    async with asyncio.timeout(5):
        await connection.introduce(Identity("token", b"secret"))
    return connection


async def partitions(connection: Connection, timeout: float = 5.0) -> Fields:
    return await connection.request("ask", timeout, Command.PARTITIONED_METADATA, topic=TOPIC)


async def test_a_client_introduces_itself(peer: Peer) -> None:
    connection = await connected(peer)
    [fields] = peer.all(Command.CONNECT)
    assert (fields["auth_method_name"], fields["auth_data"]) == ("token", b"secret")
    assert connection.max_message_size == 100_000
    assert [command for command, _ in peer.received] == [
        Command.PING,
        Command.CONNECT,
    ]  # no credentials before an answer
    assert "secret" not in repr(connection)
    connection.close(TransportError("done"))


async def test_refused_credentials_are_a_security_error(peer: Peer) -> None:
    refusal = encode_command(Command.ERROR, request_id=0, error=ServerError.AuthenticationError, message="no")
    peer.script(Command.CONNECT, lambda link, fields: refusal)
    with pytest.raises(JMSSecurityError, match="AuthenticationError"):
        await connected(peer)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (encode_command(Command.SUCCESS, request_id=1), "sends SUCCESS where the connection is not accepted yet"),
        (2 * encode_command(Command.CONNECTED, server_version="x"), "sends CONNECTED where the connection is accepted"),
        (encode_command(Command.CONNECTED, server_version="x", max_message_size=0), "max_message_size of 0 bytes"),
        (encode_command(Command.CONNECTED, server_version="x", max_message_size=-(2**31)), "of -2147483648 bytes"),
    ],
)
async def test_what_does_not_belong_to_the_handshake_is_an_error(peer: Peer, answer: bytes, text: str) -> None:
    peer.script(Command.CONNECT, lambda link, fields: answer)
    with pytest.raises(ProtocolError, match=text):
        await partitions(await connected(peer))


async def test_a_challenge_is_passed_on_and_answered(peer: Peer) -> None:
    """At any time."""
    connection = await connected(peer, challenged=lambda connection: connection.respond(Identity("token", b"newer")))
    peer.links[-1].send(Command.AUTH_CHALLENGE, challenge={"auth_method_name": "token"}, protocol_version=21)
    [answer] = await peer.seen(Command.AUTH_RESPONSE)
    assert answer["response"]["auth_data"] == b"newer"
    assert (await partitions(connection))["partitions"] == 0
    connection.close(TransportError("done"))


async def test_answers_belong_to_their_requests_and_those_to_nobody_are_ignored(peer: Peer) -> None:
    connection = await connected(peer)

    def twice(link: Link, fields: Fields) -> bytes:
        usual = peer.usual(link, Command.PARTITIONED_METADATA, fields)
        return usual + usual + encode_command(Command.SUCCESS, request_id=999_999)

    peer.script(Command.PARTITIONED_METADATA, twice)
    peer.partitions = 3
    assert (await partitions(connection))["partitions"] == 3
    assert (await partitions(connection))["partitions"] == 3
    connection.close(TransportError("done"))


async def test_a_request_without_an_answer_is_bounded_and_its_late_answer_ignored(peer: Peer) -> None:
    connection = await connected(peer)
    late: list[bytes] = []

    def keep(link: Link, fields: Fields) -> bytes:
        late.append(peer.usual(link, Command.PARTITIONED_METADATA, fields))
        return b""

    peer.script(Command.PARTITIONED_METADATA, keep)
    with pytest.raises(OperationTimeoutError, match=r"no answer within 0[.]05 s"):
        await partitions(connection, 0.05)
    peer.links[-1].write(late[0])
    assert (await partitions(connection))["partitions"] == 0
    connection.close(TransportError("done"))


async def test_a_link_that_breaks_fails_what_waits(peer: Peer) -> None:
    connection = await connected(peer)

    def cut(link: Link, fields: Fields) -> bytes:
        link.cut()
        return b""

    peer.script(Command.PARTITIONED_METADATA, cut)
    with pytest.raises(BrokerUnavailableError, match="broke"):
        await partitions(connection)
    with pytest.raises(BrokerUnavailableError):
        await partitions(connection)


@pytest.mark.parametrize(
    "garbage",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        (1 << 31).to_bytes(4) + b"x",
        b"\0\0\0\x08\0\0\0\x04\x08\x7f\x12\x00",
        b"\0\0\0\x0a\0\0\1\0\x08\x0d\x6a\x02\x08\x01",
        encode_command(Command.CONNECT, client_version="a client?"),
    ],
    ids=["http", "too long", "unknown command", "a size that lies", "a client's command"],
)
async def test_garbage_ends_the_connection_with_a_protocol_error(peer: Peer, garbage: bytes) -> None:
    connection = await connected(peer)
    peer.script(Command.PARTITIONED_METADATA, lambda link, fields: garbage)
    with pytest.raises(JMSError) as caught:
        await partitions(connection)
    assert type(caught.value).__name__ == "ProtocolError" and connection.error is caught.value


async def test_an_answer_of_another_kind_ends_the_connection(peer: Peer) -> None:
    connection = await connected(peer)
    peer.script(
        Command.PARTITIONED_METADATA,
        lambda link, fields: encode_command(Command.SUCCESS, request_id=fields["request_id"]),
    )
    with pytest.raises(TransportError, match="expects PARTITIONED_METADATA_RESPONSE"):
        await partitions(connection)


async def test_a_silent_broker_is_asked_and_then_given_up(peer: Peer) -> None:
    """A half-open link."""
    connection = await connected(peer, keep_alive=0.05)
    await peer.seen(Command.PING, 3)
    assert connection.error is None
    peer.script(Command.PING, *[lambda link, fields: b""] * 10)
    async with asyncio.timeout(5):
        while connection.error is None:
            await asyncio.sleep(0.01)
    assert "silent" in str(connection.error)


async def test_a_loop_that_stood_still_asks_before_it_gives_up(peer: Peer) -> None:
    """A debugger, or a suspended machine: the broker was not silent, nobody listened."""
    connection = await connected(peer, keep_alive=0.05)
    await peer.seen(Command.PING, 2)
    await asyncio.sleep(0.01)
    time.sleep(0.3)  # noqa: ASYNC251  # the loop stands still
    await peer.seen(Command.PING, 4)
    assert connection.error is None
    connection.close(TransportError("done"))


async def test_behind_a_proxy_the_next_broker_of_a_topic_is_looked_up(peer: Peer) -> None:
    """Its own address might be out of reach."""
    ended: list[str] = []

    class Part:
        def ended(self, error: JMSError, assigned: str) -> None:
            ended.append(assigned)

    for number, proxied in enumerate((False, True)):
        connection = await connected(peer)
        connection.address = Address(peer.url, peer.url if proxied else "")
        connection.consumers[number] = cast(Any, Part())
        peer.links[-1].send(
            Command.CLOSE_CONSUMER, consumer_id=number, request_id=1, assigned_broker_service_url="pulsar://next:1"
        )
        await partitions(connection)
        connection.close(TransportError("done"))
    assert ended == ["pulsar://next:1", ""]


async def test_the_brokers_ping_is_answered(peer: Peer) -> None:
    connection = await connected(peer)
    peer.links[-1].send(Command.PING)
    await peer.seen(Command.PONG)
    connection.close(TransportError("done"))


async def test_frames_of_one_turn_or_of_a_pause_leave_together(peer: Peer) -> None:
    connection = await connected(peer)
    writes: list[bytes] = []
    transport = connection._transport

    class Counting:
        def write(self, data: bytes) -> None:
            writes.append(data)
            transport.write(data)

        def __getattr__(self, name: str) -> Any:
            return getattr(transport, name)

    connection._transport = Counting()  # type: ignore[assignment]  # counts the system calls
    await asyncio.gather(*(partitions(connection) for _ in range(10)))
    assert len(writes) == 1
    connection.pause_writing()  # the network takes no more
    waiting = [asyncio.ensure_future(partitions(connection)) for _ in range(10)]
    await asyncio.sleep(0.01)
    assert len(writes) == 1
    connection.resume_writing()
    await asyncio.gather(*waiting)
    assert len(writes) == 2
    connection.write(encode_command(Command.PING))
    connection.write(encode_command(Command.PARTITIONED_METADATA, topic="x" * 40_000, request_id=99))
    assert len(writes) == 3, "a large one does not wait"
    connection.close(TransportError("done"))
