"""An archive in one run, in several, and until it is stopped."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import attrs
import httpx
import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession

import jmsaio
from jmsaio.errors import ConfigurationError, DataLossError, IllegalStateError, NotFoundError
from jmsaio.spark import worker as workers
from jmsaio.spark.arrow.columns import TIMESTAMP
from jmsaio.spark.jobs import archive as archiving
from jmsaio.spark.jobs.archive import (
    Pace,
    Write,
    archive,
    describe_archive,
    open_archive,
    pace_text,
    run_record,
    store_run,
)
from jmsaio.spark.jobs.extent import ArchiveOrder, plan_archive
from jmsaio.spark.jobs.files import Written, files_of, open_file, read_archive, write_batches, write_in_spark
from jmsaio.spark.jobs.manifest import NAME, ArchivedPart, Manifest, read_manifest, write_manifest
from jmsaio.spark.jobs.report import report_archive
from jmsaio.spark.jobs.verify import verify
from jmsaio.spark.model.folder import AnyPath, HdfsPath, StorePath, folder_at
from jmsaio.spark.model.places import Place
from jmsaio.spark.options.parse import SourceOptions
from jmsaio.spark.planning import plan
from jmsaio.spark.planning.ranges import Range
from jmsaio.testing import FaultProxy
from tests.spark.store import KEY, SECRET, make_bucket, start_server, variables
from tests.spark.use import backlog, send
from tests.support.broker import TestBroker

ONE_RUN, FOUR = Pace(entries=None), Pace(entries=4)


def archive_in_one_run(session: SparkSession, order: ArchiveOrder) -> dict[str, Any]:
    """Archive what is stored now."""
    return archive(session, order, ONE_RUN)


def test_each_message_is_archived_once_also_after_a_crash(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], folder: AnyPath
) -> None:
    queue = name("archived")
    order = ArchiveOrder(connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=folder)
    data = jmsaio.BytesMessage(b"\x00\xff")
    data.set_int_property("n", 5)
    ids = send(pulsar_broker.url, queue, ["a", "b", data])
    planned = describe_archive(order)
    assert (planned["entries"], planned["lost"]) == (3, [])
    assert list(folder.glob("*")) == []

    first = archive_in_one_run(spark, order)
    assert (first["rows"], first["archived"], first["undecodable"]) == (3, 3, 0)
    assert archive_in_one_run(spark, order)["rows"] == 0

    # A run that crashed has written files, and moved one of them, but not the manifest.
    (done,) = folder.glob("*/*/run-000001-*.parquet")
    for left in (moved_by_the_next_run(done), folder / "_writing" / "part.parquet"):
        left.parent.mkdir(exist_ok=True)
        left.write_bytes(done.read_bytes())
    ids += send(pulsar_broker.url, queue, ["c"])
    second = archive_in_one_run(spark, order)
    assert (second["rows"], second["archived"], second["files"]) == (1, 4, 1)

    rows = rows_of(spark, folder)
    assert [row.JMSMessageID for row in rows] == ids
    assert [bytes(row.payload) for row in rows] == [b"a", b"b", b"\x00\xff", b"c"]
    assert (rows[2].body_type, rows[2].properties, rows[2].property_types) == ("bytes", {"n": "5"}, {"n": "int"})
    assert {row.destination for row in rows} == {f"queue://{queue}"}
    assert {row.date for row in rows} <= {row.publish_time.date() for row in rows}
    assert isinstance(rows[0].date, datetime.date)

    manifest = read_manifest(folder)
    assert manifest is not None and (manifest.runs, manifest.rows) == (2, 4)
    assert verify(spark, folder)["problems"] == []
    assert len(list(folder.glob("*/*/*.parquet"))) == 2
    (file,) = folder.glob("*/*/run-000002-*.parquet")
    file.unlink()
    (problem, _) = verify(spark, folder)["problems"]
    assert "1 of 4 rows are missing" in problem


def moved_by_the_next_run(done: AnyPath) -> AnyPath:
    """Where the run after the first leaves a file if it crashes; in a store, its writer differs."""
    return done.parent / done.name.replace("run-000001-", f"run-000002-{'' if isinstance(done, Path) else '0' * 12}-")


def rows_of(spark: SparkSession, folder: AnyPath) -> list[Row]:
    """The rows of an archive, in their order."""
    manifest = read_manifest(folder)
    assert manifest is not None
    frame = read_archive(spark, folder, manifest)
    return [] if frame is None else frame.orderBy("position").collect()


@pytest.mark.parametrize("pace", [ONE_RUN, FOUR])
def test_an_accepted_loss_is_told_by_the_first_archive_that_does_not_fail(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], folder: AnyPath, pace: Pace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    queue = name("lost")
    order = ArchiveOrder(connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=folder)
    send(pulsar_broker.url, queue, ["a"])
    assert archive(spark, order, pace)["rows"] == 1
    url = f"{pulsar_broker.web_service_url}/admin/v2/persistent/public/default/{queue}?force=true"
    httpx.delete(url, timeout=30).raise_for_status()
    send(pulsar_broker.url, queue, ["b"])
    with pytest.raises(DataLossError):
        archive(spark, order, pace)

    def fail(folder: AnyPath, manifest: Manifest) -> Manifest:
        if manifest.runs > 1:
            raise OSError("no space left")
        return write_manifest(folder, manifest)

    accepting = attrs.evolve(order, fail_on_data_loss=False)
    with monkeypatch.context() as patch, pytest.raises(OSError, match="no space"):
        patch.setattr(archiving, "write_manifest", fail)
        archive(spark, accepting, pace)
    summary = archive(spark, order, pace)
    assert (len(summary["lost"]), summary["rows"], queue in summary["lost"][0]) == (1, 1, True)
    assert archive(spark, accepting, pace)["lost"] == []


def test_two_runs_do_not_archive_into_one_folder_at_a_time(tmp_path: Path) -> None:
    order = ArchiveOrder(connection={"url": "pulsar://broker:6650"}, destination="queue://q", folder=tmp_path)
    with open_archive(order) as archived:
        assert archived.runs == 0
        with pytest.raises(IllegalStateError, match="another run archives into"), open_archive(order):
            pass
    with open_archive(order) as archived:
        assert archived.rows == 0


def test_two_runs_in_one_folder_of_a_store_do_not_both_archive(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], store: StorePath
) -> None:
    queue = name("two")
    order = ArchiveOrder(connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=store)
    ids = send(pulsar_broker.url, queue, ["a", "b", "c"])
    later: list[dict[str, Any]] = []

    def begin_another(record: Mapping[str, Any]) -> None:
        if not later:
            later.append(archive(spark, order, Pace(entries=1)))

    first = archive(spark, order, Pace(entries=1), report=begin_another)
    assert (first["rows"], first["stopped"].startswith(f"another run archives into {store}")) == (1, True)
    assert (later[0]["rows"], later[0]["archived"]) == (2, 3)
    shown = f"{first} {later} {order} {(store / NAME).read()[0].decode()}"
    assert KEY not in shown and SECRET not in shown
    left = [path for path in store.glob("*/*/*.parquet") if "run-000002-" in path.name]
    assert len(left) == 2  # one is of the first call, which was not added
    assert [row.JMSMessageID for row in rows_of(spark, store)] == ids
    assert verify(spark, store)["problems"] == report_archive(store)["problems"] == []
    assert archive(spark, order)["rows"] == 0
    assert len(set(left) & set(store.files())) == 1


def test_a_run_that_another_one_takes_over_from_is_not_added(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], store: StorePath,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    queue = name("over")
    order = ArchiveOrder(connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=store)
    ids = send(pulsar_broker.url, queue, ["a", "b", "c"])

    def write_and_be_followed(
        session: SparkSession, options: SourceOptions, tasks: Sequence[Sequence[Range]], staging: AnyPath
    ) -> Written:
        written = [*write_in_spark(session, options, tasks, staging)]
        monkeypatch.setattr(archiving, "write_in_spark", write_in_spark)
        assert archive_in_one_run(spark, order)["archived"] == 3
        return written

    monkeypatch.setattr(archiving, "write_in_spark", write_and_be_followed)
    with pytest.raises(IllegalStateError, match=f"another run archives into the same folder: it deleted {store}/"):
        archive_in_one_run(spark, order)
    assert [row.JMSMessageID for row in rows_of(spark, store)] == ids
    assert verify(spark, store)["problems"] == []


def test_a_run_deletes_only_files_that_were_there_before_it_took_over(
    store: StorePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = ArchiveOrder(connection={"url": "pulsar://broker:6650"}, destination="queue://q", folder=store)
    with open_archive(order) as first:
        day = store / "destination=q" / "date=2026-01-01"
        old, newer = day / f"{first.prefix}x.parquet", day / f"run-000001-{'0' * 12}-x.parquet"
        old.write_bytes(b"")

    def write_and_be_followed(folder: AnyPath, manifest: Manifest) -> Manifest:
        written = write_manifest(folder, manifest)
        newer.write_bytes(b"")  # by a run that took over next
        return written

    with monkeypatch.context() as patch:
        patch.setattr(archiving, "write_manifest", write_and_be_followed)
        with open_archive(order):
            assert {old, newer} & set(store.files()) == {newer}
    with pytest.raises(IllegalStateError, match="another run archives into"):
        write_manifest(store, first.after_run([]))


@pytest.mark.parametrize("ignored", ["If-Match", "If-None-Match"])
def test_a_store_that_ignores_a_condition_is_refused(ignored: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with start_server(ignored) as port:
        for variable, value in variables(port).items():
            monkeypatch.setenv(variable, value)
        order = ArchiveOrder(connection={}, destination="queue://q", folder=folder_at(f"{make_bucket()}/folder"))
        with (
            pytest.raises(ConfigurationError, match=f"^{order.folder}: its store ignores") as refused,
            open_archive(order),
        ):
            pass
    assert "archive into a folder that is mounted" in str(refused.value)


def test_a_selector_and_times_stay_those_of_the_archive(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path
) -> None:
    queue = name("chosen")
    send(pulsar_broker.url, queue, ["a"])
    chosen = ArchiveOrder(
        connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=tmp_path,
        selector="n IS NOT NULL", since="2020-01-01",
    )  # fmt: skip
    assert archive_in_one_run(spark, chosen)["archived"] == 0
    numbered = jmsaio.TextMessage("b")
    numbered.set_int_property("n", 1)
    send(pulsar_broker.url, queue, [numbered])
    assert archive_in_one_run(spark, chosen)["archived"] == 1
    assert verify(spark, tmp_path)["problems"] == []
    other = ArchiveOrder(connection=chosen.connection, destination=chosen.destination, folder=tmp_path)
    with pytest.raises(ConfigurationError, match="selector"):
        archive_in_one_run(spark, other)


def table_of_days() -> pa.Table:
    """70 rows of seven days."""
    times = pa.array([number % 7 * 86_400_000_000 for number in range(70)], TIMESTAMP)
    return pa.table({
        "destination": ["queue://q"] * 70, "topic": ["t"] * 70, "publish_time": times,
        "position": [{"ledger": 1, "entry": number, "batch": -1} for number in range(70)],
        "decode_error": pa.nulls(70, pa.string()), "text": [str(number) for number in range(70)],
    })  # fmt: skip


def test_rows_of_many_days_are_archived_whole(folder: AnyPath) -> None:
    order = ArchiveOrder(connection={"url": "pulsar://broker:6650"}, destination="queue://q", folder=folder)
    archived, run = store_run(
        partial(write_batches, table_of_days().to_batches(30)),
        order,
        Manifest(destination="queue://q"),
        [Range("t", Place(1, 0), Place(1, 70))],
    )
    assert (run.files, run.rows, archived.rows) == (7, 70, 70)
    found: dict[str, list[int]] = {}
    for path in files_of(folder, archived):
        with open_file(path) as file:
            found[path.parent.name] = [row["position"]["entry"] for row in file.read(["position"]).to_pylist()]
    assert found == {f"date=1970-01-0{day + 1}": list(range(day, 70, 7)) for day in range(7)}


def test_what_a_manifest_counts_survives_a_loss_of_power(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file and folder is on the disk before the manifest that counts it."""
    folder = tmp_path / "new" / "archive"
    order = ArchiveOrder(connection={"url": "pulsar://broker:6650"}, destination="queue://q", folder=folder)
    synced: list[Path] = []

    def sync(number: int) -> None:
        synced.append(Path(f"/proc/self/fd/{number}").readlink())

    monkeypatch.setattr("os.fsync", sync)
    with open_archive(order) as begun:
        assert {*synced} == {tmp_path, folder.parent}
        written = [*write_batches(table_of_days().to_batches(), folder / "_writing")]
        assert synced[2:] == [path for path, _ in written]
        archived, _ = store_run(lambda _: written, order, begun, [Range("t", Place(1, 0), Place(1, 70))])
    days = {file.parent for file in files_of(folder, archived)}
    manifest = synced.index(folder / f"{NAME}.new")
    assert {*synced[2 + len(written) : manifest]} == {folder, *days, *(day.parent for day in days)}
    assert synced[manifest + 1 :] == [folder]  # it has the new name


