import subprocess
import sys

from jmsaio.bench.report import Report
from jmsaio.bench.table import render_table


def test_the_table_shows_figures_ratios_goals_and_failures(report: Report) -> None:
    text = render_table(report, width=140)
    assert "25,000" in text
    assert "20,000..30,000" in text
    assert "3.50 x raw [3.00..4.00]" in text
    assert "goal >= 2: met" in text
    assert "goal <= 20.0: MISSED" in text
    assert "FAILED idle.consumers, round 1" in text
    assert "17.00" in text
    assert "never measured" not in text


def test_the_foot_says_what_was_measured(report: Report) -> None:
    text = " ".join(render_table(report, width=140).split())
    assert "10 messages, text of 100 characters" in text
    assert "three string properties" in text
    assert "python CPython 3.11" in text
    assert "Load before a measurement: 0.60 (0.50..0.70); a fixed piece of work took 30 ms (30..30)" in text


def test_without_color_there_is_no_escape(report: Report) -> None:
    assert "\x1b" not in render_table(report)
    assert "\x1b" in render_table(report, color=True)


def test_importing_the_package_imports_neither_rich_nor_matplotlib() -> None:
    code = "import sys, jmsaio.bench; sys.exit(any(name in sys.modules for name in ('rich', 'matplotlib')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
