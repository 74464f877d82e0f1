"""``jmsaio spark cleanup``: arguments, output and exit codes."""

from __future__ import annotations

from typing import Any

import pytest

from jmsaio.cli.app import main
from jmsaio.cli.common.output import NOTHING, OK, PARTLY, USAGE
from jmsaio.model.destinations import Queue
from tests.cli.spark.jobs import URL, Jobs, last

CLEANUP = ["spark", "cleanup", "orders", *URL]


def cursor(state: str, reason: str | None = None) -> dict[str, Any]:
    return {"topic": "t", "subscription": "jmsaio-spark-x", "backlog": 3, "state": state, "reason": reason}


def test_what_was_deleted_and_what_was_kept_is_told(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.cursors = [cursor("deleted")]
    assert main([*CLEANUP, "--all", "--json"]) == OK
    assert last(capsys)["deleted"] == 1
    jobs.cursors.append(cursor("kept", "it has 1 consumers"))
    assert main([*CLEANUP, "--subscription", "jmsaio-spark-x", "--of", "jms-queue", "--no-json"]) == PARTLY
    assert capsys.readouterr().out.splitlines() == [
        "deleted jmsaio-spark-x of t, 3 entries behind", "kept jmsaio-spark-x of t: it has 1 consumers",
        "1 of 2 deleted",
    ]  # fmt: skip
    order = jobs.orders[1]
    assert (order["destination"], order["subscription"], order["of"]) == (
        Queue("orders"), "jmsaio-spark-x", "jms-queue",
    )  # fmt: skip
    assert jobs.asked == []


def test_nothing_to_delete_has_an_exit_code(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CLEANUP, "--dry-run", "--no-json"]) == NOTHING
    assert capsys.readouterr().out == "0 found\n"


@pytest.mark.parametrize("arguments", [[], ["--all", "--subscription", "jmsaio-spark-x"]])
def test_what_to_delete_is_said(jobs: Jobs, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CLEANUP, *arguments]) == USAGE
    assert "give --subscription NAME or --all" in capsys.readouterr().err
    assert jobs.orders == []
