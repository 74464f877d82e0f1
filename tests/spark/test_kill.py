"""A stream or an archive that is killed stores each message once; for more: ``python -m tests.spark.kill``."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jmsaio.spark.jobs.files import files_of, open_file
from jmsaio.spark.jobs.manifest import require_manifest
from jmsaio.spark.jobs.report import report_archive
from jmsaio.spark.model.folder import AnyPath
from jmsaio.spark.planning.plan import SMALL_ENTRIES
from tests.spark.kill import run_rounds
from tests.spark.kill_driver import end_session, processes_of
from tests.spark.session import environment
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


def staged(folder: AnyPath) -> bool:
    """Whether a run writes."""
    staging = folder / "_writing"
    return any(staging.rglob("*.parquet") if isinstance(staging, Path) else staging.files())


def moved(folder: AnyPath) -> bool:
    """Whether a run has files at their place."""
    return any(folder.glob("destination=*/*/*.parquet"))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("has_come", "entries", "count"),
    [(staged, 8, 40), (moved, 8, 40), (staged, 1100, 1200)],
    ids=["staged", "moved", "staged by Spark"],
)
def test_a_killed_archive_loses_and_repeats_nothing(
    pulsar_broker: TestBroker, name: Callable[[str], str], folder: AnyPath,
    has_come: Callable[[AnyPath], bool], entries: int, count: int,
) -> None:  # fmt: skip
    """Small runs are those of the command's own process, as all are that clear away what the killed one left."""
    queue = name("killed")
    ids = send(pulsar_broker.url, queue, [str(number) for number in range(count)])
    command = [sys.executable, "-m", "jmsaio", "spark", "archive", queue, str(folder), "--once"]
    command += ["-u", pulsar_broker.url, "--entries"]
    first, again = ([*command, f"{size}"] for size in (entries, min(entries, SMALL_ENTRIES)))
    with subprocess.Popen(first, env=environment(), start_new_session=True, stdout=subprocess.DEVNULL) as killed:
        while not has_come(folder):
            assert killed.poll() is None
            time.sleep(0.01)
        end_session(killed)
    subprocess.run(again, env=environment(), check=True, stdout=subprocess.DEVNULL)
    manifest = require_manifest(folder)
    files = files_of(folder, manifest)
    assert set(folder.glob("*/*/*.parquet")) == set(files)
    found = [row for path in files for row in open_file(path).read(["JMSMessageID", "position"]).to_pylist()]
    assert [row["JMSMessageID"] for row in sorted(found, key=lambda row: tuple(row["position"].values()))] == ids
    assert report_archive(folder)["problems"] == []


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
