"""A run of many tests has several processes, which share what is done once; single tests start at once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.workers import WORKERS, once, workers_for

ROOT = Path(__file__).parents[2]
#: The plugins that such a run needs; each of its processes would load all others, too.
PLUGINS = ("-p", "xdist.plugin", "-p", "pytest_timeout")
_CONFTEST = """
import sys
import pytest
sys.path.insert(0, {root!r})
from tests.support.workers import arrange, distribute, is_worker, scheduler

@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    distribute(config, default=False)

def pytest_collection_modifyitems(config, items):
    if is_worker(config):
        arrange(config, items)

def pytest_xdist_make_scheduler(config, log):
    return scheduler(config, log)
"""
_TESTS = """
import pytest

@pytest.mark.parametrize("number", range(12))
def test_short(number):
    pass

@pytest.mark.parametrize("number", range(3))
@pytest.mark.xdist_group("one broker")
def test_grouped(number):
    pass

@pytest.mark.timeout(600)
def test_long():
    pass
"""


@pytest.mark.parametrize(
    ("places", "single", "workers"),
    [
        (["tests"], False, WORKERS),
        (["tests/test_demo.py", "tests/support"], False, WORKERS),
        (["tests/test_demo.py", "tests/test_errors.py::test_tree"], False, 0),
        (["tests"], True, 0),
    ],
)
def test_only_a_run_of_a_folder_has_several_processes(places: list[str], single: bool, workers: int) -> None:
    assert workers_for((ROOT / place for place in places), single) == workers


def test_what_is_done_once_has_one_answer(tmp_path: Path) -> None:
    assert once(tmp_path, "fetched", lambda: ["no Maven"]) == ["no Maven"]
    assert once(tmp_path, "fetched", list) == ["no Maven"]
    assert once(tmp_path, "other", list) == []


def test_a_group_has_one_process_long_tests_come_first_and_names_stay(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(_CONFTEST.format(root=str(ROOT)))
    (tmp_path / "test_all.py").write_text(_TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    xdist_group: x\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "--color=no", *PLUGINS, str(tmp_path)],
        cwd=tmp_path,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    passed = re.findall(r"\[gw(\d)\] \[ *\d+%\] PASSED test_all\.py::(\S+)", done.stdout)
    assert f"created: {WORKERS}/{WORKERS} workers" in done.stdout
    assert len(passed) == 16, done.stdout
    workers = {name: worker for worker, name in passed}
    assert len({worker for name, worker in workers.items() if name.startswith("test_grouped[")}) == 1
    alone = [name for worker, name in passed if worker == workers["test_long"] and not name.startswith("test_grouped[")]
    assert alone[0] == "test_long"
