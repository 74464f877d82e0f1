"""REGEX, INLIST, MAKELIST, SPLIT and REPLACE."""

from __future__ import annotations

import pytest

from jmsaio.errors import InvalidSelectorError, SelectorRuntimeError
from jmsaio.selector import Selector

VALUES = {"s": "a,b,,c,,", "n": 5, "w": "hello world", "e": "", "l": 2**40, "limit": 2}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("REGEX('^h.*o', w)", True),
        ("REGEX('5', n)", True),
        ("REGEX('x', missing)", False),
        ("NOT REGEX('x', w)", True),
        ("INLIST(MAKELIST('a', 5), n)", True),
        ("INLIST(MAKELIST('a', 5L), n)", True),
        ("INLIST(MAKELIST(5), l)", False),
        ("INLIST(MAKELIST(5), missing)", False),
        ("SPLIT(s, ',') = MAKELIST('a', 'b', '', 'c')", True),
        ("SPLIT(s, ',', -1) = MAKELIST('a', 'b', '', 'c', '', '')", True),
        ("SPLIT(s, ',', limit) = MAKELIST('a', 'b,,c,,')", True),
        ("SPLIT(s, ',', 1) = MAKELIST(s)", True),
        ("SPLIT(s, 'x') = MAKELIST(s)", True),
        ("SPLIT(e, ',') = MAKELIST('')", True),
        ("'' + SPLIT(',,', ',') = '[]'", True),
        ("REPLACE(w, 'o', '0') = 'hell0 w0rld'", True),
        ("REPLACE(w, '(l+)(o)?', '<$2$1>') = 'he<oll> wor<l>d'", True),
        ("REPLACE(w, 'l', '\\$') = 'he$$o wor$d'", True),
        ("REPLACE(w, 'x', missing) = w", True),
        ("REPLACE(w, '(l)', '$10') = 'hel0l0o worl0d'", True),
        ("REPLACE(w, 'l', '$0$0') LIKE '%llll%'", True),
    ],
)
def test_functions_answer_as_starlight_does(text: str, expected: bool) -> None:
    assert Selector(text, "starlight").matches(VALUES) is expected


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("regex('a', s)", 1, "unknown function regex"),
        ("REGEX('a')", 1, "REGEX takes 2 arguments, not 1"),
        ("SPLIT('a') = s", 1, "SPLIT takes 2 or 3"),
        ("REGEX(s, s)", 7, "must be a string literal"),
        ("REGEX('(?i)a', s)", 7, "only (?: is supported"),
        ("SPLIT(s, 'x*') = s", 10, "must not match the empty string"),
        ("REPLACE(s, 'a', '$1') = s", 17, "number of a group up to 0"),
        ("REPLACE(s, 'a', 'b\\') = s", 17, "backslash"),
        ("REPLACE(s, 'a', '${x}') = s", 17, "group"),
        ("SPLIT(s, ',')", 1, "this is not a condition"),
    ],
)
def test_a_wrong_call_is_refused_at_its_column(text: str, column: int, says: str) -> None:
    with pytest.raises(InvalidSelectorError) as caught:
        Selector(text, "starlight")
    assert caught.value.column == column and says in caught.value.reason


@pytest.mark.parametrize(
    "text",
    [
        "INLIST(s, n)", "INLIST(MAKELIST(missing), n)", "INLIST(missing, n)", "SPLIT(n, ',') = s",
        "SPLIT(missing, ',') = s", "SPLIT(s, ',', l) = s", "SPLIT(s, ',', missing) = s", "REPLACE(n, 'a', 'b') = s",
        "REPLACE(w, 'l', missing) = s", "REPLACE(w, 'l', n) = s", "REPLACE(w, 'l', '' + '$9') = s", "MAKELIST(s) > 1",
    ],
)  # fmt: skip
def test_what_throws_in_java(text: str) -> None:
    with pytest.raises(SelectorRuntimeError):
        Selector(text.replace("'' + '$9'", "('' + '$9')"), "starlight").matches(VALUES)
