"""Matching, against Python's own engine where both mean the same, and in linear time."""

from __future__ import annotations

import random
import re

import pytest

from jmsaio.errors import SelectorRuntimeError
from jmsaio.selector.starlight.machine import Machine
from jmsaio.selector.starlight.regex import compile_pattern


def machine(text: str) -> Machine:
    return Machine(compile_pattern(text))


class Expressions:
    """Random expressions that both engines take."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one(self, depth: int) -> str:
        way = self.random.randrange(8) if depth else 0
        if way < 3:
            return self.random.choice(["a", "b", "c", ".", "[ab]", "[^a]", "\\w", "ab", "\\x61", "a-"])
        if way == 3:
            return f"({self.one(depth - 1)})"
        if way == 4:
            return f"(?:{self.one(depth - 1)}|{self.one(depth - 1)})"
        if way == 5:
            quantifier = self.random.choice(["*", "+", "?", "{1,2}", "*?", "+?", "??", "{2}", "{1,}", "{0,2}?"])
            return f"{self.random.choice(['(', '(?:'])}{self.one(depth - 1)}){quantifier}"
        return self.one(depth - 1) + self.one(depth - 1)

    def anchored(self) -> str:
        text = self.one(4)
        return self.random.choice(["", "", "", "^"]) + text + self.random.choice(["", "", "", "$"])


@pytest.mark.slow
def test_the_same_matches_as_pythons_engine() -> None:
    expressions = Expressions(5)
    compared = 0
    while compared < 4_000:
        text = expressions.anchored()
        try:
            pattern = compile_pattern(text)
        except ValueError:
            continue  # repeats what can match nothing
        ours, python = Machine(pattern), re.compile(text, re.ASCII)
        subject = "".join(expressions.random.choice("abc-") for _ in range(expressions.random.randrange(9)))
        compared += 1
        assert ours.found(subject) is (python.search(subject) is not None), (text, subject)
        if pattern.nullable:
            continue
        found = [(match.start, match.end, match.groups) for match in ours.matches(subject)]
        spans = [tuple(match.span(group) for group in range(python.groups + 1)) for match in python.finditer(subject)]
        assert found == [(*groups[0], groups) for groups in spans], (text, subject)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a$", "a\n", True), ("a$", "a\r\n", True), ("a$", "a\u2028", True), ("a$", "a\n\n", False),
        ("a\\r$", "a\r\n", False), ("^$", "", True), ("^$", "\n", True), ("^b", "a\nb", False),
        ("a.b", "a\nb", False), ("a.b", "a\u0085b", False), ("a.b", "a😀b", True), ("\\d", "٣", False),
        ("\\w", "é", False), ("\\s", "\u00a0", False), ("\\s", "\v", True),
    ],
)  # fmt: skip
def test_ends_and_classes_are_javas(pattern: str, text: str, expected: bool) -> None:
    assert machine(pattern).found(text) is expected


def test_no_pattern_hangs() -> None:
    text = "a" * 3_000
    for pattern in ("(?:a|a)*b", "(?:aa?)*b", "(a|b|ab)*c", "a?" * 30 + "a" * 30 + "b", "a*a*a*a*a*b", ".*a.*a.*a.*b"):
        assert machine(pattern).found(text) is False
        assert list(machine(pattern).matches(text[:300])) == []


def test_matches_have_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jmsaio.selector.starlight.machine.MOST_STEPS", 50_000)  # two million take seconds
    with pytest.raises(SelectorRuntimeError, match="steps"):
        list(machine("a.*b|a").matches("a" * 10_000))


def test_what_was_learned_is_bounded() -> None:
    one = machine("[^x]y")
    for code in range(0x4E00, 0x4E00 + 6_000):
        assert one.found(chr(code)) is False
    assert len(one._steps) <= 4_096
