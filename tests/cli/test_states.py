"""``jmsaio queues``, ``jmsaio topics`` and ``jmsaio stats``."""

from __future__ import annotations

import asyncio
import io
import json
import uuid
from collections.abc import Callable
from typing import Any

import anyio.to_thread
import pytest
from rich.console import Console

import jmsaio
from jmsaio.cli.app import main
from jmsaio.cli.common.output import NOTHING, OK, Output
from jmsaio.cli.states import detail_of, queues, stats, topics
from jmsaio.errors import BrokerUnavailableError, NotFoundError
from jmsaio.maintenance.overview import DestinationState
from jmsaio.testing import embedded_broker
from jmsaio.transport.administration import OpenTransaction, SubscriptionStats
from jmsaio.transport.names import process_name
from tests.cli.inside import run_inside


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


async def test_queues_and_topics_are_listed_apart(config: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        assert await run_inside(queues, config) == 3
        producer = await session.create_producer(session.create_queue("orders"))
        await producer.send("a")
        await producer.send("b")
        await session.create_shared_durable_consumer(session.create_topic("news"), "readers")
        capsys.readouterr()
        assert await run_inside(queues, config) == 0
        [queue] = lines(capsys)
        assert (queue["name"], queue["backlog"], queue["consumers"], queue["producers"]) == ("orders", 2, 0, 1)
        assert await run_inside(topics, config) == 0
        [topic] = lines(capsys)
        assert (topic["name"], topic["subscription"], topic["consumers"]) == ("news", "readers", 1)


def test_a_transaction_that_holds_messages_back_is_a_line_of_the_detail() -> None:
    held = OpenTransaction(id=(0, 7), since=0, owner="app")
    state = DestinationState(
        topic="t", name="t", producers=0, rate_in=None, subscription=SubscriptionStats("s", "Shared", 5, 0),
        open_transaction=held,
    )  # fmt: skip
    assert [str(line) for line in detail_of(state, 45_000)][1:] == [
        "  messages of the last 45 s wait for transaction (0, 7) of app, which is open"
    ]


async def test_a_table_is_redrawn_on_a_terminal(config: dict[str, Any]) -> None:
    screen = io.StringIO()
    output = Output(as_json=False, console=Console(file=screen, force_terminal=True, width=120))
    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        await (await session.create_consumer(session.create_queue("orders"))).close()
        task = asyncio.create_task(run_inside(queues, config, "--watch", "0.1", output=output))
        while "orders" not in screen.getvalue():
            await asyncio.sleep(0.01)
        await (await session.create_consumer(session.create_queue("later"))).close()
        async with asyncio.timeout(10):
            while "later" not in screen.getvalue():
                await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert "unacknowledged" in screen.getvalue()


async def test_an_idle_consumer_is_named_with_what_it_holds(
    config: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    async with (
        jmsaio.connect(config) as connection,
        connection.create_session(jmsaio.AcknowledgeMode.CLIENT) as session,
    ):
        queue = session.create_queue("orders?consumerConfig.consumerName=idler")
        producer = await session.create_producer(session.create_queue("orders"))
        for number in range(8):
            await producer.send(str(number))
        consumer = await session.create_consumer(queue)
        assert await consumer.receive(5) is not None
        assert await run_inside(stats, config, "orders") == 0
        [state] = lines(capsys)
        assert (state["unacknowledged"], state["connected"][0]["unacknowledged"]) == (8, 8)
        name = state["connected"][0]["name"]
        assert state["reasons"] == [f"consumer {name} holds 8 unacknowledged messages"]
        assert await run_inside(stats, config, "orders", "--no-json") == 0
        assert "holds 8 unacknowledged messages" in capsys.readouterr().out


async def test_a_consumer_that_selects_nothing_is_named_with_its_selector(
    url: str, name: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    queue = name("selected")
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        async with session.create_producer(session.create_queue(queue)) as producer:
            await producer.send("a")
        consumer = await session.create_consumer(session.create_queue(queue), "region = 'EU'")
        assert await consumer.receive(0.5) is None
        assert await run_inside(stats, {"brokerServiceUrl": url}, queue) == 0
        [state] = lines(capsys)
        assert state["connected"][0]["selector"] == "region = 'EU'"
        assert state["reasons"][0].endswith("receives only messages that match region = 'EU'")


@pytest.mark.parametrize("terminal", [False, True])
async def test_a_watched_list_goes_on_after_an_outage(config: dict[str, Any], terminal: bool) -> None:
    """Only the first failure ends the command, as does one without --watch."""
    screen, told = io.StringIO(), io.StringIO()
    output = Output(
        as_json=not terminal, console=Console(file=screen, force_terminal=terminal, width=120),
        remarks=Console(file=told, width=1000),
    )  # fmt: skip
    with embedded_broker() as broker:
        watched = {"brokerServiceUrl": broker.url}
        async with jmsaio.connect(broker.url) as connection, connection.create_session() as session:
            await (await session.create_consumer(session.create_queue("orders"))).close()
            task = asyncio.create_task(run_inside(queues, watched, "--watch", "0.1", output=output))
            await asyncio.sleep(0.2)
            with broker.faults.outage():
                async with asyncio.timeout(30):
                    while "trying again" not in screen.getvalue() + told.getvalue():
                        await asyncio.sleep(0.05)
                with pytest.raises(BrokerUnavailableError):
                    await run_inside(queues, watched)
            await asyncio.sleep(0.2)
            assert not task.done()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    assert told.getvalue().count("trying again") == (0 if terminal else 1)


@pytest.mark.parametrize("destination", [["none"], ["none", "--topic"]])
async def test_an_unknown_destination_is_reported(config: dict[str, Any], destination: list[str]) -> None:
    async with jmsaio.connect(config):
        with pytest.raises(NotFoundError, match="check its name"):
            await run_inside(stats, config, *destination)


@pytest.mark.parametrize("command", [["queues"], ["topics"], ["stats", "orders"]])
def test_the_embedded_broker_of_another_process_is_refused(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "-u", "memory:"]) == 2
    assert "lives in one process only" in capsys.readouterr().err


@pytest.mark.broker
async def test_the_commands_on_a_real_broker(small_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    queue, url = f"states-{uuid.uuid4()}", small_url

    async def command(*arguments: str) -> list[dict[str, Any]]:
        capsys.readouterr()
        assert await anyio.to_thread.run_sync(main, [*arguments, "-u", url, "--json"]) in (OK, NOTHING)
        return lines(capsys)

    async with (
        jmsaio.connect(url) as connection,
        connection.create_session(jmsaio.AcknowledgeMode.CLIENT) as session,
    ):
        producer = await session.create_producer(session.create_queue(queue))
        for number in range(8):
            await producer.send(str(number))
        [waiting] = await command("stats", queue)
        assert waiting["backlog"] == 8
        assert waiting["reasons"] == ["no consumer is connected; 8 messages wait"]
        consumer = await session.create_consumer(session.create_queue(queue))
        assert await consumer.receive(10) is not None
        [found] = [one for one in await command("queues") if one["name"] == queue]
        assert (found["consumers"], found["producers"]) == (1, 1)
        assert queue not in {one["name"] for one in await command("topics")}
        async with asyncio.timeout(60):
            while not (state := (await command("stats", queue))[0])["reasons"]:
                await asyncio.sleep(1)
        [holder] = state["connected"]
        assert holder["name"].startswith(f"{process_name()}-")
        assert holder["unacknowledged"] == 8
        assert holder["idle"] >= 10
        [reason] = state["reasons"]
        assert reason.startswith(f"consumer {holder['name']} ({holder['address']}) holds 8 unacknowledged messages")
