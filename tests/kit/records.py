"""Records in tests: to send, received from fixed values, their texts, and what a sender says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, Self

import attrs

from jmsaio.codec import RecordSource, decode_with
from jmsaio.codec.row_columns import RowColumns
from jmsaio.codec.rows import RawRow
from jmsaio.errors import JMSError, MalformedMessageError
from jmsaio.model.destinations import Destination
from jmsaio.model.messages.message import Message
from jmsaio.model.wire import EXPIRATION, OutgoingRecord, ReceivedRecord, WireId

#: An AVRO schema with a logical type, an array and a map.
ORDER: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "lines", "type": {"type": "array", "items": {"type": "map", "values": "int"}}, "default": []},
    ],
}


def record(
    payload: str | bytes,
    properties: Mapping[str, str] = {},
    key: str | None = None,
    *,
    deliver_at: int | None = None,
    priority: int = 4,
    sequence_id: int | None = None,
) -> OutgoingRecord:
    """A record to send."""
    body = payload.encode() if isinstance(payload, str) else payload
    return OutgoingRecord(
        body, dict(properties), key, deliver_at=deliver_at, priority=priority, sequence_id=sequence_id
    )


def decode(record: ReceivedRecord, destination: Destination | None) -> Message:
    """The message of one record, as a consumer of the default namespace decodes it."""
    return decode_with(record, RecordSource(destination, "public/default"))


@attrs.define(eq=False)
class Record:
    """A received record from fixed values."""

    payload: bytes | None = b""
    properties: dict[str, str] = attrs.field(factory=dict)
    key: str | None = None
    event_time: int = 0
    redelivery_count: int = 0
    sequence_id: int | None = None
    publish_time: int = attrs.field(default=attrs.Factory(lambda self: self.event_time, takes_self=True), kw_only=True)
    message_id: WireId = attrs.field(default=WireId(3, 7), kw_only=True)
    batch_size: int = attrs.field(default=0, kw_only=True)
    topic: str = attrs.field(default="persistent://public/default/t", kw_only=True)
    size: int = attrs.field(default=100, kw_only=True)
    producer_name: str | None = attrs.field(default=None, kw_only=True)
    schema_version: bytes | None = attrs.field(default=None, kw_only=True)

    def get(self, name: str, /) -> str | None:
        """One property."""
        return self.properties.get(name)

    @property
    def may_expire(self) -> bool:
        """It has a JMSExpiration."""
        return EXPIRATION in self.properties

    @classmethod
    def sent(cls, record: OutgoingRecord) -> Self:
        """What a receiver gets of a record that was sent."""
        return cls(record.payload, dict(record.properties), record.key, record.event_time)


class UnreadableRecord(Record):
    """Its properties are not UTF-8."""

    @property
    def properties(self) -> dict[str, str]:
        raise MalformedMessageError("not UTF-8", self)

    @properties.setter
    def properties(self, value: dict[str, str]) -> None:
        assert value == {}


class HasPayload(Protocol):
    """What `texts` reads."""

    @property
    def payload(self) -> bytes | None: ...


def rows_of(columns: RowColumns) -> list[RawRow]:
    """The rows of columns, one by one."""
    return list(map(RawRow._make, zip(*columns.values, strict=True)))


def texts(records: Iterable[HasPayload]) -> list[str]:
    """The payloads of records."""
    return [(record.payload or b"").decode() for record in records]


def tell_each(
    tokens: Sequence[Callable[[WireId | None, JMSError | None], object]], place: WireId | None, error: JMSError | None
) -> None:
    """`SenderOptions.settled` for tokens that are called, each with its own place or the error."""
    for token in tokens:
        token(place, error)
        if place is not None:
            place = place._replace(batch_index=place.batch_index + 1)


def tell_nobody(tokens: Sequence[object], place: WireId | None, error: JMSError | None) -> None:
    """`SenderOptions.settled` where no one asks for outcomes."""


@attrs.define(eq=False)
class Outcomes:
    """A token of `Sender.send` for `tell_each`; records what it gets, one place and one error for each record."""

    places: list[WireId | None] = attrs.field(factory=list)
    errors: list[JMSError | None] = attrs.field(factory=list)

    def __call__(self, place: WireId | None, error: JMSError | None) -> None:
        assert place is None or error is None
        self.places.append(place)
        self.errors.append(error)

    def __len__(self) -> int:
        return len(self.places)

    @property
    def stored(self) -> list[WireId | None]:
        """Places of the records that were sent without an error; None where the broker told none."""
        return [place for place, error in zip(self.places, self.errors, strict=True) if error is None]

    @property
    def failures(self) -> list[JMSError]:
        """The errors alone."""
        return [error for error in self.errors if error is not None]
