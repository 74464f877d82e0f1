"""The table of the data source's own options. Parsing, error messages and the guide's table are made from it."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from typing import Final

import attrs

from jmsaio.config.options import nearest
from jmsaio.spark.model.schema import PROPERTY_TYPES, Body, Property, Type
from jmsaio.spark.options import values

#: Types that a property can have, by every name in Spark's DDL.
_TYPES: Final = {
    **{each.value: each for each in PROPERTY_TYPES},
    "BYTE": Type.BYTE,
    "SHORT": Type.SHORT,
    "INTEGER": Type.INT,
    "LONG": Type.LONG,
    "REAL": Type.FLOAT,
}
#: A name, plain or in backquotes, and a type; a STRUCT has a colon between them.
_FIELD: Final = re.compile(r"\s*(?:`((?:[^`]|``)+)`|(\w+))\s*(?::|\s)\s*(\w+)\s*(,|$)")


def parse_properties(text: str) -> tuple[Property, ...]:
    """Parse declared properties, such as ``region STRING, qty INT``, in their order.

    Raises:
        ValueError: the text has another form, has a type that no property has, or has a name twice, also in another
            case: Spark ignores case.
    """
    properties: list[Property] = []
    seen: set[str] = set()
    place, separator = 0, ","
    while separator:
        found = _FIELD.match(text, place)
        if found is None:
            raise ValueError(f"must be names and types, such as region STRING, qty INT; see {text[place:][:40]!r}")
        name = found[1].replace("``", "`") if found[1] is not None else found[2]
        if name.lower() in seen:
            raise ValueError(f"declares {name!r} twice; Spark ignores the case of a name")
        seen.add(name.lower())
        properties.append(Property(name, _type(name, found[3])))
        place, separator = found.end(), found[4]
    return tuple(properties)


def _type(name: str, word: str) -> Type:
    kind = _TYPES.get(word.upper())
    if kind is None:
        hint = nearest(word.upper(), _TYPES) or f"; there are {', '.join(_TYPES)}"
        raise ValueError(f"property {name!r} can't have the type {word!r}{hint}")
    return kind


class Use(enum.Enum):
    """Purpose of the options; the value is the word of Spark's API."""

    READ = "read"
    READ_STREAM = "readStream"
    WRITE = "write"


class View(enum.Enum):
    """Which messages of a queue are read."""

    ALL = "all"
    PENDING = "pending"


class OnDecodeError(enum.Enum):
    """Handling of a message that can't be decoded completely."""

    ROW = "row"
    FAIL = "fail"


class _Dedup(enum.Enum):
    OFF = "off"
    COLUMNS = "columns"


_READS: Final = (Use.READ, Use.READ_STREAM)
_BATCH, _STREAM, _WRITE = (Use.READ,), (Use.READ_STREAM,), (Use.WRITE,)
_ALL: Final = tuple(Use)
_INT: Final = 2**31 - 1
MIB: Final = 1024 * 1024


def _auto(text: str) -> bool:
    if text.strip().lower() != "auto":
        raise ValueError("must be auto")
    return True


@attrs.frozen(kw_only=True)
class OptionRow:
    """One option.

    Attributes:
        name: name as written; its case is ignored.
        uses: uses that accept the option.
        default: default value, for the guide.
        doc: description, for the guide.
        read: parses the text; raises ValueError with the reason.
        field: field of ``SourceOptions`` with the value; "" for an option that is combined with others.
        admin: the option needs the broker's REST interface.
    """

    name: str
    uses: tuple[Use, ...]
    default: str
    doc: str
    read: Callable[[str], object] = values.not_empty
    field: str = ""
    admin: bool = False