def test_files_of_an_archive_without_its_manifest_are_kept(store: StorePath) -> None:
    order = ArchiveOrder(connection={"url": "pulsar://broker:6650"}, destination="queue://q", folder=store)
    file = store / "destination=q" / "date=2026-01-01" / f"run-000007-{'0' * 12}-x.parquet"
    file.write_bytes(b"")
    with pytest.raises(ConfigurationError, match=f"{store} has files of an archive, but no _manifest.json: restore"):
        with open_archive(order):
            pass
    assert store.files() == [file]


def test_of_what_a_killed_writer_left_in_hdfs_no_folder_remains(hdfs: str) -> None:
    folder = folder_at(f"{hdfs}/killed")
    assert isinstance(folder, HdfsPath)
    order = ArchiveOrder(connection={"url": "pulsar://broker:6650"}, destination="queue://q", folder=folder)
    with open_archive(order) as killed:
        (folder / "_writing" / killed.writer / "destination=q" / "date=2026-01-01" / "x.parquet").write_bytes(b"")
        write_manifest(folder, killed.after_run([]))
    with open_archive(order):
        assert (folder / "_writing")._list() == {}


def test_a_task_that_cannot_write_says_why(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path
) -> None:
    queue = name("full")
    send(pulsar_broker.url, queue, ["a"])
    (tmp_path / "_writing").write_text("no folder")
    order = ArchiveOrder(connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=tmp_path)
    with pytest.raises(jmsaio.JMSError, match=f"^a file of the archive can't be written: .*{tmp_path}/_writing"):
        archive(spark, order, ONE_RUN)


