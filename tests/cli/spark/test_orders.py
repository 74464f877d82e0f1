"""Commands of Spark with the orders that the jobs really have, and a dry run that is one."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pyspark  # noqa: F401 - the jobs need it
import pytest

import jmsaio
from jmsaio.cli.app import main
from jmsaio.cli.common.output import OK, USAGE
from jmsaio.spark.jobs import archive, replay
from jmsaio.spark.jobs.archive import ArchiveOrder, Pace, subscription_of
from jmsaio.spark.jobs.replay import ReplayOrder
from tests.support.broker import TestBroker

FOLDER = f"{Path.cwd()}/folder"
URL = ["-u", "pulsar://h", "-o", "webServiceUrl=http://h"]
CONNECTION = {"url": "pulsar://h", "webServiceUrl": "http://h", "connect_timeout": "3.0"}
SUMMARY = {"rows": 0, "lost": [], "partitions": [], "undecodable": 0, "destinations": []}


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the jobs are called with, by the names of their parameters; they do nothing, and no session starts."""
    calls: list[dict[str, Any]] = []

    def stand_in(job: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(job)

        def run(*arguments: Any, **named: Any) -> dict[str, Any]:
            calls.append(dict(signature.bind(*arguments, **named).arguments))
            return SUMMARY

        return run

    @contextmanager
    def open_session(master: str, settings: dict[str, str]) -> Iterator[str]:
        yield "session"

    for module, name in ((archive, "archive"), (replay, "replay")):
        monkeypatch.setattr(module, name, stand_in(getattr(module, name)))
    monkeypatch.setattr("jmsaio.spark.session.open_session", open_session)
    return calls


@pytest.mark.parametrize(
    ("arguments", "pace"),
    [
        (["--once", "--entries", "7"], Pace(entries=7)),
        (["--entries", "7", "--interval", "5"], Pace(entries=7, interval=5.0)),
    ],
)
def test_each_way_to_archive_gets_the_order_that_was_given(
    called: list[dict[str, Any]], arguments: list[str], pace: Pace
) -> None:
    assert main(["spark", "archive", "-t", "news", "folder", *URL, *arguments, "--accept-loss", "--consume"]) == OK
    (call,) = called
    assert call["order"] == ArchiveOrder(
        connection=CONNECTION, destination="topic://news", folder=FOLDER, fail_on_data_loss=False,
        consume=subscription_of(FOLDER),
    )  # fmt: skip
    assert call["pace"] == pace


def test_an_order_that_contradicts_itself_is_wrong_usage(
    called: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["spark", "archive", "q", "folder", *URL, "--consume", "--selector", "a = 1"]) == USAGE
    assert "messages that selector leaves out" in capsys.readouterr().err
    assert called == []


@pytest.mark.parametrize("folder", ["s3a://bucket/orders?key=x", "s3a://key:secret@bucket/orders"])
def test_a_url_with_a_secret_is_refused_and_not_shown(
    called: list[dict[str, Any]], folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["spark", "archive", "q", folder, *URL]) == USAGE
    shown = capsys.readouterr().err
    assert "a URL has no credentials and no options" in shown and "bucket" not in shown
    assert called == []


def test_a_url_of_a_store_is_passed_on(called: list[dict[str, Any]]) -> None:
    url = "abfss://container@account.dfs.core.windows.net/orders"
    assert main(["spark", "archive", "q", f"{url}/", *URL, "--consume"]) == OK
    assert main(["spark", "replay", url, *URL]) == OK
    assert [call["order"].folder for call in called] == [url, url]
    assert called[0]["order"].consume == subscription_of(url)


def test_a_replay_gets_the_order_that_was_given(called: list[dict[str, Any]]) -> None:
    moves = ["--map-destination", "a=b", "--map-destination", "queue://c=topic://d"]
    assert main(["spark", "replay", "folder", *URL, *moves, "-s", "a = 1", "--allow-same", "--dedup"]) == OK
    (call,) = called
    assert call["order"] == ReplayOrder(
        connection=CONNECTION, folder=FOLDER, mapping={"a": "b", "queue://c": "topic://d"}, selector="a = 1",
        allow_same=True, dedup=True,
    )  # fmt: skip
    assert call["dry_run"] is False


def test_a_dry_run_says_what_the_broker_has_and_writes_nothing(
    pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = name("dry")

    async def send() -> None:
        async with jmsaio.connect(pulsar_broker.url) as connection, connection.create_session() as session:
            producer = await session.create_producer(session.create_queue(queue))
            for _ in range(3):
                await producer.send(session.create_text_message("text"))

    anyio.run(send)
    command = ["spark", "archive", queue, str(tmp_path / "new"), "--dry-run", "-u", pulsar_broker.url]
    assert main([*command, "--json"]) == OK
    summary = json.loads(capsys.readouterr().out)
    (partition,) = summary["partitions"]
    assert (summary["entries"], partition["topic"]) == (3, f"persistent://public/default/{queue}")
    assert summary["bytes"] == partition["bytes"] > 0
    assert main([*command, "--no-json"]) == OK
    assert f"3 entries, about {summary['bytes']} bytes to archive" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
