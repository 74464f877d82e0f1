"""Dates and times of Pulsar's schema types. That Java writes them so is in ``tests.client.test_java_schemas``."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

import pytest

from jmsaio.codec.schemas import times


def test_each_type_has_its_class() -> None:
    assert times.moment(1) == datetime(1970, 1, 1, microsecond=1000, tzinfo=UTC)
    assert times.moment(-1) == datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
    assert times.clock_time(3_600_001) == time(1, 0, 0, 1000)
    assert times.local_date(19_000) == date(2022, 1, 8)
    assert times.local_date_time(1, 10**9) == datetime(1970, 1, 2, 0, 0, 1)


def test_nanoseconds_are_cut_off() -> None:
    assert times.instant(1, 999_999_999) == datetime(1970, 1, 1, 0, 0, 1, 999_999, tzinfo=UTC)
    assert times.local_time(86_400 * 10**9 - 1) == time(23, 59, 59, 999_999)


@pytest.mark.parametrize("nanoseconds", [-1, 86_400 * 10**9])
def test_a_time_is_within_a_day(nanoseconds: int) -> None:
    with pytest.raises(OverflowError, match="time of a day"):
        times.local_time(nanoseconds)


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63)])
def test_what_python_does_not_have_overflows(number: int) -> None:
    for make in (times.moment, times.local_date, lambda seconds: times.instant(seconds, 0)):
        with pytest.raises(OverflowError):
            make(number)
