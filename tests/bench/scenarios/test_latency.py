from jmsaio.bench.scenarios.latency import latency
from jmsaio.bench.workload import Task


async def test_percentiles_are_in_order(task: Task) -> None:
    metrics = await latency(task)
    assert 0 < metrics["p50_ms"] <= metrics["p99_ms"] <= metrics["max_ms"]