def no_session() -> SparkSession:
    """Take the place of a function that starts Spark."""
    raise AssertionError("a small run needs no session")


def test_what_this_process_archives_is_what_spark_archives(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], folder: AnyPath,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    """All columns and the folders, of several queues, from a time on; and another run adds to it."""
    queues = [name("small"), name("other")]
    data = jmsaio.MapMessage({"a": 5, "b": "\u00e9"})
    data.set_long_property("n", 2**40)
    send(pulsar_broker.url, queues[0], ["too early"])
    time.sleep(0.01)
    since = str(round(time.time() * 1000))
    ids = send(pulsar_broker.url, queues[0], ["a", data])
    ids += send(pulsar_broker.url, queues[1], [jmsaio.BytesMessage(b"\x00"), jmsaio.Message()])

    def order(folder: AnyPath) -> ArchiveOrder:
        destination = f"queue://multi:{','.join(queues)}"
        connection = {"url": pulsar_broker.url}
        return ArchiveOrder(connection=connection, destination=destination, folder=folder, since=since)

    other = tmp_path_factory.mktemp("spark")
    here, there = archive(no_session, order(folder), ONE_RUN), archive(spark, order(other), ONE_RUN)
    assert {**here, "folder": "", "seconds": 0} == {**there, "folder": "", "seconds": 0}
    assert (here["rows"], workers._workers) == (4, {})
    found, wanted = rows_of(spark, folder), rows_of(spark, other)
    assert [row.asDict() for row in found] == [row.asDict() for row in wanted]
    assert {row.JMSMessageID for row in found} == set(ids)
    ids += send(pulsar_broker.url, queues[1], ["b"])
    assert (archive(spark, order(folder), ONE_RUN)["archived"], archive(no_session, order(folder))["rows"]) == (5, 0)
    assert {row.JMSMessageID for row in rows_of(spark, folder)} == set(ids)
    assert verify(spark, folder)["problems"] == report_archive(folder)["problems"] == []


