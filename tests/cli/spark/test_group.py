"""The group of commands, and ``check`` and ``replay``: arguments, output, exit codes."""

from __future__ import annotations

import pytest

from jmsaio.cli.app import main
from jmsaio.cli.common.output import ERROR, OK, PARTLY, USAGE
from tests.cli.spark.jobs import URL, Finding, Jobs, last


def test_the_group_alone_shows_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark"]) == OK
    output = capsys.readouterr().out
    assert all(name in output for name in ("archive", "check", "replay"))


def test_a_check_says_of_each_thing_whether_it_is_there(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark", "check", *URL, "--no-json"]) == OK
    assert capsys.readouterr().out.splitlines() == ["ok    java: /usr/bin/java", "ok    worker: python", "all is there"]
    assert jobs.asked[1] == {"url": "pulsar://h", "connect_timeout": "3.0"}
    jobs.worker = [Finding("pyarrow on the worker", "missing", "install it")]
    assert main(["spark", "check", *URL, "--json"]) == ERROR
    summary = last(capsys)
    assert summary["ok"] is False
    assert summary["findings"][1] == {"what": "pyarrow on the worker", "found": "missing", "advice": "install it"}


def test_a_check_that_fails_early_starts_no_session(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.driver = [Finding("java", "missing", "install Java 17")]
    assert main(["spark", "check", *URL, "--no-json"]) == ERROR
    assert "FAIL  java: install Java 17" in capsys.readouterr().out
    assert jobs.asked == []


def test_a_session_that_does_not_start_is_a_finding(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.failure = RuntimeError("\nJava gateway process exited\nmore")
    assert main(["spark", "check", *URL, "--no-json"]) == ERROR
    assert "session: Spark did not start at local[2]: Java gateway process exited; see" in capsys.readouterr().out


def test_a_connection_that_the_source_refuses_starts_no_session(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark", "check", *URL, "-o", "authPlugin=token", "-o", "authParams=token:x"]) == USAGE
    assert "a secret does not belong in an option" in capsys.readouterr().err
    assert jobs.asked == []


def test_an_archive_is_replayed_where_it_was_mapped_to(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["spark", "replay", "folder", *URL, "--map-destination", "orders=copy", "--no-json"]
    assert main(arguments) == OK
    assert capsys.readouterr().out.splitlines() == ["queue://orders to queue://copy: 4", "4 messages sent"]
    order = jobs.orders[0]
    assert (order["mapping"], order["allow_same"]) == ({"orders": "copy"}, False)
    jobs.undecodable = 2
    assert main([*arguments, "--dry-run"]) == PARTLY
    assert "4 messages to send, 2 left out" in capsys.readouterr().out


def test_a_replay_that_deduplicates_does_not_say_that_all_was_sent(
    jobs: Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["spark", "replay", "folder", *URL, "--dedup", "--no-json"]) == OK
    assert "4 messages offered; the broker drops those that it already has\n" in capsys.readouterr().out
