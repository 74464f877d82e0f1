"""Options, their lookup by name, and the conversion of their values.

A value is written as Starlight expects it, or given as a Python value by a keyword option. Every ConfigurationError
names the option and, unless it is a secret, the value; for an unknown name it suggests the nearest known one.
"""

from __future__ import annotations

import difflib
import enum
import math
from collections.abc import Callable, Iterable, Mapping

import attrs

from jmsaio.errors import ConfigurationError
from jmsaio.model.arguments import WIDTH, shown, with_article
from jmsaio.model.durations import TEN_YEARS, warn_of_milliseconds

#: Seconds by unit of time.
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
#: Maximum numbers of options without their own limit: the usual one, and those by unit.
_MOST, _MOST_IN = 2**31 - 1, {"bytes": 1024**4, "ns": 2**63 - 1}
#: Minimum similarity of a suggested name, from 0 (nothing in common) to 1 (equal).
_NEAR = 0.6


class Kind(enum.Enum):
    """The kind of value of an option, which determines how its text is parsed."""

    TEXT = "text"
    SECRET = "secret"
    FLAG = "true/false"
    INTEGER = "integer"
    NUMBER = "number"
    DURATION = "duration"
    CHOICE = "choice"
    MAP = "map"
    LIST = "list"


class Section(enum.Enum):
    """The section that an option belongs to; its value is the prefix of the written names."""

    CONNECTION = ""
    PRODUCER = "producerConfig."
    CONSUMER = "consumerConfig."
    DEAD_LETTER = "consumerConfig.deadLetterPolicy."
    NACK_BACKOFF = "consumerConfig.negativeAckRedeliveryBackoff."
    ACK_TIMEOUT_BACKOFF = "consumerConfig.ackTimeoutRedeliveryBackoff."


class Status(enum.Enum):
    """The handling of a value: used, refused unless it is the default, or accepted and ignored."""

    BUILT = "yes"
    NOT_BUILT = "not yet"
    NO_EFFECT = "accepted"


#: Transports on which an option has an effect, by their names in ``jmsaio.config.schemes``.
ON_MEMORY, ON_PULSAR_CLIENT, ON_WIRE = ("memory",), ("pulsar-client",), ("wire",)
ON_PULSAR = ON_PULSAR_CLIENT + ON_WIRE
EVERYWHERE = ON_MEMORY + ON_PULSAR


@attrs.frozen
class Option:
    """An option, as declared by its field or by its row in ``jmsaio.config.unsupported_options``.

    ``key`` is its name in a URL, a map or a file, without the section's prefix; ``field`` is "" if it has none.
    ``unit`` (ms, us, s, ns, bytes or "") is that of the written value and of the bounds: ``low``, and ``high``, by
    default Java's largest int, or 1 TiB. A duration is disabled, and its field None, at or below ``off``, as by every
    negative value.
    ``exact``: a choice is case-sensitive. ``doc`` describes it, or says why it is not built or has no effect. It has an
    effect on ``transports``; those in ``refused_on`` refuse other values than its default. ``supplied``: its value can
    also be a function that returns the text.
    """

    key: str
    section: Section
    kind: Kind
    default: object = None
    field: str = ""
    unit: str = ""
    status: Status = Status.BUILT
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    exact: bool = False
    off: float | None = None
    doc: str = ""
    transports: tuple[str, ...] = EVERYWHERE
    refused_on: tuple[str, ...] = ()
    supplied: bool = False

    @property
    def name(self) -> str:
        return self.section.value + self.key

    @property
    def holder(self) -> Section:
        return self.section

    @property
    def secret(self) -> bool:
        return self.kind in (Kind.SECRET, Kind.MAP)  # each value of a map can be a secret

    @property
    def optional(self) -> bool:
        return self.default is None or self.off is not None


class Directory:
    """Finds an option of a section by its written name or its field's name.

    Errors for an unknown name can also suggest the names that ``others`` returns.
    """

    def __init__(self, options: Iterable[Option], others: Callable[[], Iterable[str]] = tuple) -> None:
        self.options = tuple(options)
        self._others = others
        self._by_key: Mapping[str, Option] = {option.key: option for option in self.options}
        self._by_field: Mapping[str, Option] = {option.field: option for option in self.options if option.field}

    def find(self, name: str, prefix: str = "") -> tuple[Option, bool]:
        """Return the option with a name, and whether the name is the field's (durations are then seconds).

        Raises ConfigurationError for an unknown name, with the section's ``prefix`` and the nearest known one.
        """
        option = self._by_key.get(name)
        if option is not None:
            return option, option.field == option.key
        option = self._by_field.get(name)
        if option is not None:
            return option, True
        whole = prefix + name
        names = [*(option.name for option in self.options), *self._by_field, *self._others()]
        raise ConfigurationError(f"unknown option {shown(whole)}{nearest(whole, names)}", key=whole)


