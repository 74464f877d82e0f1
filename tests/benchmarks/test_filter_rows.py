"""The rows with a selector in the client and at the broker."""

import uuid

import pytest

from benchmarks.broker import started_broker
from benchmarks.filtering import at_broker, fill, in_client
from benchmarks.workload import Task, Workload
from jmsaio import launcher
from tests.support.broker import TestBroker


def task(url: str) -> Task:
    """A backlog with two messages that match."""
    return Task("", url, f"filtering-{uuid.uuid4()}", workload=Workload(window=50, filtered_messages=1_500))


async def test_both_ways_receive_what_matches() -> None:
    for receive in (in_client, at_broker):
        one = task(f"memory://{uuid.uuid4()}?filters=true")
        await fill(one)
        assert (await receive(one))["per_second"] > 0


@pytest.mark.broker
async def test_the_broker_sends_what_matches_alone(pulsar_broker: TestBroker) -> None:
    sent = {}
    for receive in (in_client, at_broker):
        one = task(pulsar_broker.url)
        await fill(one)
        sent[receive] = (await receive(one))["bytes_out"]
    assert sent[in_client] > 1_000 * one.workload.characters > 100 * sent[at_broker] > 0


async def test_a_message_that_does_not_come_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.filtering._GUARD", 0.1)
    with pytest.raises(RuntimeError, match="did not come"):
        await in_client(task(f"memory://{uuid.uuid4()}"))


def test_the_broker_of_a_run_has_the_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    monkeypatch.setattr(launcher, "start", lambda options, progress: started.append(options))
    monkeypatch.setattr(launcher, "stop", lambda directory: None)
    with started_broker():
        assert [options.filters for options in started] == [True]
