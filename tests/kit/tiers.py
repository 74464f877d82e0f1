"""The tiers of the tests: which are fast, which a run has by default, and which run on virtual time.

``pytest -m fast`` is the inner loop: the pure layers, and what runs on the embedded broker without real waiting.
``pytest`` adds the other light tests, one real broker and the Java client. ``pytest --full`` is everything. A run that
names files, folders, marks or keywords has all tests that it names.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parents[1]
#: Folders and files whose tests need nothing but their event loop, if they have one: they run on virtual time.
VIRTUAL = (
    "client", "conformance", "maintenance/test_dead_letters.py",
    "maintenance/test_transfer.py", "maintenance/test_transfer_range.py",
    "maintenance/test_transfer_faults.py",
    "spark/planning", "transport/contract", "transport/memory",
    "transport/test_subscriptions.py",
)  # fmt: skip
#: Folders whose tests are fast.
FAST = (*VIRTUAL, "codec", "config", "kit", "model", "rules", "selector")
#: Folders and files outside `FAST` that only the full run has: they take long, or need the extras `check` or `spark`.
FULL = (
    "benchmarks", "cli/spark", "cli/test_receive.py",
    "compose", "examples/test_prometheus.py", "interop/test_tracing.py", "mutants", "schedules", "simulation", "spark",
    "storm", "test_conftest.py", "test_site.py", "test_steps.py", "typing_tests",
)  # fmt: skip
#: Tests on a real broker or with the Java client that every run has: all others are left to the full run.
ON_A_BROKER = (
    "conformance/test_jms_consumer.py", "conformance/test_listeners.py", "conformance/test_point_to_point.py",
    "conformance/test_publish_subscribe.py", "conformance/test_sessions.py", "conformance/test_transactions.py",
    "interop/test_matrix.py", "test_readme.py", "transport/contract",
)  # fmt: skip
#: Files whose tests on each kind of broker also run over wire, in the full run: conformance that every run has on a
#: broker, what callbacks may do, as closing what they belong to, and subscriptions that end.
OVER_WIRE = (
    *(name for name in ON_A_BROKER if name.startswith("conformance/")), "client/callbacks/test_completion.py",
    "client/callbacks/test_reports.py", "client/callbacks/test_worker.py",
    "client/test_ending_subscriptions.py",
)  # fmt: skip
#: Marks of tests that wait for something outside their process or their loop.
OUTSIDE = ("broker", "java", "real_time")
#: Marks of tests that only the full run has, wherever they are.
LONG = ("slow", "own_broker")

#: Examples of a property in the fast and the default tier; else as many as its test says, or Hypothesis by itself.
FAST_EXAMPLES = 15


def has_default_tier(config: pytest.Config) -> bool:
    """Whether a run has the default tier: its command line names no tests, and does not ask for all of them."""
    if hasattr(config, "workerinput"):
        return bool(config.workerinput["default"])
    option = config.option
    narrowed = option.markexpr or option.keyword or getattr(option, "lf", False)  # without a cache there is no `lf`
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not narrowed and not option.full


def load_profile(few: bool) -> None:
    """Tell Hypothesis how much to try. A crowded machine makes no property false."""
    crowded = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("whole", crowded)
    settings.register_profile("few", crowded, max_examples=FAST_EXAMPLES)
    settings.load_profile("few" if few else "whole")


def on_virtual_time(item: pytest.Item) -> bool:
    """Whether a test runs on virtual time."""
    return _lies_in(item.path, VIRTUAL) and not _has(item, OUTSIDE)


def is_fast(item: pytest.Item) -> bool:
    """Whether a test belongs to the fast tier."""
    return _lies_in(item.path, FAST) and not _has(item, (*OUTSIDE, "slow"))


def is_default(item: pytest.Item) -> bool:
    """Whether a test belongs to the default tier."""
    if _has(item, LONG) or (_has(item, ("broker", "java")) and not _lies_in(item.path, ON_A_BROKER)):
        return False
    return _lies_in(item.path, FAST) or not _lies_in(item.path, FULL)


def runs_over_wire(path: Path) -> bool:
    """Whether the tests of a file also run over wire, in the full run."""
    return _lies_in(path, OVER_WIRE)


def may_hold_default(path: Path) -> bool:
    """Whether a file or folder may hold tests of the default tier."""
    return may_hold_fast(path) or not _lies_in(path, FULL)


def may_hold_fast(path: Path) -> bool:
    """Whether a file or folder may hold fast tests: the others need not even be imported for them."""
    return _lies_in(path, FAST) or any(f"{TESTS}/{folder}/".startswith(f"{path}/") for folder in FAST)


@cache  # asked for each of thousands of tests; texts, since paths would take a sixth of the time of collecting
def _lies_in(path: Path, folders: tuple[str, ...]) -> bool:
    return f"{path}/".startswith(tuple(f"{TESTS}/{folder}/" for folder in folders))


def _has(item: pytest.Item, marks: tuple[str, ...]) -> bool:
    return any(item.get_closest_marker(mark) is not None for mark in marks)
