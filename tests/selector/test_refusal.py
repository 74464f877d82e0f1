"""The error and its excerpt."""

from __future__ import annotations

from jmsaio.selector.refusal import refusal


def test_the_place_is_marked() -> None:
    error = refusal("no", "a = ;", 4)
    assert (error.text, error.column) == ("a = ;", 5)
    assert error.reason == "selector, column 5: no\n  a = ;\n      ^"


def test_long_texts_are_cut_and_stay_on_one_line() -> None:
    text = "a\n" * 100
    reason = refusal("no", text, 100).reason
    line, pointer = reason.splitlines()[1:]
    assert line.startswith("  ...") and line.endswith("...") and len(line) < 80
    assert line[len(pointer) - 1] == "a"