def test_the_first_run_of_an_archive_that_goes_on_is_small_and_spark_starts_for_the_next(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], folder: AnyPath,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for module in (archiving, plan):
        monkeypatch.setattr(module, "SMALL_ENTRIES", 2)
    queue = name("begins")
    order = ArchiveOrder(connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=folder)
    ids = send(pulsar_broker.url, queue, ["1", "2", "3", "4", "5"])
    runs: list[tuple[int, bool]] = []
    started: list[SparkSession] = []

    def start() -> SparkSession:
        started.append(spark)
        return spark

    summary = archive(
        start, order, Pace(interval=600),  # it does not wait for what the first run has left
        stop=lambda: len(runs) == 2, report=lambda record: runs.append((record["rows"], bool(started))),
    )  # fmt: skip
    assert (runs, len(started), summary["rows"]) == ([(2, False), (3, True)], 1, 5)
    assert [row.JMSMessageID for row in rows_of(spark, folder)] == ids


def test_an_archive_that_goes_on_has_no_end(spark: SparkSession, tmp_path: Path) -> None:
    order = ArchiveOrder(
        connection={"url": "pulsar://h"}, destination="queue://q", folder=tmp_path, until="2026-01-01"
    )  # fmt: skip
    with pytest.raises(ConfigurationError, match="omit until"):
        archive(spark, order, Pace(interval=1))


