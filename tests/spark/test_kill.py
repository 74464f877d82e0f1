"""A stream whose driver is killed stores each message once; for more: ``python -m tests.spark.kill``."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from tests.spark.kill import run_rounds
from tests.spark.kill_driver import end_session, processes_of
from tests.support.broker import TestBroker


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(900)
def test_a_killed_stream_loses_and_repeats_nothing(pulsar_broker: TestBroker) -> None:
    rounds = asyncio.run(run_rounds(pulsar_broker, rounds=3, seed=7))
    assert len(rounds) == 3
    assert [one for one in rounds if not one.good] == []


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
