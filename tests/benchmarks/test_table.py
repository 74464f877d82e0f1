from benchmarks.report import Report, Sample
from benchmarks.scenario import Block, Scenario
from benchmarks.table import render_table
from benchmarks.workload import Workload


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


def test_a_table_of_spark_alone_says_what_its_rows_are() -> None:
    row = Scenario("spark.archive", "archive", Block.SPARK_READ, "benchmarks.spark.reading:archive", "pulsar://b:6650")
    sample = Sample(0, row.name, 0.5, 30.0, {"per_second": 9.0, "cpu_us": 7.0, "jvm_cpu_us": 3.0, "bytes_row": 144.0})
    text = " ".join(render_table(Report({}, Workload(), "asyncio", (row,), (sample,)), width=140).split())
    assert "3.0 us CPU of the JVM" in text
    assert "144 bytes a row" in text
    assert "200,000 messages, text of 256 characters" in text
    assert "three string properties" not in text


def test_without_color_there_is_no_escape(report: Report) -> None:
    assert "\x1b" not in render_table(report)
    assert "\x1b" in render_table(report, color=True)
