"""Start and end of a read: the options ``startingOffsets`` and ``endingOffsets``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, Literal

from jmsaio.errors import InvalidDestinationError
from jmsaio.model.destinations import Resolved, Topic, resolve
from jmsaio.model.partitions import split_partition
from jmsaio.spark.model.places import Place, parse_place
from jmsaio.spark.options.values import refuse

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
#: One end of every partition, or a place in each named partition, by the full name of its topic.
Bound = Literal["earliest", "latest"] | Mapping[str, Place]

_FORM: Final = 'must be earliest, latest, or JSON such as {"orders-partition-0": "12:5"}'


def parse_bound(name: str, text: str, source: Resolved, namespace: str) -> Bound:
    """Parse the bound of the option ``name``.

    Args:
        name: the option.
        text: ``earliest``, ``latest``, or JSON of topics, by short or full names, with ``ledger:entry[:batch]``.
        source: the topics to read.
        namespace: tenant/namespace for short names.

    Raises:
        ConfigurationError: the text has another form, or names a topic twice or one that is not read.
    """
    word = text.strip().lower()
    if word == EARLIEST:
        return EARLIEST
    if word == LATEST:
        return LATEST
    bound: dict[str, Place] = {}
    for given, position in _pairs(name, text):
        topic = _full_name(name, text, given, namespace)
        if topic in bound:
            raise refuse(name, text, f"gives two positions for topic {topic}")
        if source.pattern is None and split_partition(topic)[0] not in source.topics and topic not in source.topics:
            raise refuse(name, text, f"topic {topic} is not among those that are read: {', '.join(source.topics)}")
        bound[topic] = parse_place(position, f"option {name}, topic {given}")
    return bound


def check_order(starting: Bound, ending: Bound, text: str) -> None:
    """Raise ConfigurationError if a topic ends before it starts.

    Args:
        starting: start of the read.
        ending: end of the read.
        text: the end as the user wrote it.
    """
    if isinstance(starting, str) or isinstance(ending, str):
        return
    for topic, end in ending.items():
        start = starting.get(topic)
        if start is not None and end < start:
            raise refuse("endingOffsets", text, f"topic {topic} would end at {end}, before its start at {start}")


def _pairs(name: str, text: str) -> list[tuple[str, str]]:
    try:
        found = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        raise refuse(name, text, _FORM) from None
    if not isinstance(found, _Pairs) or not all(isinstance(position, str) for _, position in found):
        raise refuse(name, text, _FORM)
    return list(found)


class _Pairs(list[tuple[str, str]]):
    """The members of a JSON object, including those with duplicate names."""


def _full_name(name: str, text: str, given: str, namespace: str) -> str:
    try:
        resolved = resolve(Topic(given), namespace)
    except InvalidDestinationError:
        raise refuse(name, text, f"{given!r} is not the name of a topic") from None
    if resolved.virtual or len(resolved.topics) != 1:
        raise refuse(name, text, f"{given!r} is not the name of one topic")
    return resolved.topics[0]
