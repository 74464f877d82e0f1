"""Records with the same names, kind and type words: the texts of each, and their headers, column by column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Final, NamedTuple

import attrs

from jmsaio.codec import bodies, headers
from jmsaio.codec.rows import NON_PERSISTENT, PERSISTENT, read_body, read_correlation, read_reply_to
from jmsaio.model.headers import TEXTS
from jmsaio.model.wire import (
    CORRELATION_ID,
    DELIVERY_MODE,
    DELIVERY_TIME,
    EXPIRATION,
    GROUP_ID,
    MESSAGE_ID,
    PRIORITY,
    REPLY_TO,
    REPLY_TO_TYPE,
    WireId,
)

#: Maximum number of digits with which every number fits in 64 bits.
_DIGITS: Final = 18

Texts = tuple[str, ...]
Column = Sequence[Any]


class Parts(NamedTuple):
    """Attributes of a record, besides its properties; read in this order, as plain tuples."""

    payload: bytes | None
    key: str | None
    event_time: int
    message_id: WireId
    publish_time: int
    producer_name: str | None
    schema_version: bytes | None
    redelivery_count: int
    sequence_id: int | None


@attrs.frozen(eq=False)
class TextTable:
    """The property texts of rows that all have the same names; iterating it creates a dictionary per row.

    Attributes:
        names: names of the properties, in their order.
        columns: the texts of each property, one per row.
        size: number of rows.
    """

    names: Texts
    columns: Sequence[Sequence[str]] = attrs.field(repr=False)
    size: int

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[dict[str, str]]:
        names = self.names
        if not names:
            return ({} for _ in range(self.size))
        return (dict(zip(names, texts, strict=True)) for texts in zip(*self.columns, strict=True))


@attrs.define(eq=False)
class AlikeRecords:
    """Records with the same names, kind and type words.

    Attributes:
        names: all names on the wire.
        shared: texts of kind and type words on the wire.
        common: returns these texts of a record.
        kept: names of the texts that differ between records.
        own: returns these texts of a record.
        properties: names of the properties.
        kind: kind of their bodies.
        words: type words by name.
        texts: result of ``own`` for each record.
        parts: attributes of each record.
        numbers: the number of each record among all records.
    """

    names: Texts
    shared: Texts
    common: Callable[[Mapping[str, str]], Texts]
    kept: Texts
    own: Callable[[Mapping[str, str]], Texts]
    properties: Texts
    kind: str
    words: Mapping[str, str]
    texts: list[Texts] = attrs.field(init=False, factory=list)
    parts: list[tuple[Any, ...]] = attrs.field(init=False, factory=list)
    numbers: list[int] = attrs.field(init=False, factory=list)

    def columns(self, namespace: str, check_body: bool) -> list[Any]:
        """Return a column for each field of ``RawRow``, in their order.

        Args:
            namespace: ``tenant/namespace`` that is left out of the names of reply destinations.
            check_body: see ``to_row``.
        """
        texts = dict(zip(self.kept, zip(*self.texts, strict=True), strict=True))
        parts = Parts._make(zip(*self.parts, strict=True))
        return list(_columns(self, texts, parts, namespace, check_body))


def _columns(
    alike: AlikeRecords, texts: Mapping[str, Sequence[str]], parts: Any, namespace: str, check_body: bool
) -> Iterator[Any]:
    size = len(alike.parts)
    nothing = (None,) * size
    formats = texts.get(bodies.OBJECT_FORMAT, nothing)
    body, data, errors = _bodies(alike.kind, parts.payload, formats, check_body)
    keys = [key or None for key in parts.key]
    yield (alike.kind,) * size
    yield body
    yield data
    yield formats
    yield _properties(TextTable(alike.properties, [texts[name] for name in alike.properties], size), keys)
    yield (alike.words,) * size
    yield keys
    if CORRELATION_ID in texts:
        yield from zip(*map(read_correlation, _wires(texts, CORRELATION_ID)), strict=True)
    else:
        yield from (nothing, nothing)
    yield from (texts.get(header.wire[0], nothing) for header in TEXTS)
    if REPLY_TO in texts:
        wires = _wires(texts, REPLY_TO, REPLY_TO_TYPE)
        yield from zip(*map(read_reply_to, wires, repeat(namespace)), strict=True)
    else:
        yield from (nothing, nothing)
    ids = texts.get(MESSAGE_ID, nothing)
    yield ids if all(ids) else [id or str(wire_id) for id, wire_id in zip(ids, parts.message_id, strict=True)]
    yield parts.event_time
    yield _numbers(DELIVERY_TIME, texts, parts.event_time)
    yield _numbers(EXPIRATION, texts, (0,) * size)
    yield list(map(headers.priority, _wires(texts, PRIORITY))) if PRIORITY in texts else (4,) * size
    yield _modes(texts, size)
    ledgers, entries, _, indexes = zip(*parts.message_id, strict=True)
    yield from (ledgers, entries, indexes)
    yield from (parts.publish_time, parts.producer_name, parts.schema_version, parts.redelivery_count)
    yield errors


def _wires(texts: Mapping[str, Sequence[str]], *names: str) -> Iterator[dict[str, str]]:
    """Return the named properties of each record, if present."""
    found = [name for name in names if name in texts]
    return (dict(zip(found, each, strict=True)) for each in zip(*(texts[name] for name in found), strict=True))


def _bodies(
    kind: str, payloads: Sequence[bytes | None], formats: Sequence[str | None], check_body: bool
) -> tuple[Column, Column, Column]:
    """Return texts, data, and errors of unreadable bodies."""
    nothing = (None,) * len(payloads)
    if kind != "text" and not (check_body and kind in bodies.STRUCTURED):
        return nothing, payloads, nothing
    if kind == "text" and None not in payloads:
        try:
            return list(map(bytes.decode, payloads)), nothing, nothing  # type: ignore[arg-type]  # none is None
        except UnicodeDecodeError:
            pass  # ``read_body`` finds which one it is
    wires = [{} if each is None else {bodies.OBJECT_FORMAT: each} for each in formats]
    found = [read_body(kind, payload, wire, None, check_body) for payload, wire in zip(payloads, wires, strict=True)]
    texts, data, errors = zip(*found, strict=True)
    return texts, data, errors


def _properties(table: TextTable, keys: Sequence[str | None]) -> TextTable | list[dict[str, str]]:
    """Return the texts of properties, including JMSXGroupID of records with a key."""
    if not any(keys):
        return table
    if all(keys):
        columns = [*table.columns, keys]
        return TextTable((*table.names, GROUP_ID), columns, table.size)  # type: ignore[arg-type]  # no key is None
    return [row if key is None else row | {GROUP_ID: key} for row, key in zip(table, keys, strict=True)]


def _numbers(name: str, texts: Mapping[str, Sequence[str]], defaults: Sequence[int]) -> Column:
    """Return the numbers of a header, as ``headers.number`` parses them."""
    given = texts.get(name)
    if given is None:
        return defaults
    digits = "".join(given)
    if digits.isdecimal() and digits.isascii() and all(given) and max(map(len, given)) <= _DIGITS:
        return list(map(int, given))
    return list(map(headers.number, _wires(texts, name), repeat(name), defaults))


def _modes(texts: Mapping[str, Sequence[str]], size: int) -> Column:
    if DELIVERY_MODE not in texts:
        return (PERSISTENT,) * size
    wires = _wires(texts, DELIVERY_MODE)
    return [NON_PERSISTENT if headers.delivery_mode(wire) == 1 else PERSISTENT for wire in wires]
