"""One process without Spark: loops over pulsar-client's Reader, what builds the columns, and senders."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs
import pulsar

from benchmarks.meter import Meter, Metrics
from benchmarks.raw import GUARD, open_client, producer_options
from benchmarks.scenarios import open_producer, send_all
from benchmarks.spark.hand_columns import HandColumns
from benchmarks.spark.messages import SOURCE, native_messages, topic_of, typed, work_of
from benchmarks.workload import AMOUNT, Task
from jmsaio.codec.row_columns import ColumnMaker
from jmsaio.model.wire import ReceivedRecord, WireId
from jmsaio.spark.arrow.columns import RowBatches
from jmsaio.spark.model.schema import Body, columns_of

#: Rows in a batch: the default of the option ``batchRows``.
BATCH: Final = 4096
#: Milliseconds for one message.
_WAIT: Final = 20_000


@attrs.frozen
class _Read:
    """A message whose parts pulsar-client has handed over."""

    payload: bytes | None
    properties: Mapping[str, str]
    key: str | None
    event_time: int
    publish_time: int
    message_id: WireId
    producer_name: str | None
    schema_version: bytes | None
    size: int
    topic: str = ""
    redelivery_count: int = 0
    sequence_id: int | None = None
    may_expire: bool = False
    batch_size: int = 0

    def get(self, name: str, /) -> str | None:
        """One property."""
        return self.properties.get(name)


def _parts(native: Any) -> tuple[Any, ...]:
    """Return the fields of a message that a row needs: the first ones of ``_Read``."""
    place, payload = native.message_id(), native.data()
    return (
        payload,
        native.properties(),
        native.partition_key() or None,
        native.event_timestamp(),
        native.publish_timestamp(),
        WireId(place.ledger_id(), place.entry_id(), place.partition(), place.batch_index()),
        native.producer_name(),
        native.schema_version().encode() or None,
        len(payload),
    )


def _loop(task: Task, take: Callable[[pulsar.Message], object], end: Callable[[], object]) -> Metrics:
    """Read the backlog, and hand each message over."""
    work = work_of(task)
    client = open_client(task)
    with Meter() as meter:
        reader = client.create_reader(
            topic_of(task.extra[SOURCE]), pulsar.MessageId.earliest, receiver_queue_size=work.window
        )
        for _ in range(work.messages):
            take(reader.read_next(_WAIT))
        end()
    client.close()
    return meter.metrics(work.messages)


def bare(task: Task) -> Metrics:
    """Nothing but ``read_next``."""
    return _loop(task, lambda message: None, lambda: None)


def touch(task: Task) -> Metrics:
    """Each part of a message that a row needs: what pulsar-client itself takes for it."""
    total = 0

    def take(message: pulsar.Message) -> None:
        nonlocal total
        total += int(_parts(message._message)[1][AMOUNT])

    metrics = _loop(task, take, lambda: None)
    _check(task, total)
    return metrics


def columns(task: Task) -> Metrics:
    """Return the columns of the source, built by hand, in batches as large as its own."""
    queue = task.extra[SOURCE]
    made = HandColumns(f"queue://{queue}", topic_of(queue))
    rows = 0

    def take(message: pulsar.Message) -> None:
        made.add(message._message)
        if made.rows == BATCH:
            end()

    def end() -> None:
        nonlocal rows
        rows += made.batch().num_rows

    metrics = _loop(task, take, end)
    if rows != work_of(task).messages:
        raise RuntimeError(f"{rows} rows were built")
    return metrics


def build(task: Task) -> Metrics:
    """Return the source's own way from records, whose parts are here already, to record batches."""
    queue, records = task.extra[SOURCE], list[ReceivedRecord]()
    topic = topic_of(queue)
    _loop(task, lambda message: records.append(_Read(*_parts(message._message))), lambda: None)
    batches = RowBatches(columns_of(Body.TYPED), f"queue://{queue}", topic)
    rows = 0
    with Meter() as meter:
        for group in _groups(records):
            maker = ColumnMaker()
            maker.add(group)
            rows += batches.batch(maker.columns()).num_rows
    return meter.metrics(rows)


def _groups(records: list[ReceivedRecord]) -> Iterator[list[ReceivedRecord]]:
    for start in range(0, len(records), BATCH):
        yield records[start : start + BATCH]


def _check(task: Task, total: int) -> None:
    if total != work_of(task).check_sum():
        raise RuntimeError(f"the sum of {AMOUNT} is {total}")


def send_raw(task: Task) -> Metrics:
    """Raw ``send_async`` with a Python callback for each message."""
    work = work_of(task)
    client = open_client(task)
    producer = client.create_producer(topic_of(task.topic), **producer_options(work))
    confirmed, failed = 0, 0
    finished = threading.Event()

    def sent(result: Any, _place: Any) -> None:
        nonlocal confirmed, failed
        confirmed += 1
        failed += result != pulsar.Result.Ok
        if confirmed == work.messages:
            finished.set()

    with Meter() as meter:
        for message in native_messages(work):
            producer._producer.send_async(message, sent)
        done = finished.wait(GUARD)
    client.close()
    if not done or failed:
        raise RuntimeError(f"{confirmed} of {work.messages} confirmed, {failed} failed")
    return meter.metrics(work.messages)


async def send_jmsaio(task: Task) -> Metrics:
    """``send_async`` of a session; ends when the last message is confirmed."""
    work = work_of(task)
    async with open_producer(task, work, typed) as producer:
        with Meter() as meter:
            await send_all(producer, work, typed)
    return meter.metrics(work.messages)
