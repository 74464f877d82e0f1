"""One loop and one transport for each process of Spark."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Iterator

import pytest

from jmsaio.config import Configuration, load
from jmsaio.errors import ConfigurationError, ObjectClosedError
from jmsaio.spark import worker as workers
from jmsaio.spark.worker import forget, without_collection, worker
from jmsaio.transport.base import Transport

CONNECTION = {"url": "memory://worker"}


@pytest.fixture(autouse=True)
def none_left() -> Iterator[None]:
    yield
    for options in (CONNECTION, {"url": "memory://other"}):
        forget(options)


def configure() -> Configuration:
    return load("memory://worker")


async def partitions(transport: Transport) -> int:
    assert transport.admin is not None
    await transport.admin.create_topic("persistent://public/default/t", 3)
    return await transport.admin.partitions("persistent://public/default/t")


def test_tasks_of_a_process_share_the_loop_and_the_transport() -> None:
    first = worker(CONNECTION, configure)
    assert first.run(partitions(first.transport)) == 3
    assert worker(dict(CONNECTION), configure) is first
    assert first.run(partitions(first.transport)) == 3
    other = worker({"url": "memory://other"}, lambda: load("memory://other"))
    assert other is not first and other.transport is not first.transport


def test_a_forgotten_worker_is_closed_and_the_next_one_is_configured_anew() -> None:
    configured = []

    def configure() -> Configuration:
        configured.append(1)
        return load("memory://worker")

    first = worker(CONNECTION, configure)
    forget(CONNECTION)
    late = partitions(first.transport)
    with pytest.raises(RuntimeError, match="closed"):
        first.run(late)
    late.close()
    second = worker(CONNECTION, configure)
    assert second is not first and len(configured) == 2
    assert second.run(partitions(second.transport)) == 3
    forget({"url": "never opened"})


def test_a_worker_that_cannot_be_configured_or_connected_is_not_kept() -> None:
    def refuse() -> Configuration:
        raise ConfigurationError("no such secret")

    with pytest.raises(ConfigurationError, match="no such secret"):
        worker(CONNECTION, refuse)
    assert worker(CONNECTION, configure).run(asyncio.sleep(0, "works")) == "works"


def test_a_forked_process_makes_a_worker_of_its_own_and_leaves_its_parents_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parent = worker(CONNECTION, configure)
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -2)
        forget(CONNECTION)
        own = worker(CONNECTION, configure)
        assert own is not parent
        forget(CONNECTION)  # which closes its own
        assert workers._workers.process == -2
    assert parent.run(partitions(parent.transport)) == 3
    parent.close()


def test_a_task_after_the_transport_closed_says_so() -> None:
    here = worker(CONNECTION, configure)
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
