"""Checks of options against each other; each refusal's sentence is compared in ``test_options``."""

from __future__ import annotations

import pytest

from jmsaio.errors import ConfigurationError, InvalidDestinationError
from jmsaio.model.destinations import Queue, Topic
from jmsaio.spark.options.checks import parse_destination
from jmsaio.spark.options.parse import parse_options
from jmsaio.spark.options.table import OPTIONS, Use

TEXTS = {"schema": "auto", "sharedCursor": "true", "moveCursor": "false", "subscription": "s"}


@pytest.mark.parametrize(
    ("option", "text", "destination"),
    [
        ("queue", "queue://a", Queue("queue://a")),
        ("topic", "a:b", Topic("a:b")),
        ("destination", "queue://multi:a,b", Queue("multi:a,b")),
        ("destination", "topic://a", Topic("a")),
    ],
)
def test_a_destination_is_a_queue_or_a_topic(option: str, text: str, destination: Queue | Topic) -> None:
    assert parse_destination({option: text}, Use.READ) == destination


def test_a_destination_says_whether_it_is_a_queue_or_a_topic() -> None:
    with pytest.raises(InvalidDestinationError, match="must be written queue://name or topic://name"):
        parse_destination({"destination": "a"}, Use.WRITE)


@pytest.mark.parametrize("row", [row for row in OPTIONS if row.admin], ids=lambda row: row.name)
def test_what_needs_the_rest_interface_is_refused_without_it(row: object) -> None:
    name, use = row.name, row.uses[0]  # type: ignore[attr-defined]  # an OptionRow; pytest's ids hide its type
    options = {"url": "pulsar://host", "queue": "a", "subscription": "s"} if use is Use.READ_STREAM else {}
    options |= {"url": "pulsar://host", "queue": "a", name: TEXTS.get(name, "1")}
    parse_options(options, use)
    with pytest.raises(ConfigurationError, match=r"needs the broker's REST interface, which jms.usePulsarAdmin=false"):
        parse_options({**options, "jms.usePulsarAdmin": "false"}, use)


def test_a_batch_and_a_stream_start_at_their_own_ends() -> None:
    least = {"url": "pulsar://host", "queue": "a"}
    assert parse_options(least, Use.READ).starting_offsets == "earliest"
    assert parse_options(least, Use.READ_STREAM).starting_offsets == "latest"
    assert parse_options(least, Use.READ_STREAM).ending_offsets == "latest"
