"""A producer's stamps, and the fast path of a send, which does what the long way does or declines."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import attrs
import pytest
from hypothesis import example, given, strategies as st

import jmsaio
from jmsaio import AcknowledgeMode
from jmsaio.client.runtime.stamping import UNSET, SendSettings, Stamper, Targets, target_for
from jmsaio.codec.encode import MAPS, PACKED
from jmsaio.model.packed import pack
from tests.client.desk import Desk, desk, outcome
from tests.client.helpers import Functions, transactions as using
from tests.codec.strategies import loose_texts
from tests.codec.test_encode import NAMES, VALUES
from tests.kit.inside import admin_of, runtime_of


async def test_a_producer_remembers_a_thousand_destinations_at_most(session: jmsaio.Session) -> None:
    targets = Targets(runtime_of(session).connection, None)
    for number in range(1002):
        assert targets.other(jmsaio.Topic(str(number))).topic == f"persistent://public/default/{number}"
    assert len(targets._others) == 1000
    assert targets.other(jmsaio.Topic("1")) is targets.other(jmsaio.Topic("1"))


async def test_a_producer_has_a_destination_or_each_send_names_one(session: jmsaio.Session) -> None:
    connection = runtime_of(session).connection
    own = Targets(connection, target_for(jmsaio.Queue("own"), connection))
    assert own.default() is own.own
    with pytest.raises(jmsaio.UnsupportedOperationError, match="without destination for others"):
        own.other(jmsaio.Queue("another"))
    with pytest.raises(jmsaio.UnsupportedOperationError, match=r"call send\(destination, message\)"):
        Targets(connection, None).default()


async def test_a_virtual_destination_is_consumed_only(session: jmsaio.Session) -> None:
    with pytest.raises(jmsaio.InvalidDestinationError, match="stands for several topics"):
        target_for(jmsaio.Queue("multi:a,b"), runtime_of(session).connection)


def test_a_delivery_mode_becomes_a_plain_number() -> None:
    modes: list[Any] = [1, 2, jmsaio.DeliveryMode.PERSISTENT]
    assert [SendSettings().changed(delivery_mode=mode).delivery_mode for mode in modes] == [1, 2, 2]


@pytest.mark.parametrize("wrong", [0, 3, True, "1", jmsaio.AcknowledgeMode.CLIENT])
def test_a_delivery_mode_that_jms_lacks_is_refused(wrong: object) -> None:
    with pytest.raises(jmsaio.JMSError, match=r"delivery_mode must be DeliveryMode\.PERSISTENT or"):
        SendSettings().changed(delivery_mode=wrong)
    with pytest.raises(jmsaio.JMSError, match="delivery_mode"):
        SendSettings().options(wrong, None, None, None)


@pytest.mark.parametrize("wrong", [-1, 10, True, 4.0])
def test_a_priority_is_an_int_from_0_to_9(wrong: object) -> None:
    with pytest.raises(jmsaio.JMSError, match="priority"):
        SendSettings().changed(priority=wrong)


def test_durations_are_kept_in_milliseconds_and_an_option_replaces_its_setting() -> None:
    settings = SendSettings().changed(time_to_live=1.5, delivery_delay=2, priority=7)
    assert settings.options(None, None, None, None) == (2, 7, 1500, 2000)
    assert settings.options(1, 0, 3, 0) == (1, 0, 3000, 0)


async def test_only_a_delayed_message_has_a_delivery_time_for_the_broker(session: jmsaio.Session) -> None:
    stamper = Stamper(runtime_of(session), Targets(runtime_of(session).connection, None), "ID:1:")
    settings = stamper.settings
    assert stamper.stamp(1000, stamper.next_id(), settings, (2, 4, 0, 0)).deliver_at is None
    stamp = stamper.stamp(1000, stamper.next_id(), settings, (2, 4, 0, 1500))
    assert stamp.deliver_at == stamp.delivery_time == stamp.timestamp + 1500
    assert stamp.message_id == "ID:1:2"


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
        "delivery_mode": st.sampled_from([1, 2, 3, True, 1.0, jmsaio.DeliveryMode.NON_PERSISTENT, [1]]),
        "priority": st.integers(-1, 9) | st.sampled_from([True, 4.0, "4"]),
        "time_to_live": st.sampled_from([0, 1, 1.0, 1.5, -1, True, math.nan, timedelta(seconds=1)]),
        "delivery_delay": st.sampled_from([0, 2.5, 2, 1e12]),
    },
)
#: None is the producer's own; the desk has deleted one of them.
DESTINATIONS = st.sampled_from(
    [None, jmsaio.Queue("orders"), jmsaio.Topic("news"), jmsaio.Queue("unopened"), jmsaio.Queue("multi:a,b"), "deleted"]
)
#: What happens before a send.
EVENTS = st.sampled_from([None, "commit", "rollback", "millisecond", "setting", "failure", "doubt"])


def write_with(plain: Stamper, writer: Any) -> None:
    """Let a producer write as for another transport, and forget what it has written for its own."""
    plain.writer = writer
    plain._common = None


def as_message(body: str | bytes) -> jmsaio.Message:
    return jmsaio.TextMessage(body) if isinstance(body, str) else jmsaio.BytesMessage(body)


async def happen(event: str | None, here: Desk) -> None:
    if event == "millisecond":
        here.clock.advance(0.002)
        await asyncio.sleep(0)
    elif event == "setting":
        for producer in (here.producer, here.anywhere):
            producer.priority = (producer.priority + 1) % 10
    elif here.session.transacted and event is not None and event in ("commit", "rollback"):
        with suppress(jmsaio.TransactionRolledBackError):
            await getattr(here.session, event)()


@attrs.frozen
class Case:
    """One send. A tuple would do, but says less when the test fails."""

    body: str | bytes = "x"
    properties: Any = None
    destination: Any = None
    options: dict[str, Any] = attrs.field(factory=dict)
    event: str | None = None


async def check_case(case: Case, here: Desk) -> None:
    """The body itself, by the public call, goes the long way's way; so does a message with it."""
    await happen(case.event, here)
    destination, options = here.deleted if case.destination == "deleted" else case.destination, case.options
    producer = here.producer if destination is None else here.anywhere
    properties, outcomes, work = case.properties, list[Any](), None
    if producer._runtime.transaction is not None:
        work = producer._runtime.transaction.work
    get, body = options.get, case.body
    given = get("delivery_mode"), get("priority"), get("time_to_live"), get("delivery_delay")

    def usual() -> Any:
        arguments: Any = (body,) if destination is None else (destination, body)
        return producer.send_async(*arguments, properties=properties, **options)

    def long_way(each: Any) -> Any:
        first, second = (each, UNSET) if destination is None else (destination, each)
        return producer._send_any(first, second, properties, given, UNSET)

    for send in (usual, partial(long_way, body), partial(long_way, as_message(body))):
        if case.event == "failure":
            here.broker.faults.fail_sends()
        elif case.event == "doubt":
            here.broker.faults.lose_answers()
        before = (work.sent, len(work.failures)) if work is not None else (0, 0)
        told = await outcome(here, producer, send)
        after = (work.sent, len(work.failures)) if work is not None else (0, 0)
        here.broker.faults._broker.faults.sends.clear()
        outcomes.append((told, after[0] - before[0], after[1] - before[1], here.pending.count))
    assert outcomes[0] == outcomes[1] == outcomes[2]


