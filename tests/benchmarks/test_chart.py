"""The guide's chart and table show the kept figures, and the figures are those of the reports."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import attrs
import pytest

from benchmarks import chart
from benchmarks.catalog import all_scenarios, beside_uvloop
from benchmarks.figures import PARTS, Compared, Figures, figures_of, read_figures, write_figures
from benchmarks.report import Report, Sample, write_json
from benchmarks.spark.catalog import spark_scenarios
from benchmarks.statistics import Spread
from benchmarks.workload import Workload
from tests.support.documents import ROOT


def report(*rounds: tuple[float, float], loop: str = "asyncio") -> Report:
    """A run that measured ``layer.send`` and its bare loop."""
    samples = [
        Sample(number, name, 0.5, 30.0, {"cpu_us": value})
        for number, values in enumerate(rounds)
        for name, value in zip(("layer.send", "layer.bare-send"), values, strict=True)
    ]
    return Report({"python": "CPython 3.11"}, Workload(), loop, (), tuple(samples))


def test_chart_and_table_of_the_guide_are_up_to_date() -> None:
    figures = read_figures(chart.FIGURES)
    text = chart.GUIDE.read_text(encoding="utf-8")
    hint = "run python -m benchmarks.chart"
    assert chart.CHART.read_text(encoding="utf-8") == chart.chart(figures), hint
    assert text == chart.guide(text, figures), hint


def test_the_page_on_the_price_has_the_figures_of_the_guide() -> None:
    pairs = read_figures(chart.FIGURES).pairs
    why, readme = (path.read_text(encoding="utf-8") for path in (chart.GUIDE.with_name("why.md"), ROOT / "README.md"))
    for name, shown in {
        "send_async / raw pulsar-client": "| {:,.0f} | {:,.0f} |",
        "receive / raw pulsar-client": "| {:,.0f} | {:,.0f} |",
        "latency at 1,000/s / raw pulsar-client": "| {:.1f} ms | {:.1f} ms |",
        "CPU at 1,000/s / raw pulsar-client": "| {:.0f} us | {:.0f} us |",
    }.items():
        assert shown.format(pairs[name].row, pairs[name].reference) in why, name
    price = pairs["CPU at 1,000/s / raw pulsar-client"]
    assert f"{price.row:.0f} us a message, callbacks on raw pulsar-client {price.reference:.0f} us" in readme
    assert f"{price.ratio.median:.1f} times the CPU" in why


def test_each_compared_row_exists() -> None:
    broker = "pulsar://broker:6650"
    rows = all_scenarios(broker, "http://broker:8080", "classes")
    names = {row.name for row in [*beside_uvloop(rows), *spark_scenarios(broker, broker)]}
    assert {name for pairs in PARTS.values() for pair in pairs for name in (pair.row, pair.reference)} <= names


def test_figures_are_the_ratios_of_all_rounds_of_all_runs() -> None:
    found = figures_of([report((3.0, 2.0), (2.0, 2.0)), report((8.0, 2.0))])
    assert found.pairs == {"layer: send_async / bare loop": Compared(Spread(1.5, 1.0, 4.0, 3), 3.0, 2.0)}
    assert (found.facts["python"], found.loop, found.load.count) == ("CPython 3.11", "asyncio", 6)


def test_runs_without_a_ratio_or_of_two_loops_are_refused() -> None:
    with pytest.raises(ValueError, match="no ratio to show"):
        figures_of([attrs.evolve(report(), samples=())])
    with pytest.raises(ValueError, match="asyncio and uvloop"):
        figures_of([report((3.0, 2.0)), report((3.0, 2.0), loop="uvloop")])


def test_figures_are_read_as_they_were_written(tmp_path: Path) -> None:
    figures = figures_of([report((3.0, 2.0), (2.0, 2.0))])
    write_figures(figures, tmp_path / "figures.json")
    assert read_figures(tmp_path / "figures.json") == figures


def test_the_picture_has_a_bar_and_the_numbers_of_each_ratio() -> None:
    figures = Figures(
        {}, "asyncio", Spread(1, 1, 1, 1), {"receive / floor": Compared(Spread(0.5, 0.25, 2.0, 3), 12345.6, 24691.2)}
    )
    picture = ElementTree.fromstring(chart.chart(figures))
    name = "{http://www.w3.org/2000/svg}"
    texts = [text.text for text in picture.iter(f"{name}text")]
    _, bar = picture.iter(f"{name}rect")
    assert texts == ["Rate: longer is better", "receive / floor", "0.50 (0.25 to 2.00), 12,346 /s : 24,691 /s", "1"]
    assert float(bar.attrib["width"]) == (580 - 280) / 4


def test_a_command_writes_figures_chart_and_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = {name: tmp_path / name.lower() for name in ("FIGURES", "CHART", "GUIDE")}
    for name, path in paths.items():
        monkeypatch.setattr(chart, name, path)
    paths["GUIDE"].write_text(f"before\n\n{chart.BEGIN}\nold\n{chart.END}\n\nbehind\n", encoding="utf-8")
    write_json(attrs.evolve(report((3.0, 2.0)), environment={"python": "", "pulsar-client": ""}), tmp_path / "run")
    assert chart.main([str(tmp_path / "run")]) == 0
    text = paths["GUIDE"].read_text(encoding="utf-8")
    assert "| layer: send_async / bare loop | 1.50 | 1.50 | 1.50 | 1 | 3.0 us CPU | 2.0 us CPU |" in text
    assert text.startswith("before\n") and text.endswith("\nbehind\n") and "old" not in text
    assert paths["CHART"].read_text(encoding="utf-8").startswith("<svg ")


def test_a_guide_without_its_lines_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = tmp_path / "guide.md"
    guide.write_text(f"{chart.BEGIN} and no end", encoding="utf-8")
    monkeypatch.setattr(chart, "GUIDE", guide)
    monkeypatch.setattr(chart, "CHART", tmp_path / "chart.svg")
    assert chart.main([]) == 2
    assert "lacks the lines" in capsys.readouterr().err
    assert guide.read_text(encoding="utf-8").endswith("and no end")
