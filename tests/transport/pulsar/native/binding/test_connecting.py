from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

import jmsaio
from jmsaio.cli import main
from jmsaio.config import ConsumerConfig, load
from jmsaio.errors import (
    BrokerUnavailableError,
    ConfigurationError,
    JMSSecurityError,
    OperationTimeoutError,
    TransportError,
)
from jmsaio.protocol.commands import Command, encode_command
from jmsaio.testing import FaultProxy
from jmsaio.transport.base import ReaderOptions
from jmsaio.transport.pulsar import open_transport
from jmsaio.transport.pulsar.native.binding import connecting
from jmsaio.transport.pulsar.native.binding.connecting import (
    ACCEPTED,
    MUTE,
    Probe,
    introduce,
)
from tests.protocol.server_errors import ServerError
from tests.support.broker import TestBroker
from tests.support.secure import SecureBroker
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
    error = OperationTimeoutError("open it")
    assert await Probe(load(f"pulsar://127.0.0.1:1,127.0.0.1:{mute}")).explain(error) is error
    why = await Probe(load("pulsar://127.0.0.1:1")).explain(error)
    assert str(why) == "open it: the broker can't be reached: 127.0.0.1:1: Connection refused"


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


async def test_an_address_that_pulsar_client_gives_up_at_once(pulsar_broker: TestBroker) -> None:
    """Its error for an unknown name has no cause; whatever is opened then says what keeps each address away."""
    async with FaultProxy.of(pulsar_broker.service_url) as proxy:
        url = f"{proxy.url},no.such.invalid:6650"
        transport = await open_transport(load(url, web_service_url=pulsar_broker.web_service_url, connect_timeout=LONG))
        kit = Kit(transport, new_topic())
        proxy.take_down()
        for opening in (
            kit.sender(), kit.box(), transport.open_reader(ReaderOptions(kit.topic, ConsumerConfig())),
            transport.ping(LONG),
        ):  # fmt: skip
            with anyio.fail_after(HANG), pytest.raises(BrokerUnavailableError) as caught:
                await opening
            assert f"{proxy.port}: Connection refused; no.such.invalid:6650: " in str(caught.value)
            assert caught.value.error_code == "ConnectError"
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


#: What a broker is given, and what the client says of it.
Case = tuple[Callable[[SecureBroker], dict[str, object]], str]

#: Seconds to tell it; pulsar-client itself tries again for 30, and the machine may be crowded.
SOON = 15.0

CASES: dict[str, Case] = {
    "no token": (lambda broker: broker.options(plugin=None), "none are given; set authPlugin and authParams"),
    "expired": (
        lambda broker: broker.options(params=broker.token(lifetime=-60)),
        r"the token expired at 20.* UTC; give",
    ),
    "forged": (lambda broker: broker.options(params=broker.token(key=b"x" * 32)), "not signed with the broker's key"),
    "garbage": (lambda broker: broker.options(params="garbage-token"), r"no JSON Web Token \(JWT\); give a valid one"),
    "no token file": (lambda broker: broker.options(params="file:///no/such"), "token file /no/such: No such file"),
    "user and password": (lambda broker: broker.options(plugin="basic", params="me:hidden"), "wrong user or password"),
    "no certificate": (lambda broker: broker.options(tls=True, plugin=None), "none are given; set authPlugin"),
    "forged certificate": (
        lambda broker: broker.options(tls=True, plugin="tls", params=broker.certificate("forged")),
        "check the client's certificate",
    ),
    "untrusted broker": (
        lambda broker: broker.options(tls=True) | {"tlsTrustCertsFilePath": str(broker.stranger)},
        r"localhost:\d+ is not trusted: .*; name the file .* with tlsTrustCertsFilePath",
    ),
    "default trust": (
        lambda broker: {name: value for name, value in broker.options(tls=True).items() if "Trust" not in name},
        r"localhost:\d+ is not trusted",
    ),
    "no trust file": (
        lambda broker: broker.options(tls=True) | {"tlsTrustCertsFilePath": "/no/such.pem"},
        r"tlsTrustCertsFilePath = '/no/such\.pem': No such file",
    ),
    "wrong host": (
        lambda broker: (
            broker.options(tls=True) | {"brokerServiceUrl": broker.tls_url.replace("localhost", "127.0.0.1")}
        ),
        r"127\.0\.0\.1:\d+ is for another host: .*; connect by a name that it has",
    ),
}


@pytest.mark.real_time  # the broker answers within seconds
@pytest.mark.parametrize("case", CASES)
async def test_connect_names_the_cause_and_the_remedy(secure_broker: SecureBroker, case: str) -> None:
    make, words = CASES[case]
    options = make(secure_broker)
    with anyio.fail_after(SOON), pytest.raises(JMSSecurityError, match=words) as told:
        await open_transport(load(options))
    assert "connect to pulsar" in str(told.value)
    for secret in ("garbage-token", "hidden", str(options.get("authParams"))):
        if not secret.startswith(("file:", "tlsCertFile:")):
            assert secret not in str(told.value)


