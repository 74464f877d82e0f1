"""Completion in the shell: names of queues and topics of the broker, and of guides."""

from __future__ import annotations

from collections.abc import Callable

import anyio.to_thread
import pytest
from click.shell_completion import ShellComplete

import jmsaio
from jmsaio.cli.app import app
from tests.support.broker import TestBroker


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
