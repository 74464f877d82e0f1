"""``jmsaio subscriptions``."""

import json
import uuid
from collections.abc import Callable
from typing import Any

import anyio.to_thread
import pytest

import jmsaio
from jmsaio.cli.app import main
from jmsaio.cli.common.output import Output
from jmsaio.cli.subscription import _delete, set_selector, show
from jmsaio.config import load
from jmsaio.errors import AdminError, NotFoundError
from jmsaio.maintenance.dead_letters import require_admin
from jmsaio.transport.base import StartPosition
from jmsaio.transport.registry import connected
from tests.cli.inside import run_inside
from tests.support.broker import TestBroker


async def test_a_selector_is_set_and_removed(config: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        assert await run_inside(set_selector, config, "orders", "n > 3") == 0
        shown = json.loads(capsys.readouterr().out)
        assert shown == {"destination": "orders", "subscription": None, "selector": "n > 3"}
        async with session.create_consumer(session.create_queue("orders")) as consumer:
            assert consumer.message_selector == "n > 3"
        assert await run_inside(set_selector, config, "orders", "--no-json") == 0
        assert capsys.readouterr().out == "selector of orders: none\n"
        await (await session.create_shared_durable_consumer(session.create_topic("news"), "sub")).close()
        assert await run_inside(set_selector, config, "news", "n = 1", "-t", "-n", "sub", "--no-json") == 0
        assert capsys.readouterr().out == "selector of sub: n = 1\n"


@pytest.mark.broker
async def test_the_command_sets_it_on_a_real_broker(
    pulsar_broker: TestBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = f"set-selector-{uuid.uuid4()}"
    arguments = ["subscriptions", "set-selector", queue, "n > 3", "-u", pulsar_broker.url, "--no-json"]
    assert await anyio.to_thread.run_sync(main, arguments) == 0
    assert capsys.readouterr().out == f"selector of {queue}: n > 3\n"
    async with jmsaio.connect(pulsar_broker.url) as connection, connection.create_session() as session:
        async with session.create_consumer(session.create_queue(queue), "n < 9") as consumer:
            assert consumer.message_selector == "(n > 3) AND (n < 9)"


@pytest.mark.parametrize("wrong", [["news", "n = 1", "--topic"], ["orders", "n = 1", "--name", "sub"]])
def test_a_topic_needs_a_name_and_a_queue_has_none(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["subscriptions", "set-selector", *wrong, "-u", "pulsar://h"]) == 2
    assert "--name" in capsys.readouterr().err


def test_alone_it_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["subscriptions"]) == 0
    assert "set-selector" in capsys.readouterr().out


async def test_subscriptions_are_listed_and_deleted(config: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    loaded, output = load(config), Output(as_json=True)
    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        consumer = await session.create_shared_durable_consumer(session.create_topic("news"), "sub")
        assert await run_inside(show, config, "news") == 0
        assert json.loads(capsys.readouterr().out)["subscription"] == "sub"
        with pytest.raises(AdminError, match="consumers"):
            await _delete(loaded, "news", "sub", False, output)
        await consumer.close()
        assert await _delete(loaded, "news", "sub", False, output) == 0
        assert json.loads(capsys.readouterr().out)["deleted"] is True
        assert await run_inside(show, config, "news") == 3
        with pytest.raises(NotFoundError):
            await _delete(loaded, "news", "sub", True, output)


async def test_a_subscription_of_one_partition_is_deleted(url: str, name: Callable[[str], str]) -> None:
    topic, loaded = name("parted"), load(url)
    async with connected(loaded) as transport:
        admin, full = require_admin(transport), f"persistent://public/default/{topic}"
        await admin.create_topic(full, 2)
        await admin.create_subscription(f"{full}-partition-1", "sub", StartPosition.EARLIEST)
        assert await _delete(loaded, topic, "sub", False, Output(as_json=True)) == 0
        assert (await admin.stats(full)).subscriptions == {}
        with pytest.raises(NotFoundError, match="has no subscription sub"):
            await _delete(loaded, topic, "sub", False, Output(as_json=True))


@pytest.mark.broker
async def test_the_group_on_a_real_broker(pulsar_broker: TestBroker, capsys: pytest.CaptureFixture[str]) -> None:
    topic, where = f"subscriptions-{uuid.uuid4()}", ["-u", pulsar_broker.url, "--json"]
    async with jmsaio.connect(pulsar_broker.url) as connection, connection.create_session() as session:
        await (await session.create_shared_durable_consumer(session.create_topic(topic), "sub")).close()
    assert await anyio.to_thread.run_sync(main, ["subscriptions", "list", topic, *where]) == 0
    assert json.loads(capsys.readouterr().out)["subscription"] == "sub"
    arguments = ["subscriptions", "delete", topic, "sub", *where]
    assert await anyio.to_thread.run_sync(main, arguments) == 2
    assert "--yes" in capsys.readouterr().err
    assert await anyio.to_thread.run_sync(main, [*arguments, "--yes"]) == 0
    assert await anyio.to_thread.run_sync(main, ["subscriptions", "list", topic, *where]) == 3
