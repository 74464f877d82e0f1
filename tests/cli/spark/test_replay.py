"""``jmsaio spark replay``: arguments, output and exit codes."""

from __future__ import annotations

import pytest

from jmsaio.cli.app import main
from jmsaio.cli.common.output import OK, PARTLY
from tests.cli.spark.jobs import URL, Jobs


def test_an_archive_is_replayed_where_it_was_mapped_to(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["spark", "replay", "folder", *URL, "--map-destination", "orders=copy", "--rate", "10", "--no-json"]
    assert main(arguments) == OK
    assert capsys.readouterr().out.splitlines() == ["queue://orders to queue://copy: 4", "4 messages sent"]
    order = jobs.orders[0]
    assert (order["mapping"], order["rate"], order["allow_same"]) == ({"orders": "copy"}, 10.0, False)
    jobs.undecodable = 2
    assert main([*arguments, "--dry-run"]) == PARTLY
    assert "4 messages to send, 2 left out" in capsys.readouterr().out


def test_a_replay_that_deduplicates_does_not_say_that_all_was_sent(
    jobs: Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["spark", "replay", "folder", *URL, "--dedup", "--no-json"]) == OK
    assert "4 messages offered; the broker drops those that it already has\n" in capsys.readouterr().out
