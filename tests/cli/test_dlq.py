"""``jmsaio dlq``: dead letters are listed, shown and redriven without Spark."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import random
import signal
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import jmsaio
from jmsaio.cli.app import main
from jmsaio.cli.common.output import Output, write_outcome
from jmsaio.cli.dlq import _subscription, list_letters, show
from jmsaio.cli.transfer import perform
from jmsaio.config import load
from jmsaio.maintenance.transfer import Transfer, TransferRequest
from jmsaio.model.destinations import Queue
from jmsaio.transport.base import StartPosition
from tests.cli.inside import run_inside
from tests.cli.test_transfer import interrupt, start
from tests.kit.records import texts
from tests.maintenance.letters import Letters, message
from tests.support.broker import TestBroker

MODE = jmsaio.AcknowledgeMode.CLIENT


@pytest.fixture
async def letters(url: str) -> AsyncIterator[Letters]:
    """A queue whose consumers fail, on each kind of broker."""
    letters = await Letters.start(load(url))
    yield letters
    await letters.stop()


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def named(letters: Letters) -> str:
    """The name of the dead letter queue."""
    return letters.dead.rpartition("/")[2]


@pytest.mark.not_on_pulsar("it would read the topics of all other tests; the next test lists a small namespace")
async def test_dead_letters_are_listed_with_their_number(
    letters: Letters, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await letters.put("a", "b")
    assert await run_inside(list_letters, {"brokerServiceUrl": url}) == 0
    found = [one for one in lines(capsys) if one["name"] == named(letters)]
    assert [(one["subscription"], one["backlog"]) for one in found] == [("jms-queue", 2)]


@pytest.mark.small_namespace  # the list looks at all topics
async def test_letters_of_a_topic_that_a_policy_names_are_found(
    url: str, name: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A batch counts as its messages; a topic whose letters are gone is left out."""
    failed, subscribed = f"{name('failed')}-DLQ", name("news")
    policy: dict[str, Any] = {"dead_letter": {"max_redeliver_count": 1, "dead_letter_topic": failed}}
    config = load(url)
    async with jmsaio.connect(url, client_id="a", **policy) as connection, connection.create_session(MODE) as session:
        topic = session.create_topic(subscribed)
        consumer = await session.create_durable_consumer(topic, "audit")
        async with session.create_producer(topic) as producer:
            await asyncio.gather(*(producer.send(text) for text in ("a", "b", "c")))
        async with session.create_consumer(session.create_queue(failed)) as dead:
            for _ in range(2):
                assert await consumer.receive(10) is not None
                await session.recover()
            while await dead.receive(2) is None:
                await session.recover()
            await session.recover()
        assert await run_inside(list_letters, {"brokerServiceUrl": url}) == 0
        [found] = [one for one in lines(capsys) if one["name"] == failed]
        assert (found["subscription"], found["backlog"] >= 1) == ("jms-queue", True)
        assert await run_inside(show, {"brokerServiceUrl": url}, failed, "-n", "1") == 0
        [letter] = lines(capsys)
        assert (letter["subscription"], letter["kind"], letter["body"]) == ("a_audit", "text", "a")
        assert await run_inside(show, {"brokerServiceUrl": url}, failed, "-n", "1", "--no-json") == 0
        shown = capsys.readouterr().out
        assert f"{subscribed}, subscription a_audit; failed deliveries: " in shown
        assert shown.rstrip().endswith("\n  a")
        purge = TransferRequest(destination=Queue(failed), transfer=Transfer.PURGE)
        await perform(config, purge, Output(as_json=True))
        await run_inside(list_letters, {"brokerServiceUrl": url})
        assert failed not in {one["name"] for one in lines(capsys)}


def test_the_subscription_is_in_the_name_of_an_older_letters_topic() -> None:
    origin = "persistent://public/default/orders"
    assert _subscription(f"{origin}-jms-queue-DLQ", origin) == "jms-queue"
    assert _subscription(f"{origin}-jms-queue-DLQ", "None") is None
    assert _subscription("persistent://public/default/failed", origin) is None


async def answered(answer: str, *arguments: str) -> tuple[int | None, dict[str, Any] | None, str]:
    """Run a command whose standard input is a terminal; return its exit code, its summary, and what it asked."""
    leader, follower = pty.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "jmsaio", *arguments, stdin=follower, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        os.write(leader, f"{answer}\n".encode())
        output, errors = await process.communicate()
    finally:
        os.close(leader)
        os.close(follower)
    return process.returncode, json.loads(output) if output else None, errors.decode()


