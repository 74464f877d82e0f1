"""TLS: who is trusted, what is told of the rest, and that no credentials leave without it where a port has it."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop

import jmsaio
from jmsaio.config import ConsumerConfig, ProducerConfig, load
from jmsaio.errors import JMSError, JMSSecurityError
from jmsaio.protocol.commands import Command, LookupType
from jmsaio.transport.base import ReaderOptions, SenderOptions, Subscription, SubscriptionType
from jmsaio.transport.pulsar.wire.connections.answers import Backoff
from jmsaio.transport.pulsar.wire.connections.client import Topics
from jmsaio.transport.pulsar.wire.connections.pool import Pool
from jmsaio.transport.pulsar.wire.transport import open_transport
from jmsaio.transport.waiting import Tasks
from tests.kit.records import Outcomes, record, tell_each
from tests.protocol.all_commands import encode_command
from tests.support.certificates import make_authority, make_certificate
from tests.support.secure import SecureBroker
from tests.transport.pulsar.wire.conftest import TOPIC
from tests.transport.pulsar.wire.peer import Peer, Script, listening

SECRET = "s3cr3t-token"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an authority, the certificates that it gave to ``localhost`` and to a client, and a stranger's."""
    folder = tmp_path_factory.mktemp("certificates")
    for authority in ("authority", "stranger"):
        make_authority(folder, authority)
    make_certificate(folder, "authority", "broker", "DNS:localhost")
    make_certificate(folder, "authority", "client", "DNS:client")
    make_certificate(folder, "stranger", "forged", "DNS:localhost")
    return folder


def server(files: Path, name: str = "broker", demands: bool = False) -> ssl.SSLContext:
    """A broker's side; it might demand a certificate of clients."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files / f"{name}.pem", files / f"{name}.key")
    if demands:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(files / "authority.pem")
    return context


def pair(files: Path, name: str) -> str:
    """``authParams`` of the plug-in tls."""
    return f"tlsCertFile:{files / f'{name}.pem'},tlsKeyFile:{files / f'{name}.key'}"


async def outcome(url: str, **options: Any) -> str:
    """Connect: what is wrong, "" if nothing."""
    try:
        transport = await open_transport(load(url, use_pulsar_admin=False, connect_timeout=30.0, **options))
    except JMSError as error:
        assert isinstance(error, JMSSecurityError), error
        return str(error)
    await transport.aclose(2.0)
    return ""


@pytest.mark.parametrize(
    ("name", "words", "options"),
    [
        ("broker", "", {}),
        ("forged", "not trusted: .*; name the file .* with tlsTrustCertsFilePath", {}),
        ("forged", "not trusted", {"tls_enable_hostname_verification": False}),
        ("forged", "", {"tls_allow_insecure_connection": True}),
        ("client", "for another host", {}),
        ("client", "", {"tls_enable_hostname_verification": False}),
        ("client", "", {"tls_allow_insecure_connection": True}),
        ("broker", r"tlsTrustCertsFilePath = '/no/such': No such file", {"tls_trust_certs_file_path": "/no/such"}),
        ("broker", "not trusted", {"tls_trust_certs_file_path": None}),
    ],
)
async def test_the_broker_is_trusted_as_the_options_say(
    files: Path, name: str, words: str, options: dict[str, Any]
) -> None:
    async with listening(server(files, name)) as peer:
        said = await outcome(peer.url, **{"tls_trust_certs_file_path": str(files / "authority.pem")} | options)
        assert re.search(words or "^$", said), said
        assert not words or said.startswith((f"connect to {peer.url}: ", "connect to pulsar+ssl://localhost:"))


@contextmanager
def refusing(context: ssl.SSLContext) -> Iterator[str]:
    """The URL of a server that reads one client's first bytes after a failed handshake; asyncio's tells no alert."""

    def serve() -> None:
        client = context.wrap_socket(listener.accept()[0], server_side=True, do_handshake_on_connect=False)
        with client:
            with pytest.raises(ssl.SSLError):
                client.do_handshake()
            socket.socket.recv(client, 65536)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"pulsar+ssl://localhost:{listener.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize("certificate", ["forged", None])
async def test_a_certificate_that_the_broker_refuses_is_told(files: Path, certificate: str | None) -> None:
    """With TLS 1.3, after the client's side of the handshake is over."""
    options: dict[str, Any] = {"tls_trust_certs_file_path": str(files / "authority.pem")}
    if certificate is not None:
        options |= {"auth_plugin": "tls", "auth_params": pair(files, certificate)}
    with refusing(server(files, demands=True)) as url:
        assert "check the client's certificate" in await outcome(url, **options)


