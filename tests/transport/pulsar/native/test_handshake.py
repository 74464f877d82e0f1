"""A client that the broker, or TLS, refuses learns at once what is wrong and what to do."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

import jmsaio
from jmsaio.cli import main
from jmsaio.config import load
from jmsaio.errors import JMSSecurityError
from jmsaio.testing.frames import Command, command_type, frame_end
from jmsaio.transport.pulsar import open_transport
from jmsaio.transport.pulsar.admin.credentials import AuthKind, Credentials
from jmsaio.transport.pulsar.native.handshake import ACCEPTED, MUTE, connect_frame, introduce, read_fields
from tests.support.secure import SecureBroker

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
        (frame(b"\x08\x0e\x72\x04\x08\x01\x10\x06"), ACCEPTED),  # ServiceNotReady
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
    refusal = frame(b"\x08\x0e\x72\x04\x08\x01\x10\x03")  # AuthenticationError
    with pytest.raises(JMSSecurityError, match="none are given"):
        await met(refusal)


def test_a_connect_carries_method_and_data() -> None:
    """The proxy for tests, which reads frames by itself, takes it for what it is."""
    token = "t" * 300
    for credentials, method, data in (
        (None, b"none", b""),
        (Credentials(AuthKind.TOKEN, {"token": token}), b"token", token.encode()),
        (Credentials(AuthKind.TLS, {}), b"tls", b""),
        (Credentials(AuthKind.BASIC, {"username": "a", "password": "b"}), b"basic", b"a:b"),
    ):
        sent = connect_frame(credentials, token if method == b"token" else "")
        assert frame_end(sent, 0) == len(sent)
        assert command_type(sent, 0) == Command.CONNECT
        connect = read_fields(sent[8:])[2]
        assert isinstance(connect, bytes)
        fields = read_fields(connect)
        assert (fields[5], fields[3], fields[4]) == (method, data, 19)


@pytest.mark.real_time  # the broker answers within seconds
async def test_a_broker_that_starts_is_waited_for() -> None:
    """Nothing listens at first: that is no refusal, so that connect goes on until its time-out."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with anyio.fail_after(SOON), pytest.raises(jmsaio.BrokerUnavailableError, match="Connection refused"):
        await open_transport(
            load(f"pulsar://127.0.0.1:{port}", connect_timeout=1.0, auth_plugin="token", auth_params="x")
        )
