"""Headers on the wire: all of them, and single ones of a record that is not decoded."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given, strategies as st

from jmsaio.codec import Stamp, encode, headers
from jmsaio.codec.rows import to_record, to_row
from jmsaio.errors import InvalidDestinationError, MessageFormatError
from jmsaio.model.destinations import Destination, Queue, TemporaryTopic, Topic
from jmsaio.model.headers import FIELDS, OF_APPLICATION, Header, HeaderKind, Headers, Owner
from jmsaio.model.messages.message import Message
from jmsaio.model.modes import DeliveryMode
from jmsaio.model.values import Long, Short
from jmsaio.model.wire import OutgoingRecord
from tests.codec import strategies
from tests.kit.records import Record, decode

NS = "public/default"
UUID = "4dd16fe9-2a3a-43c2-ae6d-2ba6fdd0e5bf"
#: A value for each kind of header, other than its default.
VALUES: dict[HeaderKind, Any] = {
    HeaderKind.TEXT: "x", HeaderKind.TEXT_OR_BYTES: b"\xff", HeaderKind.DESTINATION: Queue("r"),
    HeaderKind.MODE: 1, HeaderKind.NUMBER: 7, HeaderKind.TIME: 77,
}  # fmt: skip


def written(**fields: object) -> dict[str, str]:
    """The properties of some headers."""
    wire: dict[str, str] = {}
    headers.write(Headers(**fields), NS, wire)  # type: ignore[arg-type]  # the names are checked by Headers
    return wire


def read(wire: dict[str, str], event_time: int = 0, namespace: str = NS) -> Headers:
    """The headers of some properties."""
    return headers.read(Record(b"", wire, event_time=event_time), None, namespace)


def test_headers_that_are_not_set_are_not_written() -> None:
    assert written() == {}
    assert read({}) == Headers(message_id="ID:3:7:-1")


def test_the_headers_that_a_provider_sets_are_read() -> None:
    wire = {"JMSMessageId": "ID:x:1:2", "JMSDeliveryTime": "12", "JMSExpiration": "99"}
    wire |= {"JMSPriority": "9", "JMSDeliveryMode": "1"}
    record = Record(b"", wire, event_time=10, redelivery_count=1)
    assert headers.read(record, Queue("q"), NS) == Headers(
        destination=Queue("q"), delivery_mode=1, message_id="ID:x:1:2", timestamp=10, expiration=99, delivery_time=12,
        priority=9, redelivered=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "-",
        "1.0",
        "1_0",
        " 1",
        "٣",
        "9" * 30,
        pytest.param("9" * 5000, id="5000 digits"),
        str(1 << 63),
        str(-(1 << 63) - 1),
        "0x1",
    ],
)
def test_numbers_that_are_none(text: str) -> None:
    wire = dict.fromkeys(("JMSDeliveryTime", "JMSExpiration", "JMSPriority", "JMSDeliveryMode"), text)
    found = read(wire, event_time=5)
    assert (found.delivery_time, found.expiration, found.priority, found.delivery_mode) == (5, 0, 4, 2)


def test_numbers_at_their_limits() -> None:
    assert headers.number({"n": "-9223372036854775808"}, "n", 0) == -(1 << 63)
    assert headers.number({"n": "+9223372036854775807"}, "n", 0) == (1 << 63) - 1
    assert read({"JMSPriority": "10"}).priority == 4 and read({"JMSPriority": "-1"}).priority == 4
    assert read({"JMSDeliveryMode": "7"}).delivery_mode == 2


@given(strategies.texts)
def test_a_correlation_text_is_written_as_base64(text: str) -> None:
    wire = written(correlation_id=text)
    assert wire == {"JMSCorrelationID": b64encode(text.encode()).decode()}
    assert read(wire).correlation_id == text


@given(st.binary(max_size=40))
def test_correlation_bytes_survive_also_where_they_are_text(data: bytes) -> None:
    found = read(written(correlation_id=data)).correlation_id
    assert (found.encode() if isinstance(found, str) else found) == data


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Zg==", "f"), ("Zg", "f"), ("Zm8", "fo"), ("/////w", b"\xff\xff\xff\xff"), ("", ""), ("Zg=", "Zg="),
        ("Z", "Z"), ("Zg==Zg==", "Zg==Zg=="), ("Z g=", "Z g="), ("order-5", "order-5"), ("größe", "größe"),
        ("=", "="), ("====", "===="), ("Zg==\n", "Zg==\n"),
    ],
)  # fmt: skip
def test_correlation_as_java_reads_it(text: str, value: str | bytes) -> None:
    """A text that is not Base64 is the id itself; padding at the end may be missing."""
    assert read({"JMSCorrelationID": text}).correlation_id == value


@given(st.text())
def test_any_correlation_id_on_the_wire_can_be_read(text: str) -> None:
    assert isinstance(read({"JMSCorrelationID": text}).correlation_id, str | bytes)


@pytest.mark.parametrize(
    "destination", [Queue("a"), Topic("a"), Queue("a/b"), Topic("t:x"), Queue("q:sub"), Queue("größe")]
)
def test_reply_to_is_a_full_name_and_comes_back_short_in_its_namespace(destination: Destination) -> None:
    wire = written(reply_to=destination)
    assert wire["JMSReplyTo"] == f"persistent://public/default/{destination.name}"
    assert wire.get("JMSReplyToType") == ("topic" if isinstance(destination, Topic) else None)
    assert read(wire).reply_to == destination
    assert read(wire, namespace="a/b").reply_to == type(destination)(wire["JMSReplyTo"])


def test_reply_to_in_another_namespace_keeps_its_name() -> None:
    for name in ("persistent://a/b/c", "non-persistent://public/default/c"):
        assert written(reply_to=Queue(name)) == {"JMSReplyTo": name}
        assert read({"JMSReplyTo": name}).reply_to == Queue(name)
    assert written(reply_to=Queue("c", namespace="a/b")) == {"JMSReplyTo": "persistent://a/b/c"}
    odd = "persistent://public/default/persistent://a/b/c"
    assert read({"JMSReplyTo": odd}).reply_to == Queue(odd)


def test_reply_to_details() -> None:
    assert written(reply_to=Queue("q?consumerConfig.x=1"))["JMSReplyTo"] == "persistent://public/default/q"
    assert read(written(reply_to=TemporaryTopic("t"))).reply_to == Topic("t")
    assert read({"JMSReplyTo": "x", "JMSReplyToType": "Topic"}).reply_to == Queue("x")
    assert read({"JMSReplyTo": ""}).reply_to is None
    assert read({"JMSReplyTo": "persistent://public/default/"}).reply_to is None
    with pytest.raises(InvalidDestinationError):
        written(reply_to=5)


def test_a_type_is_kept_even_if_it_is_empty() -> None:
    assert read(written(type="größe")).type == "größe"
    assert written(type="") == {"JMSType": ""}


def test_lone_surrogates_in_headers_are_refused() -> None:
    for fields in ({"type": "\ud800"}, {"correlation_id": "\ud800"}, {"reply_to": Queue("\ud800")}):
        with pytest.raises(MessageFormatError, match="lone surrogate"):
            written(**fields)


def test_helpers_agree_with_read() -> None:
    record = Record(b"", {"JMSMessageId": ""})
    assert headers.header(record, "JMSMessageID") == "ID:3:7:-1"
    assert headers.priority({}) == 4 and headers.delivery_mode({}) == 2 and headers.correlation_id({}) is None


def test_headers_of_a_delivery_are_written_unless_they_are_the_default() -> None:
    wire: dict[str, str] = {}
    headers.write_delivery(4, 2, 0, wire)
    assert wire == {}
    headers.write_delivery(0, 1, 5, wire)
    assert wire == {
        "JMSPriority": "0", "JMSDeliveryMode": "1", "JMSExpiration": "5", "JMSExpiration_jsmtype": "long"
    }  # fmt: skip


def test_headers_are_written_from_their_values_as_from_a_message() -> None:
    wire: dict[str, str] = {}
    headers.write_correlation_id(b"\xff", wire)
    headers.write_text("JMSType", "t", wire)
    headers.write_reply_to("r?x=1", True, "a/b", wire)
    assert wire == {
        "JMSCorrelationID": "/w==", "JMSType": "t", "JMSReplyTo": "persistent://a/b/r", "JMSReplyToType": "topic"
    }  # fmt: skip
    assert headers.reply_to(wire, "a/b") == ("r", True) and headers.reply_to({}, "a/b") is None
    assert headers.reply_to({"JMSReplyTo": "r?x=1"}, "a/b") == ("r", False)  # another client's


@pytest.mark.parametrize("header", OF_APPLICATION, ids=lambda header: header.name)
def test_each_header_of_the_application_is_written_and_read(header: Header) -> None:
    """The table says which headers there are; a header that a writer or a reader does not know fails here."""
    message, value = Message(), VALUES[header.kind]
    setattr(message._headers(), header.field, value)
    record = Record.sent(encode(message, Stamp(None, "c", 0, 0, 0)))
    assert header.wire[0] in record.properties
    assert headers.read(record, None, NS) == Headers(message_id="ID:3:7:-1", **{header.field: value})
    row = to_row(record)
    assert {column.field: getattr(row, column.field) for column in header.columns} != dict.fromkeys(
        column.field for column in header.columns
    )
    assert to_record(row._replace(message_id=None), "c").properties == record.properties


@pytest.mark.parametrize(
    "header", [each for each in FIELDS if each.owner is Owner.SEND and each.wire], ids=lambda header: header.name
)
def test_each_header_of_a_send_is_written_and_read(header: Header) -> None:
    value = VALUES[header.kind]
    record = Record.sent(encode(Message(), Stamp(None, "c", 0, 0, 0)._replace(**{header.field: value})))
    assert header.wire[0] in record.properties
    assert getattr(headers.read(record, None, NS), header.field) == value
    row = to_row(record)
    assert getattr(row, header.field) == ("NON_PERSISTENT" if header.kind is HeaderKind.MODE else value)
    assert to_record(row if header.field == "message_id" else row._replace(message_id=None), "c") == OutgoingRecord(
        None, record.properties, priority=row.priority
    )


@pytest.mark.parametrize("header", [each for each in FIELDS if each.selectable], ids=lambda header: header.name)
def test_each_header_that_a_selector_may_name_is_read_for_it(header: Header) -> None:
    wire = {"JMSCorrelationID": "Yw=="} | {name: "1" for each in FIELDS for name in each.wire[:1] if each is header}
    assert headers.header(Record(b"", wire), header.name) is not None


def full() -> Record:
    """A record with every header."""
    message = Message()
    message.jms_type, message.jms_correlation_id = "t", "c"
    message.set_string_property("JMSXGroupID", "g")
    message.set_short_property("JMSXGroupSeq", 2)
    stamp = Stamp("ID:a:1:2", f"billing_{UUID}", 10, 10, 20, None, 99, 7, 1)
    return Record.sent(encode(message, stamp))


@pytest.mark.parametrize(
    ("name", "value", "default"),
    [
        ("JMSMessageID", "ID:a:1:2", "ID:3:7:-1"),
        ("JMSTimestamp", Long(10), Long(0)),
        ("JMSPriority", 7, 4),
        ("JMSDeliveryMode", "NON_PERSISTENT", "PERSISTENT"),
        ("JMSCorrelationID", "c", None),
        ("JMSType", "t", None),
        ("JMSExpiration", Long(99), Long(0)),
        ("JMSDeliveryTime", Long(20), Long(0)),
        ("JMSRedelivered", False, False),
        ("JMSXDeliveryCount", 1, 1),
        ("JMSXGroupID", "g", None),
        ("JMSXGroupSeq", Short(2), None),
        ("JMSDestination", None, None),
        ("amount", None, None),
    ],
)
def test_headers_have_the_records_value_or_their_default(name: str, value: object, default: object) -> None:
    assert strategies.same(headers.header(full(), name), value)
    assert strategies.same(headers.header(Record(b""), name), default)


def test_it_agrees_with_the_message() -> None:
    record = full()
    message = decode(record, None)
    assert headers.header(record, "JMSMessageID") == message.jms_message_id
    assert headers.header(record, "JMSDeliveryMode") == DeliveryMode(message.jms_delivery_mode).name
    assert headers.header(record, "JMSCorrelationID") == message.jms_correlation_id
    assert headers.expiration(record) == message.jms_expiration == 99
    for name, value in message.properties.items():
        assert headers.header(record, name) == value


def test_headers_made_up() -> None:
    record = Record(b"", {"JMSCorrelationID": "/w=="}, redelivery_count=2, sequence_id=8, key="k")
    assert headers.header(record, "JMSXDeliveryCount") == 3 and headers.header(record, "JMSRedelivered") is True
    assert headers.header(record, "JMSXGroupSeq") == 8 and headers.header(record, "JMSXGroupID") == "k"
    assert headers.header(record, "JMSCorrelationID") == "\ufffd"
    assert headers.header(Record(b"", {"JMSXGroupID": ""}, key=""), "JMSXGroupID") is None


@pytest.mark.parametrize(("text", "value"), [(None, 0), ("5", 5), ("", 0), ("x", 0), ("-5", -5)])
def test_an_expiration_that_cannot_be_read_is_0(text: str | None, value: int) -> None:
    assert headers.expiration(Record(b"", {} if text is None else {"JMSExpiration": text})) == value


@pytest.mark.parametrize(
    ("connection", "client"),
    [
        (None, None),
        (UUID, None),
        ("", None),
        ("billing", None),
        (f"_{UUID}", None),
        (f"billing_{UUID}", "billing"),
        (f"a_b_{UUID}", "a_b"),
        (f"_{UUID}_{UUID}", f"_{UUID}"),
        (f"billing_{UUID}x", None),
    ],
)
def test_who_sent_it(connection: str | None, client: str | None) -> None:
    record = Record(b"", {} if connection is None else {"JMSConnectionID": connection})
    assert headers.connection_id(record) == connection
    assert headers.sender_client_id(record) == client


@pytest.mark.parametrize(
    ("time", "due"),
    [("2000", 2000), ("1000", 0), ("1001", 1001), ("", 0), ("soon", 0), ("-5000", 0), ("9" * 30, 0)],
)
def test_due_while_the_delivery_time_lies_ahead(time: str, due: int) -> None:
    assert headers.due(Record(b"", {"JMSDeliveryTime": time}), 1000) == due


def test_due_without_a_delivery_time() -> None:
    assert headers.due(Record(b""), 1000) == 0
    assert headers.due(Record(b""), 0) == 0 == headers.due(Record(b"", {"JMSDeliveryTime": "soon"}), 0)


@pytest.mark.parametrize(("published", "due"), [(1999, 2000), (2000, 0), (2001, 0)])
def test_not_due_later_by_a_clock_that_is_ahead_of_ours(published: int, due: int) -> None:
    assert headers.due(Record(b"", {"JMSDeliveryTime": "2000"}, event_time=published), 1000) == due


@pytest.mark.parametrize(
    ("text", "expected"), [(None, 4), ("0", 0), ("9", 9), ("+7", 7), ("10", 4), ("x", 4), ("", 4), ("²", 4)]
)
def test_a_record_without_a_readable_priority_has_4(text: str | None, expected: int) -> None:
    wire = {} if text is None else {"JMSPriority": text}
    assert headers.priority(Record(b"", wire)) == read(wire).priority == expected
