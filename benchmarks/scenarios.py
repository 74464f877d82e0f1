"""The rows of jmsaio itself; every function takes a task and returns its metrics."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import cycle, islice

import jmsaio
from benchmarks.meter import Meter, Metrics, latency_metrics
from benchmarks.scenario import with_query
from benchmarks.workload import AMOUNT, KIND, KIND_VALUE, REGION, REGION_VALUE, Task, Workload
from jmsaio.client.consumer import MessageConsumer
from jmsaio.client.producer import MessageProducer
from jmsaio.client.senders.pending import Receipt
from jmsaio.codec import RecordSource, Stamp, decode_with, encode, stamp_sent
from jmsaio.codec.headers import header
from jmsaio.model.destinations import Queue
from jmsaio.model.messages.tracing import Tracing
from jmsaio.model.wire import OutgoingRecord, WireId
from jmsaio.selector import Selector

#: Seconds after which a missing message is reported.
_GUARD = 30.0
#: Records that are evaluated in turn; more than fit into a processor's small caches.
_RECORDS = 1_000
#: Three terms; the middle one compares a number that is text in the record.
SELECTOR = f"{REGION} = '{REGION_VALUE}' AND {AMOUNT} > 499 AND {KIND} = '{KIND_VALUE}'"


def tuned_url(task: Task) -> str:
    """Return the task's URL with window, prefetch and batch of its workload, by their Java names."""
    work = task.workload
    options = {
        "producerConfig.batchingMaxMessages": work.batch_messages,
        "producerConfig.batchingMaxPublishDelayMicros": round(work.batch_delay * 1e6),
        "consumerConfig.receiverQueueSize": work.window,
    }
    return with_query(task.url, "&".join(f"{name}={value}" for name, value in options.items()))


def typed_properties(number: int) -> dict[str, str | int]:
    """Return three properties, two strings and an int."""
    return {REGION: REGION_VALUE, AMOUNT: number, KIND: KIND_VALUE}


#: Creates the properties of a message from its number.
Properties = Callable[[int], Mapping[str, str | int | float | bool]]


@asynccontextmanager
async def open_producer(
    task: Task, work: Workload, properties: Properties = typed_properties
) -> AsyncIterator[MessageProducer]:
    """Connect, and create a producer that has sent a message, so that its sender is open."""
    async with (
        jmsaio.connect(tuned_url(task), send_window_messages=work.window) as connection,
        connection.create_session() as session,
        session.create_producer(session.create_queue(task.topic)) as producer,
    ):
        await producer.send(work.text, properties=properties(0))
        yield producer


async def send_all(producer: MessageProducer, work: Workload, properties: Properties = typed_properties) -> None:
    """Send the workload with ``send_async`` and wait for every confirmation. Raises the errors of sends."""
    text = work.text
    waiting: deque[asyncio.Future[Receipt]] = deque()
    for number in range(work.messages):
        waiting.append(await producer.send_async(text, properties=properties(number)))
        while waiting and waiting[0].done():
            waiting.popleft().result()
    for future in waiting:
        await future


async def futures(task: Task) -> Metrics:
    """Send with ``send_async`` from one coroutine; ends when the last message is confirmed."""
    work = task.workload
    async with open_producer(task, work) as producer:
        with Meter() as meter:
            await send_all(producer, work)
    return meter.metrics(work.messages)


async def workers(task: Task) -> Metrics:
    """Send from workers that each await one ``send`` at a time; ends when the last message is confirmed."""
    work = task.workload
    text, numbers = work.text, iter(range(work.messages))
    async with open_producer(task, work) as producer:

        async def worker() -> None:
            for number in numbers:
                await producer.send(text, properties=typed_properties(number))

        with Meter() as meter:
            await asyncio.gather(*(worker() for _ in range(work.workers)))
    return meter.metrics(work.messages)


async def fill(task: Task) -> Metrics:
    """Fill the queue; its subscription is created first, so that nothing is lost."""
    work = task.workload
    async with jmsaio.connect(tuned_url(task)) as connection, connection.create_session() as session:
        queue = session.create_queue(task.topic)
        await (await session.create_consumer(queue)).close()
        async with session.create_producer(queue) as producer:
            with Meter() as meter:
                await send_all(producer, work)
    return meter.metrics(work.messages)


async def receive(task: Task) -> Metrics:
    """Receive the messages of ``fill`` with one consumer; measures from the first message to the last."""
    async with (
        jmsaio.connect(tuned_url(task)) as connection,
        connection.create_session() as session,
        session.create_consumer(session.create_queue(task.topic)) as consumer,
    ):
        meter = await receive_all(consumer, task.workload)
    return meter.metrics(task.workload.messages)


