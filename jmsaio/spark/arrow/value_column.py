"""The column ``value``: bodies read and written by a schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import time
from decimal import Decimal
from typing import Any, Final

import attrs
import pyarrow as pa

from jmsaio.codec.row_columns import RowColumns
from jmsaio.codec.schemas.reading import SchemaReader, json_text, schema_reader
from jmsaio.errors import MessageFormatError, NotFoundError
from jmsaio.model.schema import IMPOSSIBLE_VERSION, Schema, is_version
from jmsaio.model.topic_names import split_partition
from jmsaio.spark.options.values import refuse
from jmsaio.transport.base import Admin

#: Fields of raw rows from which the column is built.
FIELDS: Final = ("schema_version", "text", "data", "key")


@attrs.define(eq=False)
class ValueColumn:
    """Reader of the bodies of one topic, each with its own schema version.

    ``kind`` is the type of the column; a string is a text, or JSON of any other value. Values of other versions are
    evolved to the schema ``wanted``; without it, each keeps its own.
    """

    kind: pa.DataType
    topic: str
    wanted: Schema | None = None
    _readers: dict[bytes, SchemaReader | str | None] = attrs.field(factory=dict, init=False)

    async def learn(self, admin: Admin, versions: Iterable[bytes | None]) -> None:
        topic = split_partition(self.topic)[0]
        for version in set(versions) - self._readers.keys() - {None}:
            assert version is not None
            if not is_version(version):
                self._readers[version] = IMPOSSIBLE_VERSION
                continue
            number = int.from_bytes(version, "big")
            try:
                self._readers[version] = schema_reader(await admin.schema(topic, number), self.wanted)
            except (MessageFormatError, NotFoundError) as error:
                self._readers[version] = f"schema {number} of {topic}: {error}"

    def array(self, columns: RowColumns) -> tuple[pa.Array, list[tuple[int, str]]]:
        """Return the values of rows, and why some are NULL. One without a supported schema is NULL without a reason."""
        values: list[Any] = []
        problems: list[tuple[int, str]] = []
        fields = zip(*(columns[field] for field in FIELDS), strict=True)
        for row, (version, text, data, key) in enumerate(fields):
            value = None
            try:
                if version is not None:
                    value = self._value(version, data if text is None else text.encode(), key)
            # Arrow raises ValueError for invalid Unicode, and OverflowError for a number out of range.
            except (MessageFormatError, pa.ArrowException, ValueError, OverflowError) as error:
                problems.append((row, f"no readable value: {error}"))
            values.append(value)
        return pa.array(values, self.kind), problems

    def _value(self, version: bytes, payload: bytes | None, key: str | None) -> Any:
        reader = self._readers[version]
        if isinstance(reader, str):
            raise MessageFormatError(reader)
        value = None if reader is None else reader.read(payload, key)
        if value is None:
            return None
        is_json = pa.types.is_string(self.kind) and not isinstance(value, str | time)
        fitted = json.dumps(value, ensure_ascii=False, default=json_text) if is_json else _fitted(value, self.kind)
        pa.array([fitted], self.kind)  # raises the error of the whole column
        return fitted


def _fitted(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind) and isinstance(value, dict):
        return {field.name: _fitted(value.get(field.name), field.type) for field in kind}
    if pa.types.is_map(kind) and isinstance(value, dict):
        return [(name, _fitted(item, kind.item_type)) for name, item in value.items()]
    if pa.types.is_list(kind) and isinstance(value, list):
        return [_fitted(item, kind.value_type) for item in value]
    if pa.types.is_nested(kind) or isinstance(value, dict | list):
        raise MessageFormatError(f"{type(value).__name__} does not fit the column's type {kind}")
    if isinstance(value, time):
        return value.isoformat()
    if isinstance(value, str) and (pa.types.is_binary(kind) or pa.types.is_decimal(kind)):  # a default in a schema
        value = value.encode("latin-1")
        return value if pa.types.is_binary(kind) else Decimal(f"{int.from_bytes(value, signed=True)}E-{kind.scale}")
    return value


_TEXT: Final[Mapping[pa.DataType, Any]] = dict.fromkeys((pa.string(), pa.large_string()), "string")
_PLAIN: Final[Mapping[pa.DataType, Any]] = {
    **_TEXT, **dict.fromkeys((pa.int8(), pa.int16(), pa.int32()), "int"), pa.int64(): "long", pa.bool_(): "boolean",
    pa.float32(): "float", pa.float64(): "double",
}  # fmt: skip
#: Types of a written column that is neither nested nor a decimal, by the word of the option ``schema``.
_TYPES: Final[Mapping[str, Mapping[pa.DataType, Any]]] = {
    "string": _TEXT,
    "json": _PLAIN,
    "avro": {
        **_PLAIN, **dict.fromkeys((pa.binary(), pa.large_binary()), "bytes"),
        pa.date32(): {"type": "int", "logicalType": "date"},
        pa.timestamp("us", "UTC"): {"type": "long", "logicalType": "timestamp-micros"},
        pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
    },
}  # fmt: skip


def written_schema(word: str, field: pa.Field) -> Schema:
    found = _avro_type(word, field.type, field.name)
    return Schema("STRING") if word == "string" else Schema(word.upper(), json.dumps(found))


def _avro_type(word: str, kind: pa.DataType, path: str) -> Any:
    """Return the Avro type of a column or a part of it; ``path`` has their names. Each part can be NULL."""
    found = _TYPES[word].get(kind)
    if word == "avro" and pa.types.is_decimal128(kind):
        found = {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    elif word != "string" and pa.types.is_struct(kind):
        parts = [(each.name, _avro_type(word, each.type, f"{path}.{each.name}")) for each in kind]
        fields = [{"name": name, "type": ["null", part], "default": None} for name, part in parts]
        found = {"type": "record", "name": path.replace(".", "_"), "fields": fields}
    elif word != "string" and pa.types.is_list(kind):
        found = {"type": "array", "items": ["null", _avro_type(word, kind.value_type, f"{path}.item")]}
    elif word != "string" and pa.types.is_map(kind) and kind.key_type in _TEXT:
        found = {"type": "map", "values": ["null", _avro_type(word, kind.item_type, f"{path}.item")]}
    if found is None:
        raise refuse("schema", word, f"it has no type for the column {path}, of the Arrow type {kind}; cast it")
    return found


def python_value(value: Any, kind: pa.DataType) -> Any:
    """Convert a value of ``to_pylist``, which has lists of pairs in place of maps."""
    if value is None or not pa.types.is_nested(kind):
        return value
    if pa.types.is_struct(kind):
        return {field.name: python_value(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return {key: python_value(item, kind.item_type) for key, item in value}
    return [python_value(item, kind.value_type) for item in value]
