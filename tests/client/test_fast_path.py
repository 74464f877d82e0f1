"""The fast path of a send does what the long way does, and declines what it can't do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from unittest import mock

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import jmsaio
from jmsaio.client.callbacks.completion import Functions
from jmsaio.client.producer import _UNSET
from jmsaio.client.senders.receipt import Receipt
from jmsaio.codec.plain import MAPS, PACKED
from jmsaio.model.packed import pack
from jmsaio.model.wire import OutgoingRecord
from jmsaio.testing import EmbeddedBroker, ManualClock, embedded_broker
from jmsaio.transport.memory.sender import MemorySender
from tests.codec.strategies import loose_texts
from tests.codec.test_plain import NAMES, VALUES

Settings = dict[str, Any]
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "delivery_mode": st.sampled_from([1, 2]),
        "priority": st.integers(0, 9),
        "time_to_live": st.sampled_from([0, 1.5]),
        "delivery_delay": st.sampled_from([0, 2.5]),
        "disable_message_id": st.booleans(),
        "disable_message_timestamp": st.booleans(),
    },
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "delivery_mode": st.sampled_from([1, 2, 3]),
        "priority": st.integers(-1, 9),
        "time_to_live": st.sampled_from([0, 1.5, -1]),
        "delivery_delay": st.sampled_from([0, 2.5]),
    },
)


@attrs.define
class Desk:
    """A producer on a broker whose clock stands still, so that all sends are in one millisecond; what it sent."""

    broker: EmbeddedBroker
    clock: ManualClock
    connection: jmsaio.Connection
    session: jmsaio.Session
    producer: jmsaio.MessageProducer
    records: list[OutgoingRecord] = attrs.field(factory=list)


@asynccontextmanager
async def desk(**options: Any) -> AsyncIterator[Desk]:
    clock, send = ManualClock(1_700_000_000.0), MemorySender.send
    with embedded_broker(clock=clock) as broker:
        async with jmsaio.connect(broker.url, **options) as connection, connection.create_session() as session:
            producer = await session.create_producer(jmsaio.Queue("orders"))
            await producer.send("takes this millisecond's turn of the loop")
            made = Desk(broker, clock, connection, session, producer)

            def noted(self: MemorySender, record: OutgoingRecord, *rest: Any) -> None:
                made.records.append(record)
                send(self, record, *rest)

            with mock.patch.object(MemorySender, "send", noted):
                yield made


async def outcome(here: Desk, sequence: int, send: Callable[[], Any]) -> Any:
    """What a send with this number of its own tells and hands to the transport, or what it raises."""
    here.records.clear()
    here.producer._sequence = sequence
    try:
        future = await send()
        receipt: Receipt = await future
    except jmsaio.JMSError as error:
        return type(error), str(error), here.producer._sequence
    (record,) = here.records
    fields = [getattr(record, field.name) for field in attrs.fields(OutgoingRecord)]
    own_id = receipt.jms_message_id == str(receipt.place) or receipt.jms_message_id
    told = own_id, receipt.destination, receipt.timestamp, receipt.place is not None
    return fields, list(record.properties.items()), record.packed, told, here.producer._sequence


def as_message(body: str | bytes) -> jmsaio.Message:
    return jmsaio.TextMessage(body) if isinstance(body, str) else jmsaio.BytesMessage(body)


@given(
    body=loose_texts | st.binary(max_size=20),
    properties=st.none() | st.dictionaries(NAMES, VALUES, max_size=4),
    settings=SETTINGS,
    options=st.just({}) | OPTIONS,
    packed=st.booleans(),
)
@example("a", {"n": 5, "b": True, "d": -0.0, "s": "x", "z": None}, {"priority": 7, "time_to_live": 1.5}, {}, True)
@example(b"a", None, {"disable_message_id": True, "disable_message_timestamp": True}, {}, False)
def test_records_receipts_and_errors_are_those_of_the_long_way(
    body: str | bytes, properties: Any, settings: Settings, options: dict[str, Any], packed: bool
) -> None:
    """Of the body itself, and of a message with it."""

    async def check() -> None:
        async with desk() as here:
            producer = here.producer
            producer._plain, producer._kept = (PACKED if packed else MAPS), None
            for name, value in settings.items():
                setattr(producer, name, value)
            get = options.get
            given = get("delivery_mode"), get("priority"), get("time_to_live"), get("delivery_delay")
            usual = await outcome(here, 9, lambda: producer.send_async(body, properties=properties, **options))
            for each in (body, as_message(body)):
                long_way = partial(producer._send_any, each, _UNSET, properties, *given, completion_listener=_UNSET)
                assert usual == await outcome(here, 9, long_way)

    asyncio.run(check())


@pytest.mark.parametrize("plain", [MAPS, PACKED])
async def test_bodies_take_the_fast_path_and_end_with_their_receipts(plain: Any) -> None:
    async with desk() as here:
        here.producer._plain, here.producer._kept = plain, None
        for body in ("text", b"bytes", ""):
            send = here.producer._send_plain(body, {"n": 1})
            assert send is not None and not send.done()
            receipt = await send
            record = here.records[-1]
            assert record.packed == pack(record.properties)
            assert record.properties["JMSMessageId"] == receipt.jms_message_id
            assert (receipt.destination, receipt.timestamp) == (jmsaio.Queue("orders"), 1_700_000_000_000)
        assert len(here.records) == 3


@pytest.mark.parametrize(
    ("setting", "value", "name", "text"),
    [
        ("priority", 7, "JMSPriority", "7"),
        ("delivery_mode", 1, "JMSDeliveryMode", "1"),
        ("time_to_live", 1.0, "JMSExpiration", "1700000001000"),
        ("delivery_delay", 1.0, "JMSDeliveryTime", "1700000001000"),
        ("disable_message_id", True, "JMSMessageId", None),
    ],
)
async def test_a_setting_counts_from_the_next_send_on(setting: str, value: Any, name: str, text: str | None) -> None:
    """Also in the same millisecond, and by each of its two setters."""
    for setter in (setattr, lambda producer, setting, value: getattr(producer, f"set_{setting}")(value)):
        async with desk() as here:
            assert here.producer._send_plain("before", None) is not None
            setter(here.producer, setting, value)
            assert here.producer._send_plain("behind", None) is not None
            before, behind = (record.properties.get(name) for record in here.records)
            assert before != behind == text


async def test_a_time_stamp_is_left_out_from_the_next_send_on() -> None:
    async with desk() as here:
        for disabled in (False, True):
            here.producer.disable_message_timestamp = disabled
            send = here.producer._send_plain("x", None)
            assert send is not None
            assert (await send).timestamp == here.records[-1].event_time == (0 if disabled else 1_700_000_000_000)


@pytest.mark.parametrize("body", [jmsaio.TextMessage("x"), ["a"], {"a": 1}, None, 5, bytearray(b"x"), "\udc00"])
async def test_what_is_no_plain_body_declines_and_uses_up_no_id(body: object) -> None:
    async with desk() as here:
        before = here.producer._sequence
        assert here.producer._send_plain(body, None) is None
        assert here.producer._send_plain("x", {"größe": "ä"}) is None
        assert (here.producer._sequence, here.records) == (before, [])


async def test_a_send_in_another_millisecond_lets_others_run_first_unless_they_have() -> None:
    async with desk() as here:
        assert here.producer._send_plain("x", None) is not None
        here.clock.advance(0.5)
        assert here.producer._send_plain("x", None) is None
        await asyncio.sleep(0)
        assert here.producer._send_plain("x", None) is not None
        here.clock.advance(0.5)
        ran: list[str] = []
        asyncio.get_running_loop().call_soon(ran.append, "another task")
        await here.producer.send_async("x")
        assert ran == ["another task"]
        here.clock.advance(0.5)
        asyncio.get_running_loop().call_soon(ran.append, "a third")
        await here.producer.send_async(jmsaio.TextMessage("takes the long way"))
        assert ran == ["another task", "a third"]


async def test_a_producer_that_has_to_name_or_open_its_sender_declines() -> None:
    async with desk(max_num_of_producers=1) as here:
        other = await here.session.create_producer()
        assert other._send_plain("x", None) is None
        assert here.producer._send_plain("x", None) is not None
        await here.session.create_producer(jmsaio.Queue("takes the only place in the pool"))
        assert here.producer._send_plain("x", None) is None
        await here.producer.send("opens it")
        assert here.producer._send_plain("x", None) is not None


async def test_a_topic_that_was_deleted_is_recreated_with_its_queues_subscription() -> None:
    async with desk() as here:
        assert here.producer._send_plain("gone", None) is not None
        admin = here.connection._runtime.transport.admin
        assert admin is not None
        await admin.delete_topic("persistent://public/default/orders", force=True)
        assert here.producer._send_plain("x", None) is None
        await here.producer.send("stays")
        async with here.session.create_consumer(jmsaio.Queue("orders")) as consumer:
            assert await consumer.receive_body(str, timeout=5) == "stays"


async def test_a_full_window_declines_and_the_long_way_waits() -> None:
    async with desk(send_window_messages=2) as here:
        sends = [here.producer._send_plain("x", None) for _ in range(3)]
        assert [send is None for send in sends] == [False, False, True]
        await here.producer.send("waited for room")
        assert [record.payload for record in here.records] == [b"x", b"x", b"waited for room"]


async def test_a_transaction_takes_the_long_way() -> None:
    async with desk() as here, here.connection.create_session(jmsaio.AcknowledgeMode.TRANSACTED) as session:
        producer = await session.create_producer(jmsaio.Queue("orders"))
        await producer.send("begins it")
        assert producer._send_plain("x", None) is None
        await session.rollback()


async def test_a_completion_listener_is_told_of_a_plain_body_too() -> None:
    async with desk() as here:
        told: list[Any] = []
        listener = Functions(told.append, lambda message, error: told.append(error))
        await here.producer.send_async("x", completion_listener=listener)
        await here.producer.close()
        assert [message.text for message in told] == ["x"]


@pytest.mark.parametrize("closes", ["producer", "session", "connection"])
async def test_nothing_is_sent_after_the_close(closes: str) -> None:
    async with desk() as here:
        assert here.producer._send_plain("x", None) is not None
        await getattr(here, closes).close()
        assert here.producer._send_plain("x", None) is None
        for send in (here.producer.send, here.producer.send_async):
            with pytest.raises(jmsaio.ObjectClosedError):
                await send("late")
        assert len(here.records) == 1


async def test_a_cancelled_send_hides_its_outcome_only() -> None:
    """Its session still waits for it, and the next send goes on."""
    async with desk() as here:
        here.broker.faults.delay_answers(1.0)
        sending = asyncio.ensure_future(here.producer.send("sent all the same"))
        await asyncio.sleep(0)
        sending.cancel()
        await asyncio.wait([sending])
        assert sending.cancelled() and len(here.session._runtime.sends) == 1
        here.clock.advance(1.0)
        await here.producer.send("next")
        assert len(here.session._runtime.sends) == 0
        async with here.session.create_consumer(jmsaio.Queue("orders")) as consumer:
            found = [await consumer.receive_body(str, timeout=5) for _ in range(3)]
        assert found[1:] == ["sent all the same", "next"]


async def test_a_refused_size_leaves_no_pending_send() -> None:
    async with desk() as here:
        with pytest.raises(jmsaio.MessageTooLargeError):
            here.producer._send_plain(b"x" * 6 * 1024 * 1024, None)
        assert len(here.session._runtime.sends) == 0
