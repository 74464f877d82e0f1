"""``jmsaio send``."""

import asyncio
import io
import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

import jmsaio
from jmsaio.cli import main
from jmsaio.cli.common.output import Output
from jmsaio.cli.send import SendingStopped, SendsInFlight, send
from jmsaio.client.senders.pending import Receipt
from jmsaio.testing import embedded_broker
from tests.cli.inside import run_inside

Pipe = Callable[[io.BytesIO], None]


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Pipe:
    """Replace standard input."""
    return lambda data: monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=data, isatty=lambda: False))


async def received(config: dict[str, Any], count: int) -> list[Any]:
    async with (
        jmsaio.connect(config) as connection,
        connection.create_session() as session,
        session.create_consumer(session.create_queue("orders")) as consumer,
    ):
        return [await consumer.receive(timeout=20) for _ in range(count)]


async def test_a_message_with_everything(config: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "tea",
        "-p",
        "amount:short=5",
        "--correlation-id",
        "c",
        "--type",
        "order",
        "--reply-to",
        "topic:answers",
    ]
    options = ["--reply-to", "topic:answers", "--priority", "7", "--ttl", "60", "--non-persistent"]
    async with jmsaio.connect(config):  # keeps nothing but the broker's name in use
        assert await run_inside(send, config, "orders", *arguments, *options) == 0
        record = json.loads(capsys.readouterr().out)
        (message,) = await received(config, 1)
    assert message.jms_message_id == record["message_id"]
    assert (message.text, message.jms_priority, message.jms_delivery_mode) == ("tea", 7, 1)
    assert (message.jms_correlation_id, message.jms_type, message.jms_reply_to.name) == ("c", "order", "answers") or (
        message.jms_reply_to.name.endswith("/answers")
    )
    assert isinstance(message.jms_reply_to, jmsaio.Topic)
    assert message.jms_expiration > message.jms_timestamp
    assert isinstance(message.properties["amount"], jmsaio.Short)


async def test_many_lines_in_order(config: dict[str, Any], pipe: Pipe, capsys: pytest.CaptureFixture[str]) -> None:
    pipe(io.BytesIO(b"".join(f"{number}\n".encode() for number in range(300))))
    assert await run_inside(send, config, "orders", "--lines", "--no-json") == 0
    assert capsys.readouterr().out.strip() == "300 messages sent to orders"
    assert [message.text for message in await received(config, 300)] == [str(number) for number in range(300)]


async def test_a_line_of_receive_keeps_its_headers(config: dict[str, Any], pipe: Pipe) -> None:
    """Priority, delivery mode and reply destination; an option of the command wins."""
    line = b'{"body": "tea", "priority": 7, "delivery_mode": "NON_PERSISTENT", "reply_to": "topic:answers"}\n'
    for options in ([], ["--priority", "2"]):
        pipe(io.BytesIO(line))
        assert await run_inside(send, config, "orders", "--json-lines", *options) == 0
    first, second = await received(config, 2)
    assert [first.jms_priority, second.jms_priority] == [7, 2]
    assert first.jms_delivery_mode == second.jms_delivery_mode == jmsaio.DeliveryMode.NON_PERSISTENT
    assert isinstance(first.jms_reply_to, jmsaio.Topic)


