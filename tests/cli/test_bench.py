"""``jmsaio bench``: what it asks of ``jmsaio.bench``, and what it shows."""

import importlib.util
import json
from typing import Any

import pytest

from jmsaio import bench as benchmark
from jmsaio.bench import Progress, Report, Workload, runner
from jmsaio.bench.catalog import embedded_scenarios
from jmsaio.bench.report import Sample
from jmsaio.cli import main


def report(failure: str | None = None) -> Report:
    (row,) = (row for row in embedded_scenarios() if row.name == "embedded.through")
    metrics = {"per_second": 50_000.0, "cpu_us": 20.0}
    samples = [Sample(round=0, scenario=row.name, load=0.5, yardstick_ms=1.0, metrics=metrics)]
    if failure is not None:
        samples.append(Sample(round=1, scenario=row.name, load=0.5, yardstick_ms=1.0, failure=failure))
    return Report({"python": "3.11"}, Workload(), "asyncio", (row,), tuple(samples))


def test_arguments_reach_the_benchmark(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: dict[str, Any] = {}

    def run(url: str | None, **more: Any) -> Report:
        asked.update(more, url=url)
        more["progress"](Progress(0, 1, 0, embedded_scenarios()[0]))
        more["progress"](Progress(1, 1, 0, None))
        return report()

    monkeypatch.setattr(benchmark, "run", run)
    assert main(["bench", "pulsar://h", "--rounds", "2", "--smoke", "--only", "embedded", "--loop", "uvloop"]) == 0
    assert (asked["url"], asked["rounds"], asked["smoke"], asked["only"], asked["loop"]) == (
        "pulsar://h", 2, True, "embedded", "uvloop",
    )  # fmt: skip
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["row"] == "embedded.through"
    assert main(["bench", "--no-json"]) == 0
    assert "send to acknowledge" in capsys.readouterr().out


def test_a_failed_measurement_is_an_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(benchmark, "run", lambda url, **more: report("out of paper"))
    assert main(["bench"]) == 1
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["failure"] == "out of paper"


def test_a_wrong_pattern_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--only", "nosuch"]) == 1
    assert capsys.readouterr().err.startswith("jmsaio: no row matches 'nosuch'")


def test_a_picture_without_matplotlib_is_refused_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Minutes of measuring are not spent for a picture that can't be drawn."""
    measured: list[Any] = []
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(runner, "_sample", lambda *arguments: measured.append(arguments))
    assert main(["bench", "--plot", "x.png"]) == 2
    assert "pip install 'jmsaio[bench]'" in capsys.readouterr().err
    with pytest.raises(ImportError, match="matplotlib"):
        benchmark.run(smoke=True, plot_file="x.png")
    assert measured == []


def test_uvloop_that_is_missing_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["bench", "--loop", "uvloop"]) == 2
    assert "pip install 'jmsaio[uvloop]'" in capsys.readouterr().err
    with pytest.raises(ImportError, match="uvloop"):
        benchmark.run(smoke=True, loop="uvloop")
