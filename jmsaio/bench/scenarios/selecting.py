"""The selector row: a compiled selector on received messages whose properties are not decoded yet."""

from __future__ import annotations

from itertools import cycle, islice

from jmsaio.bench.meter import Meter, Metrics
from jmsaio.bench.scenarios.bare import received
from jmsaio.bench.workload import AMOUNT, KIND, KIND_VALUE, REGION, REGION_VALUE, Task
from jmsaio.codec.headers import header
from jmsaio.model.destinations import Queue
from jmsaio.selector import Selector

#: Records that are evaluated in turn; more than fit into a processor's small caches.
_RECORDS = 1_000
#: Three terms; the middle one compares a number that is text in the record.
SELECTOR = f"{REGION} = '{REGION_VALUE}' AND {AMOUNT} > 499 AND {KIND} = '{KIND_VALUE}'"


def three_terms(task: Task) -> Metrics:
    """Evaluate on received records; half of them match. Raises RuntimeError for a wrong number of matches."""
    count = task.workload.evaluations
    queue = Queue(task.topic)
    records = [received(number, task.workload.text, queue, 0) for number in range(_RECORDS)]
    selector = Selector(SELECTOR)
    matches, found = selector.matches_record, 0
    with Meter() as meter:
        for record in islice(cycle(records), count):
            if matches(record, header) is True:
                found += 1
    expected = sum(number % _RECORDS > 499 for number in range(count))
    if found != expected:
        raise RuntimeError(f"{found} of {count} matched, not {expected}")
    return meter.metrics(count)