@given(
    cases=st.lists(
        st.builds(
            Case,
            body=loose_texts | st.binary(max_size=20),
            properties=st.none() | st.dictionaries(NAMES, VALUES, max_size=4),
            destination=DESTINATIONS,
            options=st.just({}) | OPTIONS,
            event=EVENTS,
        ),
        min_size=1,
        max_size=4,
    ),
    settings=SETTINGS,
    packed=st.booleans(),
    transactions=st.sampled_from([None, "emulated", "real", "sticky"]),
)
@example(
    [Case("a", {"n": 5, "b": True, "d": -0.0, "s": "x", "z": None})], {"priority": 7, "time_to_live": 1.5}, True, None
)
@example([Case(b"a")], {"disable_message_id": True, "disable_message_timestamp": True}, False, None)
@example([Case(options={"priority": each}) for each in (1, True, 1.0, 1)], {}, True, None)
@example([Case(options={"delivery_mode": each}) for each in (1, True, 1.0, [1])], {}, True, None)
@example([Case(options={"time_to_live": each}) for each in (1, True, 1.0, 0)], {}, True, "sticky")
@example([Case(event=each) for each in (None, "millisecond", "setting", None)], {"time_to_live": 1.5}, True, "sticky")
@example([Case(destination=each) for each in (jmsaio.Topic("news"), jmsaio.Queue("news"), "deleted")], {}, True, "real")
@example([Case(), Case(), Case(event="rollback"), Case(), Case(event="failure")], {}, True, "real")
@example([Case(), Case(event="doubt"), Case(event="commit"), Case()], {}, True, "emulated")
def test_records_receipts_and_errors_are_those_of_the_long_way(
    cases: list[Case], settings: Settings, packed: bool, transactions: str | None
) -> None:
    """Of the body itself, and of a message with it."""

    async def check() -> None:
        mode = AcknowledgeMode.AUTO if transactions is None else AcknowledgeMode.TRANSACTED
        made, sticky = using(transactions == "emulated"), transactions == "sticky"
        async with desk(mode, transactions_sticky_partitions=sticky, **made) as here:
            for producer in (here.producer, here.anywhere):
                write_with(producer._stamper, PACKED if packed else MAPS)
                for name, value in settings.items():
                    setattr(producer, name, value)
            for case in cases:
                await check_case(case, here)

    asyncio.run(check())


