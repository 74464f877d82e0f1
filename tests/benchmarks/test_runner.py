import platform
from pathlib import Path

import pytest

from benchmarks.runner import (
    MeasurementError,
    Progress,
    environment,
    interleaved,
    load_average,
    measure,
    run,
    select,
    yardstick,
)
from benchmarks.scenario import Block, Scenario
from benchmarks.workload import Task, Workload

TARGETS = """
import atexit
import os
import time

def plain(task):
    return {"per_second": float(task.workload.messages), "cpu_us": 1.0}

def broken(task):
    raise RuntimeError("this row is broken")

def crashes_at_exit(task):
    atexit.register(os.abort)
    return plain(task)

def endless(task):
    time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of targets that child processes find."""
    (tmp_path / "targets.py").write_text(TARGETS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def scenario(name: str, target: str, **more: object) -> Scenario:
    return Scenario(name, name, Block.SEND, f"targets:{target}", "memory:", **more)  # type: ignore[arg-type]  # test data


def test_select_by_regular_expression() -> None:
    rows = [scenario("send.raw", "plain"), scenario("send.jmsaio", "plain"), scenario("idle.consumers", "plain")]
    assert select(rows, None) == rows
    assert [row.name for row in select(rows, r"^send\.")] == ["send.raw", "send.jmsaio"]


@pytest.mark.parametrize(("only", "told"), [("nothing", "there are: send.raw"), ("(", "regular expression")])
def test_select_says_what_is_wrong(only: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        select([scenario("send.raw", "plain")], only)


def test_every_round_has_every_row_in_an_order_of_its_own() -> None:
    rows = [scenario(f"row.{number}", "plain") for number in range(8)]
    orders = interleaved(rows, 5)
    assert all(sorted(order, key=rows.index) == rows for order in orders)
    assert len({tuple(row.name for row in order) for order in orders}) > 1
    assert interleaved(rows, 5) == orders


@pytest.mark.usefixtures("folder")
def test_a_measurement_runs_in_a_child_process() -> None:
    task = Task("targets:plain", "memory:", "q", workload=Workload(messages=3))
    assert measure(task, 30.0) == {"per_second": 3.0, "cpu_us": 1.0}


@pytest.mark.usefixtures("folder")
def test_a_process_that_would_crash_at_its_end_was_measured() -> None:
    task = Task("targets:crashes_at_exit", "memory:", "q", workload=Workload(messages=3))
    assert measure(task, 30.0)["per_second"] == 3.0


@pytest.mark.usefixtures("folder")
def test_a_broken_measurement_tells_why() -> None:
    with pytest.raises(MeasurementError, match="this row is broken"):
        measure(Task("targets:broken", "memory:", "q"), 30.0)


@pytest.mark.usefixtures("folder")
def test_an_endless_measurement_is_ended() -> None:
    with pytest.raises(MeasurementError, match=r"no result within 0\.5 s"):
        measure(Task("targets:endless", "memory:", "q"), 0.5)


def test_a_run_collects_samples_and_failures() -> None:
    def carry_out(task: Task, timeout: float) -> dict[str, float]:
        if task.target.endswith("broken"):
            raise MeasurementError("it is broken")
        return {"per_second": timeout}

    steps: list[Progress] = []
    rows = [scenario("send.raw", "plain", prepare="targets:told"), scenario("send.jmsaio", "broken")]
    report = run(rows, 2, Workload.smoke(), "asyncio", steps.append, carry_out)
    assert [(row.scenario.name, row.value.median) for row in report.rows()] == [("send.raw", 120.0)]
    assert [sample.failure for sample in report.failures()] == ["it is broken"] * 2
    assert [(step.done, step.total) for step in steps] == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    assert steps[-1].scenario is None


def test_a_row_whose_preparation_fails_is_not_measured() -> None:
    def carry_out(task: Task, timeout: float) -> dict[str, float]:
        raise MeasurementError(task.target)

    rows = [scenario("send.jmsaio", "plain", prepare="targets:broken")]
    report = run(rows, 1, Workload.smoke(), "asyncio", lambda _: None, carry_out)
    assert [sample.failure for sample in report.failures()] == ["targets:broken"]


def test_environment_names_versions_and_machine() -> None:
    facts = environment()
    assert platform.python_version() in facts["python"]
    assert {"jmsaio", "pulsar-client", "uvloop", "system", "processor", "cores"} <= facts.keys()
    assert facts["pulsar-client"] != "not installed"


def test_load_average_is_a_number() -> None:
    assert load_average() >= 0.0


def test_the_yardstick_takes_time() -> None:
    assert yardstick() > 0.0
