"""REGEX, INLIST, MAKELIST, SPLIT and REPLACE."""

from __future__ import annotations

import sys

import pytest

from jmsaio.errors import InvalidSelectorError, SelectorRuntimeError
from jmsaio.selector import Selector
from jmsaio.selector.starlight import functions

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
        ("REPLACE(w, '(d)$', '$1é') = 'hello worldé'", True),
        ("SPLIT('日é日', 'é') = MAKELIST('日', '日')", True),
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
        ("REPLACE(s, '(a)+(b)', '$2$1') = s", 23, "$1 in the replacement is a group that repeats"),
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


def test_what_replace_puts_into_a_text_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "MOST_REPLACED", 100_000)
    for replacement in ("$0" * 1_000, "$1" * 1_000):  # the second puts in nothing, a thousand times
        with pytest.raises(SelectorRuntimeError, match="REPLACE puts more than"):
            Selector(f"REPLACE(w, 'a|(b)', '{replacement}') = w", "starlight").matches({"w": "a" * 1_000})


def test_a_regular_expression_without_its_library_is_refused_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(InvalidSelectorError) as caught:
        Selector("REGEX('not cached', w)", "starlight")
    assert caught.value.column == 7 and "pip install 'jmsaio[regex]'" in caught.value.reason
    assert Selector("INLIST(MAKELIST('a'), w)", "starlight").matches({"w": "a"}) is True
