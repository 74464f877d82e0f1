from jmsaio.bench.scenarios.bare import bare_loop, received
from jmsaio.bench.workload import Task
from jmsaio.model.destinations import Queue


def test_the_bare_loop_reads_what_it_built(task: Task) -> None:
    assert bare_loop(task)["per_second"] > 0


def test_a_record_is_what_a_receiver_would_get() -> None:
    record = received(3, "text", Queue("q"), 1_000)
    assert record.payload == b"text"
    assert record.properties["amount"] == "3"
    assert (record.event_time, record.message_id.entry, record.key) == (1_000, 3, None)
