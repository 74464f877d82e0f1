import asyncio
import importlib.util
import json
from pathlib import Path

import pytest

from benchmarks.child import find_target, main, require_loop, run_task
from benchmarks.meter import Metrics
from benchmarks.workload import Task, Workload

HERE = __name__


def plain(task: Task) -> Metrics:
    return {"per_second": float(task.workload.messages)}


async def on_loop(_task: Task) -> Metrics:
    return {"uvloop": float(type(asyncio.get_running_loop()).__module__.startswith("uvloop"))}


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "child_targets", sys.modules[HERE])


def test_a_function_is_found() -> None:
    assert find_target("child_targets:plain") is plain


def test_a_target_without_colon_is_refused() -> None:
    with pytest.raises(ValueError, match="module:function"):
        find_target("child_targets.plain")


def test_a_plain_function_runs() -> None:
    assert run_task(Task("child_targets:plain", "memory:", "q", workload=Workload(messages=3))) == {"per_second": 3.0}


@pytest.mark.parametrize(("loop", "uvloop"), [("asyncio", 0.0), ("uvloop", 1.0)])
def test_a_coroutine_function_runs_on_the_loop_of_the_task(loop: str, uvloop: float) -> None:
    assert run_task(Task("child_targets:on_loop", "memory:", "q", loop)) == {"uvloop": uvloop}


def test_the_result_goes_to_a_file(tmp_path: Path) -> None:
    task = Task("child_targets:plain", "memory:", "q", workload=Workload(messages=5))
    main([str(tmp_path / "result")], json.dumps(task.to_json()))
    assert json.loads((tmp_path / "result").read_text()) == {"per_second": 5.0}


def test_a_loop_that_is_missing_is_told_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    require_loop("uvloop")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    require_loop("asyncio")
    with pytest.raises(ImportError, match=r"pip install 'jmsaio\[uvloop\]'"):
        require_loop("uvloop")
