"""Declarations of options, and parsers of their texts: numbers, flags, words, durations and points in time."""

from __future__ import annotations

import datetime
import enum
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

import attrs

from jmsaio.errors import ConfigurationError
from jmsaio.model.arguments import shown
from jmsaio.model.durations import TEN_YEARS

Reader = Callable[[str], object]

#: Maximum characters of a rejected value in an error.
_WIDTH: Final = 200
#: Largest long of Java and Arrow.
_LARGEST: Final = 2**63 - 1
_NUMBER: Final = re.compile(r"[0-9]{1,19}", re.ASCII)
_DURATION: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?) ?(ms|s|min|m|h|d)?", re.ASCII)
_MILLISECONDS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MILLISECOND: Final = datetime.timedelta(milliseconds=1)


def refuse(name: str, value: str, why: str) -> ConfigurationError:
    """Return the error that rejects ``value``, which is not a secret, for the option ``name``."""
    return ConfigurationError(f"option {name} = {shown(value, _WIDTH)}: {why}", key=name)


def number(high: int = _LARGEST) -> Reader:
    def read(text: str) -> int:
        if _NUMBER.fullmatch(text.strip()) is None or not 1 <= int(text) <= high:
            raise ValueError("must be a whole number, at least 1" + (f" and at most {high}" if high < _LARGEST else ""))
        return int(text)

    return read


def one_of(words: Mapping[str, object]) -> Reader:
    def read(text: str) -> object:
        word = text.strip().lower()
        if word not in words:
            raise ValueError(f"must be {' or '.join(words)}")
        return words[word]

    return read


#: Parses ``true`` or ``false``, in any case.
flag: Final = one_of({"true": True, "false": False})


def word_of(words: type[enum.Enum]) -> Reader:
    return one_of({str(each.value): each for each in words})


def word_or_number(text: str) -> str | int:
    word = text.strip().lower()
    return int(word) if _NUMBER.fullmatch(word) is not None and int(word) <= _LARGEST else word


def not_empty(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


def duration(longest: float = TEN_YEARS) -> Reader:
    """Return a reader of durations up to ``longest`` seconds, such as ``500 ms``, ``15 min`` or ``1.5``, in seconds."""

    def read(text: str) -> float:
        found = _DURATION.fullmatch(text.strip().lower())
        if found is None:
            raise ValueError("must be a duration, such as 500 ms, 30 s or 15 min")
        seconds = float(Fraction(found[1]) * _MILLISECONDS[found[2] or "s"] / 1000)
        if seconds <= 0:
            raise ValueError("must be above 0")
        if seconds > longest:
            raise ValueError(f"must be at most {longest:g} s" + ("" if found[2] else "; without a unit it is seconds"))
        return seconds

    return read


def time(text: str) -> int:
    """Parse a point in time: milliseconds since the epoch, or ISO 8601, which is UTC unless it has an offset.

    A fraction of a millisecond is rounded up, which changes no comparison with the whole milliseconds of a publish
    time.
    """
    written = text.strip()
    if _NUMBER.fullmatch(written) is not None and int(written) <= _LARGEST:
        return int(written)
    try:
        given = datetime.datetime.fromisoformat(written)
    except ValueError:
        why = "is neither milliseconds since the epoch nor ISO 8601, such as 2026-01-31T12:00:00Z"
        raise ValueError(why) from None
    since = (given if given.tzinfo is not None else given.replace(tzinfo=datetime.UTC)) - _EPOCH
    if since < datetime.timedelta(0):
        raise ValueError("is before 1970")
    return -(-since // _MILLISECOND)


def time_text(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    return (_EPOCH + milliseconds * _MILLISECOND).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Use(enum.Enum):
    """Purpose of the options; the value is the word of Spark's API."""

    READ = "read"
    READ_STREAM = "readStream"
    WRITE = "write"


@attrs.frozen
class OptionRow:
    """One option; ``default`` and ``doc`` are for the guide."""

    name: str
    uses: tuple[Use, ...]
    default: str
    doc: str
    read: Callable[[str], object] = not_empty  # parses the text, or raises ValueError with the reason
    field: str = ""  # of ``SourceOptions``, if there is one
    combined: bool = False  # other options determine the field as well


#: Key of an option in the metadata of its field.
ROW: Final = "jmsaio.spark.row"


def option(
    default: object, name: str, uses: tuple[Use, ...], doc: str, *, shown: str | None = None, **more: Any
) -> Any:  # fmt: skip
    """Declare a field as an option; ``shown`` is its default for the guide, if it is not the text of ``default``."""
    if shown is None:
        value = default.value if isinstance(default, enum.Enum) else default
        shown = "" if value is None else str(value).lower()
    return attrs.field(default=default, metadata={ROW: OptionRow(name, uses, shown, doc, **more)})
