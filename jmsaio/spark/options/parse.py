"""The options of the data source ``jms``: parses and checks them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final, Literal

import attrs

from jmsaio.config import Configuration, load
from jmsaio.config.declaring import written_names
from jmsaio.config.options import nearest
from jmsaio.config.schemes import SCHEMES, split_url
from jmsaio.errors import ConfigurationError, InvalidDestinationError
from jmsaio.model.arguments import shown
from jmsaio.model.destinations import KINDS, Queue, Resolved, Topic, join_names, parse_destination_text, resolve
from jmsaio.model.topic_names import split_partition
from jmsaio.selector import Selector
from jmsaio.spark.model.place import Place, parse_place
from jmsaio.spark.model.schema import COLUMNS, Body, Column, columns_of, find_column
from jmsaio.spark.options.secrets import MAPS, SECRETS, check_secret
from jmsaio.spark.options.table import (
    EARLIEST,
    LATEST,
    OPTIONS,
    SCHEMAS,
    Bound,
    Mark,
    SourceOptions,
    View,
)
from jmsaio.spark.options.values import OptionRow, Use, refuse, time

__all__ = ["LATEST", "SourceOptions", "Use", "View", "parse_options"]

#: Name of the option ``url`` in ``load``.
_URL: Final = "brokerServiceUrl"
#: Option of the connection that ``transaction`` implies.
_TRANSACTIONS: Final = "enableTransaction"
_WRITTEN: Final = {name.lower(): name for name in written_names() if name != _URL}
_ROWS: Final = {row.name.lower(): row for row in OPTIONS}
#: Options that Spark adds for a sink and uses itself.
_OF_SPARK: Final = frozenset({"checkpointlocation", "queryname"})
_TABLE: Final = (
    "Spark does not give a catalog's table its options; write CREATE TEMPORARY VIEW name USING jms OPTIONS (...)"
)
#: Options that Spark adds for an unsupported call, or that ended, and the alternative.
_MEANINGLESS: Final[Mapping[str, str]] = {
    "path": "a destination has no path; name it by the option queue or topic, and call load() and save() without one",
    "paths": "a destination has no path; name it by the option queue or topic, and call load() without one",
    "owner": _TABLE,
    "provider": _TABLE,
    "brokerserviceurl": "the broker is given as url",
    "service_url": "the broker is given as url",
    "propertyschema": "leave it out, and cast a property where it is used, as in INT(properties['qty'])",
    "sharedcursor": "leave it out, and give the stream a subscription of its own: it moves none that has consumers",
    "movecursor": "leave it out: a stream always moves its subscription, and without subscription it has none",
    "ondecodeerror": "leave it out: such a part is NULL, and decode_error has the reason. To fail the query, add "
    'where("decode_error IS NULL OR raise_error(decode_error)")',
}
_FORM: Final = (
    'must be earliest, latest, or JSON such as {"orders-partition-0": "12:5"} or {"orders": "2026-01-31T12:00:00Z"}'
)
_WORDS: Final[Mapping[str, Literal["earliest", "latest"]]] = {EARLIEST: EARLIEST, LATEST: LATEST}
_NO_ADMIN: Final = "needs the broker's REST interface, which jms.usePulsarAdmin=false rules out"


@attrs.frozen
class Given:
    """The options of one call."""

    use: Use
    texts: Mapping[str, str]  # of the source's own options, by their written names
    options: SourceOptions  # without columns and bounds
    configuration: Configuration
    resolved: Resolved | None  # None if each row names its own destination

    def refuse(self, name: str, why: str) -> ConfigurationError:
        return refuse(name, self.texts[name], why)


def parse_options(options: Mapping[str, str], use: Use) -> SourceOptions:
    """Parse the options for one use; their keys can have any case. InvalidSelectorError has the place of the error."""
    if use is Use.WRITE:
        options = {name: text for name, text in options.items() if name.lower() not in _OF_SPARK}
    texts, connection = _sort(options, use)
    given = _gather(texts, connection, use)
    _check(given)
    if use is Use.WRITE:
        return given.options
    selector = texts.get("selector")
    if selector:
        Selector(selector)  # raises an error with the place
    starting, ending = parse_bounds(given)
    return attrs.evolve(
        given.options, selector=selector or None, columns=parse_columns(given), starting_offsets=starting,
        ending_offsets=ending,
    )  # fmt: skip


def _sort(options: Mapping[str, str], use: Use) -> tuple[dict[str, str], dict[str, str]]:
    own: dict[str, str] = {}
    connection: dict[str, str] = {}
    for name, text in options.items():
        row = _ROWS.get(name.lower())
        written = row.name if row is not None else written_name(name)
        if row is not None and use not in row.uses:
            belongs = " and ".join(each.value for each in row.uses)
            raise refuse(row.name, text, f"belongs to {belongs}, not to {use.value}")
        if written is None:
            raise _unknown(name)
        target = connection if row is None else own
        if written in target:
            raise ConfigurationError(f"option {written} is given twice", key=written)
        target[written] = text
    return own, connection


def _unknown(name: str) -> ConfigurationError:
    if (why := _MEANINGLESS.get(name.lower())) is not None:
        return ConfigurationError(f"option {name}: {why}", key=name)
    known = [*(row.name for row in OPTIONS), *_WRITTEN.values()]
    others = "(for options of other sources, see 'jmsaio guide spark-kafka')"
    return ConfigurationError(f"unknown option {shown(name)}{nearest(name, known)} {others}", key=name)


def _gather(texts: Mapping[str, str], connection: Mapping[str, str], use: Use) -> Given:
    read: dict[OptionRow, object] = {}
    for name, text in texts.items():
        row = _ROWS[name.lower()]
        try:
            read[row] = row.read(text)
        except ValueError as error:
            raise refuse(row.name, text, str(error)) from None
    if "url" not in texts:
        raise ConfigurationError("option url is missing: set the broker, such as pulsar://host:6650", key="url")
    url, below = split_options(texts["url"])
    misplaced, known = _sort(below, use)
    for name in misplaced:
        raise ConfigurationError(f"option {name} stands in the url; give it beside the url", key=name)
    connection = {_URL: url, **known, **connection}
    for name in SECRETS:
        if name in connection:
            inline = bool(read.get(_ROWS["allowinlinesecret"], False))
            check_secret(name, connection[name], connection.get("authPlugin"), allowed=inline)
    if read.get(_ROWS["transaction"]):
        connection.setdefault(_TRANSACTIONS, "true")
    configuration = load(connection)
    destination = parse_destination(texts, use)
    resolved = None if destination is None else resolve(destination, configuration.system_namespace)
    consumer = configuration.consumer
    if resolved is not None and resolved.overrides:
        consumer = consumer.merge(resolved.overrides)
    fields: dict[str, Any] = {row.field: value for row, value in read.items() if row.field and not row.combined}
    options = SourceOptions(
        connection=connection,
        destination=destination,
        columns=(),
        receiver_queue=consumer.receiver_queue_size,
        **fields,
    )
    return Given(use, texts, options, configuration, resolved)


def written_name(name: str) -> str | None:
    for start in MAPS:
        if name.lower().startswith(start.lower()):
            return start + name[len(start) :]
    return _WRITTEN.get(name.lower())


def split_options(url: str) -> tuple[str, dict[str, str]]:
    """Split off the options that follow the broker's URL; refuse an embedded broker."""
    broker, options = split_url(url)
    if SCHEMES[broker.scheme].in_process:
        reason = (
            "the embedded broker is out of reach for Spark's tasks, which run in other processes; start a broker with "
            "`jmsaio broker start` and give its URL"
        )
        raise refuse("url", broker.service_url, reason)
    base = url.strip().partition("?")[0].partition("#")[0]
    return base, {name: str(value) for name, value in options.items()}


