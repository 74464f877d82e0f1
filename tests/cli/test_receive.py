"""``jmsaio receive`` and ``browse``."""

import asyncio
import base64
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import jmsaio
from jmsaio.cli import main
from jmsaio.cli.common.output import Output
from jmsaio.cli.receive import browse, receive, wait_until_read
from tests.cli.inside import run_inside
from tests.client.test_malformed import BAD, poison


async def take(config: dict[str, Any], *arguments: str, form: str = "--json") -> int:
    """Run ``receive orders``."""
    return await run_inside(receive, config, "orders", "--create", "--timeout", "0.3", form, *arguments)


async def send(config: dict[str, Any], *texts: str) -> None:
    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        producer = await session.create_producer(session.create_queue("orders"))
        for number, text in enumerate(texts):
            await producer.send(text, properties={"number": number})


async def test_one_message_is_taken(config: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    await send(config, "tea", "coffee")
    for text in ("tea", "coffee"):
        assert await take(config) == 0
        assert json.loads(capsys.readouterr().out)["body"] == text
    assert await take(config) == 3


async def test_all_that_is_selected_and_the_rest_stays(
    config: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    await send(config, "a", "b", "c")
    assert await take(config, "--all", "-s", "number <> 1") == 0
    assert [json.loads(line)["body"] for line in capsys.readouterr().out.splitlines()] == ["a", "c"]
    assert await take(config, "--timeout", "10") == 0
    assert json.loads(capsys.readouterr().out)["body"] == "b"


@pytest.mark.parametrize("taking", [True, False], ids=["receive", "browse"])
@pytest.mark.parametrize("form", ["--json", "--no-json"])
async def test_messages_are_shown_as_their_schema_says(
    config: dict[str, Any], capsys: pytest.CaptureFixture[str], taking: bool, form: str
) -> None:
    """Without the option, as bytes."""
    price = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    fields = [{"name": "price", "type": price}, {"name": "tags", "type": {"type": "array", "items": "bytes"}}]
    schema = jmsaio.Schema("AVRO", {"type": "record", "name": "Order", "fields": fields})
    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        async with session.create_producer(session.create_queue("orders"), schema=schema) as producer:
            await producer.send({"price": Decimal("12.30"), "tags": [b"a"]})
    with_schema = {**config, "consumerConfig.useSchema": "true"}
    if taking:
        assert await take(with_schema, form=form) == 0
    else:
        assert await run_inside(browse, config, "orders", form) == 0
        assert ("bytes" if form == "--json" else " bytes: ") in capsys.readouterr().out
        assert await run_inside(browse, with_schema, "orders", form) == 0
    shown = capsys.readouterr().out
    if form == "--json":
        record = json.loads(shown)
        assert (record["kind"], record["body"]) == ("map", {"price": "12.30", "tags": ["YQ=="]})
        assert record["body_types"] == {"price": "decimal"}
    else:
        assert 'map {"price": "12.30", "tags": ["YQ=="]}  types' in shown


async def test_people_are_told_when_nothing_came(config: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert await take(config, form="--no-json") == 3
    assert "no message in orders within 0.3 s" in capsys.readouterr().err


async def test_a_message_that_could_not_be_written_out_is_not_lost(
    config: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    await send(config, "tea")

    def broken(_: Any) -> None:
        raise BrokenPipeError

    with monkeypatch.context() as patched:
        patched.setattr(Output, "record", lambda self, data: broken(data))
        with pytest.raises(BrokenPipeError):
            await take(config)
    assert await take(config, "--timeout", "10") == 0
    assert json.loads(capsys.readouterr().out)["body"] == "tea"


@pytest.mark.parametrize("kind", ["durable", "shared-durable"])
async def test_subscriptions_of_a_topic(kind: str, config: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    config["jms.clientId"] = f"cli-{kind}"
    asked = ["prices", "-t", f"--{kind}", "audit", "--create", "--timeout", "0.3"]
    assert await run_inside(receive, config, *asked) == 3
    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        producer = await session.create_producer(session.create_topic("prices"))
        await producer.send("up")
    assert await run_inside(receive, config, *asked) == 0
    assert json.loads(capsys.readouterr().out)["body"] == "up"


# Thirty messages on an embedded broker, received into standard output; what is left there goes into a file.
_CHILD = """
import asyncio, json, sys, jmsaio
from jmsaio.cli.receive import receive
from tests.cli.inside import run_inside

async def main():
    config = {"brokerServiceUrl": "memory:", "close_timeout": 5}
    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        queue = session.create_queue("orders")
        producer = await session.create_producer(queue)
        for number in range(30):
            await producer.send(str(number))
        try:
            await run_inside(receive, config, "orders", "--all", "--timeout", "0.5", sys.argv[2])
        except BrokenPipeError:
            sys.stdout = None
        async with session.create_browser(queue) as browser:
            left = [message.text async for message in browser.stream()]
        open(sys.argv[1], "w").write(json.dumps(left))

asyncio.run(main())
"""


@pytest.mark.parametrize("form", ["--json", "--no-json"])
@pytest.mark.parametrize(
    ("reader", "taken"), [("head -1", 1), ("false", 0), ("/nonexistent/command", 0), ("cat > /dev/null", 30)]
)
def test_what_the_pipes_reader_has_not_read_stays(form: str, reader: str, taken: int, tmp_path: Path) -> None:
    """A message that only lies in the pipe is not acknowledged."""
    if form == "--no-json" and reader == "head -1":
        reader = "head -2"  # a message for people has two lines
    left = tmp_path / "left"
    child = f"{sys.executable} -c '{_CHILD}' {left} {form}"
    done = subprocess.run(["sh", "-c", f"{child} | {reader}"], capture_output=True, text=True, check=False, timeout=60)
    assert json.loads(left.read_text()) == [str(number) for number in range(taken, 30)], done.stderr


@pytest.mark.broker
def test_a_pipe_that_ends_gives_back_the_rest_on_a_real_broker(
    pulsar_broker: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """What head shows is gone, the rest is there, and the exit code is that of a broken pipe."""
    queue = f"cli-{uuid.uuid4()}"
    where = ["--url", pulsar_broker.service_url, "-o", f"webServiceUrl={pulsar_broker.web_service_url}"]
    assert main(["send", queue, *map(str, range(30)), *where]) == 0
    capsys.readouterr()
    reader, writer = os.pipe()
    head = subprocess.Popen(["head", "-2"], stdin=reader, stdout=subprocess.PIPE, text=True)
    os.close(reader)
    arguments = [sys.executable, "-m", "jmsaio", "receive", queue, "--all", "--timeout", "20", "--json", *where]
    done = subprocess.run(arguments, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=120)
    os.close(writer)
    shown = head.communicate(timeout=30)[0].splitlines()
    assert done.returncode == 141, done.stderr
    assert "Traceback" not in done.stderr
    assert main(["receive", queue, "-n", "28", "--timeout", "60", *where]) == 0
    rest = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["body"] for line in shown] == ["0", "1"]
    assert sorted(int(json.loads(line)["body"]) for line in rest) == list(range(2, 30))
    assert main(["browse", queue, *where]) == 3


async def test_what_can_not_be_read_is_shown_as_it_came_and_does_not_stop_the_rest(
    config: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """A message that can't be read is written as raw and taken away; the rest comes, and the exit code is 1."""
    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        await session.create_producer(session.create_queue("orders"))
        await poison(connection, "orders")
        await send(config, "tea")
        assert await take(config, "--all") == 1
        raw, tea = (json.loads(line) for line in capsys.readouterr().out.splitlines())
        assert (raw["kind"], base64.b64decode(raw["body"]), raw["properties"]["colour"]) == ("raw", BAD, "red")
        assert "no readable text body" in raw["error"] and tea["body"] == "tea"
        assert await take(config, "--all") == 3
        await poison(connection, "orders")
        assert await take(config, form="--no-json") == 1
        shown = capsys.readouterr()
        assert "colour = 'red'" in shown.out and "ff fe" in shown.out and "1 of 1 messages can't be read" in shown.err


async def test_a_slow_reader_of_what_can_not_be_read_does_not_end_the_command(
    config: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message was given back before it could be acknowledged: that is reported, and the rest arrives."""

    async def slow() -> None:
        await asyncio.sleep(1.7)

    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        await session.create_producer(session.create_queue("orders"))
        await poison(connection, "orders")
        await send(config, "tea")
        with monkeypatch.context() as patched:
            patched.setattr("jmsaio.cli.receive.wait_until_read", slow)
            assert await take(config, "-n", "2") == 1
        shown = capsys.readouterr()
        assert [json.loads(line)["kind"] for line in shown.out.splitlines()] == ["raw", "text"]
        assert "given back meanwhile" in shown.err


@pytest.mark.parametrize(
    ("options", "timeout"),
    [([], 10.0), (["--count", "3"], 10.0), (["--all"], 2.0), (["--follow"], None), (["--all", "--timeout", "7"], 7.0)],
)
async def test_how_long_it_waits_depends_on_how_much_is_wanted(
    config: dict[str, Any], monkeypatch: pytest.MonkeyPatch, options: list[str], timeout: float | None
) -> None:
    timeouts: list[float | None] = []

    async def note(consumer: object, limit: int | None, timeout: float | None, *more: object) -> tuple[int, int]:
        timeouts.append(timeout)
        return 1, 0

    monkeypatch.setattr("jmsaio.cli.receive._write_all", note)
    assert await run_inside(receive, config, "orders", "--create", *options) == 0
    assert timeouts == [timeout]


@contextmanager
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """Both ends of a pipe that is standard output."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as output, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", output)
        yield reader, writer


async def test_it_waits_until_all_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a byte that lies in the pipe nor a part of what was written counts as taken."""
    with pipe(monkeypatch) as (reader, writer):
        await wait_until_read()
        os.write(writer, b"abc")
        waiting = asyncio.create_task(wait_until_read())
        for _ in range(3):
            await asyncio.sleep(0.05)
            assert not waiting.done()
            assert len(os.read(reader, 1)) == 1
        await asyncio.wait_for(waiting, 30)
        os.close(reader)


async def test_a_reader_that_ends_has_taken_what_it_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is a broken pipe, also while it is waited for."""
    with pipe(monkeypatch) as (reader, writer):
        os.write(writer, b"abc")
        os.read(reader, 3)
        await asyncio.wait_for(wait_until_read(), 30)
        os.write(writer, b"d")
        waiting = asyncio.create_task(wait_until_read())
        await asyncio.sleep(0.1)
        os.close(reader)
        with pytest.raises(BrokenPipeError):
            await asyncio.wait_for(waiting, 30)


async def test_a_file_needs_no_reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No one has to read a file, and a stream without a file has no reader."""
    descriptor = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    with os.fdopen(descriptor, "w") as output, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", output)
        output.write("abc")
        await wait_until_read()
        patched.setattr(sys, "stdout", None)
        await wait_until_read()


async def test_messages_are_shown_and_stay(config: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        producer = await session.create_producer(session.create_queue("orders"))
        for number in range(5):
            await producer.send(f"text {number}", properties={"number": number})
    for _ in range(2):
        assert await run_inside(browse, config, "orders", "-s", "number > 1", "-n", "2") == 0
        lines = capsys.readouterr().out.splitlines()
        assert [json.loads(line)["body"] for line in lines] == ["text 2", "text 3"]
    assert await run_inside(browse, config, "orders", "--headers", "--no-json") == 0
    output = capsys.readouterr()
    assert output.out.count("text ") == 5
    assert "5 messages seen in orders, all still there" in output.err


async def test_an_empty_queue(config: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    async with jmsaio.connect(config) as connection:
        with pytest.raises(jmsaio.NotFoundError, match=r"there is no queue orders.*--create"):
            await run_inside(browse, config, "orders")
        async with connection.create_session() as session:
            await session.create_durable_consumer(session.create_topic("news"), "audit")
        with pytest.raises(jmsaio.NotFoundError, match="there is no queue news"):
            await run_inside(browse, config, "news")
    assert await run_inside(browse, config, "orders", "--create", "--no-json") == 3
    assert "no message in orders" in capsys.readouterr().err
