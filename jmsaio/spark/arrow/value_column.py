"""The column ``value``: bodies read by the schema of their topic, as a struct or as JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from datetime import date, time
from decimal import Decimal
from typing import Any

import attrs
import pyarrow as pa

from jmsaio.codec.row_columns import RowColumns
from jmsaio.codec.schemas.reading import SchemaReader, schema_reader
from jmsaio.errors import ConfigurationError, MessageFormatError, NotFoundError
from jmsaio.model.partitions import split_partition
from jmsaio.model.schema import IMPOSSIBLE_VERSION, is_version
from jmsaio.transport.base import Admin


@attrs.define(eq=False)
class ValueColumn:
    """Reader of the bodies of one topic, each with its own schema version.

    Attributes:
        kind: type of the column: a struct, or a string for JSON.
        topic: full name of the topic or partition.
    """

    kind: pa.DataType
    topic: str
    _readers: dict[bytes, SchemaReader | str | None] = attrs.field(factory=dict, init=False)

    async def learn(self, admin: Admin | None, versions: Iterable[bytes | None]) -> None:
        """Fetch the schemas that are not known yet.

        Args:
            versions: schema versions of records; None for a record without a schema.

        Raises:
            ConfigurationError: there is no administration.
            JMSSecurityError: the permission to read schemas is missing.
            AdminError: the broker failed.
        """
        topic = split_partition(self.topic)[0]
        for version in set(versions) - self._readers.keys() - {None}:
            assert version is not None
            if not is_version(version):
                self._readers[version] = IMPOSSIBLE_VERSION
                continue
            if admin is None:
                raise ConfigurationError("option schema needs jms.usePulsarAdmin=true, which returns schemas")
            number = int.from_bytes(version, "big")
            try:
                self._readers[version] = schema_reader(await admin.schema(topic, number))
            except (MessageFormatError, NotFoundError) as error:
                self._readers[version] = f"schema {number} of {topic}: {error}"

    def array(self, columns: RowColumns) -> tuple[pa.Array, dict[int, str]]:
        """Return the values of rows, and the reasons why some with a schema are NULL.

        A row without a schema, or with one that jmsaio does not support, is NULL without a reason.
        """
        values: list[Any] = []
        problems: dict[int, str] = {}
        fields = zip(columns["schema_version"], columns["text"], columns["data"], columns["key"], strict=True)
        for row, (version, text, data, key) in enumerate(fields):
            value = None
            try:
                if version is not None:
                    value = self._value(version, data if text is None else text.encode(), key)
            # Arrow raises ValueError for invalid Unicode, and OverflowError for a number out of range.
            except (MessageFormatError, pa.ArrowException, ValueError, OverflowError) as error:
                problems[row] = f"no readable value: {error}"
            values.append(value)
        return pa.array(values, self.kind), problems

    def _value(self, version: bytes, payload: bytes | None, key: str | None) -> Any:
        reader = self._readers[version]
        if isinstance(reader, str):
            raise MessageFormatError(reader)
        value = None if reader is None else reader.read(payload, key)
        if value is None:
            return None
        as_text = pa.types.is_string(self.kind)
        fitted = json.dumps(value, ensure_ascii=False, default=_json) if as_text else _fitted(value, self.kind)
        pa.array([fitted], self.kind)  # raises the error of the whole column
        return fitted


def _fitted(value: Any, kind: pa.DataType) -> Any:
    """Convert a value to Arrow's form of a type. A missing field is NULL.

    Raises:
        MessageFormatError: the value has another type.
    """
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
    return value


def _json(value: Any) -> str:
    """Return the JSON text of a value of another class."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, date | time):
        return value.isoformat()
    assert isinstance(value, Decimal)
    return str(value)