def test_an_archive_goes_on_with_what_comes_until_it_is_told_to_stop(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path
) -> None:
    queue, told = name("on"), list[Mapping[str, Any]]()
    order = ArchiveOrder(
        connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=tmp_path, consume="jms-queue"
    )
    ids = send(pulsar_broker.url, queue, ["a", "b"])

    def report(record: Mapping[str, Any]) -> None:
        told.append(record)
        if len(told) == 1:
            ids.extend(send(pulsar_broker.url, queue, ["c"]))

    summary = archive(spark, order, Pace(entries=2, interval=1), stop=lambda: len(told) > 1, report=report)
    assert [(each["run"], each["rows"], each["archived"]) for each in told] == [(1, 2, 2), (2, 1, 3)]
    assert (told[0]["entries_behind"], told[0]["seconds_left"]) == (0, 0)
    assert told[0]["rows_per_second"] is not None
    assert (summary["rows"], summary["archived"], "stopped" in summary) == (3, 3, False)
    assert summary["files"] == sum(each["files"] for each in told) >= 2
    assert (summary["subscription"], summary["unmoved"]) == ("jms-queue", [])
    assert backlog(pulsar_broker, queue, "jms-queue") == 0
    assert [row.JMSMessageID for row in spark.read.parquet(str(tmp_path)).orderBy("position").collect()] == ids


