"""``jmsaio demo``."""

import json

import pytest

from jmsaio.cli import main
from jmsaio.demo import CHAPTERS


def test_people_see_each_chapter_without_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--pace", "0"]) == 0
    shown = capsys.readouterr().out
    for number, chapter in enumerate(CHAPTERS, 1):
        assert f"{number}  {chapter.title}" in shown
    assert "> dead letter: '12 pounds to no one'" in shown
    assert "async with session.create_browser(parcels)" in shown
    assert "jmsaio broker start" in shown
    assert "\x1b" not in shown


def test_as_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["chapter"] for record in records if "number" in record] == [chapter.title for chapter in CHAPTERS]
    assert all(any("happened" in record and record["chapter"] == c.title for record in records) for c in CHAPTERS)
