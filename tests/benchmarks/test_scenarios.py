import attrs
import pytest

import jmsaio
from benchmarks import scenarios
from benchmarks.scenarios import (
    bare_loop,
    fill,
    fill_and_receive,
    futures,
    idle_consumers,
    latency,
    receive,
    receive_all,
    received,
    three_terms,
    through,
    tuned_url,
    typed_properties,
    workers,
)
from benchmarks.workload import Task, Workload
from jmsaio.config import load
from jmsaio.model.destinations import Queue


@pytest.fixture
def task(request: pytest.FixtureRequest) -> Task:
    """A tiny task: amounts that take a moment, and an embedded broker that no other test uses."""
    work = Workload(
        messages=120,
        window=50,
        workers=7,
        rate=500,
        seconds=0.2,
        warm_messages=10,
        evaluations=2_000,
        consumers=6,
        sessions=2,
    )
    return Task("", f"memory://bench-{request.node.name}", "bench", workload=work)


def test_the_url_carries_the_workload(task: Task) -> None:
    configuration = load(tuned_url(attrs.evolve(task, url="pulsar://broker:6650")))
    assert configuration.consumer.receiver_queue_size == task.workload.window
    assert configuration.producer.batching_max_messages == task.workload.batch_messages
    assert configuration.producer.batching_max_publish_delay == task.workload.batch_delay


def test_options_of_the_url_are_kept(task: Task) -> None:
    configuration = load(tuned_url(attrs.evolve(task, url="pulsar://broker:6650?jms.clientId=me")))
    assert configuration.client_id == "me"
    assert configuration.consumer.receiver_queue_size == task.workload.window


def test_one_of_three_properties_is_an_int() -> None:
    assert [type(value) for value in typed_properties(5).values()] == [str, int, str]


async def test_pending_futures_give_a_rate(task: Task) -> None:
    assert (await futures(task))["per_second"] > 0


async def test_concurrent_workers_give_a_rate(task: Task) -> None:
    assert (await workers(task))["per_second"] > 0


async def test_what_was_filled_is_received(task: Task) -> None:
    await fill(task)
    assert (await receive(task))["per_second"] > 0


async def test_both_in_one_process(task: Task) -> None:
    assert (await fill_and_receive(task))["cpu_us"] > 0


async def test_a_wrong_message_is_told(task: Task) -> None:
    async with jmsaio.connect(task.url) as connection, connection.create_session() as session:
        queue = session.create_queue("wrong")
        async with session.create_consumer(queue) as consumer, session.create_producer(queue) as producer:
            await producer.send("x" * task.workload.characters, properties={"amount": 7})
            with pytest.raises(RuntimeError, match="sum 7 instead of 0"):
                await receive_all(consumer, attrs.evolve(task.workload, messages=1))


async def test_every_message_goes_through(task: Task) -> None:
    assert (await through(task))["per_second"] > 0


async def test_percentiles_are_in_order(task: Task) -> None:
    metrics = await latency(task)
    assert 0 < metrics["p50_ms"] <= metrics["p99_ms"] <= metrics["max_ms"]


def test_the_bare_loop_reads_what_it_built(task: Task) -> None:
    assert bare_loop(task)["per_second"] > 0


def test_a_record_is_what_a_receiver_would_get() -> None:
    record = received(3, "text", Queue("q"), 1_000)
    assert record.payload == b"text"
    assert record.properties["amount"] == "3"
    assert (record.event_time, record.message_id.entry, record.key) == (1_000, 3, None)


def test_half_of_the_records_match(task: Task) -> None:
    assert three_terms(task)["per_second"] > 0


def test_a_wrong_answer_is_told(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "SELECTOR", "amount > 998")
    with pytest.raises(RuntimeError, match="2 of 2000 matched, not 1000"):
        three_terms(task)


async def test_an_idle_consumer_costs_memory(task: Task) -> None:
    assert (await idle_consumers(task))["kb_each"] > 0
