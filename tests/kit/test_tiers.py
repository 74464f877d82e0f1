"""Which folders are fast, on virtual time, or worth looking into for fast tests."""

from __future__ import annotations

import pytest

from tests.kit.tiers import TESTS, may_hold_fast


@pytest.mark.parametrize("place", ["", "model", "rules/test_fate.py", "transport", "transport/memory/broker"])
def test_a_place_may_hold_fast_tests_in_above_or_below_a_fast_folder(place: str) -> None:
    assert may_hold_fast(TESTS / place)


@pytest.mark.parametrize("place", ["cli", "transport/pulsar", "transport/test_clock.py", "test_readme.py"])
def test_other_places_hold_none(place: str) -> None:
    assert not may_hold_fast(TESTS / place)
