"""Comments."""

from __future__ import annotations

import pytest

from jmsaio.selector import Selector
from jmsaio.selector.starlight.comments import blanked


@pytest.mark.parametrize(
    ("text", "comment"),
    [
        ("a /* x */ = 1", "/* x */"),
        ("a /* x\n * y **/ = 1", "/* x\n * y **/"),
        ("a /**/ /***/ = '/**'", "/**/ /***/"),
        ("a -- x\n= 1", "-- x\n"),
        ("a -- x\r\n= 1", "-- x\r"),
        ("a = 'it''s' /* ' */", "/* ' */"),
        ("a -- it's /*\n b", "-- it's /*\n"),
        ("a --\n--\n b", "--\n--\n"),
    ],
)
def test_comments_become_as_many_blanks(text: str, comment: str) -> None:
    assert blanked(text) == text.replace(comment, " " * len(comment))


@pytest.mark.parametrize(
    "text", ["a = 1", "a -- x", "a = '/* x */ -- '\n", "a /* x", "a /*/ x", "a */ x /* y", "a 'x -- \n", "a\n--"]
)
def test_what_is_no_comment(text: str) -> None:
    assert blanked(text) == text


def test_places_of_errors_stay() -> None:
    assert Selector("a /* note */ = -- one\n 1", "starlight").matches({"a": 1}) is True


def test_openings_without_an_end_take_linear_time() -> None:
    for text in ("-" * 200_000, "/* " * 100_000, "\n" + "--/ *" * 50_000, "'" * 100_001):
        assert blanked(text) == text