@pytest.mark.parametrize("method", ["tls", "none"])
async def test_the_clients_certificate_is_shown(files: Path, method: str) -> None:
    """As that of authPlugin=tls, or beside another plug-in."""
    options: dict[str, Any] = {"tls_trust_certs_file_path": str(files / "authority.pem")}
    if method == "tls":
        options |= {"auth_plugin": "tls", "auth_params": pair(files, "client")}
    else:
        options["tls_certificate_file_path"] = str(files / "client.pem")
        options["tls_key_file_path"] = str(files / "client.key")
    async with listening(server(files, demands=True)) as peer:
        assert await outcome(peer.url, **options) == ""
        assert peer.all(Command.CONNECT)[0]["auth_method_name"] == method
        missing = {"auth_plugin": "tls", "auth_params": pair(files, "missing")}
        assert re.search("certificate .*missing.pem .*: No such file", await outcome(peer.url, **options | missing))


async def test_files_that_were_replaced_count_for_the_next_connection(files: Path, tmp_path: Path) -> None:
    """The authority's and the client's own."""
    trusted, own = tmp_path / "trusted.pem", tmp_path / "own.pem"

    def put(authority: str, name: str) -> None:
        shutil.copy(files / f"{authority}.pem", trusted)
        own.write_bytes((files / f"{name}.pem").read_bytes() + (files / f"{name}.key").read_bytes())

    put("stranger", "forged")
    tasks = Tasks()
    async with listening(server(files, demands=True)) as peer:
        params = f"tlsCertFile:{own},tlsKeyFile:{own}"
        options = {"auth_plugin": "tls", "auth_params": params, "tls_trust_certs_file_path": str(trusted)}
        pool = Pool(peer.config(**options), tasks)
        with pytest.raises(JMSSecurityError, match="not trusted"):
            await pool.connect_service()
        put("authority", "client")
        assert (await pool.connect_service()).error is None
        await pool.aclose(1)
        await tasks.aclose(1)


@pytest.mark.parametrize("credentials", [False, True])
async def test_a_plain_url_of_a_port_with_tls_is_told_and_sends_no_credentials(files: Path, credentials: bool) -> None:
    async with listening(server(files)) as peer:
        seen: list[bytes] = []
        host, port = "localhost", int(peer.url.rpartition(":")[2])

        async def passed_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                seen.append(data)
                target.write(data)
            target.close()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            there, back = await asyncio.open_connection(host, port)
            await asyncio.gather(passed_on(reader, back), passed_on(there, writer), return_exceptions=True)

        options = {"auth_plugin": "token", "auth_params": f"token:{SECRET}"} if credentials else {}
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as between:
            url = f"pulsar://127.0.0.1:{between.sockets[0].getsockname()[1]}"
            said = await outcome(url, **options)
        assert said.startswith(f"connect to {url}: {url[9:]} speaks TLS: write pulsar+ssl:// (REST: https://)")
        assert seen and SECRET.encode() not in b"".join(seen)


async def test_a_tls_url_of_a_port_without_it_is_told(peer: Peer) -> None:
    url = peer.url.replace("pulsar:", "pulsar+ssl:")
    said = await outcome(url, auth_plugin="token", auth_params=f"token:{SECRET}")
    assert said.startswith(f"connect to {url}: {url[13:]} speaks no TLS: give its port with TLS, or write pulsar://")
    assert not peer.all(Command.CONNECT)


