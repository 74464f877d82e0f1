"""One Spark session for the whole run: its start takes seconds."""

from __future__ import annotations

import contextlib
import os
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jmsaio.config import load
from jmsaio.spark import worker as workers
from jmsaio.spark.model.folder import AnyPath, StorePath, folder_at
from jmsaio.testing import FaultProxy, FaultScript, embedded_broker
from jmsaio.transport.registry import connected
from tests.spark.gcs import start_gcs
from tests.spark.hdfs import start_hdfs
from tests.spark.seam import Breakable, Seam
from tests.spark.store import make_bucket, start_server, variables
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
def server() -> Iterator[None]:
    """A server with the interface of S3, for this process and for processes that it starts."""
    with start_server() as port, pytest.MonkeyPatch.context() as patch:
        for name, value in variables(port).items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def gcs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a bucket in GCS."""
    with start_gcs(tmp_path_factory.mktemp("gcs")) as environment, pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        yield "gs://bucket"


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of HDFS."""
    with start_hdfs(tmp_path_factory.mktemp("hdfs")) as url:
        yield url


#: Kinds of stores: a server with the interface of S3, and HDFS.
STORES = ("s3", pytest.param("hdfs", marks=pytest.mark.java))


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> StorePath:
    """A folder in each kind of store, which the driver and the tasks of ``spark`` reach."""
    return new_folder(request)


@pytest.fixture(params=["local", *STORES])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> AnyPath:
    """A folder for an archive, on this machine and in each kind of store."""
    return tmp_path if request.param == "local" else new_folder(request)


def new_folder(request: pytest.FixtureRequest) -> StorePath:
    """A new folder in the store that is the fixture's parameter."""
    if request.param in ("gcs", "hdfs"):
        root = request.getfixturevalue(request.param)
    else:
        request.getfixturevalue("server")
        root = make_bucket()
        if "spark" in request.fixturenames:
            session: SparkSession = request.getfixturevalue("spark")
            session.sparkContext.environment.update(
                {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
            )
    folder = folder_at(f"{root}/{uuid.uuid4().hex}")
    assert isinstance(folder, StorePath)
    return folder


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
