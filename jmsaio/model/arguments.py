"""Checks of arguments: wrong types and impossible values are refused by the argument's name."""

from __future__ import annotations

from collections.abc import Mapping

from jmsaio.errors import IllegalArgumentError, IllegalArgumentTypeError

#: Maximum length of a value in an error.
WIDTH = 200
#: Maximum number of bits of an int whose digits an error shows.
_LONGEST_INT = 128


def wrong_type(value: object, argument: str, needed: str) -> IllegalArgumentTypeError:
    """Return the error for a ``value`` of the wrong type. It names only its class: the value can be huge or secret."""
    return IllegalArgumentTypeError(f"{argument} must be {needed}, not {type(value).__name__}")


def shown(value: object, width: int = WIDTH) -> str:
    """Return the repr of ``value`` for an error, with at most ``width`` characters.

    For an int too long for Python to format this is only its size; for a value whose repr fails, its class.
    """
    if type(value) in (str, bytes):
        value = value[: width + 1]  # type: ignore[index]  # a huge text is not copied
    if isinstance(value, int) and int(value).bit_length() > _LONGEST_INT:
        return f"a number of {int(value).bit_length()} bits"
    try:
        text = repr(value)
        return text if len(text) <= width else f"{text[: width - 3]}..."
    except Exception:  # an error in the value's own class must not hide the original error
        return with_article(type(value).__name__)


def brief(text: str) -> str:
    """Return ``text`` as ``shown`` does, without quotation marks."""
    return shown(text)[1:].rstrip("'\"")


def with_article(noun: str) -> str:
    """Return ``noun`` preceded by "a" or "an"."""
    return f"{'an' if noun[:1].lower() in 'aeio' else 'a'} {noun}"


def check_text(value: object, argument: str) -> None:
    if not isinstance(value, str):
        raise wrong_type(value, argument, "a text")


def check_optional_text(value: object, argument: str) -> None:
    if value is not None and not isinstance(value, str):
        raise wrong_type(value, argument, "a text or None")


def check_flag(value: object, argument: str) -> bool:
    if not isinstance(value, bool):
        raise wrong_type(value, argument, "True or False")
    return value


def check_mapping(value: object, argument: str) -> None:
    if not isinstance(value, Mapping):
        raise wrong_type(value, argument, "a mapping")


def check_class(value: object, argument: str) -> None:
    if not isinstance(value, type):
        raise wrong_type(value, argument, "a class, such as str")


def check_int(value: object, argument: str, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong_type(value, argument, "an int")
    if not low <= value <= high:
        raise IllegalArgumentError(f"{argument} must be {low} to {high}, not {shown(value)}")
    return value