@pytest.mark.broker
async def test_a_redrive_asks_with_number_targets_and_the_subscriptions_that_receive_them(
    pulsar_broker: TestBroker, name: Callable[[str], str]
) -> None:
    """Until it is answered, nothing is sent; with --to, only the consumers of a queue receive the letters."""
    letters, other = await Letters.start(load(pulsar_broker.url)), name("later")
    try:
        origin = letters.topic.rpartition("/")[2]
        command = ["dlq", "redrive", letters.dead, "-u", pulsar_broker.url]
        await letters.put("a", "b")
        code, _, asked = await answered("n", *command)
        assert (code, len(await letters.waiting(letters.dead))) == (1, 2)
        assert f"send 2 dead letters: 2 to {origin}? [y/N]" in asked
        assert "subscriptions" not in asked
        await letters.harness.admin.create_subscription(letters.topic, "audit", StartPosition.EARLIEST)
        code, _, asked = await answered("n", *command)
        assert f"{origin} delivers each of them to all its subscriptions" in asked
        assert "audit, jms-queue (--to NAME" in asked
        code, summary, asked = await answered("y", *command, "--to", other)
        assert (code, summary is not None and summary["sent"]) == (0, 2)
        assert f"send 2 dead letters: 2 to {other}? [y/N]" in asked
        assert await letters.waiting() == await letters.waiting(letters.dead) == []
        code, summary, asked = await answered("y", *command)
        assert (code, summary is not None and summary["sent"], asked) == (0, 0, "")
    finally:
        await letters.stop()


async def test_a_dead_letter_is_shown_with_its_origin_and_number_of_redrives(
    letters: Letters, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await letters.fail(message("a", region="EU"))
    await letters.put(message("b", region="US"))
    assert await run_inside(show, {"brokerServiceUrl": url}, named(letters), "-s", "region = 'EU'") == 0
    [shown] = lines(capsys)
    assert (shown["origin"], shown["reason"], shown["redriven"]) == (letters.topic, "failed", 0)
    assert shown["failed_deliveries"] == 2
    assert shown["origin_message_id"]
    await letters.redrive(selector="region = 'EU'")
    await letters.fail()
    assert await run_inside(show, {"brokerServiceUrl": url}, named(letters)) == 0
    assert sorted((one["redriven"], one["failed_deliveries"]) for one in lines(capsys)) == [(0, None), (1, 2)]


async def test_selected_letters_are_redriven_up_to_the_limit(
    letters: Letters, capsys: pytest.CaptureFixture[str]
) -> None:
    await letters.put(message("a", region="EU"), message("b", region="US"), message("c", region="EU"))
    request = TransferRequest(destination=Queue(letters.dead), selector="region = 'EU'", limit=1, patience=2.0)
    summary = await perform(letters.harness.configuration, request, Output(as_json=True))
    assert write_outcome(Output(as_json=True), summary) == 0
    assert lines(capsys)[0]["sent"] == 1
    assert texts(await letters.waiting()) == ["a"]
    assert texts(await letters.waiting(letters.dead)) == ["b", "c"]


async def test_an_empty_dead_letter_queue(letters: Letters, url: str) -> None:
    assert await run_inside(show, {"brokerServiceUrl": url}, named(letters)) == 3


def test_without_a_terminal_yes_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dlq", "redrive", "a-DLQ", "-u", "pulsar://127.0.0.1:1"]) == 2
    assert "--yes" in capsys.readouterr().err


def test_the_group_shows_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dlq"]) == 0
    output = capsys.readouterr().out
    assert all(name in output for name in ("list", "show", "redrive"))


@pytest.mark.broker
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
async def test_an_interrupted_redrive_loses_nothing(pulsar_broker: TestBroker, number: signal.Signals) -> None:
    """Every message is in at least one place after each interrupt, and the next run finishes the work."""
    letters, seed = await Letters.start(load(pulsar_broker.url)), random.randrange(10**6)
    chance, sent = random.Random(seed), {str(index) for index in range(1000)}
    try:
        await letters.put(*sorted(sent))
        command = ["dlq", "redrive", letters.dead, "-u", pulsar_broker.url, "--yes"]
        target = letters.topic.rpartition("/")[2]
        for _ in range(3):
            await interrupt(letters.harness.admin, command, target, number, chance.uniform(0, 0.2))
            left, back = texts(await letters.waiting(letters.dead)), texts(await letters.waiting())
            assert {*left, *back} == sent, f"seed {seed}"
        process = await start(*command)
        assert await process.wait() == 0
        assert set(texts(await letters.waiting())) == sent, f"seed {seed}"
        assert await letters.waiting(letters.dead) == []
    finally:
        await letters.stop()
