import platform
from pathlib import Path

import pytest

from jmsaio.bench.report import read_json
from jmsaio.bench.runner import (
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
from jmsaio.bench.scenario import Block, Scenario
from jmsaio.bench.workload import Task, Workload

TARGETS = """
import atexit
import os
import time

def plain(task):
    return {"per_second": float(task.workload.messages), "cpu_us": 1.0}

def told(task):
    open(task.topic).close()

def broken(task):
    raise RuntimeError("this row is broken")

def crashes_at_exit(task):
    atexit.register(os.abort)
    return plain(task)

def endless(task):
    time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a module of targets, in which child processes start."""
    (tmp_path / "targets.py").write_text(TARGETS)
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


def test_a_measurement_runs_in_a_child_process(folder: Path) -> None:
    task = Task("targets:plain", "memory:", "q", workload=Workload(messages=3))
    assert measure(task, 30.0, folder) == {"per_second": 3.0, "cpu_us": 1.0}


def test_a_process_that_would_crash_at_its_end_was_measured(folder: Path) -> None:
    task = Task("targets:crashes_at_exit", "memory:", "q", workload=Workload(messages=3))
    assert measure(task, 30.0, folder)["per_second"] == 3.0


def test_a_broken_measurement_tells_why(folder: Path) -> None:
    with pytest.raises(MeasurementError, match="this row is broken"):
        measure(Task("targets:broken", "memory:", "q"), 30.0, folder)


def test_an_endless_measurement_is_ended(folder: Path) -> None:
    with pytest.raises(MeasurementError, match=r"no result within 0\.5 s"):
        measure(Task("targets:endless", "memory:", "q"), 0.5, folder)


def test_a_run_collects_samples_failures_and_files(folder: Path) -> None:
    steps: list[Progress] = []
    report = run(
        scenarios=[scenario("send.raw", "plain"), scenario("send.jmsaio", "plain", prepare="targets:broken")],
        rounds=2,
        smoke=True,
        json_file=folder / "report.json",
        plot_file=folder / "plot.svg",
        progress=steps.append,
        directory=folder,
    )
    assert [sample.metrics["per_second"] for sample in report.samples if sample.scenario == "send.raw"] == [2000.0] * 2
    assert len(report.failures()) == 2
    assert read_json(folder / "report.json") == report
    assert (folder / "plot.svg").exists()
    assert [(step.done, step.total) for step in steps] == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    assert steps[-1].scenario is None


def test_no_round_is_refused() -> None:
    with pytest.raises(ValueError, match="rounds must be at least 1"):
        run(rounds=0)


def test_a_tiny_run_of_our_own_rows() -> None:
    report = run(
        only=r"embedded\.(bare|through)|selector",
        rounds=1,
        workload=Workload(messages=200, evaluations=1_000, workers=10),
    )
    assert [sample.failure for sample in report.failures()] == []
    assert [row.scenario.name for row in report.rows()] == ["embedded.bare", "embedded.through", "selector.three-terms"]
    assert report.rows()[1].ratios[0].reference == "embedded.bare"


def test_who_carries_out_tasks_can_be_chosen(tmp_path: Path) -> None:
    def carry_out(task: Task, timeout: float, directory: object) -> dict[str, float]:
        if task.target.endswith("broken"):
            raise MeasurementError("it is broken")
        return {"per_second": timeout}

    rows = [scenario("send.raw", "plain", prepare="targets:told"), scenario("send.jmsaio", "broken")]
    report = run(scenarios=rows, rounds=1, directory=tmp_path, carry_out=carry_out)
    assert [row.value.median for row in report.rows()] == [120.0]
    assert [sample.failure for sample in report.failures()] == ["it is broken"]


def test_environment_names_versions_and_machine() -> None:
    facts = environment()
    assert platform.python_version() in facts["python"]
    assert {"jmsaio", "pulsar-client", "uvloop", "system", "processor", "cores"} <= facts.keys()
    assert facts["pulsar-client"] != "not installed"


def test_load_average_is_a_number() -> None:
    assert load_average() >= 0.0


def test_the_yardstick_takes_time() -> None:
    assert yardstick() > 0.0
