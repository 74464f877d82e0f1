"""``jmsaio browse`` and ``jmsaio peek``."""

import json
from collections.abc import Callable
from typing import Any

import anyio.to_thread
import pytest

import jmsaio
from jmsaio.cli.app import main
from jmsaio.cli.browse import _browse
from jmsaio.cli.common.output import Output
from tests.support.broker import TestBroker


async def test_messages_are_shown_and_stay(config: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        producer = await session.create_producer(session.create_queue("orders"))
        for number in range(5):
            await producer.send(f"text {number}", properties={"number": number})
    for _ in range(2):
        assert await _browse(config, "orders", "number > 1", 2, False, False, Output(as_json=True)) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [json.loads(line)["body"] for line in lines] == ["text 2", "text 3"]
    assert await _browse(config, "orders", None, None, True, False, Output(as_json=False)) == 0
    output = capsys.readouterr()
    assert output.out.count("text ") == 5
    assert "5 messages seen in orders, all still there" in output.err


async def test_an_empty_queue(config: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    async with jmsaio.connect(config) as connection:
        with pytest.raises(jmsaio.NotFoundError, match=r"there is no queue orders.*--create"):
            await _browse(config, "orders", None, None, False, False, Output(as_json=False))
        async with connection.create_session() as session:
            await session.create_durable_consumer(session.create_topic("news"), "audit")
        with pytest.raises(jmsaio.NotFoundError, match="there is no queue news"):
            await _browse(config, "news", None, None, False, False, Output(as_json=False))
    assert await _browse(config, "orders", None, None, False, True, Output(as_json=False)) == 3
    assert "no message in orders" in capsys.readouterr().err


@pytest.mark.broker
async def test_peek_shows_the_first_ten_messages(
    pulsar_broker: TestBroker, name: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    queue = name("peeked")
    async with jmsaio.connect(pulsar_broker.url) as connection, connection.create_session() as session:
        producer = await session.create_producer(session.create_queue(queue))
        for number in range(12):
            await producer.send(str(number))
    for arguments, count in (([], 10), (["-n", "1"], 1), (["-n", "20"], 12)):
        command = ["peek", queue, "-u", pulsar_broker.url, "--json", *arguments]
        assert await anyio.to_thread.run_sync(main, command) == 0
        bodies = [json.loads(line)["body"] for line in capsys.readouterr().out.splitlines()]
        assert bodies == [str(number) for number in range(count)]
    assert await anyio.to_thread.run_sync(main, ["peek", name("none"), "-u", pulsar_broker.url]) == 1
