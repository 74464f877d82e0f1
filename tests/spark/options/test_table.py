"""The table of options, and the guide's table that is made from it."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from jmsaio.config.declaring import written_names
from jmsaio.spark.model.place import Place
from jmsaio.spark.options.parse import SourceOptions
from jmsaio.spark.options.table import OPTIONS
from jmsaio.spark.options.values import OptionRow

#: Names of the options of a connection; its URL is given as ``url``.
CONNECTION = [name for name in written_names() if name != "brokerServiceUrl"]


def test_the_names_are_told_apart_in_any_case() -> None:
    names = [row.name for row in OPTIONS] + CONNECTION
    assert len({name.lower() for name in names}) == len(names)


def test_each_default_that_is_a_text_is_that_of_the_field() -> None:
    fields = {field.name: field.default for field in attrs.fields(SourceOptions)}

    def written(row: OptionRow) -> object:
        return row.read(row.default)

    no_text = {"", "no limit"}
    compared = [row for row in OPTIONS if row.field and not row.combined and row.default not in no_text]
    assert [(row.name, written(row)) for row in compared if row.name != "minEntriesPerTrigger"] == [
        (row.name, fields[row.field]) for row in compared if row.name != "minEntriesPerTrigger"
    ]
    assert len(compared) > 10


@pytest.mark.parametrize(
    ("bound", "of", "default"),
    [("starting", SourceOptions.start_of, "earliest"), ("ending", SourceOptions.end_of, "latest")],
)
def test_a_topic_has_the_bound_of_the_time_then_its_own_then_that_of_all_its_partitions(
    bound: str, of: Any, default: str
) -> None:
    def marks(**fields: Any) -> list[object]:
        options = SourceOptions(connection={}, destination=None, columns=(), **fields)
        return [of(options, topic) for topic in ("a", "b-partition-0", "b-partition-1", "c-partition-0", "d")]

    given = {"a": Place(1, 2), "b": 5, "b-partition-1": Place(3, 4), "c": Place(5, 6)}
    assert marks(**{f"{bound}_offsets": given}) == [Place(1, 2), 5, Place(3, 4), default, default]
    assert marks(**{f"{bound}_offsets": given, f"{bound}_time": 7}) == [7] * 5
    assert marks(**{f"{bound}_offsets": "latest"}) == ["latest"] * 5


def test_each_field_of_the_options_comes_from_a_row_or_from_several() -> None:
    of_several = {"connection", "destination", "receiver_queue", "value_schema"}
    fields = {field.name for field in attrs.fields(SourceOptions)}
    assert {row.field for row in OPTIONS if row.field} == fields - of_several
    combined = {"selector", "columns", "starting_offsets", "ending_offsets"}
    assert {row.field for row in OPTIONS if row.combined} == combined
