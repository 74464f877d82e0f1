"""``jmsaio spark archive``: arguments, output and exit codes."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jmsaio.cli.app import main
from jmsaio.cli.common.output import DATA_LOSS, OK, PARTLY
from jmsaio.cli.spark.archive import stop_by_signal
from tests.cli.spark.jobs import URL, Jobs, Pace, last


def test_what_is_stored_is_archived_with_what_was_asked_for(
    jobs: Jobs, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["spark", "archive", "orders", str(tmp_path), "--once", *URL, "-o", "webServiceUrl=http://h", "--json"]
    filters = ["--selector", "a = 1", "--since", "2026-01-01", "--until", "2026-02-01"]
    assert main([*arguments, *filters, "--master", "local[4]", "--conf", "a.b=c"]) == OK
    assert last(capsys)["rows"] == 7
    assert jobs.asked == [("local[4]", {"a.b": "c"}), Pace(entries=100_000)]
    assert jobs.orders == [
        {
            "connection": {"url": "pulsar://h", "webServiceUrl": "http://h", "connect_timeout": "3.0"},
            "destination": "queue://orders", "folder": str(tmp_path), "selector": "a = 1", "since": "2026-01-01",
            "until": "2026-02-01", "fail_on_data_loss": True, "consume": None,
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "destination"),
    [(["orders"], "queue://orders"), (["-t", "news"], "topic://news"), (["-t", "queue://q"], "queue://q")],
)
def test_a_destination_is_a_queue_unless_it_says_otherwise(
    jobs: Jobs, arguments: list[str], destination: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["spark", "archive", *arguments, "folder", "--once", *URL]) == OK
    assert jobs.orders[0]["destination"] == destination


def test_an_archive_in_text_names_partitions_and_losses(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.lost = ["1:0 is gone"]
    assert main(["spark", "archive", "q", "folder", "--once", "--accept-loss", *URL, "--no-json"]) == DATA_LOSS
    assert capsys.readouterr().out.splitlines() == [
        "persistent://public/default/orders: archived up to 2:5",
        "lost: 1:0 is gone",
        "7 messages archived",
    ]
    assert jobs.orders[0]["fail_on_data_loss"] is False


def test_runs_that_were_kept_before_a_failure_are_told(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["spark", "archive", "q", "folder", "--once", "--entries", "50", *URL, "--no-json"]
    assert main(arguments) == OK
    assert jobs.asked[1] == Pace(50)
    jobs.stopped = "no space left"
    assert main(arguments) == PARTLY
    line = capsys.readouterr().out.splitlines()[-1]
    assert line == "7 messages archived; stopped, repeat the command to resume: no space left"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_archive_goes_on_until_a_signal_ends_it_in_order(
    jobs: Jobs, number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs.signal = number
    arguments = ["spark", "archive", "q", "folder", "--entries", "50", "--interval", "2.5", *URL]
    assert main([*arguments, "--json"]) == OK
    assert jobs.asked[1] == Pace(50, 2.5)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line.get("run"), line["rows"]) for line in lines] == [(1, 7), (None, 7)]
    assert main([*arguments, "--no-json"]) == OK
    assert capsys.readouterr().out.splitlines()[-1] == "7 messages archived"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_spark_starts_ends_the_archive_with_its_summary(
    jobs: Jobs, number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs.early, jobs.stopped = number, "interrupted"
    assert main(["spark", "archive", "q", "folder", "--once", *URL, "--json"]) == PARTLY
    assert last(capsys)["stopped"] == "interrupted"


def test_a_subscription_that_was_not_moved_is_told(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.more = {"subscription": "jms-queue", "unmoved": ["t"]}
    arguments = ["spark", "archive", "q", "folder", "--once", *URL, "--no-json"]
    assert main([*arguments, "--consume", "jms-queue"]) == PARTLY
    assert jobs.orders[0]["consume"] == "jms-queue"
    assert capsys.readouterr().out.endswith("; jms-queue was not moved, repeat the command to move it\n")
    jobs.more = {"subscription": "own", "unmoved": []}
    assert main([*arguments, "--consume"]) == OK
    assert jobs.orders[1]["consume"] == f"own {Path.cwd()}/folder"


def test_a_dry_run_starts_no_session(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark", "archive", "q", "folder", "--once", "--dry-run", *URL, "--no-json"]) == OK
    assert capsys.readouterr().out.splitlines() == [
        "persistent://public/default/orders: 1:0 to 2:5, 3 entries",
        "3 entries, about 500 bytes to archive",
    ]
    assert jobs.asked == []


def wait(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_a_wish_and_the_second_an_interrupt(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), stop_by_signal() as (stop, _):
        assert not stop()
        os.kill(os.getpid(), number)
        wait(stop)
        assert stop()
        os.kill(os.getpid(), number)
        wait(lambda: False)
    assert signal.getsignal(number) == before
