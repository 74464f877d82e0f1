"""Selectors on rows that were archived. ``test_replay`` selects in Spark."""

from __future__ import annotations

import pyspark  # noqa: F401 - the module under test needs it
import pytest

from jmsaio.model.values import Long
from jmsaio.spark.jobs.selecting import _matcher, values_of


def test_properties_have_the_values_of_their_type_words() -> None:
    values = values_of(
        {"n": "5", "l": "5", "t": "true", "s": "5", "none": None}, {"n": "int", "l": "long", "t": "boolean"}
    )
    assert values == {"n": 5, "l": Long(5), "t": True, "s": "5"}
    assert type(values["l"]) is Long
    assert values_of(None, None) == {}


@pytest.mark.parametrize(
    ("selector", "is_selected"),
    [
        ("n > 3", True),
        ("n > 5", False),
        ("s > 3", False),
        ("JMSPriority = 7 AND JMSType = 'x'", True),
        ("JMSDeliveryMode = 'PERSISTENT'", True),
        ("JMSTimestamp BETWEEN 1000 AND 2000", True),
        ("JMSCorrelationID IS NULL", True),
        ("missing = 1", False),
    ],
)
def test_headers_and_properties_are_seen_as_in_jms(selector: str, is_selected: bool) -> None:
    matches = _matcher(selector)
    assert matches(1500, {"n": "5", "s": "5"}, {"n": "int"}, "ID:1", None, "x", "PERSISTENT", 7) is is_selected
