"""What a reading task does."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pyarrow as pa
import pytest

import jmsaio
from jmsaio.errors import AdminError, ObjectClosedError
from jmsaio.spark import worker as workers
from jmsaio.spark.model.places import Place
from jmsaio.spark.options.parse import SourceOptions, Use, parse_options
from jmsaio.spark.planning.ranges import Range
from jmsaio.spark.task import read_ranges
from jmsaio.transport.pulsar.admin import RestAdmin
from tests.spark.use import send, send_values
from tests.support.broker import TestBroker

Name = Callable[[str], str]
SCHEMA = pa.schema([("text", pa.string()), ("destination", pa.string())])


def options(broker: TestBroker, queue: str, **more: str) -> SourceOptions:
    given = {"url": broker.url, "queue": queue, "columns": "text, destination", **more}
    return parse_options(given, Use.READ)


def consumers(broker: TestBroker, queue: str) -> int:
    stats = httpx.get(f"{broker.web_service_url}/admin/v2/persistent/public/default/{queue}/stats").json()
    return sum(len(one["consumers"]) for one in stats["subscriptions"].values())


def ledger(broker: TestBroker, queue: str) -> int:
    url = f"{broker.web_service_url}/admin/v2/persistent/public/default/{queue}/internalStats"
    return int(httpx.get(url).json()["ledgers"][0]["ledgerId"])


def span(broker: TestBroker, queue: str, entries: int) -> Range:
    number = ledger(broker, queue)
    topic = f"persistent://public/default/{queue}"
    return Range(topic, Place(number, 0), Place(number, entries), ((number, entries),))


def test_a_consumer_that_takes_no_more_closes_the_reader(pulsar_broker: TestBroker, name: Name) -> None:
    queue = name("closed")
    send(pulsar_broker.url, queue, [str(number) for number in range(10)])
    batches = read_ranges(options(pulsar_broker, queue, batchRows="2"), [span(pulsar_broker, queue, 10)], SCHEMA)
    first = next(batches)
    assert first.to_pylist() == [{"text": str(number), "destination": f"queue://{queue}"} for number in range(2)]
    assert consumers(pulsar_broker, queue) == 1
    batches.close()
    assert consumers(pulsar_broker, queue) == 0


def test_tasks_of_a_process_share_a_client_until_one_fails_at_the_broker(pulsar_broker: TestBroker, name: Name) -> None:
    queue = name("shared")
    send(pulsar_broker.url, queue, ["one", "two"])
    chosen, whole = options(pulsar_broker, queue, readTimeout="1s"), span(pulsar_broker, queue, 2)
    key = workers._key(chosen)
    assert [batch.num_rows for batch in read_ranges(chosen, [whole], SCHEMA)] == [2]
    kept = workers._workers
    first = kept[key]
    assert [batch.num_rows for batch in read_ranges(chosen, [whole], SCHEMA)] == [2]
    assert kept[key] is first
    first.run(first.transport.aclose(5))
    with pytest.raises(ObjectClosedError):
        list(read_ranges(chosen, [whole], SCHEMA))
    assert [batch.num_rows for batch in read_ranges(chosen, [whole], SCHEMA)] == [2]
    assert kept[key] is not first
    workers.forget(chosen)


def test_a_task_waits_for_the_schema_while_the_broker_restarts(
    pulsar_broker: TestBroker, name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, failures, give = name("waits"), [AdminError("connection refused")], RestAdmin.schema
    send_values(pulsar_broker.url, queue, (jmsaio.Schema("JSON", '"int"'), [5]))

    async def schema(self: RestAdmin, topic: str, version: int) -> jmsaio.Schema:
        if failures:
            raise failures.pop()
        return await give(self, topic, version)

    monkeypatch.setattr(RestAdmin, "schema", schema)
    chosen = options(pulsar_broker, queue, schema="auto")
    (batch,) = read_ranges(chosen, [span(pulsar_broker, queue, 1)], SCHEMA.append(pa.field("value", pa.string())))
    assert batch["value"].to_pylist() == ["[5]"] and failures == []
    workers.forget(chosen)
