"""Texts that are no selectors, where the error points, and the limits."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings, strategies as st

from jmsaio.errors import InvalidSelectorError
from jmsaio.selector import Selector
from jmsaio.selector.builder import MAX_DEPTH
from jmsaio.selector.parser import MAX_LENGTH, blanked, parse


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("a = ", 5, "ends here, expected a name, a number"),
        ("a == 5", 4, "found '=', expected a name"),
        ("a != 5", 3, "'!' has no meaning"),
        ("a = 'x", 5, "no closing quote"),
        ("1abc = 2", 1, "1abc is not a number"),
        ("a<b<c", 4, "found '<', expected AND, OR or the end"),
        ("a = 5 AND", 10, "ends here"),
        ("x IN ()", 7, "expected a string in quotes"),
        ("a IN ('x',)", 11, "expected a string in quotes"),
        ("a IN ('x' 'y')", 11, "expected ',' or ')'"),
        ("a NOT b", 7, "expected BETWEEN, IN or LIKE"),
        ("a LIKE 5", 8, "expected a string in quotes"),
        ("x LIKE 'a' ESCAPE 'ab'", 19, "exactly one character"),
        ("a = NULL", 5, "reserved word NULL"),
        ("in = 1", 1, "reserved word in"),
        ("(a = 1", 7, "expected ')'"),
        ("a = 1)", 6, "expected the end"),
        ("a.b = 1", 2, "'.' has no meaning"),
        ("a = 1; b", 6, "';' has no meaning"),
        ('"a" = 1', 1, "'\"' has no meaning"),
        ("a % 2 = 1", 3, "'%' has no meaning"),
        ("/* c */ a = 1", 1, "found '/'"),
        ("089 = a", 1, "octal"),
        ("a = 9223372036854775809", 5, "does not fit in 64 bits"),
        ("a = 1_000", 5, "1_000 is not a number"),
        ("a = 0b1", 5, "is not a number"),
        ("a = 1e999", 5, "does not fit in a double"),
        ("a\u00d7b = 1", 2, "is not allowed in a name"),
        ("   ", 4, "ends here"),
        ("a =\n\n;", 6, "';'"),
        ("f(a)", 2, "found '('"),
        ("a IS TRUE", 6, "found the reserved word TRUE, expected NOT or NULL"),
    ],
)
def test_refusals_point_at_the_place(text: str, column: int, says: str) -> None:
    with pytest.raises(InvalidSelectorError) as caught:
        Selector(text)
    assert caught.value.column == column
    assert caught.value.text == text
    assert says in caught.value.reason
    assert f"column {column}:" in caught.value.reason


@pytest.mark.parametrize(
    "name", ["order", "android", "inside", "notify", "$a", "_b", "größe", "名前", "€uro", "a\u0301"]
)
def test_any_java_identifier_is_a_name(name: str) -> None:
    assert Selector(f"{name} = 1").matches({name: 1}) is True


@pytest.mark.parametrize("dialect", ["jms", "starlight"])
@pytest.mark.parametrize(
    "text",
    [
        "(" * 8_000 + "a = 1" + ")" * 8_000,
        "NOT " * 3_000 + "a",
        "NOT (" * 3_000 + "a" + ")" * 3_000,
        "a = " + "-" * 20_000 + "b",
        "a = " + "(1 + " * 3_000 + "b" + ")" * 3_000,
        "(a = 1 AND (b = 2 OR " * 500 + "c = 1" + "))" * 500,
        "a = '" + "x" * (MAX_LENGTH + 1) + "'",
        "a = " + "9" * 60_000,
        "a = '" + "''" * 30_000,
        "(" * 20_000,
    ],
)
def test_hostile_texts_are_refused(text: str, dialect: str) -> None:
    with pytest.raises(InvalidSelectorError):
        parse(text, dialect)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["jms", "starlight"])
@pytest.mark.parametrize(
    "text",
    [
        " OR ".join(f"a = {number}" for number in range(1_500)),
        "a = " + " + ".join("1" for _ in range(5_000)),
        "a IN (" + ",".join(f"'{number}'" for number in range(5_000)) + ")",
        "NOT (" * 31 + "a" + ")" * 31,
        "a LIKE '" + "%a" * 30_000 + "'",
    ],
)
def test_long_texts_are_fine(text: str, dialect: str) -> None:
    parse(text, dialect)
    assert Selector(text).matches({"a": "b"}) in (True, False, None)


def test_depth_does_not_need_the_stack() -> None:
    """A selector of the greatest depth can be made and evaluated when little of the stack is left."""
    deep = "NOT (" * (MAX_DEPTH // 2 - 1) + "a = 1" + ")" * (MAX_DEPTH // 2 - 1)

    def down(levels: int) -> bool | None:
        return down(levels - 1) if levels else Selector(deep).matches({"a": 1})

    assert down(sys.getrecursionlimit() // 3) is False
    with pytest.raises(InvalidSelectorError, match="deeper than 64"):
        Selector(f"NOT ({deep} AND NOT (a = 1))")


PIECES = st.sampled_from(
    ["a", "b", "'x'", "''", "'it''s'", "5", "-1", "1.5", "0x1F", "9223372036854775808", "(", ")", ",", "=", "<>", "<",
     ">=", "+", "-", "*", "/", "%", "AND", "OR", "NOT", "IN", "LIKE", "BETWEEN", "IS", "NULL", "TRUE", "ESCAPE", "'!'",
     "JMSPriority", "REGEX(", "MAKELIST(", "--", "/*", "*/", ";", "é", "\x00", "'", ".", "1e5", "08", "\n"]
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=12), st.sampled_from([" ", ""]), st.sampled_from(["jms", "starlight"]))
def test_any_text_is_a_selector_or_refused(pieces: list[str], glue: str, dialect: str) -> None:
    text = glue.join(pieces)
    try:
        parse(text, dialect)
        selector = Selector(text)
    except InvalidSelectorError as error:
        assert error.column is not None and 1 <= error.column <= len(text) + 1
        return
    assert selector.matches({"a": 5, "b": "x"}) in (True, False, None)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_any_characters_are_a_selector_or_refused(text: str) -> None:
    for dialect in ("jms", "starlight"):
        try:
            parse(text, dialect)
        except InvalidSelectorError as error:
            assert error.text == text


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
    with pytest.raises(InvalidSelectorError) as caught:
        parse("a /* note */ = -- one\n ", "starlight")
    assert caught.value.column == 24


def test_openings_without_an_end_take_linear_time() -> None:
    for text in ("-" * 200_000, "/* " * 100_000, "\n" + "--/ *" * 50_000, "'" * 100_001):
        assert blanked(text) == text
