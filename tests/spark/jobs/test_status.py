"""What is known of a stream or an archive without Spark."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pyarrow  # noqa: F401 - the module under test needs it
import pytest
from pyspark.sql import SparkSession

from jmsaio.cli.app import main
from jmsaio.cli.common.output import DATA_LOSS, OK
from jmsaio.errors import ConfigurationError
from jmsaio.spark.jobs.archive import ArchiveOrder, archive
from jmsaio.spark.jobs.status import status
from tests.spark.session import patiently
from tests.spark.use import send
from tests.support.broker import TestBroker

Name = Callable[[str], str]


def checkpoint(folder: Path, committed: int, *batches: dict[str, Any] | str) -> Path:
    """A checkpoint as Spark writes it, of sources with these offsets, the first ``committed`` of which are done."""
    for kind in ("offsets", "commits"):
        (folder / kind).mkdir(parents=True)
    for number, offset in enumerate(batches):
        lines = ["v1", json.dumps({"batchTimestampMs": 1000 + number}), "-", json.dumps(offset)]
        (folder / "offsets" / str(number)).write_text("\n".join(lines))
        (folder / "offsets" / f".{number}.crc").write_text("")
        if number < committed:
            (folder / "commits" / str(number)).write_text("v1\n{}")
    return folder


def offset(**places: str) -> dict[str, Any]:
    return {"v": 1, "p": places}


@pytest.mark.parametrize(
    ("batches", "committed", "words"),
    [
        ([], 0, "is neither an archive nor the checkpoint of a stream that has begun"),
        ([{"topic": {"0": 23}}], 1, "is the checkpoint of a stream without a source jms"),
        ([{"v": 9, "p": {}}], 1, "the checkpoint is of another version"),
    ],
)
def test_a_folder_of_something_else_is_refused(
    tmp_path: Path, batches: list[dict[str, Any]], committed: int, words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        status({"url": "pulsar://h"}, str(checkpoint(tmp_path, committed, *batches)))


def test_a_stream_that_has_committed_nothing_has_no_places(tmp_path: Path) -> None:
    found = status({"url": "pulsar://h"}, str(checkpoint(tmp_path, 0, offset(a="1:2"))))
    assert (found["partitions"], found["entries"], found["oldest"]) == ([], 0, None)
    assert found["last"] == {"batch": 0, "committed": False, "began": "1970-01-01T00:00:01.000Z"}


def test_a_checkpoint_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    checkpoint(tmp_path, 1, offset(a="1:2"))
    (tmp_path / "offsets" / "0").write_text("v1\n{")
    with pytest.raises(ConfigurationError, match="offsets/0 can't be read: "):
        status({"url": "pulsar://h"}, str(tmp_path))


def test_a_stream_is_behind_by_what_came_after_its_last_committed_batch(
    spark: SparkSession, pulsar_broker: TestBroker, name: Name, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queue, folder, noted = name("status"), tmp_path / "checkpoint", tmp_path / "lost"
    send(pulsar_broker.url, queue, [str(number) for number in range(6)])
    options = {"url": pulsar_broker.url, "queue": queue, "startingOffsets": "earliest", "maxEntriesPerTrigger": "4"}
    writer = spark.readStream.format("jms").options(**options).load().writeStream.format("noop")
    query = writer.option("checkpointLocation", str(folder)).trigger(availableNow=True).start()
    assert query.awaitTermination(100)
    connection, topic = {"url": pulsar_broker.url}, f"persistent://public/default/{queue}"
    found = status(connection, str(folder))
    [part] = found["partitions"]
    assert (found["kind"], found["entries"], found["bytes"], found["oldest"], found["missing"]) == (
        "stream", 0, 0, None, [],
    )  # fmt: skip
    assert query.lastProgress is not None
    last = json.loads(query.lastProgress["sources"][0]["endOffset"])
    assert (part["topic"], part["place"]) == (topic, last["p"][topic])
    assert found["last"].pop("began").startswith(str(datetime.datetime.now(datetime.UTC).year))
    assert found["last"] == {"batch": 1, "committed": True}

    (folder / "commits" / "1").unlink()  # as if the stream had been killed in its last batch
    found = status(connection, str(folder))
    assert (found["entries"], found["last"]["committed"]) == (2, False)
    assert found["bytes"] > 0
    assert datetime.datetime.fromisoformat(found["oldest"]) < datetime.datetime.now(datetime.UTC)
    noted.mkdir()
    (noted / "1.txt").write_text("it is gone\n")
    arguments = ["spark", "status", str(folder), "-u", pulsar_broker.url]
    assert main([*arguments, "--losses", str(noted), "--json"]) == OK
    shown = json.loads(capsys.readouterr().out)
    assert shown == {**found, "lost": ["it is gone"]}

    path = f"{pulsar_broker.web_service_url}/admin/v2/persistent/public/default/{queue}"
    httpx.delete(path, params={"force": True}, timeout=60).raise_for_status()
    assert main([*arguments, "--no-json"]) == DATA_LOSS
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"missing: {topic}: messages from ")
    assert lines[-1].startswith("0 entries, about 0 bytes behind; batch 1, committed False, began 2")


def test_an_archive_is_behind_by_what_it_has_not_archived(
    spark: SparkSession, pulsar_broker: TestBroker, name: Name, tmp_path: Path
) -> None:
    queue, folder = name("status"), tmp_path / "archive"
    send(pulsar_broker.url, queue, ["1", "2"])
    connection = {"url": pulsar_broker.url}
    order = ArchiveOrder(connection=connection, destination=f"queue://{queue}", folder=str(folder))
    patiently(lambda: archive(spark, order))
    send(pulsar_broker.url, queue, ["3", "4", "5"])
    found = status(connection, str(folder))
    [part] = found["partitions"]
    assert (found["kind"], found["entries"], part["entries"]) == ("archive", 3, 3)
    assert (found["last"]["committed"], found["lost"]) == (True, [])
    (folder / "_losses").mkdir()
    (folder / "_losses" / "1.txt").write_text("it is gone\n")
    assert status(connection, folder.as_uri())["lost"] == ["it is gone"]
