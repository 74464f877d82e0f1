from jmsaio.bench.scenarios.idle import idle_consumers
from jmsaio.bench.workload import Task


async def test_an_idle_consumer_costs_memory(task: Task) -> None:
    assert (await idle_consumers(task))["kb_each"] > 0
