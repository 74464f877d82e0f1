"""A stream or an archive that is killed stores each message once; for more: ``python -m tests.spark.kill``."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jmsaio.spark.jobs.archive import ArchiveOrder, archive, read_archive
from tests.spark.kill import run_rounds
from tests.spark.kill_driver import end_session, processes_of
from tests.spark.session import environment, patiently
from tests.spark.use import send
from tests.support.broker import TestBroker


@pytest.mark.slow
@pytest.mark.xdist_group("spark processes")  # sessions of their own, beside the shared one
@pytest.mark.timeout(900)
@pytest.mark.parametrize("transactions", [False, True], ids=["files", "transactions"])
def test_a_killed_stream_loses_and_repeats_nothing(pulsar_broker: TestBroker, transactions: bool) -> None:
    """Into files, or into a queue in transactions, without ``dedup``."""
    rounds = asyncio.run(run_rounds(pulsar_broker, rounds=3, seed=7, transactions=transactions))
    assert len(rounds) == 3
    assert [one for one in rounds if not one.good] == []


def written(folder: Path) -> bool:
    """Whether a run has written a file that no log lists."""
    return any(folder.glob("destination=*/*/*.parquet"))


def listed(folder: Path) -> bool:
    """Whether the file sink has listed the files of a run that is not committed."""
    logs = (folder / "_spark_metadata", folder / "_checkpoint" / "commits")
    last, known = (max((int(each.name) for each in log.glob("[0-9]")), default=-1) for log in logs)
    return last > known


def committed(folder: Path) -> bool:
    """Whether a run is committed and the next one has begun."""
    return (folder / "_checkpoint" / "offsets" / "1").exists()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("has_come", [written, listed, committed])
def test_a_killed_archive_loses_and_repeats_nothing(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path,
    has_come: Callable[[Path], bool],
) -> None:  # fmt: skip
    queue, folder = name("killed"), tmp_path / "archive"
    ids = send(pulsar_broker.url, queue, [str(number) for number in range(40)])
    command = [sys.executable, "-m", "jmsaio", "spark", "archive", queue, str(folder), "--once"]
    command += ["-u", pulsar_broker.url, "--entries", "8"]
    has_failed = True
    while has_failed:  # as where Spark did not wait long enough for one of its Python processes
        with subprocess.Popen(command, env=environment(), start_new_session=True, stdout=subprocess.DEVNULL) as killed:
            while not has_come(folder) and killed.poll() is None:
                time.sleep(0.001)
            has_failed = bool(killed.poll())
            end_session(killed)
    assert killed.returncode < 0, "the archive was faster than the kill"
    order = ArchiveOrder(connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=str(folder))
    summary = patiently(lambda: archive(spark, order))
    while "failed to connect back" in summary.get("stopped", ""):
        summary = patiently(lambda: archive(spark, order))
    assert "stopped" not in summary
    rows = read_archive(spark, str(folder)).orderBy("position").collect()
    assert [row.JMSMessageID for row in rows] == ids


#: Starts processes in groups of their own as long as it lives, as Spark's JVM may.
_STARTER = """
import subprocess, time
for number in range(300):
    subprocess.Popen(["sleep", "60"], process_group=0)
    if number == 5:
        print(flush=True)
time.sleep(60)
"""


def test_no_process_of_a_session_outlives_its_end() -> None:
    command = [sys.executable, "-c", _STARTER]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"\n"
        assert len(processes_of(starter.pid)) > 5
        end_session(starter)
        assert processes_of(starter.pid) == {}
