"""The progress and the summary of a redrive, move, copy or purge."""

import io
from typing import Any

import pytest
from rich.console import Console

from jmsaio.cli.common.outcome import progress_of, write_outcome
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


@pytest.mark.parametrize(
    ("job", "dry_run", "total", "words"),
    [
        ("move", False, 500, "120 messages moved, 130 of 500 read"),
        ("purge", True, None, "120 messages to delete, 130 read"),
    ],
)
def test_progress_is_counted_on_a_terminal(job: str, dry_run: bool, total: int | None, words: str) -> None:
    screen = io.StringIO()
    remarks = Console(file=screen, force_terminal=True, width=120, legacy_windows=False)
    with progress_of(Output(as_json=False, remarks=remarks), job, dry_run) as progress:
        assert progress is not None
        progress.total, progress.sent, progress.seen = total, 120, 130
        progress.changed(progress)
    assert words in screen.getvalue()


@pytest.mark.parametrize("as_json", [True, False])
def test_nothing_is_counted_without_a_terminal(as_json: bool) -> None:
    with progress_of(Output(as_json=as_json, remarks=Console(file=io.StringIO())), "move", False) as progress:
        assert progress is None
