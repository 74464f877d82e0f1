"""Records to rows and back: a row says what ``decode`` says, and its record is what ``encode`` writes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from jmsaio.codec import Stamp, bodies, encode, properties, rows
from jmsaio.codec.rows import RawRow, to_record, to_row
from jmsaio.errors import MalformedMessageError, MessageFormatError
from jmsaio.model.destinations import Queue, Topic
from jmsaio.model.messages.message import Message, TextMessage
from jmsaio.model.messages.object_message import ObjectMessage
from jmsaio.model.modes import DeliveryMode
from jmsaio.model.wire import DELIVERY_COUNT, ReceivedRecord, WireId
from tests.codec import golden_files
from tests.codec.cases import Described
from tests.codec.described import build
from tests.codec.fuzz import Fuzzer
from tests.codec.generated import Generator
from tests.codec.strategies import same
from tests.kit.records import Record, UnreadableRecord, decode

CASES = golden_files.cases()
UNCHANGED = [case for case in CASES if "forward" not in case]
KINDS = {"text", "bytes", "map", "stream", "object", "header"}
STAMP = Stamp("ID:a:1:2", "connection", 10, 10, 10)
CONNECTION = "connection"


class UnreadableNames(Record):
    """Its key and its producer's name are not UTF-8."""

    @property
    def key(self) -> str | None:
        raise MalformedMessageError("the key is not UTF-8", self)

    @key.setter
    def key(self, value: str | None) -> None:
        assert value is None

    @property
    def producer_name(self) -> str | None:
        raise MalformedMessageError("the producer's name is not UTF-8", self)

    @producer_name.setter
    def producer_name(self, value: str | None) -> None:
        assert value is None


def received(case: Described) -> Record:
    """The record of a golden file; where the file has only a digest, what ``encode`` writes, which is the same."""
    record = golden_files.received(case)
    return Record.sent(encode(build(case["message"]), golden_files.stamp(case))) if record is None else record


def again(row: RawRow) -> RawRow:
    """The row of the record of a row."""
    return to_row(Record.sent(to_record(row, CONNECTION)))


def plain(**fields: Any) -> RawRow:
    """The row of a message without anything, but with these fields."""
    return to_row(Record(None, {"JMSPulsarMessageType": "header"}))._replace(**fields)


def assert_agrees(row: RawRow, record: ReceivedRecord) -> None:
    """The row says what ``decode`` says, or why it refuses."""
    try:
        message = decode(record, None)
    except MalformedMessageError as error:
        assert row.decode_error is not None and row.decode_error in str(error)
        assert (row.text, row.data) == (None, record.payload)
        return
    assert row.decode_error is None
    assert (row.body_type if row.body_type in KINDS else "header") == message.KIND
    assert_same_headers(row, message)
    values = {
        name: properties.value_of(text, row.property_types.get(name, "")) for name, text in row.properties.items()
    }
    values[DELIVERY_COUNT] = row.redelivery_count + 1
    assert list(values) == list(message.properties)
    assert all(map(same, values.values(), message.properties.values()))
    if message.KIND == "text":
        assert (row.text, row.data) == (message._body(), None)
    else:
        assert (row.text, row.data) == (None, record.payload)


def assert_same_headers(row: RawRow, message: Message) -> None:
    """Every header of the row is that of the message."""
    kind = {None: None, rows.QUEUE: Queue, rows.TOPIC: Topic}[row.reply_to_kind]
    correlation = (
        row.correlation_id if row.correlation_bytes is None else row.correlation_bytes.decode("utf8", "replace")
    )
    assert row.message_id == message.jms_message_id
    assert row.timestamp == message.jms_timestamp
    assert row.delivery_time == message.jms_delivery_time
    assert row.expiration == message.jms_expiration
    assert row.priority == message.jms_priority
    assert row.delivery_mode == DeliveryMode(message.jms_delivery_mode).name
    assert row.type == message.jms_type
    assert (None if kind is None else kind(row.reply_to or "")) == message.jms_reply_to
    assert correlation == message.jms_correlation_id
    assert (row.correlation_bytes or (row.correlation_id or "").encode()) == (
        message.jms_correlation_id_as_bytes or b""
    )
    assert (row.redelivery_count > 0) == message.jms_redelivered


