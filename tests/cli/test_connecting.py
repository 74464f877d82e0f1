"""The configuration that send, receive and browse are given."""

import pathlib

import click
import pytest

from jmsaio.cli.connecting import read_connection, run
from jmsaio.config import load
from jmsaio.errors import ConfigurationError


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


def test_run_gives_the_code() -> None:
    async def work() -> int:
        return 7

    assert run(work()) == 7
