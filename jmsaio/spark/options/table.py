"""The table of the data source's own options. Parsing, error messages and the guide's table are made from it."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final

import attrs

from jmsaio.spark.model.schema import Body
from jmsaio.spark.options import values
from jmsaio.spark.options.property_schema import parse_properties


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
        "Reading requires one of `queue`, `topic` and `destination`; a write without them uses the column "
        "`destination`",
    ),
    OptionRow(name="topic", uses=_ALL, default="", doc="name of the topic, with the same forms as `queue`"),
    OptionRow(
        name="destination", uses=_ALL, default="",
        doc="queue or topic, written `queue://name` or `topic://name` as in the column `destination`",
    ),
    OptionRow(
        name="allowInlineSecret", uses=_ALL, default="false", read=values.flag,
        doc="accept a secret in the text of `authParams`. It is then sent with every task, and a warning is logged",
    ),
    OptionRow(
        name="view", uses=_BATCH, default="all", read=values.word_of(View), field="view",
        doc="`pending`: only messages that the queue's subscription has not acknowledged when the query is planned; an "
        "entry with several messages is read completely. `all`: every message that the broker keeps",
    ),
    OptionRow(
        name="selector", uses=_READS, default="", read=str,
        doc="JMS selector, applied in the tasks before a row is built",
    ),
    OptionRow(
        name="columns", uses=_READS, default="all but `body_json`",
        doc="columns to read, separated by commas, in this order. Others are not built, which saves time: Spark "
        "itself always requests every column",
    ),
    OptionRow(
        name="propertySchema", uses=_READS, default="", read=parse_properties, field="declared",
        doc="properties with their types, such as `region STRING, qty INT`: adds the column `props` with one field "
        "for each. A property of another type is NULL there, unless it converts without loss, such as a short to an "
        "INT",
    ),
    OptionRow(
        name="schema", uses=_READS, default="", read=_auto, field="use_schema", admin=True,
        doc="`auto`: adds the column `value`, the body read by the schema of its topic: a STRUCT with the fields of "
        "the AVRO record if all its versions are compatible, otherwise JSON. NULL for a message without a schema",
    ),
    OptionRow(
        name="body", uses=_READS, default="typed", read=values.word_of(Body), field="body",
        doc="`typed`: the columns `text` and `bytes`; `raw`: the column `payload`, the bytes as on the wire; `both`",
    ),
    OptionRow(
        name="startingOffsets", uses=_READS, default="`earliest`; of a stream `latest`",
        doc="start of a read or of a new stream: `earliest`, `latest` (streams only), or JSON with the first message "
        'to read, such as `{"orders-partition-0": "12:5"}`: ledger and entry, followed by `:` and the index in the '
        "batch if the entry has several messages. A restarted stream resumes from its checkpoint",
    ),
    OptionRow(
        name="endingOffsets", uses=_BATCH, default="latest",
        doc="end of a read: `latest`, or JSON with the first message not to read",
    ),
    OptionRow(
        name="startingTime", uses=_READS, default="", read=values.time, field="starting_time",
        doc="publish time of the first messages to read, in ISO 8601 (UTC without an offset) or in milliseconds "
        "since 1970; overrides `startingOffsets`",
    ),
    OptionRow(
        name="endingTime", uses=_BATCH, default="", read=values.time, field="ending_time",
        doc="publish time from which messages are left out; overrides `endingOffsets`",
    ),
    OptionRow(
        name="minPartitions", uses=_READS, default="", read=values.number(100_000), field="min_partitions", admin=True,
        doc="approximate minimum number of tasks",
    ),
    OptionRow(
        name="maxEntriesPerPartition", uses=_READS, default="50000", read=values.number(),
        field="max_entries_per_partition", admin=True,
        doc="maximum entries per task; an entry is a message or a batch of messages",
    ),
    OptionRow(
        name="maxEntriesPerTrigger", uses=_STREAM, default="no limit", read=values.number(),
        field="max_entries_per_trigger", admin=True,
        doc="maximum entries per micro-batch, divided in proportion to each partition's backlog",
    ),
    OptionRow(
        name="maxBytesPerTrigger", uses=_STREAM, default="no limit", read=values.number(),
        field="max_bytes_per_trigger", admin=True,
        doc="maximum bytes per micro-batch, estimated by the mean size of the entries",
    ),
    OptionRow(
        name="minEntriesPerTrigger", uses=_STREAM, default="1", read=values.number(),
        field="min_entries_per_trigger", admin=True,
        doc="entries that a micro-batch waits for, no longer than `maxTriggerDelay`; ignored with the trigger "
        "`availableNow`",
    ),
    OptionRow(
        name="maxTriggerDelay", uses=_STREAM, default="15 min", read=values.duration(), field="max_trigger_delay",
        doc="maximum wait for `minEntriesPerTrigger`. Durations have a unit: `ms`, `s`, `min`, `h`, `d`; without "
        "one, they are in seconds",
    ),
    OptionRow(
        name="offsetPollInterval", uses=_STREAM, default="500 ms", read=values.duration(60),
        field="offset_poll_interval", doc="minimum time between requests to the broker for new messages, up to 60 s",
    ),
    OptionRow(
        name="subscription", uses=_STREAM, default="", field="subscription", admin=True,
        doc="subscription that follows the stream: it is moved to the end of each committed micro-batch, so that the "
        "broker keeps unread messages. With `jms-queue`, or the subscription that the queue names, the stream drains "
        "the queue",
    ),
    OptionRow(
        name="sharedCursor", uses=_STREAM, default="false", read=values.flag, field="shared_cursor", admin=True,
        doc="move `subscription` even while consumers are connected to it; they do not receive what the stream has "
        "read",
    ),
    OptionRow(
        name="moveCursor", uses=_STREAM, default="true", read=values.flag, field="move_cursor", admin=True,
        doc="`false`: the stream neither starts at `subscription` nor moves it; the application does, such as "
        "`foreachBatch` after storing a micro-batch. Messages acknowledged there that the broker deletes are not a "
        "loss",
    ),
    OptionRow(
        name="failOnDataLoss", uses=_READS, default="true", read=values.flag, field="fail_on_data_loss",
        doc="fail if messages to read no longer exist; `false`: warn, count them, and continue",
    ),
    OptionRow(
        name="dataLossFolder", uses=_READS, default="", field="data_loss_folder",
        doc="with `failOnDataLoss=false`: absolute path of a folder, shared by the driver and all workers, for a "
        "file of one sentence per loss",
    ),
    OptionRow(
        name="onDecodeError", uses=_READS, default="row", read=values.word_of(OnDecodeError),
        field="on_decode_error",
        doc="a message that can't be decoded completely: `row` returns a row with NULL for the parts that can't be "
        "decoded, and the reason in `decode_error`; `fail` fails the query",
    ),
    OptionRow(
        name="readTimeout", uses=_READS, default="60 s", read=values.duration(), field="read_timeout",
        doc="time without a message after which a task fails, if its range is not complete",
    ),
    OptionRow(
        name="outageTimeout", uses=_ALL, default="5 min", read=values.duration(), field="outage_timeout",
        doc="maximum wait of a query for an unreachable broker, such as during a restart. `load()` does not wait. "
        "Refused credentials and deleted topics fail at once",
    ),
    OptionRow(
        name="batchRows", uses=_READS, default="4096", read=values.number(1_000_000), field="batch_rows",
        doc="maximum rows per batch that a task passes to Spark",
    ),
    OptionRow(
        name="batchBytes", uses=_READS, default=str(16 * MIB), read=values.number(_INT), field="batch_bytes",
        doc="bytes of messages that end such a batch, even with fewer rows",
    ),
    OptionRow(
        name="dedup", uses=_WRITE, default="off", read=lambda text: values.word_of(_Dedup)(text) is _Dedup.COLUMNS,
        field="dedup",
        doc="`columns`: the columns `dedup_producer` and `dedup_sequence` identify a row, so that the broker drops "
        "rows that a repeated task sends again. Requires deduplication on the broker, and disables batching",
    ),
)  # fmt: skip

#: Descriptions of the options of ``jmsaio.connect``, for the guide.
_CONNECTION: Final = (
    (
        "authPlugin`, `authParams",
        "credentials as for `jmsaio.connect`, but `authParams` references the secret: `file:NAME` or `env:NAME`, a "
        "file or an environment variable with the actual value, such as a token. It is read by the process that "
        "connects, for each new connection. A file name without a path is a file distributed by Spark (`--files`)",
    ),
    (
        "webServiceUrl`, `jms.*`, `producerConfig.*`, `consumerConfig.*`, `tls...",
        "every other option of `jmsaio.connect` by its written name: `jmsaio guide configuration`. With "
        "`jms.usePulsarAdmin=false`, each partition is one task, and the options marked *, `view=pending`, "
        "`dedup=columns` and `regex:` are rejected",
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
