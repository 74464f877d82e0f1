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
        doc="the broker, such as `pulsar://host:6650`; connection options may follow as in a URL: "
        "`?jms.systemNamespace=tenant/namespace`",
    ),
    OptionRow(
        name="queue", uses=_ALL, default="",
        doc="name of the queue, short or full. To read: also `multi:` with a list, or `regex:` with a pattern. Reading "
        "needs one of `queue`, `topic` and `destination`; a write without takes the column `destination`",
    ),
    OptionRow(name="topic", uses=_ALL, default="", doc="name of the topic, likewise"),
    OptionRow(
        name="destination", uses=_ALL, default="",
        doc="the same, written `queue://name` or `topic://name` as in the column `destination`",
    ),
    OptionRow(
        name="allowInlineSecret", uses=_ALL, default="false", read=values.flag,
        doc="accept a secret that stands in `authParams` itself. It then travels with every task, and is warned of",
    ),
    OptionRow(
        name="view", uses=_BATCH, default="all", read=values.word_of(View), field="view",
        doc="`pending`: of a queue, only what it has not acknowledged when the query is planned; an entry with several "
        "messages is read whole. `all`: every message that the broker keeps",
    ),
    OptionRow(
        name="selector", uses=_READS, default="", read=str,
        doc="JMS selector; it runs in the tasks, before a row is built",
    ),
    OptionRow(
        name="columns", uses=_READS, default="all but `body_json`",
        doc="the columns to read, separated by commas, in this order. Others are not built, which saves time: Spark "
        "itself always asks for every column",
    ),
    OptionRow(
        name="propertySchema", uses=_READS, default="", read=parse_properties, field="declared",
        doc="properties with their types, such as `region STRING, qty INT`: adds the column `props` with one field for "
        "each. A property of another type is NULL there, unless it fits without a loss, such as a short into an INT",
    ),
    OptionRow(
        name="schema", uses=_READS, default="", read=_auto, field="use_schema", admin=True,
        doc="`auto`: adds the column `value`, the body read by the schema of its topic: a STRUCT with the fields of "
        "the AVRO record if all its versions fit together, otherwise JSON. NULL for a message without a schema",
    ),
    OptionRow(
        name="body", uses=_READS, default="typed", read=values.word_of(Body), field="body",
        doc="`typed`: the columns `text` and `bytes`; `raw`: the column `payload`, the bytes as on the wire; `both`",
    ),
    OptionRow(
        name="startingOffsets", uses=_READS, default="`earliest`; of a stream `latest`",
        doc='where a read or a new stream starts: `earliest`, `latest` (streams only), or JSON with the first message '
        'to read, such as `{"orders-partition-0": "12:5"}`, ledger and entry, with `:` and the index in the batch '
        "where the entry has several. A restarted stream goes on from its checkpoint",
    ),
    OptionRow(
        name="endingOffsets", uses=_BATCH, default="latest",
        doc="where a read ends: `latest`, or JSON with the first message not to read",
    ),
    OptionRow(
        name="startingTime", uses=_READS, default="", read=values.time, field="starting_time",
        doc="publish time of the first messages to read, in ISO 8601 (UTC where it names no zone) or in milliseconds "
        "since 1970; wins over `startingOffsets`",
    ),
    OptionRow(
        name="endingTime", uses=_BATCH, default="", read=values.time, field="ending_time",
        doc="messages published at this time or later are left out; wins over `endingOffsets`",
    ),
    OptionRow(
        name="minPartitions", uses=_READS, default="", read=values.number(100_000), field="min_partitions", admin=True,
        doc="split the work into at least about this many tasks",
    ),
    OptionRow(
        name="maxEntriesPerPartition", uses=_READS, default="50000", read=values.number(),
        field="max_entries_per_partition", admin=True,
        doc="split the work so that a task reads at most this many entries; an entry is a message or a batch of them",
    ),
    OptionRow(
        name="maxEntriesPerTrigger", uses=_STREAM, default="no limit", read=values.number(),
        field="max_entries_per_trigger", admin=True,
        doc="most entries in a micro-batch, shared out by what each partition has waiting",
    ),
    OptionRow(
        name="maxBytesPerTrigger", uses=_STREAM, default="no limit", read=values.number(),
        field="max_bytes_per_trigger", admin=True,
        doc="most bytes in a micro-batch, estimated by the mean size of the entries",
    ),
    OptionRow(
        name="minEntriesPerTrigger", uses=_STREAM, default="1", read=values.number(),
        field="min_entries_per_trigger", admin=True,
        doc="a micro-batch waits for this many entries, though no longer than `maxTriggerDelay`; it does not count "
        "with the trigger `availableNow`",
    ),
    OptionRow(
        name="maxTriggerDelay", uses=_STREAM, default="15 min", read=values.duration(), field="max_trigger_delay",
        doc="longest wait for `minEntriesPerTrigger`. Durations have a unit: `ms`, `s`, `min`, `h`, `d`; without one "
        "they are seconds",
    ),
    OptionRow(
        name="offsetPollInterval", uses=_STREAM, default="500 ms", read=values.duration(60),
        field="offset_poll_interval", doc="least time between two looks at the broker for new messages; at most 60 s",
    ),
    OptionRow(
        name="subscription", uses=_STREAM, default="", field="subscription", admin=True,
        doc="subscription that follows the stream: it is moved to where a committed micro-batch ended, so that the "
        "broker keeps what is not read yet. With `jms-queue`, or the one that the queue names, the stream drains the "
        "queue",
    ),
    OptionRow(
        name="sharedCursor", uses=_STREAM, default="false", read=values.flag, field="shared_cursor", admin=True,
        doc="move `subscription` even while consumers are connected to it; they lose what the stream has read",
    ),
    OptionRow(
        name="moveCursor", uses=_STREAM, default="true", read=values.flag, field="move_cursor", admin=True,
        doc="`false`: the stream neither begins at `subscription` nor moves it; something else does, such as "
        "`foreachBatch` when it has stored a micro-batch. What the broker deletes behind it is no loss",
    ),
    OptionRow(
        name="failOnDataLoss", uses=_READS, default="true", read=values.flag, field="fail_on_data_loss",
        doc="fail when messages that were to be read are gone; `false` warns, counts them, and goes on",
    ),
    OptionRow(
        name="dataLossFolder", uses=_READS, default="", field="data_loss_folder",
        doc="with `failOnDataLoss=false`: absolute path of a folder, shared by the driver and all workers, in which "
        "each loss becomes a file of one sentence",
    ),
    OptionRow(
        name="onDecodeError", uses=_READS, default="row", read=values.word_of(OnDecodeError),
        field="on_decode_error",
        doc="a message that can't be read in whole: `row` makes a row with NULL in place of what can't be read, and "
        "the reason in `decode_error`; `fail` fails the query",
    ),
    OptionRow(
        name="readTimeout", uses=_READS, default="60 s", read=values.duration(), field="read_timeout",
        doc="a task fails when nothing arrives for this long although its range is not at its end",
    ),
    OptionRow(
        name="outageTimeout", uses=_ALL, default="5 min", read=values.duration(), field="outage_timeout",
        doc="how long a query waits for a broker that is unreachable, such as while it restarts, before it fails. "
        "`load()` does not wait. Refused credentials and deleted topics fail at once",
    ),
    OptionRow(
        name="batchRows", uses=_READS, default="4096", read=values.number(1_000_000), field="batch_rows",
        doc="most rows in a batch that a task hands to Spark",
    ),
    OptionRow(
        name="batchBytes", uses=_READS, default=str(16 * MIB), read=values.number(_INT), field="batch_bytes",
        doc="bytes of messages at which such a batch ends, however few its rows",
    ),
    OptionRow(
        name="dedup", uses=_WRITE, default="off", read=lambda text: values.word_of(_Dedup)(text) is _Dedup.COLUMNS,
        field="dedup",
        doc="`columns`: the columns `dedup_producer` and `dedup_sequence` identify a row, so that the broker drops "
        "what a repeated task sends again. Needs deduplication on the broker, and sends without batches",
    ),
)  # fmt: skip

#: Descriptions of the options of ``jmsaio.connect``, for the guide.
_CONNECTION: Final = (
    (
        "authPlugin`, `authParams",
        "credentials as for `jmsaio.connect`, but `authParams` names the secret: `file:NAME` or `env:NAME`, a file or "
        "an environment variable that holds what `authParams` would, such as a token. It is read where a task "
        "connects, and again for each new connection. A file without a path is one that Spark distributed (`--files`)",
    ),
    (
        "webServiceUrl`, `jms.*`, `producerConfig.*`, `consumerConfig.*`, `tls...",
        "every other option of `jmsaio.connect` by its written name: `jmsaio guide configuration`. With "
        "`jms.usePulsarAdmin=false` each partition is one task, and the options marked *, `view=pending`, "
        "`dedup=columns` and `regex:` are refused",
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
