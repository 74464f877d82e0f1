"""``jmsaio browse``."""

import json
from typing import Any

import pytest

import jmsaio
from jmsaio.cli.browse import _browse
from jmsaio.cli.common.output import Output


async def test_messages_are_shown_and_stay(config: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        producer = await session.create_producer(session.create_queue("orders"))
        for number in range(5):
            await producer.send(f"text {number}", properties={"number": number})
    for _ in range(2):
        assert await _browse(config, "orders", "number > 1", 2, False, Output(as_json=True)) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [json.loads(line)["body"] for line in lines] == ["text 2", "text 3"]
    assert await _browse(config, "orders", None, None, True, Output(as_json=False)) == 0
    output = capsys.readouterr()
    assert output.out.count("text ") == 5
    assert "5 messages seen in orders, all still there" in output.err


async def test_an_empty_queue(config: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert await _browse(config, "orders", None, None, False, Output(as_json=False)) == 3
    assert "no message in orders" in capsys.readouterr().err