def test_an_archive_that_goes_on_waits_for_a_broker_that_is_out_of_reach(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path
) -> None:
    queue, told = name("outage"), list[Mapping[str, Any]]()
    send(pulsar_broker.url, queue, ["a"])
    with FaultProxy.of(pulsar_broker.service_url) as proxy:
        url = pulsar_broker.url.replace(pulsar_broker.service_url, proxy.url)
        order = ArchiveOrder(
            connection={"url": url, "connect_timeout": "5"}, destination=f"queue://{queue}", folder=tmp_path
        )  # fmt: skip

        def report(record: Mapping[str, Any]) -> None:
            told.append(record)
            if len(told) == 1:
                proxy.take_down()
            elif record.get("unreachable"):
                proxy.bring_up()
                send(pulsar_broker.url, queue, ["b"])

        summary = archive(spark, order, Pace(interval=1), stop=lambda: len(told) > 3, report=report)
    first, begun, ended, second = told
    assert (first["rows"], second["rows"], second["run"]) == (1, 1, 2)
    assert begun["unreachable"] and pace_text(begun) == f"waiting for the broker: {begun['unreachable']}"
    assert ended == {"job": "archive", "unreachable": None}
    assert pace_text(ended) == "the broker answers again"
    assert (summary["rows"], "stopped" in summary) == (2, False)


def test_runs_before_a_failure_stay_and_the_next_call_goes_on(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], folder: AnyPath,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    queue = name("once")
    order = ArchiveOrder(connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=folder)
    with pytest.raises(NotFoundError):
        archive(spark, order)
    ids = send(pulsar_broker.url, queue, [str(number) for number in range(10)])

    def fail_later(
        write: Write, order: ArchiveOrder, archived: Manifest, ranges: Iterable[Range]
    ) -> tuple[Manifest, Manifest]:
        if archived.runs:
            raise OSError("no space left")
        return store_run(write, order, archived, ranges)

    with monkeypatch.context() as patch:
        patch.setattr(archiving, "store_run", fail_later)
        first = archive(spark, order, FOUR)
    assert (first["rows"], first["archived"]) == (4, 4)
    assert first["stopped"] == "no space left"

    begun = archive(spark, order, FOUR, stop=lambda: True)
    assert begun["stopped"] == "interrupted"
    second = archive(spark, order, FOUR)
    assert (begun["rows"] + second["rows"], second["archived"], "stopped" in second) == (6, 10, False)
    assert archive(spark, order, ONE_RUN)["rows"] == 0
    assert verify(spark, folder)["problems"] == []
    assert [row.JMSMessageID for row in rows_of(spark, folder)] == ids


PARTS = (
    ArchivedPart(topic="t", start=Place(1, 0), end=Place(1, 9), rows=6),
    ArchivedPart(topic="u", start=Place(2, 0), end=Place(2, 1)),
)
RUN = Manifest(destination="queue://q", runs=3, parts=PARTS, files=2)


def test_runs_that_follow_each_other_are_summed() -> None:
    later = ArchivedPart(topic="u", start=Place(2, 1), end=Place(3, 4), rows=4, undecodable=2)
    both = RUN.after_run((later,), ("lost",), files=1)
    assert both.runs == 4
    assert both.parts == (PARTS[0], ArchivedPart(topic="u", start=Place(2, 0), end=Place(3, 4), rows=4))
    assert (both.rows, both.files, both.parts[1].undecodable, both.lost) == (10, 3, 2, ("lost",))


def test_time_left_is_what_is_left_at_the_speed_of_the_run() -> None:
    record = run_record(3, RUN, 12, 2.0, entries=50, behind=100)
    assert record == {
        "job": "archive", "run": 3, "rows": 6, "files": 2, "archived": 12, "lost": [], "seconds": 2.0,
        "rows_per_second": 3.0, "entries_behind": 100, "seconds_left": 4,
    }  # fmt: skip
    assert pace_text(record) == "3 runs, 12 messages, 3.0/s, 100 entries behind, 4 s left"


@pytest.mark.parametrize("seconds", [0.0, 0.01])
def test_nothing_left_takes_no_time(seconds: float) -> None:
    record = run_record(1, RUN, 6, seconds, entries=50, behind=0)
    assert (record["entries_behind"], record["seconds_left"]) == (0, 0)
    assert pace_text(record).endswith(", 0 entries behind")