async def listen(task: Task) -> Metrics:
    """Receive the same through a listener, a plain function. Raises TimeoutError if a message is missing."""
    work = task.workload
    reading, done = Reading(), asyncio.Event()

    def listener(message: jmsaio.Message) -> None:
        assert isinstance(message, jmsaio.TextMessage)
        if reading.messages == 0:
            meter.start()
        reading.add(message.text or "", message.get_int_property(AMOUNT))
        if reading.messages == work.messages:
            meter.stop()
            done.set()

    async with (
        jmsaio.connect(tuned_url(task)) as connection,
        connection.create_session() as session,
        session.create_consumer(session.create_queue(task.topic)) as consumer,
    ):
        meter = Meter()
        consumer.set_message_listener(listener)
        async with asyncio.timeout(2 * _GUARD):
            await done.wait()
    reading.check(work)
    return meter.metrics(work.messages)


class Reading:
    """Sums of what was read."""

    __slots__ = ("_characters", "_total", "messages")

    def __init__(self) -> None:
        self.messages = self._characters = self._total = 0

    def add(self, text: str, amount: int) -> None:
        """One more message."""
        self.messages += 1
        self._characters += len(text)
        self._total += amount

    def check(self, work: Workload) -> None:
        """Raise RuntimeError when a message is missing, double or another one."""
        if self._total != work.check_sum() or self._characters != work.messages * work.characters:
            raise RuntimeError(f"sum {self._total} instead of {work.check_sum()}, {self._characters} characters")


async def fill_and_receive(task: Task) -> Metrics:
    """Fill and receive in one process, for the embedded broker."""
    work = task.workload
    async with jmsaio.connect(tuned_url(task)) as connection, connection.create_session() as session:
        queue = session.create_queue(task.topic)
        async with session.create_producer(queue) as producer:
            await send_all(producer, work)
        async with session.create_consumer(queue) as consumer:
            meter = await receive_all(consumer, work)
    return meter.metrics(work.messages)


async def receive_all(consumer: MessageConsumer, work: Workload) -> Meter:
    """Receive the workload. Raises RuntimeError if a message is missing, duplicated or wrong."""
    reading, meter = Reading(), Meter()
    for number in range(work.messages):
        message = await consumer.receive(_GUARD)
        if number == 0:
            meter.start()
        if not isinstance(message, jmsaio.TextMessage):
            raise RuntimeError(f"message {number} was not received, or is not text: {message!r}")
        reading.add(message.text or "", message.get_int_property(AMOUNT))
    meter.stop()
    reading.check(work)
    return meter


async def through(task: Task, tracing: Tracing | None = None) -> Metrics:
    """Send and receive concurrently; measures from the first send to the last message, acknowledged."""
    work = task.workload
    async with (
        jmsaio.connect(tuned_url(task), send_window_messages=work.window, tracing=tracing) as connection,
        connection.create_session() as sending,
        connection.create_session() as receiving,
        sending.create_producer(sending.create_queue(task.topic)) as producer,
    ):
        consumer = await receiving.create_consumer(receiving.create_queue(task.topic))
        with Meter() as meter:
            async with asyncio.TaskGroup() as group:
                group.create_task(send_all(producer, work))
                group.create_task(receive_all(consumer, work))
            await consumer.close()
    return meter.metrics(work.messages)


async def paced(work: Workload, meter: Meter, sent: list[float], late: list[float]) -> AsyncIterator[int]:
    """Yield the numbers of messages at the workload's rate, and start the meter at the first that counts.

    Args:
        work: amounts.
        meter: the meter.
        sent: receives the time at which each number was yielded, of ``time.perf_counter``.
        late: receives the seconds by which that was too late. As long as ``sent``: the number of messages.
    """
    clock = time.perf_counter
    begin = clock()
    for number in range(len(sent)):
        if number == work.warm_messages:
            meter.start()
        due = begin + number / work.rate
        if (wait := due - clock()) > 0:
            await asyncio.sleep(wait)
        sent[number] = now = clock()
        late[number] = now - due
        yield number


async def latency(task: Task) -> Metrics:
    """Measure the latency from the call of ``send_async`` until the receiver has the text, AUTO mode."""
    work = task.workload
    clock = time.perf_counter
    count = work.warm_messages + int(work.rate * work.seconds)
    sent, late, latencies = [0.0] * count, [0.0] * count, [0.0] * count
    async with (
        jmsaio.connect(tuned_url(task), send_window_messages=work.window) as connection,
        connection.create_session() as sending,
        connection.create_session() as receiving,
        sending.create_producer(sending.create_queue(task.topic)) as producer,
    ):
        consumer = await receiving.create_consumer(receiving.create_queue(task.topic))

        async def take() -> None:
            for _ in range(count):
                message = await consumer.receive(_GUARD)
                if not isinstance(message, jmsaio.TextMessage) or message.text is None:
                    raise RuntimeError(f"not the message that was sent: {message!r}")
                number = message.get_int_property(AMOUNT)
                latencies[number] = clock() - sent[number]

        meter = Meter()
        async with asyncio.TaskGroup() as group:
            group.create_task(take())
            async for number in paced(work, meter, sent, late):
                await producer.send_async(work.text, properties=typed_properties(number))
        meter.stop()
        await consumer.close()
    return latency_metrics(latencies[work.warm_messages :], late[work.warm_messages :], meter)


