"""What the type pass refuses."""

from __future__ import annotations

import pytest

from jmsaio.errors import InvalidSelectorError
from jmsaio.selector import Selector
from jmsaio.selector.check import FORBIDDEN


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("5", 1, "the selector must be a condition, this is a number"),
        ("'a'", 1, "this is a string"),
        ("a + 1", 1, "this is arithmetic"),
        ("a = 1 AND 5", 11, "each side of AND"),
        ("NOT 'x'", 5, "the operand of NOT"),
        ("(a + 1) OR b", 2, "each side of OR"),
        ("s > 'a'", 5, "each side of > must be a number or a name, this is a string"),
        ("TRUE < a", 1, "this is TRUE"),
        ("a BETWEEN 'x' AND 5", 11, "each operand of BETWEEN"),
        ("(a = 1) > 2", 2, "this is a condition"),
        ("'a' + 1 = 2", 1, "each side of +"),
        ("1 + 'a' = 2", 5, "each side of +"),
        ("-TRUE = 1", 2, "the operand of -"),
        ("a * (b = 1) = 2", 6, "each side of *"),
        ("'a' IN ('a')", 1, "the left side of IN"),
        ("(a) IN ('a')", 2, "the name a in parentheses"),
        ("a + 1 LIKE 'x'", 1, "the left side of LIKE"),
        ("5 IS NULL", 1, "the left side of IS NULL"),
        ("a = 9223372036854775808", 5, "directly after a minus"),
        ("a = -(9223372036854775808)", 7, "directly after a minus"),
        ("a = +9223372036854775808", 6, "directly after a minus"),
        ("TRUE = 'a'", 1, "TRUE = a string compares a Boolean with a non-Boolean"),
        ("a = 1 OR (5) <> FALSE", 11, "TRUE and FALSE can't be names"),
    ],
)
def test_a_selector_that_is_no_condition_is_refused_at_its_column(text: str, column: int, says: str) -> None:
    with pytest.raises(InvalidSelectorError) as caught:
        Selector(text)
    assert (caught.value.column, says in caught.value.reason) == (column, True)


@pytest.mark.parametrize("name", sorted(FORBIDDEN))
def test_headers_that_selectors_may_not_name(name: str) -> None:
    for text in (f"{name} = 1", f"a = 1 OR {name} IS NULL", f"{name} IN ('a')", f"a < {name} + 1", name):
        with pytest.raises(InvalidSelectorError, match=f"the header {name} can't be used"):
            Selector(text)


@pytest.mark.parametrize(
    "text",
    [
        "TRUE", "a", "NOT a", "(a)", "(a = 1) = (b = 2)", "1 = 'a'", "TRUE <> a", "TRUE = FALSE", "-a = 1",
        "JMSXGroupID = 'g'",
    ],
)  # fmt: skip
def test_conditions_of_every_form_are_accepted(text: str) -> None:
    Selector(text)
