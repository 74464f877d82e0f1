from jmsaio.bench.scenarios.sending import futures, workers
from jmsaio.bench.workload import Task


async def test_pending_futures_give_a_rate(task: Task) -> None:
    assert (await futures(task))["per_second"] > 0


async def test_concurrent_workers_give_a_rate(task: Task) -> None:
    assert (await workers(task))["per_second"] > 0