class BareRecord:
    """A received record with the content of an outgoing one, as plain as the embedded broker's."""

    __slots__ = ("entry", "event_time", "get", "key", "payload", "properties")

    #: Equal for all records; the codec reads them only for a header.
    publish_time = 0
    redelivery_count = 0
    sequence_id: int | None = None
    producer_name: str | None = None
    schema_version: bytes | None = None
    may_expire = False
    size = 0
    batch_size = 0
    topic = "persistent://public/default/bare"

    def __init__(self, sent: OutgoingRecord, entry: int) -> None:
        self.payload = sent.payload
        self.properties: Mapping[str, str] = sent.properties
        self.get = sent.properties.get
        self.key = sent.key
        self.event_time = sent.event_time
        self.entry = entry

    @property
    def message_id(self) -> WireId:
        """Return a position that counts up."""
        return WireId(0, self.entry)


def stamped(number: int, now: int) -> Stamp:
    """Return a producer's stamp of message ``number`` at ``now`` (ms)."""
    return Stamp(
        message_id=f"ID:00000000-0000-0000-0000-000000000000:1:{number}",
        connection_id="00000000-0000-0000-0000-000000000000",
        timestamp=now,
        event_time=now,
        delivery_time=now,
        deliver_at=None,
        expiration=0,
        priority=4,
        delivery_mode=2,
        sticky_key=None,
        system_namespace="public/default",
    )


def received(number: int, text: str, queue: Queue, now: int) -> BareRecord:
    """Build, stamp and encode message ``number``, as a receiver would receive it."""
    message = jmsaio.TextMessage(text)
    for name, value in typed_properties(number).items():
        message.set_object_property(name, value)
    stamp = stamped(number, now)
    record = encode(message, stamp)
    stamp_sent(message, stamp, queue)
    return BareRecord(record, number)


def bare_loop(task: Task) -> Metrics:
    """Build, stamp, encode, decode and read each message. Raises RuntimeError if a sum is wrong."""
    work = task.workload
    text, queue = work.text, Queue(task.topic)
    source = RecordSource(queue, "public/default")
    total = characters = 0
    with Meter() as meter:
        for number in range(work.messages):
            message = decode_with(received(number, text, queue, time.time_ns() // 1_000_000), source)
            characters += len(message.text or "") if isinstance(message, jmsaio.TextMessage) else 0
            total += message.get_int_property(AMOUNT)
    if total != work.check_sum() or characters != work.messages * work.characters:
        raise RuntimeError(f"sum {total} instead of {work.check_sum()}, {characters} characters")
    return meter.metrics(work.messages)


def three_terms(task: Task) -> Metrics:
    """Evaluate on received records; half of them match. Raises RuntimeError for a wrong number of matches."""
    count = task.workload.evaluations
    queue = Queue(task.topic)
    records = [received(number, task.workload.text, queue, 0) for number in range(_RECORDS)]
    selector = Selector(SELECTOR)
    matches, found = selector.matches_record, 0
    with Meter() as meter:
        for record in islice(cycle(records), count):
            if matches(record, header) is True:
                found += 1
    expected = sum(number % _RECORDS > 499 for number in range(count))
    if found != expected:
        raise RuntimeError(f"{found} of {count} matched, not {expected}")
    return meter.metrics(count)


async def idle_consumers(task: Task) -> Metrics:
    """Measure the Python memory per consumer, broker included, of consumers on some sessions, each with its own queue.

    One consumer is created and closed first, so that shared modules and caches don't count.
    """
    work = task.workload
    async with jmsaio.connect(task.url) as connection:
        async with connection.create_session() as session:
            await (await session.create_consumer(session.create_queue(f"{task.topic}-first"))).close()
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        async with AsyncExitStack() as stack:
            sessions = [await stack.enter_async_context(connection.create_session()) for _ in range(work.sessions)]
            consumers = []
            for number in range(work.consumers):
                session = sessions[number % work.sessions]
                consumers.append(await session.create_consumer(session.create_queue(f"{task.topic}-{number}")))
            gc.collect()
            used = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
            if any(consumer.closed for consumer in consumers):
                raise RuntimeError("a consumer closed by itself")
    return {"kb_each": used / work.consumers / 1e3}
