"""Durations passed by an application: seconds, as a number or a timedelta."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Protocol, runtime_checkable

from jmsaio.errors import IllegalArgumentError
from jmsaio.model.arguments import shown, wrong_type

#: Maximum duration in seconds: a longer one is probably in another unit.
TEN_YEARS = 10 * 366 * 24 * 3600.0
#: Packages whose frames lie between an application and a warning: attrs creates the configuration.
_INSIDE = ("jmsaio", "attr")


@runtime_checkable
class _TimeDelta(Protocol):
    def total_seconds(self) -> float: ...


#: Seconds as int or float, or a ``datetime.timedelta``.
Duration = int | float | _TimeDelta


def seconds(value: Any, what: str) -> float:
    """Return a duration in seconds; ``what`` is the parameter's name, for errors and warnings.

    Raises IllegalArgumentError if negative, NaN, or above 10 years (probably milliseconds); of another type it is also
    a TypeError. A whole number of thousands gives a UserWarning; see ``warn_of_milliseconds``.
    """
    kind = type(value)
    if (kind is float or kind is int) and 0 <= value <= TEN_YEARS:  # the usual case, and part of every receive
        if kind is int and value % 1000 == 0:
            warn_of_milliseconds(value, what)
        return float(value)
    if not isinstance(value, int | float) and isinstance(value, _TimeDelta) and not isinstance(value, type):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong_type(value, what, "seconds (a number or a timedelta)")
    if value != value:
        raise IllegalArgumentError(f"{what} must be a number of seconds, not nan")
    if value < 0:
        raise IllegalArgumentError(f"{what} must not be negative, but is {shown(value)}")
    if value > TEN_YEARS:
        raise IllegalArgumentError(f"{what} is more than 10 years: give seconds, not milliseconds")
    return float(value)


def milliseconds(value: Any, what: str) -> int:
    """Return a duration in whole milliseconds, at least 1 unless it is 0; raises as ``seconds``."""
    if value == 0 and type(value) is int:
        return 0
    exact = seconds(value, what) * 1000
    return max(1, round(exact)) if exact > 0 else 0


def warn_of_milliseconds(value: float, what: str) -> None:
    """Warn, at the application's line, of a number of thousands: Java's unit is milliseconds. 0 gives no warning."""
    if not value:
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
        level, frame = level + 1, frame.f_back
    text = f"{what} = {value:.0f} is {value:.0f} seconds; {value:.0f} milliseconds are {value / 1000:g} here"
    warnings.warn(f"{text}. A float or timedelta gives no warning", stacklevel=level)
