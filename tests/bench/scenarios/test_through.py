from jmsaio.bench.scenarios.through import through
from jmsaio.bench.workload import Task


async def test_every_message_goes_through(task: Task) -> None:
    assert (await through(task))["per_second"] > 0