def nearest(name: str, names: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` with the known name nearest to ``name``, or "" if none is near."""
    found = nearest_name(name, names)
    return hint(repr(found)) if found else ""


def hint(meant: str) -> str:
    """Return the end of an error that suggests ``meant``, or "" if that is empty."""
    return f"; did you mean {meant}?" if meant else ""


def nearest_name(name: str, names: Iterable[str]) -> str:
    """Return the known name nearest to ``name``, or "" if none is near.

    The part after the last dot counts first, which finds a name given in the wrong section.
    """
    best, found = (_NEAR, 0.0), ""
    if len(name) > WIDTH:  # comparing takes time by its square
        return found
    for known in names:
        score = (_likeness(name.rpartition(".")[2], known.rpartition(".")[2]), _likeness(name, known))
        if score > best:
            best, found = score, known
    return found


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one.lower(), other.lower()).ratio()


# Values


def written(option: Option, value: object) -> object:
    """Convert a value written in a URL, a map or a file, in the option's unit, to the field's value.

    Values are converted to text first, as in Starlight. Starlight reads every text but "true" as false, which turns
    "yes" into its opposite; here it is an error. Raises ConfigurationError.
    """
    return _converted(option, value, seconds=False)


def given(option: Option, value: object) -> object:
    """Convert a Python value to the field's value: durations are seconds or timedelta, None is "not set"."""
    if value is None:
        if option.optional:
            return None
        raise refuse(option, value, "must not be None")
    return _converted(option, value, seconds=True)


def names_only(properties: Mapping[str, str]) -> str:
    """Return the ``repr`` of a map, hiding its values, which can be secrets."""
    return repr(dict.fromkeys(properties, "***"))


def refuse(option: Option, value: object, why: str) -> ConfigurationError:
    """Create the error for an invalid value, which is not shown if it is a secret."""
    value_shown = "" if option.secret else f" = {shown(value)}"
    return ConfigurationError(f"option {option.name}{value_shown}: {why}", key=option.name)


def _converted(option: Option, value: object, *, seconds: bool) -> object:
    """Convert a value; one of an option that is not built must change nothing, one without an effect is not checked."""
    if option.status is Status.NO_EFFECT:
        return value
    if option.status is Status.BUILT:
        return _read(option, value, seconds)
    try:
        if _read(option, value, seconds) in (None, option.default, *option.choices):
            return option.default
    except ConfigurationError:
        pass  # refused below, with the reason
    reason = f": {option.doc}" if option.doc else ""
    raise refuse(option, value, f"this option is known but not supported{reason}")


def _read(option: Option, value: object, seconds: bool) -> object:
    kind = option.kind
    if kind is Kind.FLAG:
        return _flag(option, value)
    if kind is Kind.DURATION:
        return _duration(option, value, seconds)
    if option.supplied and callable(value):
        return value
    if kind is Kind.MAP:
        if not isinstance(value, Mapping):
            raise refuse(option, value, "needs a map")
        return {str(key): _text(option, item) for key, item in value.items()}
    if kind is Kind.LIST:
        return _list(option, value)
    if kind is Kind.CHOICE:
        return _choice(option, _text(option, value))
    if kind is Kind.INTEGER:
        return _bounded(option, _integer(option, value))
    if kind is Kind.NUMBER:
        return _bounded(option, _number(option, value, option.unit))
    text = _text(option, value)
    return text if text or option.default is not None else None


def _flag(option: Option, value: object) -> bool:
    text = _text(option, value).strip().lower()
    if text not in ("true", "false"):
        raise refuse(option, value, "must be true or false")
    return text == "true"


def _text(option: Option, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        try:
            return str(value)
        except ValueError:  # Python does not convert an int with thousands of digits
            raise refuse(option, value, "is too large") from None
    raise refuse(option, value, f"needs {with_article(option.kind.value)}, not {type(value).__name__}")


def _number(option: Option, value: object, unit: str) -> float:
    if isinstance(value, bool):
        raise refuse(option, value, "needs a number, not true or false")
    try:
        number = float(value if isinstance(value, int) else _text(option, value))
    except OverflowError:
        raise refuse(option, value, "is too large") from None
    except ValueError:
        raise refuse(option, value, f"is not a number{_in(unit)}") from None
    if not math.isfinite(number):
        raise refuse(option, value, "must be finite")
    return number


def _duration(option: Option, value: object, seconds: bool) -> float | None:
    unit = "s" if seconds else option.unit
    factor = SECONDS[unit]
    total = getattr(value, "total_seconds", None) if seconds else None  # a timedelta; this ring imports no datetime
    number = float(total()) if callable(total) else _number(option, value, unit)
    if option.off is not None and (number <= option.off or number < 0):
        return None
    if number < 0:
        raise refuse(option, number, "must not be negative")
    if option.low is not None and number * factor < option.low * SECONDS[option.unit]:
        raise refuse(option, number, f"must be at least {option.low:g} {option.unit}")
    if number * factor > TEN_YEARS:
        hint = "is more than 10 years; the unit is seconds, not milliseconds" if factor == 1.0 else "is above 10 years"
        raise refuse(option, number, hint)
    if seconds and isinstance(value, int | str) and number % 1000 == 0:
        warn_of_milliseconds(number, option.field)
    # Division keeps 1000 us at 0.001 and not 0.0009999999.
    return number if factor == 1.0 else number / round(1 / factor)


def _integer(option: Option, value: object) -> int:
    if isinstance(value, bool):
        raise refuse(option, value, "needs an integer, not true or false")
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    try:
        return int(_text(option, value))
    except ValueError:
        raise refuse(option, value, f"is not an integer{_in(option.unit)}") from None


def _bounded(option: Option, number: float) -> float:
    if option.low is not None and number < option.low:
        raise refuse(option, number, f"must be at least {option.low:g}")
    high = option.high or _MOST_IN.get(option.unit, _MOST)
    if abs(number) > high:
        raise ConfigurationError(f"option {option.name}: must be at most {high:.0f}", key=option.name)
    return number


def _choice(option: Option, text: str) -> str:
    for choice in option.choices:
        if text == choice or (not option.exact and text.lower() == choice.lower()):
            return choice
    raise refuse(option, text, f"must be one of {', '.join(option.choices)}")


def _list(option: Option, value: object) -> tuple[str, ...] | None:
    """Convert a list, or a text with commas, to a sorted tuple, or None if it is empty."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list | tuple | set | frozenset):
        raise refuse(option, value, f"needs a list, not {type(value).__name__}")
    return tuple(sorted(_text(option, item) for item in items if item != "")) or None


def _in(unit: str) -> str:
    return f" ({unit})" if unit else ""
