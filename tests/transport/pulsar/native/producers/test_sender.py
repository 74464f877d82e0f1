"""``PulsarSender`` on the real broker: outcomes, ids, window, routing, growth, closing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any
from unittest.mock import AsyncMock

import anyio
import anyio.lowlevel
import attrs
import pytest

from jmsaio.codec import Stamp, encode
from jmsaio.codec.encode import MAPS
from jmsaio.config import ProducerConfig
from jmsaio.errors import (
    IllegalStateError,
    JMSError,
    MessageFormatError,
    MessageTooLargeError,
    ObjectClosedError,
    OperationTimeoutError,
    SendInDoubtError,
)
from jmsaio.model.messages.message import Property, TextMessage
from jmsaio.model.wire import OutgoingRecord, WireId
from jmsaio.rules.routing import java_string_hash
from jmsaio.transport.base import SenderOptions, SubscriptionType
from jmsaio.transport.names import process_name
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.producers.sender import PulsarSender
from jmsaio.transport.waiting import SLICE
from tests.kit.native_fakes import FakeProducer
from tests.kit.records import Outcomes, record, tell_each, texts
from tests.transport.pulsar.conftest import HANG, Kit, SlowLook, send


async def test_a_lone_eachhas_its_exact_id(kit: Kit) -> None:
    box = await kit.box()
    outcomes = await send(await kit.sender(), "alone")
    [received] = await box.take(1)
    assert outcomes.stored == [received.message_id]


async def test_ids_that_are_told_are_right(kit: Kit) -> None:
    """A group's answer tells the ids of all its records in the last batch; the others are None, never wrong."""
    box = await kit.box()
    sender = await kit.sender()
    payloads: dict[str, WireId | None] = {}
    for start in range(0, 5000, 500):
        for number in range(start, start + 500):
            text = str(number)
            sender.send(record(text), lambda place, error, text=text: payloads.__setitem__(text, place))
        await anyio.sleep(0.001)
    await sender.drain(HANG)
    places = {text: one.message_id for one in await box.take(5000) for text in texts([one])}
    assert list(payloads) == list(map(str, range(5000)))
    told = {text: place for text, place in payloads.items() if place is not None}
    assert {text: places[text] for text in told} == told
    assert len(told) >= 25


async def test_done_never_runs_inside_send(kit: Kit) -> None:
    sender = await kit.sender()
    outcomes = Outcomes()
    sender.send(record("a"), outcomes)
    assert len(outcomes) == 0
    await sender.drain(HANG)
    assert len(outcomes) == 1


async def test_one_eachmay_be_sent_twice(kit: Kit) -> None:
    """pulsar-client refuses the same built message twice; our records are built anew."""
    box = await kit.box()
    sender, one, outcomes = await kit.sender(), record("twice"), Outcomes()
    sender.send(one, outcomes)
    sender.send(one, outcomes)
    await sender.drain(HANG)
    assert texts(await box.take(2)) == ["twice", "twice"]
    assert not outcomes.failures


@pytest.mark.parametrize("limit", ["records", "bytes"])
async def test_a_full_window_waits_until_there_is_room(kit: Kit, limit: str) -> None:
    options: dict[str, Any] = {"window_records": 20} if limit == "records" else {"window_bytes": 20 * 104}
    sender = await kit.sender(**options)
    outcomes = Outcomes()
    for _ in range(20):
        assert not sender.full
        sender.send(record("x" * 100, {"p": "abc"}), outcomes)
    assert sender.full
    sender.send(record("more"), outcomes)
    with anyio.fail_after(HANG):
        await sender.ready()
    assert not sender.full
    assert len(outcomes) >= 10
    await sender.drain(HANG)
    assert len(outcomes) == 21
    assert not outcomes.failures


async def test_cancelled_ready_changes_nothing(kit: Kit) -> None:
    sender, outcomes = await kit.sender(window_records=1), Outcomes()
    sender.send(record("a"), outcomes)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await sender.ready()
    with anyio.fail_after(HANG):
        await sender.ready()
    await sender.drain(HANG)
    assert len(outcomes) == 1


