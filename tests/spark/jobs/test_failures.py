"""Errors of our own that come back through Spark."""

from __future__ import annotations

import pytest

from jmsaio.errors import DataLossError, InvalidSelectorError, JMSError
from jmsaio.spark.jobs.failures import find_cause, own_errors, reason_of

TRACEBACK = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "x.py", line 13, in f
    raise DataLossError("topic x: gone")
jmsaio.errors.DataLossError: topic x: gone

The above exception was the direct cause of the following exception:
"""


def test_the_error_that_is_quoted_is_found_with_its_class() -> None:
    found = find_cause(TRACEBACK)
    assert type(found) is DataLossError
    assert str(found) == "topic x: gone"


def test_of_several_the_last_counts() -> None:
    text = f"{TRACEBACK}\njmsaio.InvalidSelectorError: no selector\n"
    assert type(find_cause(text)) is InvalidSelectorError


@pytest.mark.parametrize(
    "text", ["", "ValueError: x", "jmsaio.errors.NoSuchError: x", "jmsaio.errors.annotations: x", "jmsaio.Queue: x"]
)
def test_what_is_not_ours_is_no_cause(text: str) -> None:
    assert find_cause(text) is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\n  no such table\n\tat java", "no such table"),
        ("An error occurred\nCaused by: a: b\n\tat x\nCaused by: c: no Parquet\n\tat y", "c: no Parquet"),
        ("", "RuntimeError"),
    ],
)
def test_an_error_of_spark_comes_down_to_one_line(text: str, line: str) -> None:
    assert reason_of(RuntimeError(text)) == line


def test_inside_the_block_our_error_takes_the_place_of_sparks() -> None:
    of_spark = RuntimeError(TRACEBACK)
    with pytest.raises(DataLossError, match="gone") as raised, own_errors():
        raise of_spark
    assert raised.value.__cause__ is of_spark


@pytest.mark.parametrize("error", [RuntimeError("out of memory"), JMSError("ours, raised here")])
def test_other_errors_pass_as_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, own_errors():
        raise error
    assert raised.value is error
