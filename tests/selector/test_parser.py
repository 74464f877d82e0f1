"""Accepted and refused texts, trees, literals, limits and positions."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings, strategies as st

from jmsaio.errors import InvalidSelectorError
from jmsaio.model.values import Float, Long
from jmsaio.selector import Selector, nodes
from jmsaio.selector.nodes import Big
from jmsaio.selector.parser import (
    BEYOND,
    MAX_DEPTH,
    MAX_LENGTH,
    blanked,
    jms_number,
    parse,
    starlight_number,
)


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


def test_not_binds_tighter_than_and_and_and_than_or() -> None:
    tree = parse("a = 1 OR NOT b = 2 AND c BETWEEN 1 AND 2 AND d")
    assert isinstance(tree, nodes.Or)
    second = tree.terms[1]
    assert isinstance(second, nodes.And) and len(second.terms) == 3
    assert isinstance(second.terms[0], nodes.Not) and isinstance(second.terms[0].operand, nodes.Compare)
    assert isinstance(second.terms[1], nodes.Between)


def test_the_starlight_grammar_binds_not_tighter() -> None:
    tree = parse("NOT a = 1", "starlight")
    assert isinstance(tree, nodes.Compare) and isinstance(tree.left, nodes.Not)


def test_chains_are_flat() -> None:
    tree = parse("a = 1 + 2 - 3 * 4 / 5")
    assert isinstance(tree, nodes.Compare) and isinstance(tree.right, nodes.Arithmetic)
    assert [operator for operator, _ in tree.right.rest] == ["+", "-"]
    assert isinstance(parse(" AND ".join(["a"] * 1000)), nodes.And)  # not nested deeper than allowed


def test_nodes_know_where_they_stand() -> None:
    tree = parse("  a >= 1 AND (b LIKE 'x')")
    assert isinstance(tree, nodes.And) and tree.at == 2
    compare, group = tree.terms
    assert isinstance(compare, nodes.Compare)
    assert isinstance(group, nodes.Parentheses) and group.at == 14


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("-5", -5, int),
        ("- -5", 5, int),
        ("+5", 5, int),
        ("-5L", -5, Long),
        ("-9223372036854775808", -(2**63), Long),
        ("- -9223372036854775808", -(2**63), Long),
        ("-2147483648", -(2**31), Long),
        ("-1.5", -1.5, float),
        ("-1.5f", -1.5, Float),
    ],
)
def test_numbers_take_their_sign_in(text: str, value: float, kind: type) -> None:
    tree = parse(f"a = {text}")
    assert isinstance(tree, nodes.Compare) and isinstance(tree.right, nodes.Literal)
    assert (tree.right.value, type(tree.right.value)) == (value, kind)


def test_depth_is_limited() -> None:
    parse("(" * (MAX_DEPTH - 2) + "a = 1" + ")" * (MAX_DEPTH - 2))
    with pytest.raises(InvalidSelectorError, match="deeper"):
        parse("(" * (MAX_DEPTH - 1) + "a = 1" + ")" * (MAX_DEPTH - 1))
    with pytest.raises(InvalidSelectorError, match="deeper"):
        parse("(" * 32_000 + "a" + ")" * 32_000)
    with pytest.raises(InvalidSelectorError, match="deeper") as caught:
        parse("NOT " * 100 + "a")
    assert caught.value.column == len("NOT ") * MAX_DEPTH + 1  # the first part that is too deep


@pytest.mark.parametrize(
    ("image", "value"),
    [
        ("0", 0), ("5", 5), ("2147483647", 2**31 - 1), ("2147483648", Long(2**31)), ("5L", Long(5)), ("5l", Long(5)),
        ("0x1F", 31), ("0XfL", Long(15)), ("017", 15), ("00", 0), ("07L", Long(7)), ("5.", 5.0), (".5", 0.5),
        ("9223372036854775807", Long(2**63 - 1)), ("9223372036854775808", BEYOND), ("1e3", 1000.0), ("1.5E-1", 0.15),
        ("1.5f", Float(1.5)), ("0.1F", Float(0.1)), ("2D", 2.0), ("5f", Float(5)), ("08.5", 8.5), ("09e1", 90.0),
        ("1.e2d", 100.0),
    ],
)  # fmt: skip
def test_a_number_literal_of_jms_has_the_type_that_java_gives_it(image: str, value: object) -> None:
    found = jms_number(image)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    "image",
    ["1abc", "0x", "0xg", "08", "1_0", "1e", "1e+", "1.2.3", "0b1", "9223372036854775809", "0x8000000000000001",
     "1e400", "4e38f", "5ll", "5.L", ".e1", "9" * 5000, "0" * 5000 + "8"],
)  # fmt: skip
def test_no_jms_numbers(image: str) -> None:
    with pytest.raises(ValueError):
        jms_number(image)


@pytest.mark.parametrize(
    ("image", "value"),
    [
        ("5", 5), ("5L", 5), ("2147483648", Long(2**31)), ("9223372036854775808", Big(2**63)), ("1e400", float("inf")),
        ("18446744073709551621", 5), ("0xff", 255), ("0xffffffff", Long(2**32 - 1)), ("010", 8), ("0", 0),
    ],
)  # fmt: skip
def test_a_number_literal_of_starlight_wraps_and_widens_as_there(image: str, value: object) -> None:
    found = starlight_number(image)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("image", ["0xffffffffffffffff", "0x8000000000000000", "01000000000000000000000", "9" * 101])
def test_no_starlight_numbers(image: str) -> None:
    with pytest.raises(ValueError):
        starlight_number(image)


def test_two_quotes_in_a_string_are_one() -> None:
    images = {"''": "", "'a'": "a", "'it''s'": "it's", "''''": "'", "'a\\b'": "a\\b"}
    for image, value in images.items():
        tree = parse(f"a = {image}")
        assert isinstance(tree, nodes.Compare) and tree.right == nodes.Literal(value, at=4)