@pytest.mark.parametrize("plain", [MAPS, PACKED])
async def test_bodies_take_the_fast_path_and_end_with_their_receipts(plain: Any) -> None:
    async with desk() as here:
        write_with(here.plain, plain)
        for body in ("text", b"bytes", ""):
            send = here.plain.send(body, UNSET, {"n": 1})
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
            assert here.plain.send("before") is not None
            setter(here.producer, setting, value)
            assert here.plain.send("behind") is not None
            before, behind = (record.properties.get(name) for record in here.records)
            assert before != behind == text


async def test_a_time_stamp_is_left_out_from_the_next_send_on() -> None:
    async with desk() as here:
        for disabled in (False, True):
            here.producer.disable_message_timestamp = disabled
            send = here.plain.send("x")
            assert send is not None
            assert (await send).timestamp == here.records[-1].event_time == (0 if disabled else 1_700_000_000_000)


@pytest.mark.parametrize("body", [jmsaio.TextMessage("x"), ["a"], {"a": 1}, None, 5, bytearray(b"x"), "\udc00"])
async def test_what_is_no_plain_body_declines_and_uses_up_no_id(body: object) -> None:
    async with desk() as here:
        before = here.plain.sequence
        assert here.plain.send(body) is None
        assert here.plain.send("x", UNSET, {"größe": "ä"}) is None
        assert (here.plain.sequence, here.records) == (before, [])


async def test_a_send_in_another_millisecond_lets_others_run_first_unless_they_have() -> None:
    async with desk() as here:
        assert here.plain.send("x") is not None
        here.clock.advance(0.5)
        assert here.plain.send("x") is None
        await asyncio.sleep(0)
        assert here.plain.send("x") is not None
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
        assert other._stamper.send("x") is None
        assert here.plain.send("x") is not None
        await here.session.create_producer(jmsaio.Queue("takes the only place in the pool"))
        assert here.plain.send("x") is None
        await here.producer.send("opens it")
        assert here.plain.send("x") is not None


async def test_a_topic_that_was_deleted_is_recreated_with_its_queues_subscription() -> None:
    async with desk() as here:
        assert here.plain.send("gone") is not None
        admin = admin_of(here.connection)
        await admin.delete_topic("persistent://public/default/orders", force=True)
        assert here.plain.send("x") is None
        await here.producer.send("stays")
        async with here.session.create_consumer(jmsaio.Queue("orders")) as consumer:
            assert await consumer.receive_body(str, timeout=5) == "stays"


async def test_a_full_window_declines_and_the_long_way_waits() -> None:
    async with desk(send_window_messages=2) as here:
        sends = [here.plain.send("x") for _ in range(3)]
        assert [send is None for send in sends] == [False, False, True]
        await here.producer.send("waited for room")
        assert [record.payload for record in here.records] == [b"x", b"x", b"waited for room"]


@pytest.mark.parametrize("emulated", [False, True])
async def test_a_transaction_takes_the_fast_path_from_its_beginning_to_its_end(emulated: bool) -> None:
    async with desk(AcknowledgeMode.TRANSACTED, **using(emulated)) as here:
        for end in (here.session.rollback, here.session.commit):
            assert here.plain.send("in the transaction") is not None
            await end()
            assert (here.plain.send("begins the next") is not None) is emulated
            await here.producer.send("begins the next")
            assert here.plain.send("in the next") is not None
        works = [work for _, _, work in here.circumstances]
        assert (works[0] != works[1], works[1] == works[2]) == (True, True)


async def test_a_temporary_destination_that_was_deleted_is_refused_in_the_same_millisecond() -> None:
    async with desk() as here:
        reply_to = await here.session.create_temporary_queue()
        replies = await here.session.create_producer(reply_to)
        await replies.send("takes this millisecond's turn of the loop")
        assert replies._stamper.send("x") is not None
        deleting = asyncio.ensure_future(reply_to.delete())
        await asyncio.sleep(0)
        assert replies._stamper.send("x") is None
        await deleting
        with pytest.raises(jmsaio.InvalidDestinationError, match="was deleted"):
            await replies.send("x")


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
        assert here.plain.send("x") is not None
        await getattr(here, closes).close()
        assert here.plain.send("x") is None
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
        assert sending.cancelled() and here.pending.count == 1
        here.clock.advance(1.0)
        await here.producer.send("next")
        assert here.pending.count == 0
        async with here.session.create_consumer(jmsaio.Queue("orders")) as consumer:
            found = [await consumer.receive_body(str, timeout=5) for _ in range(3)]
        assert found[1:] == ["sent all the same", "next"]


async def test_a_refused_size_leaves_no_pending_send() -> None:
    async with desk() as here:
        with pytest.raises(jmsaio.MessageTooLargeError):
            here.plain.send(b"x" * 6 * 1024 * 1024)
        assert here.pending.count == 0
