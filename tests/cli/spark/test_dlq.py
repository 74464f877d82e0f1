"""``jmsaio spark dlq``: arguments, output and exit codes; the report as a table and as bars."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from jmsaio.cli.app import main
from jmsaio.cli.common.output import OK, USAGE
from jmsaio.cli.spark.dlq import draw, lines_of, samples_of, table_of
from tests.cli.spark.jobs import GROUP, URL, Jobs, last

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


def test_the_table_keeps_names_whole_on_a_narrow_terminal() -> None:
    head, line, last = table_of(summary(GROUP), 40).plain.splitlines()
    assert (head.split()[0], line.split()[0]) == ("origin", "orders")
    assert last.startswith("no room for: ")
    assert len(table_of(summary(GROUP), None).plain.splitlines()) == 2


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


REPORT = ["spark", "dlq", "report", "orders", *URL]


def test_the_group_of_dead_letters_shows_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark", "dlq"]) == OK
    output = capsys.readouterr().out
    assert "report" in output


def test_a_report_is_asked_for_with_what_was_given(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--of", "jms-queue", "-p", "region", "-p", "shop", "-s", "a = 1", "--pending", "--bodies", "--json"]
    assert main([*REPORT, *arguments, "--groups", "7"]) == OK
    assert last(capsys)["letters"] == 3
    order = jobs.orders[0]
    assert (order["destination"], order["of"], order["properties"]) == (
        "queue://orders", "jms-queue", ("region", "shop"),
    )  # fmt: skip
    assert (order["selector"], order["pending"], order["bodies"], order["groups"]) == ("a = 1", True, True, 7)


def test_the_help_of_a_report_names_the_subscription_of_redrives(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*REPORT[:3], "--help"]) == OK
    assert "jmsaio-spark-redrive" in "".join(capsys.readouterr().out.split())


def test_a_report_in_text_is_a_table_with_samples(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert main([*REPORT, "--no-json"]) == OK
    head, line, sample, total = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["origin", "subscription", "JMSType", "region"]
    assert line.split()[:3] == ["orders", "jms-queue", "tea"]
    assert "E|U" in line
    assert sample.endswith("ID:1:2:-1 at 1:2 of dead: a \\x1bb")
    assert total == "3 dead letters, 90 bytes, 1 of them redriven before"


def test_without_dead_letters_a_report_says_so(jobs: Jobs, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    jobs.groups = []
    assert main([*REPORT, "--no-json", "--picture", str(tmp_path / "x.svg")]) == OK
    assert capsys.readouterr().out.startswith("0 dead letters")
    assert not (tmp_path / "x.svg").exists()


def test_a_picture_is_drawn(jobs: Jobs, tmp_path: Path) -> None:
    assert main([*REPORT, "--picture", str(tmp_path / "letters.svg")]) == OK
    assert "age of the oldest (hours)" in (tmp_path / "letters.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*REPORT, "--picture", "x.txt"], "ends with .svg, .png or .pdf"),
    ],
)
def test_wrong_usage_is_refused_before_a_session(
    jobs: Jobs, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == USAGE
    assert words in capsys.readouterr().err
    assert jobs.asked == []


def test_a_picture_without_its_library_is_refused_before_a_session(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main([*REPORT, "--picture", "x.svg"]) == USAGE
    assert "pip install 'jmsaio[plot]'" in capsys.readouterr().err
    assert jobs.asked == []