async def test_a_eachthat_is_too_large_is_refused_and_its_neighbours_arrive(kit: Kit) -> None:
    """Refused at once, and a neighbour in the same group is neither lost nor failed."""
    box = await kit.box()
    sender, outcomes = await kit.sender(), Outcomes()
    sender.send(record("before"), outcomes)
    with pytest.raises(MessageTooLargeError, match="accepts up to 5232640"):
        sender.send(record(b"x" * 5_300_000), outcomes)
    sender.send(record(b"y" * 3_000_000), outcomes)
    sender.send(record("after"), outcomes)
    await sender.drain(HANG)
    assert [len(one.payload or b"") for one in await box.take(3)] == [6, 3_000_000, 5]
    assert (len(outcomes.stored), outcomes.failures) == (3, [])
    assert None not in outcomes.stored


async def test_too_large_although_compressed(kit: Kit) -> None:
    """With compression only the broker's answer tells; it reaches the record that it belongs to."""
    import random

    sender, outcomes = await kit.sender(config=ProducerConfig(compression_type="LZ4")), Outcomes()
    sender.send(record(b"x" * 6_000_000), outcomes)
    sender.send(record(random.Random(1).randbytes(6_000_000)), outcomes)
    sender.send(record("small"), outcomes)
    await sender.drain(HANG)
    assert len(outcomes.stored) == 2
    assert [type(error) for error in outcomes.failures] == [MessageTooLargeError]


async def test_text_that_is_no_unicode(kit: Kit) -> None:
    sender, outcomes = await kit.sender(), Outcomes()
    with pytest.raises(MessageFormatError, match="surrogates"):
        sender.send(record("x", {"word": "\ud800"}), outcomes)
    await sender.drain(HANG)
    assert len(outcomes) == 0


async def test_delayed_records_have_their_own_answer(kit: Kit) -> None:
    """They leave outside the batch; the records around them keep their ids."""
    import time

    box = await kit.box()
    sender = await kit.sender()
    places: dict[str, WireId | None] = {}
    for number in range(6):
        one = record(str(number))
        if number % 2:
            one.deliver_at = int(time.time() * 1000) + 700
        sender.send(one, lambda place, error, number=number: places.__setitem__(str(number), place))
    await sender.drain(HANG)
    records = await box.take(6)
    assert sorted(texts(records[:3])) == ["0", "2", "4"]
    assert {text: one.message_id for one in records for text in texts([one])} == places


@pytest.mark.parametrize(
    "config",
    [
        ProducerConfig(batching_enabled=False),
        ProducerConfig(batcher_builder="KEY_BASED"),
        ProducerConfig(chunking_enabled=True, batching_enabled=False),
        ProducerConfig(compression_type="ZSTD"),
    ],
    ids=["single", "by key", "chunked", "compressed"],
)
async def test_records_arrive_with_each_setting_of_the_producer(kit: Kit, config: ProducerConfig) -> None:
    box = await kit.box()
    sender = await kit.sender(config=config)
    outcomes = await send(sender, "a", "b", "c")
    assert sorted(texts(await box.take(3))) == ["a", "b", "c"]
    assert not outcomes.failures


async def test_a_eachgoes_by_route_then_key_then_in_turn(kit: Kit) -> None:
    """By the route, else by Java's hash of the key, else in turn; one native producer a partition."""
    admin = kit.transport.admin
    assert admin is not None
    await admin.create_topic(kit.topic, 4)
    box = await kit.box()
    routed: list[int] = []

    def route(one: OutgoingRecord, partitions: int) -> int | None:
        routed.append(partitions)
        return 2 if one.payload == b"routed" else None

    sender = await kit.sender(route=route)
    keys = ["grp", "a", "größe", "\U0001f600x"]
    outcomes = Outcomes()
    for key in keys:
        one = record(key)
        one.key = key
        sender.send(one, outcomes)
    for text in ["routed", *"1234"]:
        sender.send(record(text), outcomes)
    await sender.drain(HANG)
    records = {text: one for one in await box.take(9) for text in texts([one])}
    assert routed == [4] * 9
    for key in keys:
        assert records[key].message_id.partition == java_string_hash(key) % 4
    assert java_string_hash("grp") == 102629
    assert records["routed"].message_id.partition == 2
    assert sorted(records[text].message_id.partition for text in "1234") == [0, 1, 2, 3]
    assert sorted(map(str, outcomes.stored)) == sorted(str(one.message_id) for one in records.values())