def test_messages_are_consumed_behind_the_manifest_that_counts_them(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    queue = name("consumed")
    order = ArchiveOrder(
        connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=tmp_path, consume="follower"
    )
    send(pulsar_broker.url, queue, ["a", "b", "c"])

    def fail(folder: AnyPath, manifest: Manifest) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="no space"):
        patch.setattr(archiving, "write_manifest", fail)
        archive(spark, order, ONE_RUN)
    assert backlog(pulsar_broker, queue, "follower") == 3
    summary = archive(spark, order, ONE_RUN)
    assert (summary["archived"], summary["subscription"], summary["unmoved"]) == (3, "follower", [])
    assert backlog(pulsar_broker, queue, "follower") == 0
    assert backlog(pulsar_broker, queue, "jms-queue") == 3


def test_a_subscription_with_consumers_is_refused_before_anything_is_archived(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path
) -> None:
    queue = name("busy")
    order = ArchiveOrder(
        connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=tmp_path, consume="jms-queue"
    )
    send(pulsar_broker.url, queue, ["a"])

    async def refuse() -> None:
        async with jmsaio.connect(pulsar_broker.url) as connection, connection.create_session() as session:
            await session.create_consumer(session.create_queue(queue))
            with pytest.raises(ConfigurationError, match=r"^consume: 'jms-queue' of .* has 1 consumers"):
                await anyio.to_thread.run_sync(archive, spark, order)

    anyio.run(refuse)
    assert backlog(pulsar_broker, queue, "jms-queue") == 1
    assert archive(spark, order)["rows"] == 1
    assert backlog(pulsar_broker, queue, "jms-queue") == 0


def test_a_move_that_fails_is_told_and_leaves_what_was_archived(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path
) -> None:
    queue = name("unmoved")
    order = ArchiveOrder(
        connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=tmp_path, consume="jms-queue"
    )
    send(pulsar_broker.url, queue, ["a"])

    async def run() -> dict[str, Any]:
        async with jmsaio.connect(pulsar_broker.url) as connection, connection.create_session() as session:

            def consume(record: Mapping[str, Any]) -> None:
                anyio.from_thread.run(session.create_consumer, session.create_queue(queue))

            return await anyio.to_thread.run_sync(lambda: archive(spark, order, report=consume))

    summary = anyio.run(run)
    topic = f"persistent://public/default/{queue}"
    assert (summary["archived"], summary["subscription"], summary["unmoved"]) == (1, "jms-queue", [topic])
    assert backlog(pulsar_broker, queue, "jms-queue") == 1
    assert archive(spark, order)["unmoved"] == []
    assert backlog(pulsar_broker, queue, "jms-queue") == 0


def test_what_the_broker_deletes_is_no_loss_unless_the_subscription_was_moved_on_by_others(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path
) -> None:
    queue = name("trimmed")
    topic = f"{pulsar_broker.web_service_url}/admin/v2/persistent/public/default/{queue}"
    order = ArchiveOrder(
        connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=tmp_path, consume="jms-queue"
    )
    send(pulsar_broker.url, queue, ["a", "b"])
    archive(spark, order)
    archived = read_manifest(tmp_path)
    assert archived is not None
    (first,) = archived.parts
    httpx.put(f"{topic}/unload", timeout=30).raise_for_status()
    send(pulsar_broker.url, queue, ["c"])

    end = time.monotonic() + 60
    while str(first.start.ledger) in json.dumps(httpx.get(f"{topic}/internalStats", timeout=30).json()["ledgers"]):
        assert time.monotonic() < end, "the broker keeps the ledger that was consumed"
        httpx.post(f"{topic}/trim", timeout=30)
    plan = plan_archive(order, archived)
    assert (plan.losses, [each.entries() for each in plan.ranges]) == ((), [1])
    assert backlog(pulsar_broker, queue, "jms-queue") == 1
    beside = attrs.evolve(order, consume=None)  # the mark of the subscription shows that nothing else was deleted
    assert plan_archive(beside, archived) == plan

    httpx.post(f"{topic}/subscription/jms-queue/skip_all", timeout=30).raise_for_status()
    for each in (order, beside):
        with pytest.raises(DataLossError):
            plan_archive(each, archived)
