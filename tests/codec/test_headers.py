"""Headers on the wire."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsaio.codec import Stamp, encode, headers, view
from jmsaio.codec.rows import to_record, to_row
from jmsaio.errors import InvalidDestinationError, MessageFormatError
from jmsaio.model.destinations import Destination, Queue, TemporaryTopic, Topic
from jmsaio.model.headers import FIELDS, OF_APPLICATION, Header, Headers, Holds, Owner
from jmsaio.model.messages.message import Message
from jmsaio.model.wire import OutgoingRecord
from tests.codec import strategies
from tests.kit.records import Record

NS = "public/default"
#: A value for each kind of header, other than its default.
VALUES: dict[Holds, Any] = {
    Holds.TEXT: "x", Holds.TEXT_OR_BYTES: b"\xff", Holds.DESTINATION: Queue("r"), Holds.MODE: 1, Holds.NUMBER: 7,
    Holds.TIME: 77,
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
    assert headers.message_id(record) == "ID:3:7:-1"
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


@pytest.mark.parametrize("header", OF_APPLICATION, ids=lambda header: header.name)
def test_each_header_of_the_application_is_written_and_read(header: Header) -> None:
    """The table says which headers there are; a header that a writer or a reader does not know fails here."""
    message, value = Message(), VALUES[header.holds]
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
    value = VALUES[header.holds]
    record = Record.sent(encode(Message(), Stamp(None, "c", 0, 0, 0)._replace(**{header.field: value})))
    assert header.wire[0] in record.properties
    assert getattr(headers.read(record, None, NS), header.field) == value
    row = to_row(record)
    assert getattr(row, header.field) == ("NON_PERSISTENT" if header.holds is Holds.MODE else value)
    assert to_record(row if header.field == "message_id" else row._replace(message_id=None), "c") == OutgoingRecord(
        None, record.properties, priority=row.priority
    )


@pytest.mark.parametrize("header", [each for each in FIELDS if each.selectable], ids=lambda header: header.name)
def test_each_header_that_a_selector_may_name_is_read_for_it(header: Header) -> None:
    wire = {"JMSCorrelationID": "Yw=="} | {name: "1" for each in FIELDS for name in each.wire[:1] if each is header}
    assert view.header(Record(b"", wire), header.name) is not None
