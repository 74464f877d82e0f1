"""``jmsaio dlq``: dead letters are listed, shown and redriven without Spark."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest

from jmsaio.cli.app import main
from jmsaio.cli.common.output import Output
from jmsaio.cli.dlq import _list, _show
from jmsaio.cli.transfer import carry_out
from jmsaio.config import load
from jmsaio.maintenance.dead_letters import RedriveRequest
from jmsaio.model.destinations import Queue
from tests.cli.test_transfer import interrupt, start
from tests.kit.records import texts
from tests.maintenance.letters import Letters, message
from tests.support.broker import TestBroker


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


async def test_dead_letters_are_listed_with_their_number(letters: Letters, capsys: pytest.CaptureFixture[str]) -> None:
    await letters.put("a", "b")
    assert await _list(letters.harness.configuration, Output(as_json=True)) == 0
    found = [one for one in lines(capsys) if one["name"] == named(letters)]
    assert [(one["subscription"], one["backlog"]) for one in found] == [("jms-queue", 2)]


async def test_a_dead_letter_is_shown_with_its_origin_and_number_of_redrives(
    letters: Letters, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await letters.fail(message("a", region="EU"))
    await letters.put(message("b", region="US"))
    assert await _show({"brokerServiceUrl": url}, named(letters), "region = 'EU'", None, Output(as_json=True)) == 0
    [shown] = lines(capsys)
    assert (shown["origin"], shown["reason"], shown["redriven"]) == (letters.topic, "failed", 0)
    assert shown["failed_deliveries"] == 2
    assert shown["origin_message_id"]
    await letters.redrive(selector="region = 'EU'")
    await letters.fail()
    assert await _show({"brokerServiceUrl": url}, named(letters), None, None, Output(as_json=True)) == 0
    assert sorted((one["redriven"], one["failed_deliveries"]) for one in lines(capsys)) == [(0, None), (1, 2)]


async def test_selected_letters_are_redriven_up_to_the_limit(
    letters: Letters, capsys: pytest.CaptureFixture[str]
) -> None:
    await letters.put(message("a", region="EU"), message("b", region="US"), message("c", region="EU"))
    request = RedriveRequest(destination=Queue(letters.dead), selector="region = 'EU'", limit=1, patience=2.0)
    assert await carry_out(letters.harness.configuration, request, Output(as_json=True)) == 0
    assert lines(capsys)[0]["sent"] == 1
    assert texts(await letters.waiting()) == ["a"]
    assert texts(await letters.waiting(letters.dead)) == ["b", "c"]


async def test_an_empty_dead_letter_queue(letters: Letters, url: str) -> None:
    assert await _show({"brokerServiceUrl": url}, named(letters), None, None, Output(as_json=True)) == 3


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
