"""``jmsaio receive``."""

import json
from typing import Any

import pytest

import jmsaio
from jmsaio.cli.output import Output
from jmsaio.cli.receive import Job, _receive


def job(config: dict[str, Any], **more: Any) -> Job:
    values: dict[str, Any] = {
        "name": "orders", "topic": False, "selector": None, "subscription": None, "limit": 1, "timeout": 0.3,
        "headers": False,
    }  # fmt: skip
    return Job(config=config, **(values | more))


async def send(config: dict[str, Any], *texts: str) -> None:
    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        producer = await session.create_producer(session.create_queue("orders"))
        for number, text in enumerate(texts):
            await producer.send(text, properties={"number": number})


async def test_one_message_is_taken(config: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    await send(config, "tea", "coffee")
    for text in ("tea", "coffee"):
        assert await _receive(job(config), Output(as_json=True)) == 0
        assert json.loads(capsys.readouterr().out)["body"] == text
    assert await _receive(job(config), Output(as_json=True)) == 3


async def test_all_that_is_selected_and_the_rest_stays(
    config: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    await send(config, "a", "b", "c")
    assert await _receive(job(config, limit=None, selector="number <> 1"), Output(as_json=True)) == 0
    assert [json.loads(line)["body"] for line in capsys.readouterr().out.splitlines()] == ["a", "c"]
    assert await _receive(job(config, timeout=10), Output(as_json=True)) == 0
    assert json.loads(capsys.readouterr().out)["body"] == "b"


async def test_people_are_told_when_nothing_came(config: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert await _receive(job(config), Output(as_json=False)) == 3
    assert "no message in orders within 0.3 s" in capsys.readouterr().err


async def test_a_message_that_could_not_be_written_out_is_not_lost(
    config: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    await send(config, "tea")
    output = Output(as_json=True)

    def broken(_: Any) -> None:
        raise BrokenPipeError

    with monkeypatch.context() as patched:
        patched.setattr(Output, "record", lambda self, data: broken(data))
        with pytest.raises(BrokenPipeError):
            await _receive(job(config), output)
    assert await _receive(job(config, timeout=10), output) == 0
    assert json.loads(capsys.readouterr().out)["body"] == "tea"


@pytest.mark.parametrize("kind", ["durable", "shared-durable"])
async def test_subscriptions_of_a_topic(
    kind: str, config: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    config["jms.clientId"] = f"cli-{kind}"
    asked = job(config, name="prices", topic=True, subscription=(kind, "audit"))
    assert await _receive(asked, Output(as_json=True)) == 3
    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        producer = await session.create_producer(session.create_topic("prices"))
        await producer.send("up")
    assert await _receive(asked, Output(as_json=True)) == 0
    assert json.loads(capsys.readouterr().out)["body"] == "up"
