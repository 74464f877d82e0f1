"""A tiny task on an embedded broker of its own."""

import pytest

from jmsaio.bench.workload import Task, Workload


@pytest.fixture
def task(request: pytest.FixtureRequest) -> Task:
    """Amounts that take a moment, and a broker that no other test uses."""
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
