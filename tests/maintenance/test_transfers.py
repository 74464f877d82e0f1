"""A request is carried out for all topics of a destination, and its results are combined."""

from __future__ import annotations

import attrs
import pytest

from jmsaio.maintenance.dead_letters import RedriveRequest
from jmsaio.maintenance.redrive import Progress, Redriven
from jmsaio.maintenance.transfers import redrive_all, summarize
from jmsaio.model.destinations import Queue
from tests.maintenance.letters import Letters, message


@pytest.mark.parametrize("dry_run", [True, False])
async def test_progress_counts_what_is_received_and_what_is_sent(letters: Letters, dry_run: bool) -> None:
    await letters.put(*(message(str(number), region="EU" if number < 3 else "US") for number in range(5)))
    seen = []
    progress = Progress(lambda now: seen.append((now.total, now.seen, now.sent)))
    request = RedriveRequest(destination=Queue(letters.dead), selector="region = 'EU'", dry_run=dry_run, patience=3.0)
    await redrive_all(letters.harness.transport, letters.harness.configuration, request, progress)
    assert (progress.total, progress.seen, progress.sent) == (5, 5, 3)
    assert (5, 5, 3) in seen


def test_a_summary_adds_up_what_became_of_each_topic() -> None:
    one = Redriven(topic="a", sent={"t": 2}, not_selected=1, left={"failed": 1}, errors=("why",), complete=True)
    other = attrs.evolve(one, topic="b", sent={"t": 1, "s": 4}, not_selected=0, left={"failed": 2}, complete=False)
    assert summarize([one, other]) == {
        "sent": 7, "not_selected": 1, "targets": {"s": 4, "t": 3}, "left": {"failed": 3}, "unseen": ["b"],
        "errors": ["why"],
    }  # fmt: skip
