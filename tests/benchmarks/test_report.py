import json
from pathlib import Path

import pytest

from benchmarks.report import Report, Sample, find_goal, read_json, write_json
from benchmarks.scenario import Block, Scenario
from benchmarks.statistics import Spread
from benchmarks.workload import Workload


def test_rows_keep_the_order_and_leave_out_what_was_not_measured(report: Report) -> None:
    assert [row.scenario.name for row in report.rows()] == ["send.raw", "send.jmsaio", "latency.raw", "idle.consumers"]


def test_a_row_has_its_figure_cpu_and_paired_ratios(report: Report) -> None:
    row = report.rows()[1]
    assert row.value == Spread(25_000.0, 20_000.0, 30_000.0, 2)
    assert row.cpu_us == Spread(21.0, 20.0, 22.0, 2)
    assert [(ratio.reference, ratio.values) for ratio in row.ratios] == [("send.raw", Spread(3.5, 3.0, 4.0, 2))]
    assert row.details == {"per_second": 25_000.0, "cpu_us": 21.0}


def test_a_reference_is_not_compared_with_itself(report: Report) -> None:
    assert report.rows()[0].ratios == ()


def test_goals_are_found_and_missed_ones_told(report: Report) -> None:
    assert report.rows()[1].ratios[0].goal == find_goal("send.jmsaio", "send.raw")
    assert [goal.scenario for goal in report.missed()] == ["idle.consumers"]


def test_a_row_of_its_own_references_is_compared_by_other_metrics_too(tmp_path: Path) -> None:
    rows = (
        Scenario("spark.loop-columns", "loop", Block.SPARK_READ, "benchmarks.spark.loops:columns", "pulsar://b:6650"),
        Scenario("spark.read-one", "ours", Block.SPARK_READ, "benchmarks.spark.reading:one_task", "pulsar://b:6650",
                 references=("spark.loop-columns",)),
    )  # fmt: skip
    samples = (
        Sample(0, "spark.loop-columns", 0.5, 30.0, {"per_second": 20_000.0, "cpu_us": 40.0}),
        Sample(0, "spark.read-one", 0.5, 30.0, {"per_second": 10_000.0, "cpu_us": 50.0}),
    )
    report = Report({}, Workload(), "asyncio", rows, samples)
    rate, cpu = report.rows()[1].ratios
    assert (rate.name, rate.values.median, cpu.name, cpu.values.median) == (
        "spark.loop-columns", 0.5, "spark.loop-columns:cpu_us", 1.25,
    )  # fmt: skip
    assert report.missed() == [rate.goal]
    write_json(report, tmp_path / "report.json")
    assert read_json(tmp_path / "report.json") == report


def test_a_reference_that_a_row_and_its_group_name_is_compared_once() -> None:
    rows = tuple(
        Scenario(name, "a row", Block.SEND, "benchmarks.floor:send", "pulsar://b:6650", references=("send.floor",))
        for name in ("send.floor", "send.floor-uvloop")
    )
    samples = tuple(Sample(0, row.name, 0.5, 30.0, {"per_second": 1.0}) for row in rows)
    found = Report({}, Workload(), "asyncio", rows, samples).rows()
    assert [[ratio.reference for ratio in row.ratios] for row in found] == [[], ["send.floor"]]


def test_failures_are_kept(report: Report) -> None:
    assert [(sample.scenario, sample.round) for sample in report.failures()] == [("idle.consumers", 1)]


def test_load_is_that_of_all_samples(report: Report) -> None:
    load = report.load()
    assert load is not None
    assert (load.low, load.high) == (0.5, 0.7)


def test_json_goes_there_and_back(report: Report, tmp_path: Path) -> None:
    write_json(report, tmp_path / "report.json")
    assert read_json(tmp_path / "report.json") == report
    summary = json.loads((tmp_path / "report.json").read_text())["summary"]
    assert summary[1]["median"] == 25_000.0
    assert summary[1]["ratios"]["send.raw"]["median"] == 3.5


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"format": 0}')
    with pytest.raises(ValueError, match="not a benchmark report"):
        read_json(tmp_path / "other.json")


def test_rows_are_listed_by_the_groups_that_were_measured(report: Report) -> None:
    assert [(group, len(rows)) for group, rows in report.groups().items()] == [
        (Block.SEND, 2),
        (Block.LATENCY, 1),
        (Block.IDLE, 1),
    ]
