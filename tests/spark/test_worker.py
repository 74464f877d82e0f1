"""One loop and one transport for each process of Spark."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkFiles

from jmsaio.config import Configuration, load
from jmsaio.errors import ConfigurationError, ObjectClosedError
from jmsaio.spark import worker as workers
from jmsaio.spark.options.parse import SourceOptions, Use, parse_options
from jmsaio.spark.worker import configuration_of, forget, without_collection, worker
from jmsaio.transport.base import Transport


def reach(url: str) -> SourceOptions:
    """Options that only name a broker."""
    return SourceOptions(connection={"brokerServiceUrl": url}, destination=None, columns=())


HERE, OTHER = reach("memory://worker"), reach("memory://other")
OPTIONS = {
    "url": "pulsar://broker:6650", "queue": "q", "authPlugin": "token", "authParams": "file:jmsaio-test-token",
}  # fmt: skip


@pytest.fixture(autouse=True)
def none_left() -> Iterator[None]:
    yield
    for options in (HERE, OTHER):
        forget(options)


async def partitions(transport: Transport) -> int:
    assert transport.admin is not None
    await transport.admin.create_topic("persistent://public/default/t", 3)
    return await transport.admin.partitions("persistent://public/default/t")


def test_tasks_of_a_process_share_the_loop_and_the_transport() -> None:
    first = worker(HERE)
    assert first.run(partitions(first.transport)) == 3
    assert worker(reach("memory://worker")) is first
    assert first.run(partitions(first.transport)) == 3
    other = worker(OTHER)
    assert other is not first and other.transport is not first.transport


def test_a_forgotten_worker_is_closed_and_the_next_one_is_configured_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    configured = []

    def configure(options: SourceOptions) -> Configuration:
        configured.append(1)
        return load("memory://worker")

    monkeypatch.setattr(workers, "configuration_of", configure)
    first = worker(HERE)
    forget(HERE)
    late = partitions(first.transport)
    with pytest.raises(RuntimeError, match="closed"):
        first.run(late)
    late.close()
    second = worker(HERE)
    assert second is not first and len(configured) == 2
    assert second.run(partitions(second.transport)) == 3
    forget(reach("memory://never-opened"))


def test_a_worker_that_cannot_be_configured_or_connected_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(options: SourceOptions) -> Configuration:
        raise ConfigurationError("no such secret")

    with monkeypatch.context() as patch, pytest.raises(ConfigurationError, match="no such secret"):
        patch.setattr(workers, "configuration_of", refuse)
        worker(HERE)
    assert worker(HERE).run(asyncio.sleep(0, "works")) == "works"


def test_a_forked_process_makes_a_worker_of_its_own_and_leaves_its_parents_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parent = worker(HERE)
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -2)
        forget(HERE)
        own = worker(HERE)
        assert own is not parent
        forget(HERE)  # which closes its own
        assert all(process != -2 for process, _ in workers._workers)
    assert parent.run(partitions(parent.transport)) == 3


def test_a_task_after_the_transport_closed_says_so() -> None:
    here = worker(HERE)
    here.run(here.transport.aclose(1))
    with pytest.raises(ObjectClosedError):
        here.run(here.transport.end("persistent://public/default/t"))


def test_the_collector_waits_for_a_batch_and_stays_off_where_it_was() -> None:
    with pytest.raises(RuntimeError), without_collection():
        assert not gc.isenabled()
        raise RuntimeError
    assert gc.isenabled()
    gc.disable()
    try:
        with without_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_secret_is_found_among_the_files_that_spark_distributes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = parse_options(OPTIONS, Use.READ)
    monkeypatch.setattr(SparkFiles, "_root_directory", None)
    with pytest.raises(ConfigurationError, match="jmsaio-test-token"):
        configuration_of(options)
    monkeypatch.setattr(SparkFiles, "_root_directory", str(tmp_path))
    for secret in ("first", "second"):  # a secret may be replaced
        (tmp_path / "jmsaio-test-token").write_text(secret + "\n")
        assert configuration_of(options).auth_params == secret


def test_a_secret_is_found_where_a_stream_is_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process is told of a folder of its own, below the one with the files, which does not exist."""
    (tmp_path / "jmsaio-test-token").write_text("secret\n")
    monkeypatch.setattr(SparkFiles, "_root_directory", str(tmp_path / "streaming_job"))
    assert configuration_of(parse_options(OPTIONS, Use.READ_STREAM)).auth_params == "secret"
