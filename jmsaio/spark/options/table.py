"""The data source's own options, each declared once. Parsing, error messages and the guide's table derive from it."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import attrs

from jmsaio.config import Configuration, load
from jmsaio.model.destinations import Queue, Topic
from jmsaio.model.schema import Schema
from jmsaio.model.topic_names import split_partition
from jmsaio.spark.model.place import Place
from jmsaio.spark.model.schema import Body, Column
from jmsaio.spark.options import values
from jmsaio.spark.options.secrets import Folder, resolve_secrets, shown_connection
from jmsaio.spark.options.values import ROW, OptionRow, Use, option


class View(enum.Enum):
    """Which messages of a queue are read."""

    ALL = "all"
    PENDING = "pending"


EARLIEST: Final = "earliest"
LATEST: Final = "latest"
#: Bound of one partition: one of its ends, a publish time in ms since the epoch, or a place.
Mark = Literal["earliest", "latest"] | int | Place
#: One end of every partition, or a bound by the full name of a partition or, for all its partitions, of a topic.
Bound = Literal["earliest", "latest"] | Mapping[str, Mark]

_READS: Final = (Use.READ, Use.READ_STREAM)
_BATCH, _STREAM, _WRITE = (Use.READ,), (Use.READ_STREAM,), (Use.WRITE,)
_ALL: Final = tuple(Use)
#: Words of the option ``schema``, besides ``latest`` and numbers of versions.
SCHEMAS: Final[Mapping[Use, Sequence[str]]] = {
    **dict.fromkeys(_READS, ("auto",)), Use.WRITE: ("avro", "json", "string")
}  # fmt: skip
_INT: Final = 2**31 - 1
MIB: Final = 1024 * 1024


@attrs.frozen(kw_only=True)
class SourceOptions:
    """Options of a reader or writer. Can be pickled; ``repr`` shows no secret. Durations are in s, times in ms."""

    #: Options by their written names. Secrets are references, unless ``allowInlineSecret`` was set.
    connection: Mapping[str, str] = attrs.field(repr=shown_connection)
    destination: Queue | Topic | None  # None for a write with the column ``destination``
    receiver_queue: int = 1000  # messages that a reader prefetches
    #: The schema that the option ``schema`` stands for; None with ``auto``.
    value_schema: Schema | None = attrs.field(default=None, repr=False)
    # fmt: off
    view: View = option(
        View.ALL, "view", _BATCH, read=values.word_of(View),
        doc="`all`: all stored messages. `pending`: messages that the queue's subscription has not acknowledged when "
        "the query is planned; entries are read completely",
    )
    selector: str | None = option(
        None, "selector", _READS, read=str, combined=True,
        doc="JMS selector, applied before rows are built",
    )
    columns: tuple[Column, ...] = option(
        attrs.NOTHING, "columns", _READS, shown="all but `body_json`", combined=True,
        doc="columns to read, separated by commas, in this order",
    )
    schema: str | int | None = option(
        None, "schema", _ALL, read=values.word_or_number,
        doc="for reading, adds the column `value`, the body decoded by its schema: `auto`, with all versions in one "
        "type, `latest`, or the number of the version that all are converted to. A write sends the column `value`: "
        "`avro`, `json` or `string`, with a schema of its type, `latest` or a version of the topic's. See "
        "[schemas](#schemas)",
    )
    body: Body = option(
        Body.TYPED, "body", _READS, read=values.word_of(Body),
        doc="`typed`: columns `text` and `bytes`; `raw`: column `payload`; `both`",
    )
    starting_offsets: Bound = option(
        EARLIEST, "startingOffsets", _READS, shown="`earliest`; of a stream `latest`", combined=True,
        doc="start of a read or a new stream: `earliest`, `latest` (streams only), or JSON by topic or partition, such "
        'as `{"orders-partition-0": "12:5", "returns": "2026-01-31T12:00:00Z"}`. Each bound is the first publish time, '
        "`latest`, `earliest` (also of topics that are left out), or the position of the first message: ledger and "
        "entry, and `:` with the index in the batch if the entry has several messages",
    )
    ending_offsets: Bound = option(
        LATEST, "endingOffsets", _READS, shown="latest", combined=True,
        doc="`latest`, or JSON in the same form, with the first message not to read. Ends a stream with the trigger "
        "`availableNow`",
    )
    starting_time: int | None = option(
        None, "startingTime", _READS, read=values.time,
        doc="first publish time, in ISO 8601 (UTC without an offset) or milliseconds since 1970; overrides "
        "`startingOffsets`",
    )
    ending_time: int | None = option(
        None, "endingTime", _READS, read=values.time,
        doc="publish time after the last message; overrides `endingOffsets`. Ends a stream with the trigger "
        "`availableNow`",
    )
    min_partitions: int | None = option(
        None, "minPartitions", _READS, read=values.number(100_000),
        doc="approximate minimum number of tasks",
    )
    max_entries_per_partition: int = option(
        50_000, "maxEntriesPerPartition", _READS, read=values.number(),
        doc="maximum entries per task",
    )
    max_entries_per_trigger: int | None = option(
        None, "maxEntriesPerTrigger", _STREAM, shown="no limit", read=values.number(),
        doc="maximum entries per micro-batch, divided by the partitions' backlogs",
    )
    max_bytes_per_trigger: int | None = option(
        None, "maxBytesPerTrigger", _STREAM, shown="no limit", read=values.number(),
        doc="maximum bytes per micro-batch, estimated by mean entry size",
    )
    min_entries_per_trigger: int | None = option(
        None, "minEntriesPerTrigger", _STREAM, shown="1", read=values.number(),
        doc="entries that a micro-batch waits for; ignored with the trigger `availableNow`",
    )
    max_trigger_delay: float = option(
        900.0, "maxTriggerDelay", _STREAM, shown="15 min", read=values.duration(),
        doc="maximum wait for `minEntriesPerTrigger`",
    )
    offset_poll_interval: float = option(
        0.5, "offsetPollInterval", _STREAM, shown="500 ms", read=values.duration(60),
        doc="minimum time between requests for new messages, up to 60 s",
    )
    subscription: str | None = option(
        None, "subscription", _STREAM,
        doc="subscription that is moved after each committed micro-batch, so that the broker retains unread messages",
    )
    fail_on_data_loss: bool = option(
        True, "failOnDataLoss", _READS, read=values.flag,
        doc="fail if messages are lost; `false`: log a warning, count them and continue",
    )
    data_loss_folder: str | None = option(
        None, "dataLossFolder", _READS,
        doc="with `failOnDataLoss=false`: absolute path of a folder, shared by driver and workers, for a file per loss",
    )
    read_timeout: float = option(
        60.0, "readTimeout", _READS, shown="60 s", read=values.duration(),
        doc="time without a message after which an incomplete task fails",
    )
    outage_timeout: float = option(
        300.0, "outageTimeout", _ALL, shown="5 min", read=values.duration(),
        doc="maximum wait for an unreachable broker. `load()` does not wait; refused credentials and deleted topics "
        "fail at once",
    )
    batch_rows: int = option(
        4096, "batchRows", _READS, read=values.number(1_000_000),
        doc="maximum rows per Arrow batch",
    )
    batch_bytes: int = option(
        16 * MIB, "batchBytes", _READS, read=values.number(_INT),
        doc="bytes of messages that end an Arrow batch",
    )
    dedup: bool = option(
        False, "dedup", _WRITE, shown="off", read=values.one_of({"off": False, "columns": True}),
        doc="`columns`: the broker drops rows that are sent again, see [writing](#writing)",
    )
    transaction: bool = option(
        False, "transaction", _WRITE, read=values.flag,
        doc="all rows of a table or micro-batch in one [transaction](#transactions), and a repeated micro-batch is "
        "dropped",
    )
    # fmt: on

    def start_of(self, topic: str) -> Mark:
        return _mark(topic, self.starting_time, self.starting_offsets, EARLIEST)

    def end_of(self, topic: str) -> Mark:
        return _mark(topic, self.ending_time, self.ending_offsets, LATEST)

    def configuration(self, folders: Sequence[Folder] = ()) -> Configuration:
        return load(resolve_secrets(self.connection, folders))


def _mark(topic: str, time: int | None, bound: Bound, default: Literal["earliest", "latest"]) -> Mark:
    if time is not None:
        return time
    if isinstance(bound, str):
        return bound
    whole = bound.get(split_partition(topic)[0], default)
    return bound.get(topic, default if isinstance(whole, Place) else whole)


#: All options; those about the broker and the destination come first.
OPTIONS: Final = (
    OptionRow(
        "url", _ALL, "required",
        "the broker's URL, such as `pulsar://host:6650`; connection options can follow as in a URL: "
        "`?jms.systemNamespace=tenant/namespace`",
    ),
    OptionRow(
        "queue", _ALL, "",
        "name of the queue, short or full. For reading, also several separated by commas, or `regex:` with a pattern. "
        "A read requires `queue`, `topic` or `destination`; a write without them uses the column `destination`",
    ),
    OptionRow("topic", _ALL, "", "name of the topic, in the same forms"),
    OptionRow("destination", _ALL, "", "`queue://name` or `topic://name`"),
    OptionRow(
        "allowInlineSecret", _ALL, "false",
        "accept a secret in `authParams` itself, with a warning: it is sent with every task", values.flag,
    ),
    *(
        attrs.evolve(field.metadata[ROW], field=field.name)
        for field in attrs.fields(SourceOptions) if ROW in field.metadata
    ),
)  # fmt: skip
