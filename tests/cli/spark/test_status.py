"""``jmsaio spark status``: arguments, output and exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from jmsaio.cli.app import main
from jmsaio.cli.common.output import DATA_LOSS, OK
from tests.cli.spark.jobs import URL, Jobs, last


def test_the_backlog_of_each_partition_and_of_all_is_told(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark", "status", "folder", *URL, "--no-json"]) == OK
    assert capsys.readouterr().out.splitlines() == [
        "t: at 1:2, 3 entries, about 90 bytes behind, oldest published 2026-01-01T00:00:00Z",
        "u: not read yet, 0 entries, about 0 bytes behind",
        "3 entries, about 90 bytes behind, oldest published 2026-01-01T00:00:00Z; batch 7, committed True",
    ]
    assert jobs.asked == [f"{Path.cwd()}/folder", None]


def test_what_is_missing_has_an_exit_code(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.lost = ["1:0 is gone"]
    assert main(["spark", "status", "folder", "--losses", "lost", *URL, "--json"]) == DATA_LOSS
    assert last(capsys)["missing"] == ["1:0 is gone"]
    assert jobs.asked == [f"{Path.cwd()}/folder", f"{Path.cwd()}/lost"]