def parse_destination(texts: Mapping[str, str], use: Use) -> Queue | Topic | None:
    named = [name for name in (*KINDS, "destination") if name in texts]
    if len(named) > 1:
        raise refuse(named[1], texts[named[1]], f"is given together with {named[0]}; give one of them")
    if not named:
        if use is Use.WRITE:
            return None
        raise ConfigurationError("one of the options queue, topic and destination is needed to read", key="queue")
    (name,) = named
    text = texts[name] if use is Use.WRITE else join_names(texts[name])
    return KINDS[name](text) if name in KINDS else parse_destination_text(text)


def parse_columns(given: Given) -> tuple[Column, ...]:
    body = given.options.body
    if "columns" not in given.texts:
        return columns_of(body)
    columns: list[Column] = []
    for name in given.texts["columns"].split(","):
        column = find_column(name.strip())
        if column is None:
            known = nearest(name.strip(), [each.name for each in COLUMNS])
            raise given.refuse("columns", f"there is no column {shown(name.strip())}{known}")
        if column in columns:
            raise given.refuse("columns", f"names {column.name} twice")
        if body is column.left_out:
            fitting = " or ".join(f"body={each.value}" for each in Body if each is not body)
            raise given.refuse("columns", f"body={body.value} leaves out {column.name}; set {fitting}")
        columns.append(column)
    return tuple(columns)


def parse_bounds(given: Given) -> tuple[Bound, Bound]:
    is_batch = given.use is Use.READ

    def bound(name: str, default: Bound) -> Bound:
        if name not in given.texts:
            return default
        assert given.resolved is not None  # set for every reader
        return parse_bound(name, given.texts[name], given.resolved, given.configuration.system_namespace)

    starting, ending = bound("startingOffsets", EARLIEST if is_batch else LATEST), bound("endingOffsets", LATEST)
    if is_batch and starting == LATEST:
        raise given.refuse("startingOffsets", "a batch that starts at the end has no rows; latest is for streams")
    if EARLIEST in ([ending] if isinstance(ending, str) else ending.values()):
        raise given.refuse("endingOffsets", "nothing lies before the earliest message")
    if "endingOffsets" in given.texts:
        check_order(starting, ending, given.texts["endingOffsets"])
    return starting, ending


