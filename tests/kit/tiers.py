"""The tiers of the tests: which are fast, and which run on virtual time.

``pytest -m fast`` is the inner loop: the pure layers, and what runs on the embedded broker without real waiting.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parents[1]
#: Folders and files whose tests need nothing but their event loop, if they have one: they run on virtual time.
VIRTUAL = (
    "client", "conformance", "maintenance/test_dead_letters.py", "maintenance/test_job_cursors.py",
    "maintenance/test_redrive.py", "maintenance/test_redrive_faults.py", "maintenance/test_outlets.py",
    "spark/planning", "transport/contract", "transport/memory",
    "transport/test_subscriptions.py",
)  # fmt: skip
#: Folders whose tests are fast.
FAST = (*VIRTUAL, "codec", "config", "kit", "model", "rules", "selector")
#: Marks of tests that wait for something outside their process or their loop.
OUTSIDE = ("broker", "java", "real_time")

#: Examples of a property in the fast tier; in a whole run as many as its test says, or Hypothesis by itself.
FAST_EXAMPLES = 15


def load_profile(fast: bool) -> None:
    """Tell Hypothesis how much to try. A crowded machine makes no property false."""
    crowded = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("whole", crowded)
    settings.register_profile("fast", crowded, max_examples=FAST_EXAMPLES)
    settings.load_profile("fast" if fast else "whole")


def on_virtual_time(item: pytest.Item) -> bool:
    """Whether a test runs on virtual time."""
    return _lies_in(item.path, VIRTUAL) and not _has(item, OUTSIDE)


def is_fast(item: pytest.Item) -> bool:
    """Whether a test belongs to the fast tier."""
    return _lies_in(item.path, FAST) and not _has(item, (*OUTSIDE, "slow"))


def may_hold_fast(path: Path) -> bool:
    """Whether a file or folder may hold fast tests: the others need not even be imported for them."""
    return _lies_in(path, FAST) or any((TESTS / folder).is_relative_to(path) for folder in FAST)


@cache  # asked for each of thousands of tests
def _lies_in(path: Path, folders: tuple[str, ...]) -> bool:
    return any(path.is_relative_to(TESTS / folder) for folder in folders)


def _has(item: pytest.Item, marks: tuple[str, ...]) -> bool:
    return any(item.get_closest_marker(mark) is not None for mark in marks)