# One test over all files: a test for each would cost more than what it does.
def test_a_row_of_what_java_wrote_says_what_decode_says() -> None:
    for case in CASES:
        record = received(case)
        assert_agrees(to_row(record), record)


def test_the_record_of_a_row_is_what_java_wrote() -> None:
    """Byte for byte, maps of several entries and Java's objects among them: a payload is passed on as it came."""
    for case in UNCHANGED:
        row = to_row(received(case))._replace(message_id=None)  # the files have none
        assert golden_files.normalised(to_record(row, golden_files.CONNECTION)) == case["record"], case["name"]


def test_a_row_survives_the_way_to_a_record_and_back() -> None:
    rows_of_files = {case["name"]: to_row(received(case)) for case in CASES}
    assert rows_of_files
    assert [name for name, row in rows_of_files.items() if again(row) != row] == []


@given(st.integers(0, 10**9))
def test_rows_of_generated_messages_say_what_encode_and_decode_say(seed: int) -> None:
    for item in Generator(seed).messages(6):
        options = item["options"]
        record = encode(
            build(item),
            STAMP._replace(
                priority=options.get("priority", 4),
                delivery_mode=options.get("delivery_mode", 2),
                expiration=options.get("time_to_live", 0),
                event_time=0 if "disable_timestamp" in options else 10,
            ),
        )
        row = to_row(Record.sent(record))
        assert_agrees(row, Record.sent(record))
        assert to_record(row, CONNECTION) == record
        assert again(row) == row


def test_rows_of_records_that_no_one_should_send_say_what_decode_says() -> None:
    fuzzer, refused = Fuzzer(seed=1), 0
    for _ in range(2000):
        record = fuzzer.input()
        row = to_row(record)
        assert_agrees(row, record)
        refused += row.decode_error is not None
        if "?" not in (row.reply_to or ""):
            assert again(row) == row
    assert 100 < refused < 1900


def test_a_python_object_of_json_stays_one() -> None:
    record = encode(ObjectMessage({"a": [1, None]}), STAMP)
    row = to_row(Record.sent(record))
    assert row.object_format == "json" and bodies.OBJECT_FORMAT not in row.properties
    assert to_record(row, CONNECTION) == record


def test_every_part_of_a_record_has_its_field() -> None:
    wire = {
        "JMSPulsarMessageType": "text", "JMSConnectionID": "c", "JMSMessageId": "ID:x:1:2", "JMSDeliveryTime": "12",
        "JMSExpiration": "99", "JMSExpiration_jsmtype": "long", "JMSPriority": "9", "JMSDeliveryMode": "1",
        "JMSCorrelationID": "Zg==", "JMSType": "t", "JMSReplyTo": "persistent://public/default/r",
        "JMSReplyToType": "topic", "JMSTX": "7", "n": "5", "n_jsmtype": "int", "s": "x",
    }  # fmt: skip
    record = Record(
        b"h\xc3\xa9",
        wire,
        "g",
        10,
        2,
        message_id=WireId(5, 6, 1, 3),
        publish_time=11,
        producer_name="p",
        schema_version=b"\0\1",
    )
    assert to_row(record) == RawRow(
        body_type="text", text="hé", data=None, object_format=None,
        properties={"n": "5", "s": "x", "JMSXGroupID": "g"}, property_types={"n": "int"}, key="g",
        correlation_id="f", correlation_bytes=None, type="t", reply_to="r", reply_to_kind="topic",
        message_id="ID:x:1:2", timestamp=10, delivery_time=12, expiration=99, priority=9,
        delivery_mode="NON_PERSISTENT", ledger=5, entry=6, batch=3, publish_time=11, producer_name="p",
        schema_version=b"\0\1", redelivery_count=2,
    )  # fmt: skip


