"""Bars are drawn into a file."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from jmsaio.cli.spark.drawing import Bar, Panel, draw, require_matplotlib


def test_bars_of_the_same_name_stay_apart_and_no_label_is_a_formula(tmp_path: Path) -> None:
    bars = [Bar(label="$a_1$", value=3), Bar(label="same", value=1, strong=False), Bar(label="same", value=2)]
    draw([Panel("letters", bars), Panel("age", [Bar(label="x", value=2)])], tmp_path / "bars.svg")
    text = (tmp_path / "bars.svg").read_text()
    assert text.count("<!-- same -->") == 2
    assert "$a_1$" in text


def test_without_panels_there_is_nothing_to_draw(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        draw([], tmp_path / "bars.svg")


def test_a_missing_library_is_told_with_what_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="the picture needs matplotlib: pip install"):
        require_matplotlib("the picture")
