"""The columns that the source ``jms`` builds, built by hand as a script over pulsar-client would: a list for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from jmsaio.codec import headers
from jmsaio.codec.properties import HIDDEN
from jmsaio.model.wire import (
    CORRELATION_ID,
    DELIVERY_MODE,
    DELIVERY_TIME,
    EXPIRATION,
    MESSAGE_ID,
    MESSAGE_TYPE,
    PRIORITY,
    REPLY_TO,
    REPLY_TO_TYPE,
    TYPE,
    TYPE_SUFFIX,
)
from jmsaio.spark.arrow.columns import POSITION, TEXTS, TIMESTAMP, RowBatches
from jmsaio.spark.model.schema import Body, columns_of

SCHEMA: Final = RowBatches(columns_of(Body.TYPED), "", "").schema
#: Columns that are lists of their own, by name.
_PLAIN: Final = (
    "producer_name", "key", "JMSMessageID", "JMSCorrelationID", "correlation_bytes", "JMSType", "JMSReplyTo",
    "reply_to_kind", "JMSDeliveryMode", "JMSPriority", "body_type", "text", "bytes", "decode_error",
)  # fmt: skip
_TIMES: Final = ("publish_time", "JMSTimestamp", "JMSExpiration", "JMSDeliveryTime")
_POSITION: Final = tuple(field.name for field in POSITION)


class HandColumns:
    """Takes messages one by one, and gives a record batch of what it has."""

    def __init__(self, destination: str, topic: str) -> None:
        self._destination, self._topic = destination, topic
        self._marks: dict[str, str] = {}
        self._clear()

    def _clear(self) -> None:
        self.rows = 0
        self._lists: dict[str, list[Any]] = {name: [] for name in (*_PLAIN, *_TIMES, *_POSITION)}
        self._names: list[str] = []
        self._texts: list[str] = []
        self._ends = [0]
        self._typed: list[str] = []
        self._words: list[str] = []
        self._typed_ends = [0]

    def add(self, native: Any) -> None:
        """Take a message of pulsar-client."""
        lists, place, wire = self._lists, native.message_id(), native.properties()
        event, payload = native.event_timestamp(), native.data()
        self.rows += 1
        ledger, entry, batch = place.ledger_id(), place.entry_id(), place.batch_index()
        lists["ledger"].append(ledger)
        lists["entry"].append(entry)
        lists["batch"].append(batch)
        lists["publish_time"].append(native.publish_timestamp() * 1000)
        lists["producer_name"].append(native.producer_name())
        lists["key"].append(native.partition_key() or None)
        lists["JMSMessageID"].append(wire.get(MESSAGE_ID) or f"ID:{ledger}:{entry}:-1:{batch}")
        correlation = headers.correlation_id(wire) if CORRELATION_ID in wire else None
        lists["JMSCorrelationID"].append(correlation if isinstance(correlation, str) else None)
        lists["correlation_bytes"].append(correlation if isinstance(correlation, bytes) else None)
        lists["JMSType"].append(wire.get(TYPE))
        reply_to = wire.get(REPLY_TO)
        lists["JMSReplyTo"].append(reply_to)
        lists["reply_to_kind"].append(reply_to and ("topic" if wire.get(REPLY_TO_TYPE) == "topic" else "queue"))
        once = DELIVERY_MODE in wire and headers.delivery_mode(wire) == 1
        lists["JMSDeliveryMode"].append("NON_PERSISTENT" if once else "PERSISTENT")
        lists["JMSPriority"].append(headers.priority(wire) if PRIORITY in wire else 4)
        lists["JMSTimestamp"].append(event * 1000 or None)
        lists["JMSExpiration"].append(headers.number(wire, EXPIRATION, 0) * 1000 or None)
        lists["JMSDeliveryTime"].append(headers.number(wire, DELIVERY_TIME, event) * 1000 or None)
        self._add_body(wire.get(MESSAGE_TYPE), None if not payload and native.has_null_value() else payload)
        self._add_properties(wire)

    def _add_body(self, kind: str | None, payload: bytes | None) -> None:
        lists, text, error = self._lists, None, None
        if kind == "text" and payload is not None:
            try:
                text, payload = payload.decode(), None
            except UnicodeDecodeError as refused:
                error = str(refused)
        lists["body_type"].append(kind or "bytes")
        lists["text"].append(text)
        lists["bytes"].append(payload)
        lists["decode_error"].append(error)

    def _add_properties(self, wire: Mapping[str, str]) -> None:
        for name, text in wire.items():
            mark = self._marks.get(name)
            if mark is None:
                hidden = name in HIDDEN or name.endswith(TYPE_SUFFIX)
                mark = self._marks[name] = "" if hidden else name + TYPE_SUFFIX
            if not mark:
                continue
            self._names.append(name)
            self._texts.append(text)
            word = wire.get(mark)
            if word is not None:
                self._typed.append(name)
                self._words.append(word)
        self._ends.append(len(self._names))
        self._typed_ends.append(len(self._typed))

    def batch(self) -> pa.RecordBatch:
        """Return the messages taken since the last batch, in the columns and types of the source."""
        lists, size = self._lists, self.rows
        made: dict[str, Any] = {
            "destination": pa.repeat(pa.scalar(self._destination, pa.string()), size),
            "topic": pa.repeat(pa.scalar(self._topic, pa.string()), size),
            "position": pa.StructArray.from_arrays(
                [pa.array(lists[field.name], field.type) for field in POSITION], fields=list(POSITION)
            ),
            "properties": _maps(self._ends, self._names, self._texts),
            "property_types": _maps(self._typed_ends, self._typed, self._words),
        }
        made |= {name: pa.array(lists[name], pa.int64()).cast(TIMESTAMP) for name in _TIMES}
        made |= {name: pa.array(lists[name], SCHEMA.field(name).type) for name in _PLAIN}
        arrays = [made[field.name] if field.name in made else pa.nulls(size, field.type) for field in SCHEMA]
        self._clear()
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _maps(ends: list[int], keys: list[str], items: list[str]) -> pa.MapArray:
    return pa.MapArray.from_arrays(
        pa.array(ends, pa.int32()), pa.array(keys, pa.string()), pa.array(items, pa.string()), type=TEXTS
    )