@pytest.mark.real_time  # the broker answers within seconds
async def test_a_file_with_a_new_token_is_read_again(secure_broker: SecureBroker, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(secure_broker.token(lifetime=-60))
    options = secure_broker.options(params=f"file://{file}")
    with (
        anyio.fail_after(SOON),
        pytest.raises(JMSSecurityError, match=rf"expired at .*; write a valid one into {file}"),
    ):
        await jmsaio.connect(options)
    file.write_text(secure_broker.token())
    async with jmsaio.connect(options) as connection:
        assert not connection.closed


def test_a_command_says_it_and_fails(secure_broker: SecureBroker, capsys: pytest.CaptureFixture[str]) -> None:
    options = secure_broker.options(params=secure_broker.token(lifetime=-60))
    settings = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    for command in (["send", "q", "body"], ["receive", "q", "--timeout", "1"], ["browse", "q"], ["sweep"]):
        assert main([*command, *settings]) == 1
        said = capsys.readouterr().err
        assert "the token expired at" in said
        assert str(options["authParams"]) not in said


@pytest.mark.real_time  # the broker answers within seconds
@pytest.mark.parametrize("tls", [False, True])
async def test_the_other_scheme_is_told_at_once(secure_broker: SecureBroker, tls: bool) -> None:
    """Nothing else ends the wait so early; the credentials are not sent without TLS."""
    options = secure_broker.options(tls=tls)
    other = secure_broker.service_url if tls else secure_broker.tls_url
    options["brokerServiceUrl"] = f"pulsar{'+ssl' * tls}://{other.partition('://')[2]}"
    words = r"speaks no TLS: .*pulsar://" if tls else r"speaks TLS: .*pulsar\+ssl://"
    with anyio.fail_after(SOON), pytest.raises(JMSSecurityError, match=words):
        await open_transport(load(options))


@pytest.mark.real_time  # the broker answers within seconds
async def test_no_token_is_sent_without_tls_to_a_port_that_speaks_it(secure_broker: SecureBroker) -> None:
    """Neither by pulsar-client, nor by the look at the reason."""
    seen: list[bytes] = []
    host, _, port = secure_broker.tls_url.partition("://")[2].partition(":")

    async def passed_on(source: asyncio.StreamReader, target: asyncio.StreamWriter, note: bool) -> None:
        while data := await source.read(65536):
            if note:
                seen.append(data)
            target.write(data)
        target.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(host, int(port))
        await asyncio.gather(passed_on(reader, back, True), passed_on(there, writer, False), return_exceptions=True)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    options = secure_broker.options()
    options["brokerServiceUrl"] = f"pulsar://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        with anyio.fail_after(SOON), pytest.raises(JMSSecurityError, match="speaks TLS"):
            await open_transport(load(options))
    assert seen
    assert not any(str(options["authParams"]).encode() in data for data in seen)


async def met(answer: bytes) -> str:
    """What a server is that gives one answer to everything and closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, await anyio.connect_tcp("127.0.0.1", port) as stream:
        return await introduce(stream, f"127.0.0.1:{port}", load(f"pulsar://127.0.0.1:{port}"), None)


def frame(command: bytes) -> bytes:
    return (len(command) + 4).to_bytes(4) + len(command).to_bytes(4) + command


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (frame(b"\x08\x03\x1a\x00"), ACCEPTED),
        (frame(b"\x08\x24"), ACCEPTED),
        (encode_command(Command.ERROR, request_id=1, error=ServerError.ServiceNotReady, message=""), ACCEPTED),
        (frame(b"\x08\x0e"), MUTE),
        (frame(b"\x08"), MUTE),
        (frame(b"\x0d\x00\x00\x00\x00"), MUTE),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", MUTE),
        (b"\x00\x00", MUTE),
        (b"", MUTE),
    ],
)
async def test_answers_that_are_no_refusal(answer: bytes, what: str) -> None:
    assert await met(answer) == what


async def test_a_refusal_is_known_by_its_number() -> None:
    refusal = encode_command(Command.ERROR, request_id=1, error=ServerError.AuthenticationError, message="")
    with pytest.raises(JMSSecurityError, match="none are given"):
        await met(refusal)


@pytest.mark.real_time  # the broker answers within seconds
async def test_a_broker_that_starts_is_waited_for() -> None:
    """Nothing listens at first: that is no refusal, so that connect goes on until its time-out."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with anyio.fail_after(SOON), pytest.raises(jmsaio.BrokerUnavailableError, match="Connection refused"):
        await open_transport(
            load(f"pulsar://127.0.0.1:{port}", connect_timeout=1.0, auth_plugin="token", auth_params="x")
        )
