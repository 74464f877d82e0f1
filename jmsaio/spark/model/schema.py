"""The table of row columns: names, types, and the options that select them.

The names are JMS's, so that a Spark predicate and a selector look alike; Spark ignores their case. The table is
frozen: archives have its columns.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from jmsaio.model.headers import HEADER_COLUMNS


class Type(enum.Enum):
    """The type of a column; the value is Spark's DDL."""

    STRING = "STRING"
    BINARY = "BINARY"
    BOOLEAN = "BOOLEAN"
    INT = "INT"
    LONG = "BIGINT"
    TIMESTAMP = "TIMESTAMP"
    TEXTS = "MAP<STRING, STRING>"
    POSITION = "STRUCT<ledger: BIGINT, entry: BIGINT, batch: INT>"
    ANY = "any type"  # this and the next one only of a written table
    PROPERTIES = "STRUCT of STRING, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT or DOUBLE"


class Body(enum.Enum):
    """Form of the body in a row; the value is what the option ``body`` takes."""

    TYPED = "typed"
    RAW = "raw"
    BOTH = "both"


@attrs.frozen
class Column:
    """One column; every column can be NULL."""

    name: str
    type: Type
    doc: str
    left_out: Body | None = None  # the value of the option ``body`` that leaves out the column
    on_request: bool = False  # included only if it is requested by name
    written: str = ""  # description of the column in a table to write; "" if it is not written


_KEY: Final = "partition key: JMSXGroupID"
_KINDS: Final = "`text`, `bytes`, `map`, `stream`, `object`; `header` without a body"
_FORMAT: Final = "`json` if an object message contains JSON of jmsaio"
_TYPE_NAMES: Final = "type names of properties that are not strings"

COLUMNS: Final = (
    Column(
        "destination", Type.STRING, "`queue://name` or `topic://name`, a short name in the default namespace",
        written="queue or topic of the row, never NULL; overridden by an option",
    ),
    Column("topic", Type.STRING, "full name of the Pulsar topic, or of its partition"),
    Column(
        "partition", Type.INT, "index of the partition; NULL without partitions", written="index of the partition"
    ),
    Column("position", Type.POSITION, "stored position of the message; sorts in partition order"),
    Column("publish_time", Type.TIMESTAMP, "publish time, by the sender's clock"),
    Column("producer_name", Type.STRING, "name of the Pulsar producer"),
    Column("key", Type.STRING, _KEY, written=_KEY),
    Column("schema_version", Type.BINARY, "version of the producer's Pulsar schema"),
    *(Column(each.name, Type(each.type), each.doc, written=each.written) for each in HEADER_COLUMNS),
    Column(
        "properties", Type.TEXTS, "properties by name, as text", written="properties by name, as text; NULL is left out"
    ),
    Column("property_types", Type.TEXTS, _TYPE_NAMES, written=_TYPE_NAMES),
    Column("body_type", Type.STRING, _KINDS, written=_KINDS),
    Column("text", Type.STRING, "body of a text message", Body.RAW, written="body of a text message"),
    Column(
        "bytes", Type.BINARY, "body of any other message, encoded", Body.RAW,
        written="body of a bytes message; with `body_type`, of any message, encoded",
    ),
    Column("object_format", Type.STRING, _FORMAT, written=_FORMAT),
    Column(
        "payload", Type.BINARY, "body of any message, encoded", Body.TYPED,
        written="body of any message, encoded; requires `body_type`",
    ),
    Column(
        "body_json", Type.STRING, "body of a map or stream message as typed JSON", on_request=True,
        written="body of a map message (an object) or a stream message (an array) as typed JSON; ignored if"
        " the table has `bytes` or `payload`",
    ),
    Column("decode_error", Type.STRING, "reason why a column is NULL, if a part can't be decoded"),
)  # fmt: skip

_BY_NAME: Final[Mapping[str, Column]] = {column.name.lower(): column for column in COLUMNS}


def find_column(name: str) -> Column | None:
    return _BY_NAME.get(name.lower())


def columns_of(body: Body) -> tuple[Column, ...]:
    return tuple(column for column in COLUMNS if body is not column.left_out and not column.on_request)


def ddl(columns: Iterable[Column]) -> str:
    return ", ".join(f"{column.name} {column.type.value}" for column in columns)
