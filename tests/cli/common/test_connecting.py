"""The configuration that send, receive and browse are given."""

import asyncio
import pathlib
import socket

import click
import pytest

from jmsaio.cli.common.connecting import CONNECT_TIMEOUT, read_connection, require_rest
from jmsaio.config import load
from jmsaio.errors import BrokerUnavailableError, ConfigurationError


def test_url_and_options_become_one_map(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    config = load(read_connection("pulsar://h?jms.clientId=a", ("producerConfig.batchingEnabled=false",)))
    assert (config.service_url, config.client_id, config.producer.batching_enabled) == ("pulsar://h:6650", "a", False)
    monkeypatch.setenv("JMSAIO_URL", "pulsar://from-environ")
    assert load(read_connection(None, ())).service_url == "pulsar://from-environ:6650"
    path = tmp_path / "c.toml"
    path.write_text('brokerServiceUrl = "pulsar://from-file"\njms.clientId = "f"\n')
    config = load(read_connection(str(path), ("jms.clientId=o",)))
    assert (config.service_url, config.client_id) == ("pulsar://from-file:6650", "o")


def test_the_embedded_broker_is_refused_with_what_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JMSAIO_URL", raising=False)
    for url in (None, "memory:", "memory://x"):
        with pytest.raises(click.UsageError, match=r"lives in one process only.*jmsaio broker start"):
            read_connection(url, ())
    with pytest.raises(ConfigurationError):
        read_connection("pulsar://h", ("nosuch=1",))


def test_a_person_waits_a_short_time_unless_an_option_says_otherwise(tmp_path: pathlib.Path) -> None:
    """The command line has a shorter time to connect than services have."""
    assert load(read_connection("pulsar://h", ())).connect_timeout == CONNECT_TIMEOUT < 5
    assert load(read_connection("pulsar://h?connect_timeout=30", ())).connect_timeout == 30
    assert load(read_connection("pulsar://h", ("connect_timeout=31",))).connect_timeout == 31
    path = tmp_path / "c.toml"
    path.write_text('service_url = "pulsar://from-file?connect_timeout=32"\n')
    assert load(read_connection(str(path), ())).connect_timeout == 32


async def test_the_rest_interface_is_looked_for() -> None:
    """Somebody who listens will do; else the sentence has the address and the cause."""
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    place = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    config = load(f"pulsar://h?webServiceUrl=http://{place}")
    async with server:
        await require_rest(config)
    with pytest.raises(BrokerUnavailableError, match=rf"http://{place} .*Connection refused.*webServiceUrl"):
        await require_rest(config)
    with pytest.raises(BrokerUnavailableError, match=r"nosuch\.invalid"):
        await require_rest(load("pulsar://h?webServiceUrl=https://nosuch.invalid"))


async def test_the_rest_interface_of_a_host_with_two_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cause is the same sentence when each of them refuses, as with ::1 and 127.0.0.1."""

    async def two(host: object, port: object, **options: object) -> list[object]:
        addresses = ("127.0.0.1", "127.0.0.2")
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (each, port)) for each in addresses]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", two)
    with pytest.raises(BrokerUnavailableError, match=r"reached: Connection refused; give the right webServiceUrl"):
        await require_rest(load("pulsar://h?webServiceUrl=http://both.example:1"))
