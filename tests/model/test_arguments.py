"""Checks of arguments by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import jmsaio
from jmsaio.errors import IllegalArgumentError, IllegalArgumentTypeError, JMSError
from jmsaio.model import arguments
from jmsaio.model.arguments import with_article


@pytest.mark.parametrize(
    ("check", "good", "wrong"),
    [
        (arguments.check_text, ["", "x"], [None, 0, b"x", object()]),
        (arguments.check_optional_text, ["", None], [0, b"x"]),
        (arguments.check_flag, [True, False], [0, 1, "true", None]),
        (arguments.check_mapping, [{}, {"a": 1}], [0, [], "x", None]),
        (arguments.check_class, [str, dict], ["str", None, 0]),
    ],
)
def test_a_wrong_type_is_refused_by_name(check: Callable[[Any, str], None], good: list[Any], wrong: list[Any]) -> None:
    """What fits passes, all else is an IllegalArgumentTypeError with the argument's name and the value's class."""
    for value in good:
        check(value, "spam")
    for value in wrong:
        with pytest.raises(IllegalArgumentTypeError, match=f"spam must be .*, not {type(value).__name__}"):
            check(value, "spam")


def test_integers_have_bounds() -> None:
    """An int outside of its bounds is an IllegalArgumentError, what is no int an IllegalArgumentTypeError."""
    for value in (0, 9):
        arguments.check_int(value, "spam", 0, 9)
    for value in (-1, 10, 10**30, 10**6000):
        with pytest.raises(IllegalArgumentError, match="spam must be 0 to 9"):
            arguments.check_int(value, "spam", 0, 9)
    for other in (True, 1.0, "1", None):
        with pytest.raises(IllegalArgumentTypeError, match="spam must be an int"):
            arguments.check_int(other, "spam", 0, 9)


def test_what_a_refused_value_looks_like() -> None:
    """Whatever it is: showing it never fails."""

    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert arguments.shown("x" * 1000) == "'" + "x" * 196 + "..." and arguments.shown("x" * 198) == repr("x" * 198)
    assert arguments.shown(b"x" * 10**7, 10) == "b'xxxxx..." and arguments.shown("\ud800\n") == r"'\ud800\n'"
    assert arguments.shown(10**6000) == "a number of 19932 bits"
    assert arguments.shown(Broken()) == "a Broken"


def test_an_illegal_argument_is_a_jms_error_and_a_value_error_or_type_error() -> None:
    """One family: JMSErrors that are ValueErrors, those of a wrong type also TypeErrors."""
    assert issubclass(IllegalArgumentTypeError, IllegalArgumentError) and issubclass(IllegalArgumentError, JMSError)
    assert issubclass(IllegalArgumentError, ValueError) and issubclass(IllegalArgumentTypeError, TypeError)


@pytest.mark.parametrize("noun", ["an int", "an integer", "an ObjectMessage", "a long", "a String", "a UUID"])
def test_a_noun_gets_its_article(noun: str) -> None:
    assert with_article(noun.split()[1]) == noun


def test_errors_have_the_right_article() -> None:
    message = jmsaio.ObjectMessage(1, properties={"amount": 5})
    with pytest.raises(jmsaio.MessageFormatError, match="'amount' is an int and can't be read as"):
        message.get_boolean_property("amount")
    with pytest.raises(jmsaio.MessageFormatError, match="an ObjectMessage has no text"):
        _ = message.text
