"""Waits between attempts grow from their first value to the longest, and never leave these bounds."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from jmsaio.protocol.backoff import Backoff

pytestmark = pytest.mark.fast


SECONDS = st.floats(0.001, 1000)


@given(SECONDS, SECONDS, st.integers(1, 10**6), st.floats(0, 1, exclude_max=True))
def test_a_wait_is_within_its_bounds_and_grows(first: float, most: float, failures: int, uniform: float) -> None:
    delay = Backoff(first, most).delay
    longest = delay(failures, 0.0)
    assert min(first, most) <= longest <= delay(failures + 1, 0.0) <= most
    assert 0.8 * longest <= delay(failures, uniform) <= longest


def test_a_wait_doubles_until_it_is_the_longest() -> None:
    delay = Backoff().delay
    assert [delay(failures, 0.0) for failures in range(1, 10)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    assert delay(10, 0.5) == 9.0
