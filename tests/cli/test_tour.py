"""``jmsaio demo``."""

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
