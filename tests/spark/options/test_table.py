"""The table of options, and the guide's table that is made from it."""

from __future__ import annotations

import attrs

from jmsaio.spark.options.connection import connection_names
from jmsaio.spark.options.parse import SourceOptions
from jmsaio.spark.options.table import OPTIONS, OptionRow, Use, table


def lines() -> dict[str, list[str]]:
    """The cells of each line of the guide's table, by the first."""
    rows = [line.strip("| ").split(" | ") for line in table().splitlines()[2:]]
    return {row[0]: row for row in rows}


def test_every_option_has_its_line_in_the_guide() -> None:
    found = lines()
    for row in OPTIONS:
        name, use, default, doc = found[f"`{row.name}`" + ("*" if row.admin else "")]
        assert name
        assert use == ("all" if len(row.uses) == len(Use) else ", ".join(each.value for each in row.uses))
        assert default.replace("`", "") == row.default.replace("`", "")
        assert doc == row.doc
    assert len(found) == len(OPTIONS) + 2


def test_no_line_breaks_the_table() -> None:
    assert {line.count(" | ") for line in table().splitlines()[2:]} == {3}


def test_the_names_are_told_apart_in_any_case() -> None:
    names = [row.name for row in OPTIONS] + connection_names()
    assert len({name.lower() for name in names}) == len(names)


def test_each_default_that_is_a_text_is_that_of_the_field() -> None:
    fields = {field.name: field.default for field in attrs.fields(SourceOptions)}

    def written(row: OptionRow) -> object:
        return row.read(row.default)

    no_text = {"", "no limit"}
    compared = [row for row in OPTIONS if row.field and row.default not in no_text]
    assert [(row.name, written(row)) for row in compared if row.name != "minEntriesPerTrigger"] == [
        (row.name, fields[row.field]) for row in compared if row.name != "minEntriesPerTrigger"
    ]
    assert len(compared) > 10


def test_each_field_of_the_options_comes_from_a_row_or_from_several() -> None:
    of_several = {"connection", "destination", "selector", "columns", "starting_offsets", "ending_offsets"}
    fields = {field.name for field in attrs.fields(SourceOptions)}
    assert {row.field for row in OPTIONS if row.field} == fields - of_several - {"receiver_queue"}