async def test_repeated_messages_are_sent_in_order_with_ids_of_their_own(
    config: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert await run_inside(send, config, "orders", "a", "b", "-n", "3") == 0
    ids = [json.loads(line)["message_id"] for line in capsys.readouterr().out.splitlines()]
    assert len(set(ids)) == 6
    assert [message.text for message in await received(config, 6)] == ["a", "a", "a", "b", "b", "b"]


async def test_an_empty_file_sends_nothing(config: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert await run_inside(send, config, "orders", "--lines", "-f", os.devnull, "--no-json") == 0
    assert "nothing to send" in capsys.readouterr().err


async def test_every_send_says_what_it_sent(
    config: dict[str, Any], pipe: Pipe, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also one of one line, and one that ends at a broken line."""
    pipe(io.BytesIO(b"a\n"))
    assert await run_inside(send, config, "orders", "--lines", "--no-json") == 0
    assert capsys.readouterr().out == "1 message sent to orders\n"
    assert await run_inside(send, config, "orders", "b", "--no-json") == 0
    assert capsys.readouterr().out.startswith("sent ID:")
    pipe(io.BytesIO(b'{"body": "c"}\n{"body": "d"}\n{\n'))
    with pytest.raises(click.UsageError, match=r"2 sent, then: .*line 3: not a message in JSON"):
        await run_inside(send, config, "orders", "--json-lines", "--no-json")
    assert [message.text for message in await received(config, 4)] == ["a", "b", "c", "d"]


async def test_a_send_that_fails_midway_says_what_became_of_all(
    config: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """The error's class, and the messages that were sent, failed or are in doubt; those behind the first error, too."""
    with embedded_broker() as broker:
        broker.faults.delay_answers(0.1)
        broker.faults.fail_sends(error=jmsaio.ResourceAllocationError("the disk is full"))
        broker.faults.lose_answers()
        with pytest.raises(SendingStopped) as stopped:
            await run_inside(send, config | {"brokerServiceUrl": broker.url}, "orders", *"abcde")
    assert str(stopped.value) == (
        "3 sent, 1 failed, 1 in doubt (the broker might have stored them), "
        "first ResourceAllocationError: the disk is full"
    )
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.broker
def test_a_message_that_is_too_large_among_others(
    pulsar_broker: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is refused while those before it are on their way: they are counted."""
    queue, bodies = f"cli-{uuid.uuid4()}", ["a", "b"]
    where = ["--url", pulsar_broker.service_url, "-o", f"webServiceUrl={pulsar_broker.web_service_url}"]
    large = tmp_path / "large"
    large.write_bytes(b"x" * 6_000_000)
    config = {"brokerServiceUrl": where[1], "webServiceUrl": pulsar_broker.web_service_url}
    with pytest.raises(SendingStopped, match="2 sent, 1 failed, first MessageTooLargeError: "):
        asyncio.run(run_inside(send, config, queue, *bodies, "-f", str(large)))
    capsys.readouterr()
    assert main(["receive", queue, *where, "-n", "2", "--timeout", "60"]) == 0
    assert [json.loads(line)["body"] for line in capsys.readouterr().out.splitlines()] == bodies


class Endless(io.BytesIO):
    """A file that ends nowhere."""

    def read(self, size: int | None = -1) -> bytes:
        return b"a\n"


async def test_an_interrupted_send_says_what_it_sent(
    config: dict[str, Any], pipe: Pipe, capsys: pytest.CaptureFixture[str]
) -> None:
    """The number is that of the messages which the broker has confirmed."""
    pipe(Endless())
    async with jmsaio.connect(config | {"memory_limit": 10_000_000}):
        task = asyncio.create_task(run_inside(send, config, "orders", "--lines", "--no-json"))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert re.fullmatch(r"[1-9]\d* messages sent to orders\n", capsys.readouterr().err)


def test_nothing_from_a_command_that_failed_is_sent() -> None:
    """The help's own mistake: the file before the pipe is missing."""
    command = f"cat /nonexistent/file | {sys.executable} -m jmsaio send orders -u pulsar://127.0.0.1:1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "standard input is empty" in " ".join(done.stderr.split())


@pytest.mark.broker
def test_send_receive_and_browse_on_a_real_broker(pulsar_broker: Any, capsys: pytest.CaptureFixture[str]) -> None:
    queue = f"cli-{uuid.uuid4()}"
    where = ["--url", pulsar_broker.service_url, "-o", f"webServiceUrl={pulsar_broker.web_service_url}"]
    assert main(["receive", queue, *where, "--timeout", "1", "--create"]) == 3
    assert main(["send", queue, "tea", "coffee", *where, "-p", "amount:int=5", "--priority", "7"]) == 0
    sent = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert main(["browse", queue, *where, "-s", "amount = 5"]) == 0
    seen = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert main(["receive", queue, *where, "-n", "2", "--timeout", "60"]) == 0
    taken = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["message_id"] for record in sent] == [record["message_id"] for record in taken]
    assert seen == taken
    assert taken[0]["body"] == "tea" and taken[0]["properties"]["amount"] == 5 and taken[0]["priority"] == 7
    assert main(["browse", queue, *where]) == 3
    capsys.readouterr()
    assert main(["send", queue, "tea", "-u", pulsar_broker.service_url, "-o", "webServiceUrl=http://127.0.0.1:1"]) == 1
    assert "REST interface at http://127.0.0.1:1 can't be reached: Connection refused" in capsys.readouterr().err


async def test_no_more_than_so_many_messages_are_on_their_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jmsaio.cli.send._PENDING", 2)
    window = SendsInFlight(Output(as_json=True), "q", False)
    loop = asyncio.get_running_loop()
    sends: list[asyncio.Future[Any]] = [loop.create_future() for _ in range(3)]

    async def send(number: int) -> asyncio.Future[Any]:
        return sends[number]

    for number in range(2):
        await window.add(send(number))
    third = asyncio.ensure_future(window.add(send(2)))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not third.done()
    sends[0].set_result(Receipt(None, None, jmsaio.Queue("q"), 0))
    await third
    assert window.sent == 1
