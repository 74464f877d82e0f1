"""Ordinary code type-checks as written; typos and wrong arguments are found at their lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.kit.type_checkers import CHECKERS, MARKS, declare, type_errors

pytestmark = MARKS

CASES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parent / "cases").glob("*.py"))}
declare(*CASES.values())
#: What marks a line as an error: the name of the rule for each checker, in their order.
_MARK = re.compile(r"# error: (.*)$")
_RULE = re.compile(r"\[([\w-]+)\]$")


def marked(checker: str, source: str) -> set[tuple[int, str]]:
    """The line and rule of each error that a case expects."""
    lines = enumerate(source.splitlines(), start=1)
    rules = {number: found[1].split() for number, line in lines if (found := _MARK.search(line)) is not None}
    return {(number, each[list(CHECKERS).index(checker)]) for number, each in rules.items()}


def reported(checker: str, source: str) -> set[tuple[int, str]]:
    """The line and rule of each error that a checker reports."""
    errors = type_errors(checker, source)
    return {(number, rule[1]) for number in errors for error in errors[number] if (rule := _RULE.search(error))}


@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("case", CASES)
def test_a_checker_finds_the_marked_errors_and_no_others(case: str, checker: str) -> None:
    assert reported(checker, CASES[case]) == marked(checker, CASES[case])
