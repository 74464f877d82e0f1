"""One Spark session for the whole run: its start takes seconds."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jmsaio.config import load
from jmsaio.spark import worker as workers
from jmsaio.testing import FaultProxy, FaultScript, embedded_broker
from jmsaio.transport.registry import connected
from tests.spark.seam import Breakable, Seam
from tests.support.broker import TestBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True, scope="module")
def no_worker_left() -> Iterator[None]:
    """Close what tests that run tasks in this process have opened: collected later, it would warn in another test."""
    yield
    for left in workers._workers.values():
        left.close()
    workers._workers.clear()


@pytest.fixture
async def seam(url: str) -> AsyncIterator[Seam]:
    """A client at the seam, on each kind of broker."""
    async with connected(load(url)) as transport:
        yield Seam(transport)


@pytest.fixture
async def breakable(broker_kind: str, request: pytest.FixtureRequest) -> AsyncIterator[Breakable]:
    """A client at the seam, on each kind of broker, that the test can make unreachable."""
    with contextlib.ExitStack() as stack:
        if broker_kind == "memory":
            embedded = stack.enter_context(embedded_broker())
            url = embedded.url
            ways: list[FaultProxy | FaultScript] = [embedded.faults]
        else:
            broker: TestBroker = request.getfixturevalue("pulsar_broker")
            service, web = (FaultProxy.of(each) for each in (broker.service_url, broker.web_service_url))
            ways = [stack.enter_context(service), stack.enter_context(web)]
            url = f"{service.url}?webServiceUrl=http://127.0.0.1:{web.port}"
        async with connected(load(url)) as transport:
            yield Breakable(transport, ways)


@pytest.fixture
async def pulsar(pulsar_broker: TestBroker) -> AsyncIterator[Seam]:
    """A client at the seam, on a real broker."""
    async with connected(load(pulsar_broker.url)) as transport:
        yield Seam(transport)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session with two cores, whose failed tasks are tried three times, and with the data source ``jms``."""
    from pyspark.sql import SparkSession

    import jmsaio.spark

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    builder = SparkSession.builder.master("local[2,3]").appName("tests").config("spark.driver.memory", "1g")
    settings: dict[str, bool | float | int | str | None] = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
    }
    session = builder.config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    jmsaio.spark.register(session)
    yield session
    session.stop()
