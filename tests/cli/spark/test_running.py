"""A session around a job: its errors and its line of progress."""

from __future__ import annotations

import pytest

from jmsaio.cli.app import main
from jmsaio.cli.common.output import DATA_LOSS, ERROR, USAGE
from jmsaio.cli.spark.running import _Tasks
from jmsaio.errors import ConfigurationError, DataLossError
from tests.cli.spark.jobs import URL, Jobs


def test_lost_messages_have_an_exit_code_of_their_own(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.failure = DataLossError("messages from 1:0 on are lost")
    assert main(["spark", "archive", "q", "folder", "--once", *URL]) == DATA_LOSS
    assert "1:0" in capsys.readouterr().err


def test_an_error_of_spark_is_one_sentence(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    kind = type("Py4JError", (Exception,), {"__module__": "py4j.protocol"})
    jobs.failure = kind("out of memory\n\tat java.lang.Thread")
    assert main(["spark", "replay", "folder", *URL]) == ERROR
    told = "jmsaio: Spark failed: out of memory; 'jmsaio spark check' checks Java, packages and the broker"
    assert capsys.readouterr().err.startswith(told)


def test_other_errors_pass_as_they_are(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.failure = ConfigurationError("folder is no archive")
    assert main(["spark", "replay", "folder", *URL]) == USAGE
    assert "folder is no archive" in capsys.readouterr().err


def test_the_line_of_progress_counts_tasks_while_spark_says() -> None:
    counts = iter([(1, 2), (0, 0)])
    column = _Tasks(lambda: next(counts))
    texts = [str(column.render(None)) for _ in range(3)]  # the third call fails
    assert texts == ["1 of 2 tasks", "", ""]