async def test_new_partitions_are_sent_to(kit: Kit, pulsar_broker: object) -> None:
    """Unless ``autoUpdatePartitions`` is off."""
    import httpx

    admin = kit.transport.admin
    assert admin is not None
    await admin.create_topic(kit.topic, 1)
    sender = await kit.sender(config=ProducerConfig(auto_update_partitions_interval=1))
    still = await kit.sender(config=ProducerConfig(auto_update_partitions_interval=1, auto_update_partitions=False))
    path = kit.topic.replace("://", "/")
    async with httpx.AsyncClient() as http:
        url = f"{pulsar_broker.web_service_url}/admin/v2/{path}/partitions"  # type: ignore[attr-defined]  # TestBroker
        (await http.post(url, json=3)).raise_for_status()
    seen: set[int] = set()
    with anyio.fail_after(HANG):
        while seen != {0, 1, 2}:
            outcomes = await send(sender, *"123456")
            seen |= {place.partition for place in outcomes.stored if place is not None}
            await send(still, *"123456")
            await anyio.sleep(0.05)
    await anyio.sleep(0.2)  # a look that has begun would have ended
    assert len(still.natives) == 1 < len(sender.natives)  # type: ignore[attr-defined]  # no part of the seam


async def test_closing_waits_for_a_check_after_partitions(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be opening a producer."""
    slow = SlowLook()
    sender = await kit.sender()
    monkeypatch.setattr(sender, "_check_after", 0.0)
    monkeypatch.setattr(sender, "_list_partitions", slow.look)
    await send(sender, "a")
    await anyio.lowlevel.checkpoint()
    assert slow.told == ["begun"]
    await sender.aclose(HANG)
    assert slow.told == ["begun", "ended"]


async def test_aclose_waits_for_outcomes(kit: Kit) -> None:
    box = await kit.box()
    sender, outcomes = await kit.sender(), Outcomes()
    for number in range(1000):
        sender.send(record(str(number)), outcomes)
    await sender.aclose(HANG)
    assert (len(outcomes.stored), outcomes.failures) == (1000, [])
    await sender.aclose(HANG)
    with pytest.raises(ObjectClosedError, match=kit.topic):
        sender.send(record("late"), outcomes)
    assert len(await box.take(1000)) == 1000


async def test_aclose_without_time_tells_the_truth(kit: Kit) -> None:
    """Every record has exactly one outcome: stored, in doubt, or not sent."""
    sender, outcomes = await kit.sender(), Outcomes()
    for number in range(450):
        sender.send(record(str(number)), outcomes)
    await sender.aclose(0)
    assert len(outcomes) == 450
    kinds = {type(error) for error in outcomes.failures}
    assert kinds <= {SendInDoubtError, ObjectClosedError}
    await anyio.sleep(0.2)
    assert len(outcomes) == 450


async def test_closing_ends_those_who_wait(kit: Kit) -> None:
    sender, outcomes = await kit.sender(window_records=1), Outcomes()
    sender.send(record("a"), outcomes)
    with anyio.fail_after(HANG):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sender.ready)
            tasks.start_soon(sender.aclose, 5)


async def test_drain_gives_up(kit: Kit) -> None:
    sender, outcomes = await kit.sender(), Outcomes()
    sender.send(record("a"), outcomes)
    with pytest.raises(OperationTimeoutError, match="1 records"):
        await sender.drain(0)
    await sender.drain(HANG)
    assert len(outcomes) == 1


async def test_a_second_sender_with_exclusive_access_is_refused(kit: Kit) -> None:
    config = ProducerConfig(access_mode="Exclusive")
    await kit.sender(config=config)
    with pytest.raises(JMSError):
        await kit.sender(config=config)


async def test_a_eachwith_a_sequence_id_is_refused_by_a_sender_of_batches(kit: Kit) -> None:
    sender, outcomes = await kit.sender(), Outcomes()
    with pytest.raises(IllegalStateError, match="batchingEnabled=false"):
        sender.send(record("a", sequence_id=1), outcomes)
    sender.send(record("b"), outcomes)
    await sender.drain(HANG)
    assert outcomes.errors == [None]


async def test_transactions_are_refused(kit: Kit) -> None:
    sender = await kit.sender()
    with pytest.raises(IllegalStateError, match="transactions"):
        sender.send(record("a"), lambda place, error: None, transaction=object())  # type: ignore[arg-type]  # any object


async def test_the_broker_knows_a_producers_properties_and_metadata(kit: Kit, pulsar_broker: object) -> None:
    import httpx

    config = attrs.evolve(ProducerConfig(), properties={"own": "1"})
    await kit.sender(config=config, metadata={"jms.priority": "enabled"})
    path = kit.topic.replace("://", "/")
    async with httpx.AsyncClient() as http:
        url = f"{pulsar_broker.web_service_url}/admin/v2/{path}/stats"  # type: ignore[attr-defined]  # TestBroker
        [publisher] = (await http.get(url)).json()["publishers"]
    assert publisher["metadata"] == {"own": "1", "jms.priority": "enabled", "jmsaio.client": process_name()}


async def test_order_of_groups_and_lone_records(kit: Kit) -> None:
    """Large records leave their group and keep their place in the order."""
    box = await kit.box(SubscriptionType.EXCLUSIVE)
    sender, outcomes = await kit.sender(), Outcomes()
    for number in range(30):
        sender.send(record(str(number) + "x" * (200_000 if number % 7 == 3 else 0)), outcomes)
    await sender.drain(HANG)
    assert [int(text.rstrip("x")) for text in texts(await box.take(30))] == list(range(30))


async def test_the_window_counts_the_same_whether_the_codec_has_counted_the_characters_or_not() -> None:
    native, stamp = FakeProducer(), Stamp("ID:1", "connection", 1, 1, 1)
    properties: dict[str, Property] = {"region": "eu", "number": 5, "größe": True}
    counted = MAPS.properties(properties)
    assert counted is not None
    by_hand = encode(TextMessage("body", properties=properties), stamp)
    by_codec = MAPS.write(b"body", MAPS.parts("text", stamp._replace(message_id=None)), "ID:1", counted)
    assert (by_hand.characters, by_codec == by_hand) == (0, True)
    options = SenderOptions(config=ProducerConfig(), settled=lambda *_: None, window_records=10, window_bytes=10_000)
    bridge = Bridge()
    topics, natives = AsyncMock(return_value=["t"]), AsyncMock(return_value=native)
    sender = PulsarSender(bridge, "t", options, lambda _: None, topics, natives)
    await sender.start()
    sizes = []
    for each in (by_hand, by_codec):
        before = sender._window.bytes
        sender.send(each, object())
        sizes.append(sender._window.bytes - before)
    assert sizes[0] == sizes[1] == 4 + by_codec.characters
    bridge.close()


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_sender_that_closes_with_many_records_tells_a_slice_of_them_in_each_turn(cancelled: bool) -> None:
    """Cancelling the close, too, loses no outcome; who waits for room or for the last outcome goes on at the end."""
    native, bridge, told, turns, count = FakeProducer(), Bridge(), list[object](), [0], 2 * SLICE + 1

    def settled(tokens: Sequence[object], place: WireId | None, error: JMSError | None) -> None:
        assert isinstance(error, SendInDoubtError)
        told.extend(tokens)

    options = SenderOptions(ProducerConfig(batching_enabled=False), settled, window_records=count)
    topics, natives = AsyncMock(return_value=["t"]), AsyncMock(return_value=native)
    sender = PulsarSender(bridge, "t", options, lambda _: None, topics, natives)
    await sender.start()
    for number in range(count):
        sender.send(record("x"), number)
    closing, draining = asyncio.create_task(sender.aclose(0)), asyncio.create_task(sender.drain(HANG))
    with anyio.fail_after(HANG):
        while len(told) < count:
            await anyio.lowlevel.checkpoint()
            turns.append(len(told))
            if cancelled and told:
                closing.cancel()
        await asyncio.wait({closing, draining})
    assert told == list(range(count))
    assert max(later - earlier for earlier, later in pairwise(turns)) <= SLICE
    assert (closing.cancelled(), draining.exception(), sender.full) == (cancelled, None, False)
    bridge.close()


@pytest.mark.parametrize(("connected", "outdated"), [([False, False], True), ([False, True], False)])
async def test_a_sender_without_an_answer_and_without_a_connection_is_replaced(
    connected: list[bool], outdated: bool
) -> None:
    """pulsar-client waits up to a minute before it connects again."""
    bridge, outcomes = Bridge(), Outcomes()
    natives = [FakeProducer(connected=one) for one in connected]
    options = SenderOptions(ProducerConfig(batching_enabled=False, send_timeout=0.01), tell_each)
    topics, opened = AsyncMock(return_value=["t-0", "t-1"]), AsyncMock(side_effect=natives)
    sender = PulsarSender(bridge, "t", options, lambda _: None, topics, opened)
    await sender.start()
    sender.send(record("x"), outcomes)
    assert not sender.outdated
    await sender.drain(HANG)
    assert [type(error) for error in outcomes.failures] == [SendInDoubtError]
    assert sender.outdated is outdated
    bridge.close()
