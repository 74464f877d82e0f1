"""Connections: one for each broker, opened once, whoever needs it."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from jmsaio.config import load
from jmsaio.errors import (
    AdminError,
    BrokerUnavailableError,
    JMSError,
    JMSSecurityError,
    ObjectClosedError,
    ProtocolError,
)
from jmsaio.protocol.commands import Command
from jmsaio.transport.pulsar.wire.connections.connection import Address
from jmsaio.transport.pulsar.wire.connections.pool import UNREACHABLE, Pool
from jmsaio.transport.waiting import Tasks
from tests.protocol.all_commands import encode_command
from tests.protocol.server_errors import ServerError
from tests.support.issuer import Issuer, make_keys
from tests.transport.pulsar.admin.test_rest import Answer, scripted
from tests.transport.pulsar.wire.peer import Peer, listening


async def test_a_connection_is_opened_once_and_opened_anew_after_a_loss(peer: Peer) -> None:
    tasks = Tasks()
    pool = Pool(peer.config(), tasks)
    first, second = await asyncio.gather(pool.connect_service(), pool.connect_service())
    assert first is second and len(peer.all(Command.CONNECT)) == 1
    peer.links[-1].cut()
    while first.error is None:
        await asyncio.sleep(0.001)
    assert await pool.connect_service() is not first
    await pool.aclose(1)
    await tasks.aclose(1)
    with pytest.raises(ObjectClosedError):
        await pool.connect(Address(peer.url))


async def test_the_addresses_of_a_url_are_tried_in_turn(peer: Peer) -> None:
    tasks = Tasks()
    pool = Pool(load(f"pulsar://127.0.0.1:1,{peer.url[9:]}", use_pulsar_admin=False), tasks)
    assert (await pool.connect_service()).address == Address(peer.url)
    await pool.aclose(1)
    await tasks.aclose(1)


async def test_where_no_address_works_the_causes_of_all_are_named(peer: Peer) -> None:
    """A broker that is there and refuses this client says more than one that is away."""
    pool = Pool(load("pulsar://127.0.0.1:1,127.0.0.1:2", use_pulsar_admin=False), Tasks())
    with pytest.raises(BrokerUnavailableError, match=r"127[.]0[.]0[.]1:1: .*; .*127[.]0[.]0[.]1:2: ") as caught:
        await pool.connect_service()
    assert (caught.value.host, caught.value.port) == ("127.0.0.1", 1)
    refusal = encode_command(Command.ERROR, request_id=0, error=ServerError.AuthenticationError, message="no")
    peer.script(Command.CONNECT, lambda link, fields: refusal)
    pool = Pool(load(f"{peer.url},127.0.0.1:1", use_pulsar_admin=False), Tasks())
    with pytest.raises(JMSSecurityError):
        await pool.connect_service()


@pytest.fixture
async def by_rest() -> AsyncIterator[Callable[[str], Pool]]:
    """Create a pool that asks a REST interface for a broker."""
    made: list[tuple[Pool, Tasks]] = []

    def make(url: str) -> Pool:
        tasks = Tasks()
        made.append((Pool(load({"webServiceUrl": url, "enableTransaction": "true"}), tasks), tasks))
        return made[-1][0]

    yield make
    for pool, tasks in made:
        await pool.aclose(1)
        await tasks.aclose(1)


async def test_a_rest_interface_is_asked_for_a_broker_whenever_none_is_connected(
    peer: Peer, by_rest: Callable[[str], Pool]
) -> None:
    async with listening() as other, scripted(*(Answer(200, {"brokerUrl": one.url}) for one in (peer, other))) as rest:
        pool = by_rest(rest.url)
        first, second = await asyncio.gather(pool.connect_service(), pool.connect_service())
        assert first is second is await pool.connect_service()
        assert first.address == Address(peer.url)
        peer.links[-1].cut()
        while first.error is None:
            await asyncio.sleep(0.001)
        assert (await pool.connect_service()).address == Address(other.url)
        assert len(rest.requests) == 2


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (Answer(503), BrokerUnavailableError, "ask the REST interface for a broker: http://127.0.0.1:"),
        (Answer(401), JMSSecurityError, "broker of non-persistent:"),
        (Answer(200, {"brokerUrlTls": "pulsar+ssl://h:6651"}), AdminError, "no address for connections without TLS"),
    ],
)
async def test_a_rest_interface_that_names_no_broker(
    by_rest: Callable[[str], Pool], answer: Answer, kind: type[JMSError], text: str
) -> None:
    async with scripted(answer) as rest:
        with pytest.raises(kind, match=text) as caught:
            await by_rest(rest.url).connect_service()
    assert (caught.value.error_code == UNREACHABLE) is (kind is BrokerUnavailableError)  # asked again


@pytest.mark.parametrize("rest", [False, True])
async def test_whoever_waits_for_a_connection_is_told_of_the_close(peer: Peer, rest: bool) -> None:
    """Also when the task that opens it, or asks for its address, has not begun."""
    tasks = Tasks()
    asked = load({"webServiceUrl": "http://127.0.0.1:1", "enableTransaction": "true"})
    pool = Pool(asked if rest else peer.config(), tasks)
    waiting = asyncio.ensure_future(pool.connect_service())
    await asyncio.sleep(0)
    await tasks.aclose(1)
    with pytest.raises(ObjectClosedError):
        await waiting


async def test_a_connection_that_breaks_in_the_moment_of_acceptance_is_no_connection(peer: Peer) -> None:
    peer.script(Command.CONNECT, lambda link, fields: peer.usual(link, Command.CONNECT, fields) + b"\xff" * 8)
    tasks = Tasks()
    pool = Pool(peer.config(), tasks)
    with pytest.raises(ProtocolError):
        await pool.connect_service()
    assert pool.connections == []
    await tasks.aclose(1)


async def test_an_address_where_nobody_listens_is_named() -> None:
    pool = Pool(load("pulsar://127.0.0.1:1", use_pulsar_admin=False), Tasks())
    with pytest.raises(BrokerUnavailableError, match=r"127[.]0[.]0[.]1:1: ") as caught:
        await pool.connect_service()
    assert (caught.value.host, caught.value.port) == ("127.0.0.1", 1)


async def test_a_server_that_accepts_and_says_nothing_is_given_up(peer: Peer) -> None:
    peer.script(Command.CONNECT, lambda link, fields: b"")
    pool = Pool(load(f"{peer.url}?connectionTimeoutMs=50", use_pulsar_admin=False), Tasks())
    with pytest.raises(BrokerUnavailableError, match=r"no answer within 0[.]05 s"):
        await pool.connect_service()
    await asyncio.sleep(0.01)
    assert peer.links == []


async def test_refused_credentials_name_the_remedy_and_no_secret(peer: Peer) -> None:
    refusal = encode_command(
        Command.ERROR, request_id=0, error=ServerError.AuthenticationError, message="no: me:s3cr3t"
    )
    for plugin, params, secret in (("token", "token:me:s3cr3t", "me:s3cr3t"), ("basic", "me:s3cr3t", "s3cr3t")):
        peer.script(Command.CONNECT, lambda link, fields: refusal)
        pool = Pool(peer.config(auth_plugin=plugin, auth_params=params), Tasks())
        with pytest.raises(JMSSecurityError, match="refuses the credentials") as caught:
            await pool.connect_service()
        assert secret not in "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(pool)
    assert [fields["auth_data"] for fields in peer.all(Command.CONNECT)] == [b"me:s3cr3t"] * 2


async def test_a_challenge_gets_the_token_of_now(peer: Peer) -> None:
    """A token that was renewed meanwhile."""
    tokens = iter(["first", "second"])
    tasks = Tasks()
    pool = Pool(peer.config(auth_plugin="token", auth_params=lambda: next(tokens)), tasks)
    await pool.connect_service()
    assert peer.all(Command.CONNECT)[0]["auth_data"] == b"first"
    peer.links[-1].send(Command.AUTH_CHALLENGE, challenge={"auth_method_name": "token"}, protocol_version=21)
    [answer] = await peer.seen(Command.AUTH_RESPONSE)
    assert answer["response"]["auth_data"] == b"second"
    await pool.aclose(1)
    await tasks.aclose(1)


async def test_a_function_that_fails_ends_the_connection_and_its_words_stay_secret(
    peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = iter(["first"])

    def token() -> str:
        for each in tokens:
            return each
        raise RuntimeError("s3cr3t")

    tasks = Tasks()
    pool = Pool(peer.config(auth_plugin="token", auth_params=token), tasks)
    connection = await pool.connect_service()
    peer.links[-1].send(Command.AUTH_CHALLENGE, challenge={"auth_method_name": "token"}, protocol_version=21)
    while connection.error is None:
        await asyncio.sleep(0.001)
    with pytest.raises(JMSSecurityError, match="authParams raised RuntimeError") as caught:
        await pool.connect_service()
    for error in (connection.error, caught.value):
        assert "RuntimeError" in str(error) and "s3cr3t" not in str(error) + repr(error)
    assert "s3cr3t" not in caplog.text
    await tasks.aclose(1)


async def test_a_token_of_oauth_is_replaced_before_it_ends_and_when_it_is_refused(peer: Peer, tmp_path: Path) -> None:
    make_keys(tmp_path)
    tasks = Tasks()
    with Issuer(tmp_path / "issuer.key") as issuer:
        pool = Pool(peer.config(auth_plugin="oauth2", auth_params=issuer.parameters()), tasks)
        refusal = encode_command(Command.ERROR, request_id=0, error=ServerError.AuthenticationError, message="no")
        peer.script(Command.CONNECT, lambda link, fields: refusal)
        with pytest.raises(JMSSecurityError, match="check issuerUrl, audience and scope"):
            await pool.connect_service()
        issuer.lifetime = 0  # the next one ends at once
        await pool.connect_service()
        peer.links[-1].send(Command.AUTH_CHALLENGE, challenge={"auth_method_name": "token"}, protocol_version=21)
        [answer] = await peer.seen(Command.AUTH_RESPONSE)
    shown = [fields["auth_data"].decode() for fields in peer.all(Command.CONNECT)]
    assert [*shown, answer["response"]["auth_data"].decode()] == issuer.issued and len(issuer.issued) == 3
    await pool.aclose(1)
    await tasks.aclose(1)


async def test_a_caller_that_gives_up_leaves_the_opening_to_others(peer: Peer) -> None:
    tasks = Tasks()
    pool = Pool(peer.config(), tasks)
    first, second = (asyncio.ensure_future(pool.connect_service()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).error is None
    await pool.aclose(1)
    await tasks.aclose(1)


async def test_a_silent_broker_is_asked_after_the_keep_alive_interval(peer: Peer) -> None:
    tasks = Tasks()
    pool = Pool(peer.config(keep_alive_interval=1), tasks)
    await pool.connect_service()
    await peer.seen(Command.PING)
    await pool.aclose(1)
    await tasks.aclose(1)


@pytest.mark.parametrize(
    "url",
    ["nonsense", "pulsar://", "pulsar://a:99999999", "pulsar://[::1:6650", f"pulsar://{'a' * 100}:1", "pulsar://a\0b:1",
     f"pulsar://{'a.' * 100_000}:1"],
    ids=["nonsense", "empty", "port", "bracket", "label", "zero byte", "long"],
)  # fmt: skip
async def test_an_address_that_is_none_is_an_error_and_no_hang(peer: Peer, url: str) -> None:
    """A broker names it in an answer to a look-up, or as the one that takes a topic over."""
    pool = Pool(peer.config(), Tasks())
    async with asyncio.timeout(10):
        with pytest.raises(BrokerUnavailableError) as caught:
            await pool.connect(Address(url))
    assert len(str(caught.value)) < 500


async def test_challenges_without_an_end_are_answered_one_at_a_time(peer: Peer) -> None:
    tasks = Tasks()
    pool = Pool(peer.config(auth_plugin="token", auth_params="token:x"), tasks)
    await pool.connect_service()
    challenge = encode_command(Command.AUTH_CHALLENGE, challenge={"auth_method_name": "token"}, protocol_version=21)
    peer.links[-1].write(challenge * 1000)
    await peer.seen(Command.AUTH_RESPONSE)
    peer.links[-1].send(Command.PING)
    await peer.seen(Command.PONG)
    assert len(peer.all(Command.AUTH_RESPONSE)) < 10
    await pool.aclose(1)
    await tasks.aclose(1)
