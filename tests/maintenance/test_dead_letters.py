"""What a dead letter tells, the record that is sent in its place, and where dead letters lie."""

from __future__ import annotations

import attrs
import pytest

from jmsaio.codec.properties import EXPIRED_AT
from jmsaio.errors import ConfigurationError, NotFoundError
from jmsaio.maintenance.dead_letters import (
    ORIGINAL_PLACE,
    REDRIVE_COUNT,
    letter_topics,
    origin_of,
    redrive_count,
    redriven,
    require_admin,
)
from jmsaio.model.destinations import Queue, resolve
from jmsaio.model.topic_names import dead_letter_topic
from jmsaio.model.wire import EXPIRATION, FAILED_DELIVERIES, ORIGIN_MESSAGE_ID, PRIORITY, REAL_TOPIC, WireId
from jmsaio.transport.registry import connected
from tests.kit.records import Record
from tests.maintenance.letters import QUEUE, Letters

TOPIC = "persistent://public/default/orders"
NOW = 1_000_000


def letter(**properties: str) -> Record:
    return Record(
        b"x", {REAL_TOPIC: TOPIC, ORIGIN_MESSAGE_ID: "1:2:-1", **properties}, "k", 5, message_id=WireId(7, 8)
    )  # fmt: skip


def test_what_is_sent_has_nothing_of_a_dead_letter() -> None:
    marks = {EXPIRED_AT: "9", EXPIRED_AT + "_jsmtype": "long"}
    marks |= {FAILED_DELIVERIES: "2", FAILED_DELIVERIES + "_jsmtype": "int"}
    sent = redriven(
        letter(
            REAL_SUBSCRIPTION="s",
            RECONSUMETIMES="3",
            DELAY_TIME="1",
            RETRY_TOPIC="r",
            a="b",
            **marks,
            ORIGIN_MESSAGE_IDY_TIME="x",
        ),
        NOW,
    )
    assert sent.properties == {
        "a": "b", ORIGINAL_PLACE: "1:2:-1", REDRIVE_COUNT: "1", f"{REDRIVE_COUNT}_jsmtype": "int",
    }  # fmt: skip
    assert (sent.payload, sent.key, sent.event_time) == (b"x", "k", 5)


def test_the_first_id_is_kept_and_each_redrive_counts() -> None:
    sent = redriven(letter(**{ORIGINAL_PLACE: "0:0:-1", REDRIVE_COUNT: "2"}), NOW)
    assert (sent.properties[ORIGINAL_PLACE], sent.properties[REDRIVE_COUNT]) == ("0:0:-1", "3")


def test_a_letter_without_an_id_of_its_origin_is_told_by_its_own() -> None:
    assert redriven(Record(message_id=WireId(7, 8)), NOW).properties[ORIGINAL_PLACE] == "7:8:-1"


def test_an_expiration_that_has_passed_is_left_out_and_another_is_kept() -> None:
    assert EXPIRATION not in redriven(letter(**{EXPIRATION: str(NOW)}), NOW).properties
    assert redriven(letter(**{EXPIRATION: str(NOW + 1)}), NOW).properties[EXPIRATION] == str(NOW + 1)


def test_the_priority_chooses_the_partition_again() -> None:
    assert redriven(letter(**{PRIORITY: "9"}), NOW).priority == 9


@pytest.mark.parametrize(("text", "count"), [("2", 2), ("", 0), ("-1", 0), ("many", 0), ("²", 0), ("9" * 30, 0)])
def test_a_count_that_is_no_number_counts_nothing(text: str, count: int) -> None:
    assert redrive_count({REDRIVE_COUNT: text}) == count


@pytest.mark.parametrize(("text", "origin"), [(TOPIC, TOPIC), ("orders", None), ("", None)])
def test_an_origin_is_a_full_name(text: str, origin: str | None) -> None:
    assert origin_of({REAL_TOPIC: text}) == origin
    assert origin_of({}) is None


async def test_dead_letters_of_a_topic_and_of_its_partitions_are_found(letters: Letters) -> None:
    admin, queue = letters.harness.admin, Queue(letters.topic)
    assert await letter_topics(admin, resolve(queue), None) == [letters.topic]
    assert await letter_topics(admin, resolve(queue), QUEUE) == [letters.dead]
    with pytest.raises(NotFoundError, match="no topic with dead letters of the subscription other"):
        await letter_topics(admin, resolve(queue), "other")
    topic = letters.harness.topic("parted")
    await admin.create_topic(topic, 2)
    found = [dead_letter_topic(name, QUEUE) for name in (topic, f"{topic}-partition-1")]
    for name in found:
        await admin.create_topic(name)
    assert await letter_topics(admin, resolve(Queue(topic)), QUEUE) == found


async def test_without_administration_the_option_is_named(letters: Letters) -> None:
    config = attrs.evolve(letters.harness.configuration, use_pulsar_admin=False)
    async with connected(config) as transport:
        with pytest.raises(ConfigurationError, match="usePulsarAdmin=true"):
            require_admin(transport)
