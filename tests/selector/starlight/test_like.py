"""LIKE patterns with escape characters."""

from __future__ import annotations

import pytest

from jmsaio.selector.like import ONE, RUN
from jmsaio.selector.starlight.like import elements


@pytest.mark.parametrize(
    ("pattern", "escape", "expected"),
    [
        ("a_%b", None, ["a", ONE, RUN, "b"]),
        ("a\\_", "\\", ["a", "_"]),
        ("a\\b\\", "\\", ["a", "\\", "b", "\\"]),
        ("%%", "%", ["%"]),
        ("é_éé", "é", ["_", "é"]),
        ("€€x", "€", [" ", "a", "c", "x"]),
        ("\t\tc", "\t", ["\x9c"]),
    ],
)
def test_a_pattern_is_split_into_characters_and_wildcards(
    pattern: str, escape: str | None, expected: list[str | int]
) -> None:
    assert elements(pattern, escape) == expected


@pytest.mark.parametrize("pattern", ["\t\t", "\t\tx", "\t\t%", "\t\t\t"])
def test_what_java_can_not_read(pattern: str) -> None:
    with pytest.raises(ValueError, match="escape character"):
        elements(pattern, "\t")