def test_a_record_of_a_producer_that_is_not_jms_is_a_row_of_bytes() -> None:
    record = Record(b"x", {"n": "5"}, None, 7)
    row = to_row(record)
    assert (row.body_type, row.data, row.message_id) == ("bytes", b"x", "ID:3:7:-1")
    assert (row.timestamp, row.delivery_time, row.priority, row.delivery_mode) == (7, 7, 4, "PERSISTENT")
    assert_agrees(row, record)
    assert again(row) == row


@pytest.mark.parametrize("kind", [*sorted(KINDS), None])
def test_the_null_value_is_no_empty_body(kind: str | None) -> None:
    for payload in (None, b""):
        record = Record(payload, {} if kind is None else {"JMSPulsarMessageType": kind})
        assert_agrees(to_row(record), record)
        assert to_record(to_row(record), CONNECTION).payload == payload


@pytest.mark.parametrize("word", ["Text", "", "avro"])
def test_a_word_that_names_no_kind_of_message_is_kept(word: str) -> None:
    record = Record(b"x", {"JMSPulsarMessageType": word})
    row = to_row(record)
    assert (row.body_type, row.data, row.decode_error) == (word, b"x", None)
    assert_agrees(row, record)
    assert again(row) == row


@pytest.mark.parametrize(
    ("kind", "payload"),
    [("text", b"\xff"), ("map", b"\0"), ("map", b"\xac\xed\0\5"), ("stream", b"\2\0\5abc"), ("object", b"hello")],
)
def test_a_body_that_cannot_be_read_is_a_row_with_the_reason(kind: str, payload: bytes) -> None:
    row = to_row(Record(payload, {"JMSPulsarMessageType": kind, "n": "1"}))
    assert row.decode_error is not None and row.decode_error.startswith(f"no readable {kind} body: ")
    assert (row.body_type, row.text, row.data, row.properties) == (kind, None, payload, {"n": "1"})
    assert again(row) == row


def test_without_a_check_only_a_text_is_decoded() -> None:
    assert to_row(Record(b"\0", {"JMSPulsarMessageType": "map"}), check_body=False).decode_error is None
    assert to_row(Record(b"\xff", {"JMSPulsarMessageType": "text"}), check_body=False).decode_error is not None


def test_properties_that_are_not_utf8_are_missing_with_the_reason() -> None:
    row = to_row(UnreadableRecord(b"x", event_time=5, redelivery_count=1))
    assert row.decode_error == "not UTF-8"
    assert (row.body_type, row.data, row.properties, row.key) == ("bytes", b"x", {}, None)
    assert (row.message_id, row.timestamp, row.redelivery_count) == ("ID:3:7:-1", 5, 1)


def test_names_that_are_not_utf8_leave_the_rest() -> None:
    row = to_row(UnreadableNames(b"\xff", {"JMSPulsarMessageType": "text", "n": "1"}))
    assert row.decode_error is not None
    reasons = "the key is not UTF-8; the producer's name is not UTF-8; no readable text body: "
    assert row.decode_error.startswith(reasons)
    assert (row.body_type, row.data, row.properties) == ("text", b"\xff", {"n": "1"})
    assert (row.key, row.producer_name) == (None, None)


def test_the_group_is_key_and_property() -> None:
    foreign = to_row(Record(b"", {}, "k"))
    assert foreign.key == foreign.properties["JMSXGroupID"] == "k"
    unkeyed = to_row(Record(b"", {"JMSXGroupID": "g"}))
    assert unkeyed.key == "g" == to_record(unkeyed, CONNECTION).key
    assert to_record(plain(properties={"JMSXGroupID": "g"}), CONNECTION).key == "g"
    for key in (None, ""):
        empty = to_row(Record(b"", {"JMSXGroupID": ""}, key))
        assert (empty.key, empty.properties) == (None, {})


