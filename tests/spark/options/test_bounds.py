"""Bounds that a user gives; the refusals of the options as a whole stand with these."""

from __future__ import annotations

import pytest

from jmsaio.errors import ConfigurationError
from jmsaio.model.destinations import Queue, resolve
from jmsaio.spark.model.places import Place
from jmsaio.spark.options.bounds import EARLIEST, LATEST, check_order, parse_bound

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