async def test_a_token_goes_over_tls_and_the_broker_is_found_by_its_tls_url(files: Path) -> None:
    """A look-up that is passed on twice: each address has a plain URL, too, which is not for this client."""
    async with listening(server(files)) as first, listening(server(files)) as second:

        def passed_on(kind: LookupType) -> Script:
            return lambda link, fields: encode_command(
                Command.LOOKUP_RESPONSE, request_id=fields["request_id"], response=kind,
                broker_service_url="pulsar://localhost:1", broker_service_url_tls=second.url,
            )  # fmt: skip

        first.script(Command.LOOKUP, passed_on(LookupType.Redirect))
        tasks = Tasks()
        trusted = str(files / "authority.pem")
        config = first.config(auth_plugin="token", auth_params=f"token:{SECRET}", tls_trust_certs_file_path=trusted)
        pool = Pool(config, tasks)
        found = await Topics(pool, config, Backoff()).owner(TOPIC)
        assert found.address.broker == second.url
        for peer in (first, second):
            assert [fields["auth_data"] for fields in peer.all(Command.CONNECT)] == [SECRET.encode()]
        assert len(second.all(Command.LOOKUP)) == 1
        await pool.aclose(1)
        await tasks.aclose(1)


async def test_the_next_host_is_tried_when_one_is_not_trusted(files: Path) -> None:
    async with listening(server(files, "forged")) as bad, listening(server(files)) as good:
        trusted = {"tls_trust_certs_file_path": str(files / "authority.pem")}
        places = [peer.url.partition("://")[2] for peer in (bad, good)]
        assert await outcome(f"pulsar+ssl://{','.join(places)}", **trusted) == ""
        assert "is not trusted" in await outcome(f"pulsar+ssl://localhost:1,{places[0]}", **trusted)


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("loop", [asyncio.run, uvloop.run])
def test_a_message_goes_out(files: Path, loop: Callable[[Any], None], tls: bool) -> None:
    async def main() -> None:
        async with listening(server(files) if tls else None) as peer:
            url = f"{peer.url}?transport=wire&jms.precreateQueueSubscription=false&jms.usePulsarAdmin=false"
            trusted = str(files / "authority.pem")
            async with (
                jmsaio.connect(url, tls_trust_certs_file_path=trusted) as connection,
                connection.create_session() as session,
                session.create_producer(session.create_queue("q")) as producer,
            ):
                await producer.send("hello" * 10_000)
            assert [len(payload) for _, payload in peer.entries.values()] == [50_000]

    loop(main())


@pytest.mark.parametrize("tls", [False, True])
async def test_closing_is_bounded_where_the_broker_neither_answers_nor_reads(files: Path, tls: bool) -> None:
    """With everything open, and more written than the network takes."""
    before = asyncio.all_tasks()
    async with listening(server(files) if tls else None) as peer:
        transport = await open_transport(peer.config(tls_trust_certs_file_path=str(files / "authority.pem")))
        sender = await transport.open_sender(TOPIC, SenderOptions(ProducerConfig(batching_enabled=False), tell_each))
        subscription = Subscription((TOPIC,), "s", SubscriptionType.SHARED, ConsumerConfig())
        await transport.open_receiver(subscription, lambda: None)
        await transport.open_reader(ReaderOptions(TOPIC, ConsumerConfig()))
        peer.links[-1].transport.pause_reading()
        outcomes = Outcomes()
        for _ in range(200):
            sender.send(record("x" * 80_000), outcomes)
        await asyncio.sleep(0.05)
        async with asyncio.timeout(10):
            await transport.aclose(0.3)
        assert len(outcomes) == 200
    assert asyncio.all_tasks() == before


@pytest.mark.slow
@pytest.mark.parametrize("tls", [False, True])
async def test_a_map_that_names_only_the_rest_interface(
    secure_broker: SecureBroker, name: Callable[[str], str], tls: bool
) -> None:
    """It names the address with TLS to a client with TLS. A Java service's map has native transactions."""
    options = {**secure_broker.options(tls=tls), "enableTransaction": "true", "tlsEnableHostnameVerification": "false"}
    del options["brokerServiceUrl"]
    queue = jmsaio.Queue(name("only-web"))
    async with jmsaio.connect(options) as connection:
        async with connection.create_session(jmsaio.AcknowledgeMode.TRANSACTED) as session:
            async with session.create_producer(queue) as producer:
                await producer.send("x")
            await session.commit()
            async with session.create_consumer(queue) as consumer:
                assert (await consumer.receive(10)) is not None