@pytest.mark.parametrize("number", [0, 8, 1 << 31, -(1 << 31) - 1])
def test_a_sequence_id_is_a_property_as_in_a_message(number: int) -> None:
    for wire in ({}, {"JMSXGroupSeq": "7", "JMSXGroupSeq_jsmtype": "short"}):
        record = Record(b"", wire, sequence_id=number)
        assert_agrees(to_row(record), record)
        assert again(to_row(record)) == to_row(record)


def test_a_time_of_64_bits_is_kept_as_it_is() -> None:
    record = Record(b"", {"JMSExpiration": str((1 << 63) - 1), "JMSDeliveryTime": str(-(1 << 63))})
    row = to_row(record)
    assert (row.expiration, row.delivery_time) == ((1 << 63) - 1, -(1 << 63))
    assert again(row) == row


def test_names_of_reply_destinations_are_short_in_their_namespace() -> None:
    record = Record(None, {"JMSPulsarMessageType": "header", "JMSReplyTo": "persistent://a/b/r"})
    assert to_row(record).reply_to == "persistent://a/b/r"
    row = to_row(record, "a/b")
    assert (row.reply_to, row.reply_to_kind) == ("r", "queue")
    assert to_record(row, CONNECTION, "a/b").properties["JMSReplyTo"] == "persistent://a/b/r"
    assert to_record(plain(reply_to="r?x=1", reply_to_kind="topic"), CONNECTION).properties["JMSReplyTo"].endswith("/r")
    assert to_row(Record(None, {"JMSReplyTo": ""})).reply_to_kind is None


def test_a_record_has_what_only_the_sender_knows() -> None:
    record = to_record(plain(priority=7, message_id=None, timestamp=3), "mine", deliver_at=5)
    assert (record.deliver_at, record.priority, record.event_time, record.sticky_key) == (5, 7, 3, None)
    assert record.properties["JMSConnectionID"] == "mine" and "JMSMessageId" not in record.properties


def test_a_row_of_columns_is_a_row() -> None:
    """Rows to columns and columns to rows: what a table does."""
    made = [to_row(received(case)) for case in CASES[:20]]
    assert [RawRow(*values) for values in zip(*zip(*made, strict=True), strict=True)] == made


def test_a_text_message_in_a_row_is_the_record_of_the_message() -> None:
    message = TextMessage("hé")
    message.set_long_property("n", 5)
    row = plain(
        body_type="text", text="hé", properties={"n": "5"}, property_types={"n": "long"}, message_id="ID:a:1:2",
        timestamp=10, delivery_time=10,
    )  # fmt: skip
    assert to_record(row, CONNECTION) == encode(message, STAMP)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"text": "a", "data": b"a"}, "two bodies: text and data"),
        (
            {"correlation_id": "a", "correlation_bytes": b""},
            "two correlation ids: correlation_id and correlation_bytes",
        ),
        ({"text": "\ud800"}, "lone surrogate"),
        ({"type": "\ud800"}, "JMSType has a lone surrogate"),
        ({"correlation_id": "\ud800"}, "JMSCorrelationID has a lone surrogate"),
        ({"delivery_mode": "persistent"}, "delivery_mode must be PERSISTENT or NON_PERSISTENT, not 'persistent'"),
        ({"reply_to": "r"}, "reply_to_kind must be queue or topic, not None"),
        ({"reply_to": "r", "reply_to_kind": "x"}, "reply_to_kind must be queue or topic, not 'x'"),
        ({"properties": {"JMSPriority": "1"}}, "'JMSPriority' can't name a property"),
        ({"properties": {"n": "5"}, "property_types": {"n": "real"}}, "can't have the type 'real': take boolean, "),
        ({"property_types": {"n": "int"}}, "'n' has the type 'int', but no text"),
    ],
)
def test_a_row_that_no_record_can_carry_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(MessageFormatError, match=words):
        to_record(plain(**fields), CONNECTION)
