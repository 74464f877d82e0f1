"""Where output goes, and that nothing in it drives a terminal."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from jmsaio import cli
from jmsaio.cli.common import output as exits
from jmsaio.cli.common.output import Output, make_output, printable, progress_of, shown_age, write_outcome
from jmsaio.cli.states import table_of
from jmsaio.maintenance.overview import DestinationState
from jmsaio.transport.base import SubscriptionStats


def test_codes_are_the_documented_ones() -> None:
    assert (exits.OK, exits.ERROR, exits.USAGE, exits.NOTHING, exits.INTERRUPTED) == (0, 1, 2, 3, 130)
    assert (exits.DATA_LOSS, exits.PARTLY) == (4, 5)
    assert "0 done, 1 error, 2 wrong usage" in (cli.__doc__ or "")


def test_json_lines_when_piped(capsys: pytest.CaptureFixture[str]) -> None:
    assert make_output(None).as_json is True
    assert make_output(False).as_json is False
    Output(as_json=True).record({"a": "é"})
    Output(as_json=True).remark("not for a program")
    output = capsys.readouterr()
    assert json.loads(output.out) == {"a": "é"}
    assert output.err == ""


def test_remarks_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False).remark("[bold]for people")
    Output(as_json=False).line("[red]as it is")
    output = capsys.readouterr()
    assert output.err.strip() == "[bold]for people"
    assert output.out.strip() == "[red]as it is"


def test_control_characters_are_escaped_but_tabs_stay() -> None:
    assert printable("a\x1b\x00\x9b\tb\u2028") == "a\\x1b\\x00\\x9b\tb\\u2028"


def test_a_lone_surrogate_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    """A message with the schema JSON can have one."""
    Output(as_json=True).record({"text": "é\ud800"})
    text = capsys.readouterr().out
    assert (text.encode(), json.loads(text)) == ('{"text": "é\\ud800"}\n'.encode(), {"text": "é\ud800"})
    assert printable("é\ud800") == r"é\ud800"


@pytest.mark.parametrize(("seconds", "text"), [(0, "0 seconds"), (119, "119 seconds"), (200000, "2 days")])
def test_an_age_is_written_in_the_unit_that_fits(seconds: float, text: str) -> None:
    assert shown_age(seconds) == text


def test_a_table_has_whole_names_and_leaves_out_what_has_no_room() -> None:
    """On a file or a pipe, all columns are shown."""
    states = [
        DestinationState(
            topic=f"persistent://public/default/{name}", name=name, producers=1, rate_in=12.5,
            subscription=SubscriptionStats("jms-queue", "Shared", backlog, 2),
        )
        for name, backlog in (("customer-orders-of-the-european-branch", 1842), ("b", 3))
    ]  # fmt: skip
    head, first, second, last = table_of(states, "batches", 80).plain.splitlines()
    assert head.split() == ["name", "batches", "unacknowledged", "consumers"]
    assert first.split() == ["customer-orders-of-the-european-branch", "1842", "0", "2"]
    assert max(map(len, (head, first, second))) <= 80
    assert last == "no room for: rate in, rate out, producers, rate redelivered, subscription"
    whole = table_of(states, "batches", None).plain.splitlines()
    assert (len(whole), whole[0].endswith("rate redelivered")) == (3, True)
    assert table_of(states, "batches", 10).plain.splitlines()[1].split()[1] == "1842"


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
