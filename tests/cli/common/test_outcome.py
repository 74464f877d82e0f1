"""The summary of a redrive, move, copy or purge."""

from typing import Any

import pytest

from jmsaio.cli.common.outcome import write_outcome
from jmsaio.cli.common.output import Output


def summary(job: str, **more: Any) -> dict[str, Any]:
    return {
        "job": job, "dry_run": False, "sent": 2, "targets": {"t": 2}, "not_selected": 0, "left": {}, "unseen": [],
        "errors": [], **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("job", "dry_run", "lines"),
    [
        ("move", False, ["to t: 2", "2 messages moved"]),
        ("copy", True, ["to t: 2", "2 messages to copy"]),
        ("purge", False, ["of t: 2", "2 messages deleted"]),
        ("dlq redrive", False, ["to t: 2", "2 dead letters sent"]),
    ],
)
def test_the_summary_says_what_was_done(
    job: str, dry_run: bool, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert write_outcome(Output(as_json=False), summary(job, dry_run=dry_run)) == 0
    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize("more", [{"left": {"failed": 1}}, {"unseen": ["t"]}, {"errors": ["lost"]}])
def test_the_exit_code_reports_that_something_was_left(more: dict[str, Any]) -> None:
    assert write_outcome(Output(as_json=True), summary("move", **more)) == 5
