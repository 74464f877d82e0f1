"""Dead letters are sent to where they come from, a task for each topic."""

from __future__ import annotations

import asyncio

import attrs
import pytest
from pyspark.sql import SparkSession

from jmsaio.config import load
from jmsaio.errors import BrokerUnavailableError, InvalidSelectorError
from jmsaio.maintenance.redrive import Left
from jmsaio.spark.jobs.redrive import RedriveJob, describe_redrive, redrive_letters
from tests.kit.records import texts
from tests.maintenance.letters import Letters
from tests.support.broker import TestBroker


async def fill(broker: TestBroker, *bodies: str) -> Letters:
    """Dead letters of one queue, after their client is closed."""
    letters = await Letters.start(load(broker.url))
    await letters.put(*bodies)
    await letters.stop()
    return letters


async def waiting(broker: TestBroker, letters: Letters, topic: str) -> list[str]:
    """What waits in a queue."""
    again = attrs.evolve(await Letters.start(load(broker.url)), topic=letters.topic)
    found = texts(await again.waiting(topic))
    await again.stop()
    return sorted(found)


def test_each_task_sends_the_letters_of_one_topic(spark: SparkSession, pulsar_broker: TestBroker) -> None:
    one, other = (asyncio.run(fill(pulsar_broker, *bodies)) for bodies in ("ab", "c"))
    job = RedriveJob(
        connection={"url": pulsar_broker.url}, destination=f"queue://multi:{one.dead},{other.dead}"
    )  # fmt: skip
    planned = describe_redrive(job)
    summary = redrive_letters(spark, job)
    assert (planned["sent"], planned["targets"]) == (3, {one.topic: 2, other.topic: 1})
    assert (summary["sent"], summary["targets"]) == (3, planned["targets"])
    assert (summary["left"], summary["unseen"], summary["errors"]) == ({}, [], [])
    assert asyncio.run(waiting(pulsar_broker, one, one.topic)) == ["a", "b"]
    assert asyncio.run(waiting(pulsar_broker, one, one.dead)) == []
    assert redrive_letters(spark, job)["sent"] == 0  # nothing is left, so there is no task


def test_a_dry_run_needs_no_session_and_tells_what_would_be_left(pulsar_broker: TestBroker) -> None:
    letters = asyncio.run(fill(pulsar_broker, "a"))
    job = RedriveJob(connection={"url": pulsar_broker.url}, destination=f"queue://{letters.dead}", max_redrives=0)
    summary = describe_redrive(job)
    assert (summary["dry_run"], summary["sent"], summary["left"]) == (True, 0, {Left.TOO_OFTEN.value: 1})


def test_what_can_not_be_done_is_refused_before_a_task_starts(pulsar_broker: TestBroker) -> None:
    job = RedriveJob(connection={"url": pulsar_broker.url}, destination="queue://x", selector="a =")
    with pytest.raises(InvalidSelectorError):
        redrive_letters(None, job)  # type: ignore[arg-type] # no session is asked
    with pytest.raises(BrokerUnavailableError):
        describe_redrive(
            RedriveJob(connection={"url": "pulsar://127.0.0.1:1", "connect_timeout": "1"}, destination="queue://x")
        )
