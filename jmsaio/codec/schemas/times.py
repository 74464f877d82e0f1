"""Converts the dates and times of Pulsar's schema types to Python's. Nanoseconds below a microsecond are cut off.

Each function raises OverflowError for a time that Python's classes can't represent.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = 86_400 * 10**9  # in nanoseconds


def moment(milliseconds: int) -> datetime:
    """Return the time of DATE and TIMESTAMP, milliseconds since the epoch, in UTC."""
    return _EPOCH + timedelta(milliseconds=milliseconds)


def clock_time(milliseconds: int) -> time:
    """Return the time of day of TIME, milliseconds since the epoch, in UTC."""
    return moment(milliseconds).time()


def instant(seconds: int, nanoseconds: int) -> datetime:
    """Return the time of INSTANT, seconds since the epoch and nanoseconds, in UTC."""
    return _EPOCH + timedelta(seconds=seconds, microseconds=nanoseconds // 1000)


def local_date(days: int) -> date:
    """Return the date of LOCAL_DATE, days since 1970-01-01."""
    return date(1970, 1, 1) + timedelta(days=days)


def local_time(nanoseconds: int) -> time:
    """Return the time of LOCAL_TIME, nanoseconds since midnight."""
    if not 0 <= nanoseconds < _DAY:
        raise OverflowError(f"{nanoseconds} ns are not the time of a day")
    return (datetime.min + timedelta(microseconds=nanoseconds // 1000)).time()


def local_date_time(days: int, nanoseconds: int) -> datetime:
    """Return the time of LOCAL_DATE_TIME, days since 1970-01-01 and nanoseconds since midnight, without a zone."""
    return datetime.combine(local_date(days), local_time(nanoseconds))
