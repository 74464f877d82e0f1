"""Durations: seconds, never milliseconds."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest

from jmsaio.model.durations import milliseconds, seconds


@pytest.mark.parametrize(
    ("value", "found"),
    [(0, 0.0), (5, 5.0), (0.25, 0.25), (timedelta(minutes=1), 60.0), (timedelta(0), 0.0), (3e8, 3e8)],
)
def test_seconds_are_floats_of_numbers_and_timedeltas(value: Any, found: float) -> None:
    assert seconds(value, "timeout") == found and type(seconds(value, "timeout")) is float


@pytest.mark.parametrize(
    ("value", "found"),
    [(0, 0), (0.0, 0), (1, 1000), (0.0015, 2), (1e-9, 1), (timedelta(milliseconds=7), 7), (timedelta(0), 0)],
)
def test_milliseconds_are_rounded_up_to_ints(value: Any, found: int) -> None:
    assert milliseconds(value, "time_to_live") == found and type(milliseconds(value, "time_to_live")) is int


@pytest.mark.parametrize("read", [seconds, milliseconds])
@pytest.mark.parametrize("value", [-1, -0.001, pytest.param(-(10**400), id="huge"), timedelta(seconds=-1), -math.inf])
def test_negative_durations_are_refused_by_name(read: Any, value: Any) -> None:
    with pytest.raises(ValueError, match="timeout must not be negative"):
        read(value, "timeout")


@pytest.mark.parametrize("read", [seconds, milliseconds])
def test_nan_is_refused(read: Any) -> None:
    with pytest.raises(ValueError, match="timeout must be a number of seconds, not nan"):
        read(math.nan, "timeout")


@pytest.mark.parametrize("read", [seconds, milliseconds])
@pytest.mark.parametrize("value", [1_700_000_000_000, math.inf, timedelta(days=4000), pytest.param(10**400, id="huge")])
def test_a_number_that_can_only_be_milliseconds_is_refused(read: Any, value: Any) -> None:
    with pytest.raises(ValueError, match=r"timeout.*seconds, not milliseconds"):
        read(value, "timeout")


@pytest.mark.parametrize("read", [seconds, milliseconds])
@pytest.mark.parametrize("value", [True, False, "5", None, b"5", [], timedelta])
def test_what_is_no_number_and_no_timedelta_is_refused(read: Any, value: Any) -> None:
    with pytest.raises(TypeError, match="timeout must be seconds"):
        read(value, "timeout")
