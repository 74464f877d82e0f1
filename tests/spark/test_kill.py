"""A stream whose driver is killed stores each message once; for more: ``python -m tests.spark.kill``."""

from __future__ import annotations

import asyncio

import pytest

from tests.spark.kill import run_rounds
from tests.support.broker import TestBroker


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(900)
def test_a_killed_stream_loses_and_repeats_nothing(pulsar_broker: TestBroker) -> None:
    rounds = asyncio.run(run_rounds(pulsar_broker, rounds=3, seed=7))
    assert len(rounds) == 3
    assert [one for one in rounds if not one.good] == []
