"""The report on dead letters as a table, in Markdown, and as bars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jmsaio.cli.spark.letter_report import draw, lines_of, markdown_of, samples_of, table_of
from tests.cli.spark.jobs import GROUP

UNKNOWN = {
    **GROUP, "origin": None, "subscription": None, "type": None, "properties": {"region": None}, "first": None,
    "last": None, "oldest_age": None, "newest_age": None, "samples": [],
}  # fmt: skip


def summary(*groups: dict[str, Any]) -> dict[str, Any]:
    return {"groups": list(groups)}


def test_each_group_is_a_line_and_what_is_unknown_is_empty() -> None:
    head, line, unknown = lines_of(summary(GROUP, UNKNOWN))
    assert dict(zip(head, line, strict=True)) == {
        "origin": "orders", "subscription": "jms-queue", "JMSType": "tea", "region": "E|U",
        "letters": "3", "redriven": "1", "bytes": "90", "oldest": "2 days",
        "newest": "60 seconds",
    }  # fmt: skip
    assert unknown == ["unknown", "", "", "", "3", "1", "90", "", ""]
    assert len(lines_of(summary())) == 1


def test_nothing_of_a_message_is_taken_for_markdown() -> None:
    evil = {**GROUP, "type": "<script>|[a](b)`c`", "samples": []}
    text = markdown_of(summary(evil))
    assert "\\<script\\>\\|\\[a\\](b)\\`c\\`" in text
    assert text.splitlines()[1] == "|" + " --- |" * 9


def test_the_table_keeps_names_whole_on_a_narrow_terminal() -> None:
    head, line, last = table_of(summary(GROUP), 40).plain.splitlines()
    assert (head.split()[0], line.split()[0]) == ("origin", "orders")
    assert last.startswith("no room for: ")
    assert len(table_of(summary(GROUP), None).plain.splitlines()) == 2


def test_samples_stand_below_the_table_of_markdown() -> None:
    assert markdown_of(summary(GROUP)).splitlines()[3:] == [
        "", "- orders jms-queue tea E\\|U: ID:1:2:-1 at 1:2 of dead: a \\\\x1bb",
    ]  # fmt: skip


def test_a_sample_without_a_body_is_a_place() -> None:
    sample = {name: text for name, text in GROUP["samples"][0].items() if name != "body"}
    (line,) = samples_of(summary({**GROUP, "samples": [sample]}))
    assert line.endswith(": ID:1:2:-1 at 1:2 of dead")


def test_bars_show_the_largest_groups_apart_and_no_label_is_a_formula(tmp_path: Path) -> None:
    many = [{**UNKNOWN, "type": "$a_1$"}, *[UNKNOWN] * 30]
    draw(summary(GROUP, *many), tmp_path / "bars.svg")
    text = (tmp_path / "bars.svg").read_text()
    assert (text.count("<!-- unknown -->"), text.count("<!-- orders jms-queue tea E|U -->")) == (36, 2)
    assert "$a_1$" in text
    assert text.index("<!-- dead letters -->") < text.index("<!-- age of the oldest (hours) -->")
