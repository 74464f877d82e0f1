"""The processes of a test run: how many there are, what runs first and where, and what one of them does for all.

pytest-xdist starts the processes, called its workers; the one that starts them and reports is their controller.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from jmsaio.launcher.state import locked

#: Processes for a run of many tests, most of which wait for a broker or a session of Spark.
WORKERS = 6
#: Processes for the default tier, whose tests wait less: each costs seconds of collecting.
DEFAULT_WORKERS = 4
#: Fast tests that a process is given at once: the controller's work for each test would else be as much as the test's.
TOGETHER = 50
#: Seconds of a test's time limit from which on it counts as long.
LONG = 200
#: Fast tests that a run begins with: what is broken for everybody shows before the first broker is started.
AHEAD = 1000
#: The file in the run's folder with the group of each test that has one, marked so or made of fast tests.
_GROUPS = "groups"


def workers_for(places: Iterable[Path], single: bool) -> int:
    """How many processes to start when the command line does not say: none for single files and tests.

    Args:
        places: what the command line names; a test of a file does not exist under its name.
        single: other options ask for few tests, or for one process.
    """
    return 0 if single or not any(place.is_dir() for place in places) else WORKERS


def distribute(config: pytest.Config, default: bool) -> None:
    """Have pytest-xdist, if it is there, run the tests in several processes, as `workers_for` says.

    Args:
        default: the run has the default tier.
    """
    option = config.option
    if is_worker(config) or not hasattr(option, "numprocesses"):
        return
    if option.numprocesses is None and not option.tx and not option.distload and option.dist == "no":
        few = option.keyword or getattr(option, "lf", False)  # without pytest's cache there is no such option
        watched = option.capture == "no" or option.usepdb or option.collectonly
        places = (config.invocation_params.dir / name for name in config.args)
        option.numprocesses = workers_for(places, single=bool(few or watched))
        if default:
            option.numprocesses = min(option.numprocesses, DEFAULT_WORKERS)
        elif option.markexpr == "fast":  # they wait for nothing
            option.numprocesses = min(option.numprocesses, os.cpu_count() or 1)


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs tests for another one, which reports them."""
    return hasattr(config, "workerinput")


def shared_folder(config: pytest.Config) -> Path:
    """The temporary folder of the whole run, the same for all its processes."""
    if is_worker(config):
        return Path(config.option.basetemp).parent
    return config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined,no-any-return] # as pytest-xdist does


def arrange(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a worker: order the tests, and note for the controller which of them belong together.

    After some fast tests come groups, then long tests: a run should not end with one of them while all other processes
    have nothing to do.
    """
    items.sort(key=lambda item: (_group(item) is not None, _limit(item)), reverse=True)
    ahead = [item for item in items if item.get_closest_marker("fast") is not None][:AHEAD]
    items[:] = [*ahead, *(item for item in items if item not in set(ahead))]
    once(shared_folder(config), _GROUPS, lambda: _groups(items))


def _groups(items: Iterable[pytest.Item]) -> dict[str, str]:
    """The group of each test that has one, by the tests' names."""
    groups = {item.nodeid: group for item in items if (group := _group(item)) is not None}
    fast = (item.nodeid for item in items if item.nodeid not in groups and item.get_closest_marker("fast") is not None)
    return groups | {name: f"fast {number // TOGETHER}" for number, name in enumerate(fast)}


def _group(item: pytest.Item) -> str | None:
    """The group whose tests run one after another."""
    mark = item.get_closest_marker("xdist_group")
    return str(mark.args[0]) if mark is not None else None


def _limit(item: pytest.Item) -> float:
    """The time limit of a long test, else 0."""
    mark = item.get_closest_marker("timeout")
    seconds = float(mark.args[0]) if mark is not None else 0.0
    return seconds if seconds >= LONG else 0.0


def scheduler(config: pytest.Config, log: Any) -> Any:
    """The controller's scheduler: gives each free worker the next test, or all tests of a group, in `arrange`'s order.

    pytest-xdist's own one for groups would change the names of their tests.
    """
    from xdist.scheduler import LoadScopeScheduling  # only where pytest-xdist runs

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc] # has no types
        groups: dict[str, str] | None = None

        def _split_scope(self, nodeid: str) -> str:
            if self.groups is None:
                self.groups = once(shared_folder(config), _GROUPS, dict)
            return self.groups.get(nodeid, nodeid)

        def _pending_of(self, workload: dict[str, dict[str, bool]]) -> int:
            for unit in [unit for unit, done in workload.items() if all(done.values())]:
                del workload[unit]  # it would be counted again after each of thousands of tests
            return super()._pending_of(workload)  # type: ignore[no-any-return] # has no types

    config.option.loadscopereorder = False
    return Scheduling(config, log)


def once(folder: Path, name: str, work: Callable[[], Any]) -> Any:
    """What ``work`` gives (as JSON), called by the first process of the run that asks; the others wait for it."""
    with locked(folder / f"{name}.lock"):
        answer = folder / f"{name}.json"
        if not answer.exists():
            answer.write_text(json.dumps(work()), encoding="utf-8")
        return json.loads(answer.read_text(encoding="utf-8"))
