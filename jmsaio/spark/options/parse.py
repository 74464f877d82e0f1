"""The options of the data source ``jms``: parses and checks them, and holds them for every task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from jmsaio.config import load
from jmsaio.config.declaring import written_names
from jmsaio.config.options import nearest
from jmsaio.config.schemes import SCHEMES
from jmsaio.config.sources import split_url
from jmsaio.errors import ConfigurationError
from jmsaio.model.destinations import resolve
from jmsaio.selector import Selector
from jmsaio.spark.options.checks import Given, check_options, parse_bounds, parse_columns, parse_destination
from jmsaio.spark.options.secrets import MAPS, SECRETS, check_secret
from jmsaio.spark.options.table import FOREIGN, LATEST, OPTIONS, OnDecodeError, SourceOptions, View
from jmsaio.spark.options.values import OptionRow, Use, refuse

__all__ = ["LATEST", "OnDecodeError", "SourceOptions", "Use", "View", "parse_options"]

#: Name of the option ``url`` in ``load``.
_URL: Final = "brokerServiceUrl"
_WRITTEN: Final = {name.lower(): name for name in written_names() if name != _URL}
_ROWS: Final = {row.name.lower(): row for row in OPTIONS}
#: Options that Spark adds for a sink and uses itself.
_OF_SPARK: Final = frozenset({"checkpointlocation", "queryname"})
_TABLE: Final = (
    "Spark does not give a catalog's table its options; write CREATE TEMPORARY VIEW name USING jms OPTIONS (...)"
)
#: Options that Spark adds for an unsupported call, and the alternative.
_MEANINGLESS: Final[Mapping[str, str]] = {
    "path": "a destination has no path; name it by the option queue or topic, and call load() and save() without one",
    "paths": "a destination has no path; name it by the option queue or topic, and call load() without one",
    "owner": _TABLE,
    "provider": _TABLE,
    "brokerserviceurl": "the broker is given as url",
    "service_url": "the broker is given as url",
}


def parse_options(options: Mapping[str, str], use: Use) -> SourceOptions:
    """Parse options whose keys can have any case.

    Args:
        use: purpose of the options. Each option belongs to one use or to several.

    Raises:
        ConfigurationError: an option is unknown (the error suggests the nearest one), belongs to another use, has an
            invalid value, or contradicts another.
        InvalidSelectorError: the selector is invalid; ``column`` is the place of the error.
        InvalidDestinationError: the destination can't be read or written.
    """
    if use is Use.WRITE:
        options = {name: text for name, text in options.items() if name.lower() not in _OF_SPARK}
    texts, connection = _sort(options, use)
    given = _gather(texts, connection, use)
    check_options(given)
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
    """Split options into the source's own and the connection's, each by its written name."""
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
    why, lower = _MEANINGLESS.get(name.lower()), name.lower()
    for instead, foreign in FOREIGN.items():
        if any(lower.startswith(each) if each.endswith(".") else lower == each for each in foreign.lower().split()):
            why = why or f"write {instead.replace('`', '')}"
    if why is not None:
        return ConfigurationError(f"option {name}: {why}", key=name)
    known = [*(row.name for row in OPTIONS), *_WRITTEN.values()]
    return ConfigurationError(f"unknown option {name!r}{nearest(name, known)}", key=name)


def _gather(texts: Mapping[str, str], connection: Mapping[str, str], use: Use) -> Given:
    values: dict[OptionRow, object] = {}
    for name, text in texts.items():
        row = _ROWS[name.lower()]
        try:
            values[row] = row.read(text)
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
            inline = bool(values.get(_ROWS["allowinlinesecret"], False))
            check_secret(name, connection[name], connection.get("authPlugin"), allowed=inline)
    configuration = load(connection)
    destination = parse_destination(texts, use)
    resolved = None if destination is None else resolve(destination, configuration.system_namespace)
    consumer = configuration.consumer
    if resolved is not None and resolved.overrides:
        consumer = consumer.merge(resolved.overrides)
    fields: dict[str, Any] = {row.field: value for row, value in values.items() if row.field and not row.combined}
    options = SourceOptions(
        connection=connection,
        destination=destination,
        columns=(),
        receiver_queue=consumer.receiver_queue_size,
        **fields,
    )
    return Given(use, texts, options, configuration, resolved)


def written_name(name: str) -> str | None:
    """Return the spelling of an option's name in ``jmsaio.config``, given in any case; None for an unknown option."""
    for start in MAPS:
        if name.lower().startswith(start.lower()):
            return start + name[len(start) :]
    return _WRITTEN.get(name.lower())


def split_options(url: str) -> tuple[str, dict[str, str]]:
    """Split off the options that follow the broker's URL.

    Raises:
        ConfigurationError: the URL is invalid, or names an embedded broker, which the tasks can't reach.
    """
    broker, options = split_url(url)
    if SCHEMES[broker.scheme].in_process:
        reason = (
            "the embedded broker is out of reach for Spark's tasks, which run in other processes; start a broker with "
            "`jmsaio broker start` and give its URL"
        )
        raise refuse("url", broker.service_url, reason)
    base = url.strip().partition("?")[0].partition("#")[0]
    return base, {name: str(value) for name, value in options.items()}
