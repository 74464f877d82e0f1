"""The configuration that commands are given; Ctrl-C closes their connection, and a later one ends them at once."""

from __future__ import annotations

import asyncio
import pathlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable

import anyio.to_thread
import click
import pytest
from click.shell_completion import ShellComplete

import jmsaio
from jmsaio.cli.app import app
from jmsaio.cli.common.connecting import (
    CONNECT_TIMEOUT,
    agreed,
    full_name,
    read_connection,
    require_rest,
    run,
    with_options,
)
from jmsaio.cli.common.output import INTERRUPTED
from jmsaio.config import load
from jmsaio.errors import BrokerUnavailableError, ConfigurationError
from tests.support.broker import TestBroker


def test_several_options_are_shown_in_the_order_in_which_they_are_given() -> None:
    command = click.command()(with_options(lambda **_: None, *map(click.option, ("--one", "--two", "--three"))))
    assert [each.name for each in command.params] == ["one", "two", "three"]


def test_a_bare_name_gets_its_kind_and_a_full_one_keeps_it() -> None:
    assert full_name("orders", topic=False) == "queue://orders"
    assert full_name("orders", topic=True) == "topic://orders"
    assert full_name("topic://orders", topic=False) == "topic://orders"


def test_url_and_options_become_one_map(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    config = load(read_connection("pulsar://h?jms.clientId=a", {"producerConfig.batchingEnabled": "false"}))
    assert (config.service_url, config.client_id, config.producer.batching_enabled) == ("pulsar://h:6650", "a", False)
    monkeypatch.setenv("JMSAIO_URL", "pulsar://from-environ")
    assert load(read_connection(None, {})).service_url == "pulsar://from-environ:6650"
    path = tmp_path / "c.toml"
    path.write_text('brokerServiceUrl = "pulsar://from-file"\njms.clientId = "f"\n')
    config = load(read_connection(str(path), {"jms.clientId": "o"}))
    assert (config.service_url, config.client_id) == ("pulsar://from-file:6650", "o")


def test_the_embedded_broker_is_refused_with_what_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JMSAIO_URL", raising=False)
    for url in (None, "memory:", "memory://x"):
        with pytest.raises(click.UsageError, match=r"lives in one process only.*jmsaio broker start"):
            read_connection(url, {})
    with pytest.raises(ConfigurationError):
        read_connection("pulsar://h", {"nosuch": "1"})


def test_a_person_waits_a_short_time_unless_an_option_says_otherwise(tmp_path: pathlib.Path) -> None:
    """The command line has a shorter time to connect than services have."""
    assert load(read_connection("pulsar://h", {})).connect_timeout == CONNECT_TIMEOUT < 5
    assert load(read_connection("pulsar://h?connect_timeout=30", {})).connect_timeout == 30
    assert load(read_connection("pulsar://h", {"connect_timeout": "31"})).connect_timeout == 31
    path = tmp_path / "c.toml"
    path.write_text('service_url = "pulsar://from-file?connect_timeout=32"\n')
    assert load(read_connection(str(path), {})).connect_timeout == 32


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


def completed(words: list[str], incomplete: str) -> list[str]:
    complete = ShellComplete(app, {}, "jmsaio", "_JMSAIO_COMPLETE")
    return [item.value for item in complete.get_completions(words, incomplete)]


def test_guides_are_completed() -> None:
    assert completed(["guide"], "oper") == ["operators"]


@pytest.mark.parametrize(
    ("incomplete", "found"),
    [
        ("transport=", ["transport=auto", "transport=pulsar-client", "transport=wire"]),
        ("jms.clientI", ["jms.clientId="]),
    ],
)
def test_options_and_their_choices_are_completed(incomplete: str, found: list[str]) -> None:
    assert completed(["queues", "-o"], incomplete) == found


@pytest.mark.parametrize("url", ["pulsar://127.0.0.1:1", "nosuch.toml", "memory:"])
def test_without_a_broker_nothing_is_completed(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert completed(["receive", "-u", url], "") == []
    assert capsys.readouterr() == ("", "")


@pytest.mark.broker
@pytest.mark.parametrize("command", [["receive"], ["dlq", "redrive"], ["stats"], ["move", "other"]])
async def test_queues_are_completed(command: list[str], pulsar_broker: TestBroker, name: Callable[[str], str]) -> None:
    queue = name("completed")
    async with jmsaio.connect(pulsar_broker.url) as connection, connection.create_session() as session:
        await (await session.create_consumer(session.create_queue(queue))).close()
    words = [*command, "-u", pulsar_broker.url]
    assert await anyio.to_thread.run_sync(completed, words, queue[:-4]) == [queue]


def test_yes_needs_no_terminal() -> None:
    assert agreed("delete it?", True)


def test_without_a_terminal_yes_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    with pytest.raises(click.UsageError, match="--yes"):
        agreed("delete it?", False)


@pytest.mark.parametrize(("answer", "result"), [("y", True), ("n", False), ("", False)])
def test_the_answer_on_a_terminal_decides(answer: str, result: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(click.termui, "visible_prompt_func", lambda prompt: answer)
    assert agreed("delete it?", False) is result


_COMMAND = """
import asyncio
import jmsaio.cli.app
from jmsaio.cli.common.connecting import run

async def work():
    try:
        print("started", flush=True)
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep({closing})
        print("closed", flush=True)

@jmsaio.cli.app.app.command("wait")
def wait():
    return run(work())

raise SystemExit(jmsaio.cli.app.main(["wait"]))
"""


def test_run_gives_the_code() -> None:
    async def work() -> int:
        return 7

    assert run(work()) == 7


@pytest.mark.parametrize(
    ("closing", "pauses", "closed"), [(0.2, [], True), (0.5, [0.03, 0.03], True), (60, [0.03, 1.2], False)]
)
def test_only_an_interrupt_a_second_after_the_first_ends_a_command_before_it_is_closed(
    closing: float, pauses: list[float], closed: bool
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _COMMAND.format(closing=closing)], text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    for pause in pauses:
        time.sleep(pause)
        process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=50)
    assert process.returncode == INTERRUPTED
    assert output == ("closed\n" if closed else "")
    assert errors.strip() == ("jmsaio: interrupted" if closed else "jmsaio: interrupted again")
