import attrs

from jmsaio.bench.scenarios.setting import tuned_url, typed_properties
from jmsaio.bench.workload import Task
from jmsaio.config import load


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