OPTIONS: Final = (
    OptionRow(
        name="url", uses=_ALL, default="required",
        doc="the broker's URL, such as `pulsar://host:6650`; connection options can follow as in a URL: "
        "`?jms.systemNamespace=tenant/namespace`",
    ),
    OptionRow(
        name="queue", uses=_ALL, default="",
        doc="name of the queue, short or full. For reading, also `multi:` with a list, or `regex:` with a pattern. "
        "A read requires `queue`, `topic` or `destination`; a write without them uses the column `destination`",
    ),
    OptionRow(name="topic", uses=_ALL, default="", doc="name of the topic, in the same forms"),
    OptionRow(
        name="destination", uses=_ALL, default="",
        doc="`queue://name` or `topic://name`",
    ),
    OptionRow(
        name="allowInlineSecret", uses=_ALL, default="false", read=values.flag,
        doc="accept a secret in `authParams` itself, with a warning: it is sent with every task",
    ),
    OptionRow(
        name="view", uses=_BATCH, default="all", read=values.word_of(View), field="view",
        doc="`all`: all stored messages. `pending`: messages that the queue's subscription has not acknowledged when "
        "the query is planned; entries are read completely",
    ),
    OptionRow(
        name="selector", uses=_READS, default="", read=str,
        doc="JMS selector, applied before rows are built",
    ),
    OptionRow(
        name="columns", uses=_READS, default="all but `body_json`",
        doc="columns to read, separated by commas, in this order",
    ),
    OptionRow(
        name="propertySchema", uses=_READS, default="", read=parse_properties, field="declared",
        doc="properties and their types, such as `region STRING, qty INT`: adds the column `props` with these fields. "
        "A property of another type is NULL, unless it converts without loss, such as a short to an INT",
    ),
    OptionRow(
        name="schema", uses=_READS, default="", read=_auto, field="use_schema", admin=True,
        doc="`auto`: adds the column `value`, the body decoded by its schema",
    ),
    OptionRow(
        name="body", uses=_READS, default="typed", read=values.word_of(Body), field="body",
        doc="`typed`: columns `text` and `bytes`; `raw`: column `payload`; `both`",
    ),
    OptionRow(
        name="startingOffsets", uses=_READS, default="`earliest`; of a stream `latest`",
        doc="start of a read or a new stream: `earliest`, `latest` (streams only), or JSON with the first message, "
        'such as `{"orders-partition-0": "12:5"}`: ledger and entry, and `:` with the index in the batch if the entry '
        "has several messages",
    ),
    OptionRow(
        name="endingOffsets", uses=_BATCH, default="latest",
        doc="`latest`, or JSON with the first message not to read",
    ),
    OptionRow(
        name="startingTime", uses=_READS, default="", read=values.time, field="starting_time",
        doc="first publish time, in ISO 8601 (UTC without an offset) or milliseconds since 1970; overrides "
        "`startingOffsets`",
    ),
    OptionRow(
        name="endingTime", uses=_BATCH, default="", read=values.time, field="ending_time",
        doc="publish time after the last message; overrides `endingOffsets`",
    ),
    OptionRow(
        name="minPartitions", uses=_READS, default="", read=values.number(100_000), field="min_partitions", admin=True,
        doc="approximate minimum number of tasks",
    ),
    OptionRow(
        name="maxEntriesPerPartition", uses=_READS, default="50000", read=values.number(),
        field="max_entries_per_partition", admin=True,
        doc="maximum entries per task",
    ),
    OptionRow(
        name="maxEntriesPerTrigger", uses=_STREAM, default="no limit", read=values.number(),
        field="max_entries_per_trigger", admin=True,
        doc="maximum entries per micro-batch, divided by the partitions' backlogs",
    ),
    OptionRow(
        name="maxBytesPerTrigger", uses=_STREAM, default="no limit", read=values.number(),
        field="max_bytes_per_trigger", admin=True,
        doc="maximum bytes per micro-batch, estimated by mean entry size",
    ),
    OptionRow(
        name="minEntriesPerTrigger", uses=_STREAM, default="1", read=values.number(),
        field="min_entries_per_trigger", admin=True,
        doc="entries that a micro-batch waits for; ignored with the trigger `availableNow`",
    ),
    OptionRow(
        name="maxTriggerDelay", uses=_STREAM, default="15 min", read=values.duration(), field="max_trigger_delay",
        doc="maximum wait for `minEntriesPerTrigger`",
    ),
    OptionRow(
        name="offsetPollInterval", uses=_STREAM, default="500 ms", read=values.duration(60),
        field="offset_poll_interval", doc="minimum time between requests for new messages, up to 60 s",
    ),
    OptionRow(
        name="subscription", uses=_STREAM, default="", field="subscription", admin=True,
        doc="subscription that is moved after each committed micro-batch, so that the broker retains unread messages",
    ),
    OptionRow(
        name="sharedCursor", uses=_STREAM, default="false", read=values.flag, field="shared_cursor", admin=True,
        doc="move `subscription` even if consumers use it: they do not receive messages that the stream has read",
    ),
    OptionRow(
        name="moveCursor", uses=_STREAM, default="true", read=values.flag, field="move_cursor", admin=True,
        doc="`false`: the stream neither starts at `subscription` nor moves it. The application moves it, such as "
        "`foreachBatch` after storing a micro-batch. Deleted messages that it has acknowledged are no loss",
    ),
    OptionRow(
        name="failOnDataLoss", uses=_READS, default="true", read=values.flag, field="fail_on_data_loss",
        doc="fail if messages are lost; `false`: log a warning, count them and continue",
    ),
    OptionRow(
        name="dataLossFolder", uses=_READS, default="", field="data_loss_folder",
        doc="with `failOnDataLoss=false`: absolute path of a folder, shared by driver and workers, for a file per loss",
    ),
    OptionRow(
        name="onDecodeError", uses=_READS, default="row", read=values.word_of(OnDecodeError),
        field="on_decode_error",
        doc="if a part of a message can't be decoded: `row` makes it NULL, with the reason in `decode_error`; `fail` "
        "fails the query",
    ),
    OptionRow(
        name="readTimeout", uses=_READS, default="60 s", read=values.duration(), field="read_timeout",
        doc="time without a message after which an incomplete task fails",
    ),
    OptionRow(
        name="outageTimeout", uses=_ALL, default="5 min", read=values.duration(), field="outage_timeout",
        doc="maximum wait for an unreachable broker. `load()` does not wait; refused credentials and deleted topics "
        "fail at once",
    ),
    OptionRow(
        name="batchRows", uses=_READS, default="4096", read=values.number(1_000_000), field="batch_rows",
        doc="maximum rows per Arrow batch",
    ),
    OptionRow(
        name="batchBytes", uses=_READS, default=str(16 * MIB), read=values.number(_INT), field="batch_bytes",
        doc="bytes of messages that end an Arrow batch",
    ),
    OptionRow(
        name="dedup", uses=_WRITE, default="off", read=lambda text: values.word_of(_Dedup)(text) is _Dedup.COLUMNS,
        field="dedup",
        doc="`columns`: the broker drops rows that are sent again, see [writing](#writing)",
    ),
)  # fmt: skip

#: Descriptions of the options of ``jmsaio.connect``, for the guide.
_CONNECTION: Final = (
    (
        "authPlugin`, `authParams",
        "credentials as for `jmsaio.connect`, except that `authParams` refers to the secret: see [secrets](#secrets)",
    ),
    (
        "webServiceUrl`, `jms.*`, `producerConfig.*`, `consumerConfig.*`, `tls...",
        "other options of `jmsaio.connect`: see [configuration](configuration.md)",
    ),
)


def table() -> str:
    """Return the options as a Markdown table."""
    lines = ["| option | use | default | what it does |", "|---|---|---|---|"]
    lines += [
        _line(each.name, each.uses, _default(each.default), each.doc, "*" if each.admin else "") for each in OPTIONS
    ]
    lines += [_line(name, _ALL, "", doc) for name, doc in _CONNECTION]
    return "\n".join(lines)


def _line(name: str, uses: tuple[Use, ...], default: str, doc: str, mark: str = "") -> str:
    used = "all" if uses == _ALL else ", ".join(each.value for each in uses)
    return f"| `{name}`{mark} | {used} | {default} | {doc.replace('|', chr(92) + '|')} |"


def _default(text: str) -> str:
    return text if not text or " " in text or text == "required" else f"`{text}`"
