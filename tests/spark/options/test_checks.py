"""Checks of options against each other; each refusal's sentence is compared in ``test_options``."""

from __future__ import annotations

import pytest

from jmsaio.errors import ConfigurationError, InvalidDestinationError
from jmsaio.model.destinations import Queue, Topic, resolve
from jmsaio.spark.model.places import Place
from jmsaio.spark.options.checks import check_order, parse_bound, parse_destination
from jmsaio.spark.options.parse import parse_options
from jmsaio.spark.options.table import EARLIEST, LATEST, OPTIONS
from jmsaio.spark.options.values import Use

TEXTS = {
    "schema": "auto", "sharedCursor": "true", "moveCursor": "false", "subscription": "s", "view": "pending",
    "dedup": "columns",
}  # fmt: skip


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


NAMESPACE = "public/default"
ORDERS = "persistent://public/default/orders"


@pytest.mark.parametrize(("text", "bound"), [(" Earliest", EARLIEST), ("LATEST", LATEST), ("{}", {})])
def test_an_end_is_a_word_in_any_case(text: str, bound: object) -> None:
    assert parse_bound("startingOffsets", text, resolve(Queue("orders")), NAMESPACE) == bound


def test_a_topic_is_given_by_its_short_or_full_name_or_by_a_partition() -> None:
    text = f'{{"{ORDERS}-partition-0": "1:2", "orders-partition-1": "3:4:5", "orders": "6:7"}}'
    assert parse_bound("startingOffsets", text, resolve(Queue("orders")), NAMESPACE) == {
        f"{ORDERS}-partition-0": Place(1, 2),
        f"{ORDERS}-partition-1": Place(3, 4, 5),
        ORDERS: Place(6, 7),
    }


def test_a_destination_that_is_a_partition_is_one_of_its_own() -> None:
    bound = parse_bound("x", '{"orders-partition-1": "1:2"}', resolve(Queue("orders-partition-1")), NAMESPACE)
    assert bound == {f"{ORDERS}-partition-1": Place(1, 2)}


def test_of_a_pattern_any_topic_may_be_named() -> None:
    bound = parse_bound("x", '{"other": "1:2"}', resolve(Queue("regex:o.*")), NAMESPACE)
    assert bound == {"persistent://public/default/other": Place(1, 2)}


def test_an_end_at_its_start_is_an_empty_range() -> None:
    check_order({ORDERS: Place(1, 2)}, {ORDERS: Place(1, 2)}, "x")
    check_order({ORDERS: Place(9, 9)}, {"another": Place(1, 2)}, "x")
    check_order(EARLIEST, {ORDERS: Place(1, 2)}, "x")
    with pytest.raises(ConfigurationError, match="would end at 1:2, before its start at 1:2:1"):
        check_order({ORDERS: Place(1, 2, 1)}, {ORDERS: Place(1, 2)}, "x")


def test_json_that_is_too_deep_is_refused_as_any_other() -> None:
    with pytest.raises(ConfigurationError, match="must be earliest, latest, or JSON"):
        parse_bound("x", "[" * 100_000, resolve(Queue("orders")), NAMESPACE)
