from jmsaio.bench.scenarios.sending import futures, workers
from jmsaio.bench.workload import Task


async def test_futures(task: Task) -> None:
    assert (await futures(task))["per_second"] > 0


async def test_workers(task: Task) -> None:
    assert (await workers(task))["per_second"] > 0
