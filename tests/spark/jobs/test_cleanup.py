"""Subscriptions that jobs made are deleted."""

from __future__ import annotations

import asyncio

import attrs
import pyspark  # noqa: F401 - the module under test needs it
import pytest

from jmsaio.config import load
from jmsaio.errors import ConfigurationError
from jmsaio.spark.jobs.cleanup import CleanupOrder, clean_up
from jmsaio.transport.base import StartPosition
from tests.maintenance.letters import QUEUE, Letters
from tests.support.broker import TestBroker

CURSOR, REDRIVES = "jmsaio-spark-archive", "jmsaio-spark-redrive"


async def make(broker: TestBroker, *names: str) -> Letters:
    """Cursors on a dead letter topic."""
    letters = await Letters.start(load(broker.url))
    for name in names:
        await letters.harness.admin.create_subscription(letters.dead, name, StartPosition.EARLIEST)
    await letters.stop()
    return letters


def test_a_cursor_is_found_and_then_deleted(pulsar_broker: TestBroker) -> None:
    letters = asyncio.run(make(pulsar_broker, CURSOR))
    order = CleanupOrder(connection={"url": pulsar_broker.url}, destination=f"queue://{letters.topic}", of=QUEUE)
    found = clean_up(order, dry_run=True)
    assert found["cursors"] == [
        {
            "topic": letters.dead, "subscription": CURSOR, "backlog": 0, "consumers": 0, "state": "found",
            "reason": None,
        }
    ]  # fmt: skip
    assert found["deleted"] == 0
    done = clean_up(order)
    assert (done["deleted"], done["kept"], done["cursors"][0]["state"]) == (1, 0, "deleted")
    assert clean_up(order)["cursors"] == []


def test_what_redrives_have_sent_is_forgotten_only_by_name(pulsar_broker: TestBroker) -> None:
    letters = asyncio.run(make(pulsar_broker, CURSOR, REDRIVES))
    order = CleanupOrder(connection={"url": pulsar_broker.url}, destination=f"queue://{letters.dead}")
    done = clean_up(order)
    assert (done["deleted"], done["kept"]) == (1, 0)
    assert [(each["subscription"], each["state"]) for each in done["cursors"]] == [
        (CURSOR, "deleted"), (REDRIVES, "left"),
    ]  # fmt: skip
    assert clean_up(attrs.evolve(order, subscription=REDRIVES))["deleted"] == 1


def test_another_subscription_is_refused(pulsar_broker: TestBroker) -> None:
    letters = asyncio.run(make(pulsar_broker))
    order = CleanupOrder(
        connection={"url": pulsar_broker.url}, destination=f"queue://{letters.dead}", subscription=QUEUE
    )  # fmt: skip
    with pytest.raises(ConfigurationError, match="was not made by a job"):
        clean_up(order)
