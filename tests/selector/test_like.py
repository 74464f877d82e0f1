"""LIKE against a plain definition, and its time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings, strategies as st

from jmsaio.selector.like import elements, matcher


def definition(pattern: str, escape: str | None, text: str) -> bool:
    """The rules, as a backtracking expression."""
    parts = elements(pattern, escape)
    regex = "".join({0: ".*", 1: "."}[part] if isinstance(part, int) else re.escape(part) for part in parts)
    return re.fullmatch(regex, text, re.DOTALL) is not None


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(st.text("ab%_\\", max_size=8), st.text("ab%_\\\n", max_size=10), st.sampled_from([None, "\\", "%", "_", "a"]))
def test_matches_as_defined(pattern: str, text: str, escape: str | None) -> None:
    assert matcher(pattern, escape)(text) is definition(pattern, escape, text)


@pytest.mark.parametrize(
    ("pattern", "escape", "text", "expected"),
    [
        ("", None, "", True),
        ("", None, "a", False),
        ("%", None, "a\nb", True),
        ("a.c", None, "abc", False),
        ("a%z", None, "az", True),
        ("a%a", None, "a", False),
        ("%b%", None, "abc", True),
        ("_", None, "😀", True),
        ("12%3", None, "12993", True),
        ("l_se", None, "loose", False),
        ("\\_%", "\\", "_foo", True),
        ("\\_%", "\\", "bar", False),
        ("a!b", "!", "a!b", True),
        ("a!", "!", "a!", True),
        ("a!!", "!", "a!", True),
        ("''", "'", "'", True),
    ],
)
def test_a_pattern_matches_what_sql_says(pattern: str, escape: str | None, text: str, expected: bool) -> None:
    assert matcher(pattern, escape)(text) is expected


def test_no_pattern_takes_more_than_a_pass_for_each_run() -> None:
    text = "a" * 20_000
    for pattern in ("%a" * 200 + "b", "%_a" * 100 + "%b", "%a%a%a%a%a%a%a%a%a%b_%", "_%" * 100 + "b"):
        assert matcher(pattern)(text) is False