def parse_bound(name: str, text: str, source: Resolved, namespace: str) -> Bound:
    """Parse the bound of the option ``name`` for the topics of ``source``; short names are in ``namespace``."""
    if (word := _WORDS.get(text.strip().lower())) is not None:
        return word
    bound: dict[str, Mark] = {}
    try:  # members with duplicate names are kept
        members = json.loads(text, object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, tuple) or not all(isinstance(position, str) for _, position in members):
        raise refuse(name, text, _FORM)
    for given, mark in members:
        topic = _full_name(name, text, given, namespace)
        if topic in bound:
            raise refuse(name, text, f"gives two positions for topic {topic}")
        if source.pattern is None and split_partition(topic)[0] not in source.topics and topic not in source.topics:
            raise refuse(name, text, f"topic {topic} is not among those that are read: {', '.join(source.topics)}")
        bound[topic] = _mark(name, text, given, mark)
    return bound


def _mark(name: str, text: str, topic: str, mark: str) -> Mark:
    """Parse the bound of one topic. Numbers are refused: a time in ms and an offset of Kafka look alike."""
    if (word := _WORDS.get(mark.strip().lower())) is not None:
        return word
    if "-" not in mark:
        return parse_place(mark, f"option {name}, topic {topic}")
    try:
        return time(mark)
    except ValueError as error:
        raise refuse(name, text, f"topic {topic}: {mark!r:.100} {error}") from None


def check_order(starting: Bound, ending: Bound, text: str) -> None:
    if isinstance(starting, str) or isinstance(ending, str):
        return
    for topic, end in ending.items():
        start = starting.get(topic)
        if isinstance(start, Place) and isinstance(end, Place) and end < start:
            raise refuse("endingOffsets", text, f"topic {topic} would end at {end}, before its start at {start}")


def _full_name(name: str, text: str, given: str, namespace: str) -> str:
    try:
        resolved = resolve(Topic(given), namespace)
    except InvalidDestinationError:
        raise refuse(name, text, f"{shown(given)} is not the name of a topic") from None
    if resolved.virtual or len(resolved.topics) != 1:
        raise refuse(name, text, f"{shown(given)} is not the name of one topic")
    return resolved.topics[0]


def _check(given: Given) -> None:
    if given.use is not Use.WRITE and not given.configuration.use_pulsar_admin:
        raise ConfigurationError(f"a read {_NO_ADMIN}: leave that out, and set webServiceUrl", key="jms.usePulsarAdmin")
    resolved = given.resolved
    if resolved is not None:
        for topic in resolved.topics if resolved.pattern is None else (resolved.pattern,):
            if topic.startswith("non-persistent://"):
                raise InvalidDestinationError(
                    f"{topic} is not persistent: the broker keeps nothing of it that Spark can read"
                )
        if given.use is Use.WRITE and resolved.virtual:
            name = given.options.destination
            raise InvalidDestinationError(f"{shown(name)} stands for several topics; write to one of them instead")
    for option, reason in _contradictions(given):
        raise given.refuse(option, reason)


def _contradictions(given: Given) -> Iterator[tuple[str, str]]:
    """Yield each option that lacks what it needs, unless it has its default, or contradicts others, and the reason."""
    options = given.options
    if options.view is View.PENDING and not isinstance(options.destination, Queue):
        yield "view", "only a queue has pending messages; name it by the option queue"
    start, end = options.starting_time, options.ending_time
    if start is not None and end is not None and end < start:
        yield "endingTime", f"is before startingTime = {shown(given.texts['startingTime'])}"
    least, most = options.min_entries_per_trigger, options.max_entries_per_trigger
    if least is not None and most is not None and least > most:
        yield "minEntriesPerTrigger", f"is above maxEntriesPerTrigger = {most}"
    if least is None and options.max_trigger_delay != attrs.fields(SourceOptions).max_trigger_delay.default:
        yield "maxTriggerDelay", "has no effect without minEntriesPerTrigger"
    folder = options.data_loss_folder
    if folder is not None and options.fail_on_data_loss:
        yield "dataLossFolder", "has no effect without failOnDataLoss=false"
    if folder is not None and "://" not in folder and not PurePath(folder).is_absolute():
        yield "dataLossFolder", "must be an absolute path: tasks have other working directories"
    if options.transaction and options.dedup:
        yield "transaction", "is given together with dedup, whose rows their tasks send; give one of them"
    if options.transaction and not given.configuration.enable_transaction:
        yield "transaction", "needs enableTransaction, which is false"
    schema, words = options.schema, SCHEMAS[given.use]
    if not given.configuration.use_pulsar_admin:
        if options.dedup:
            yield "dedup", _NO_ADMIN
        if schema not in (None, *words):
            yield "schema", _NO_ADMIN
    if isinstance(schema, str) and schema not in (*words, LATEST):
        yield "schema", f"must be {', '.join(words)}, {LATEST} or the number of a version"
    if schema not in (None, *words) and given.resolved is None:
        yield "schema", f"is that of one topic: set queue or topic, or write {' or '.join(words)}"
