"""Tables of a terminal: whole names, no broken header, and the columns without room are named."""

from __future__ import annotations

from jmsaio.cli.states import table_of
from jmsaio.maintenance.overview import DestinationState
from jmsaio.transport.base import SubscriptionStats


def test_a_table_has_whole_names_and_leaves_out_what_has_no_room() -> None:
    """On a file or a pipe, all columns are shown."""
    states = [
        DestinationState(
            topic=f"persistent://public/default/{name}", name=name, producers=1, rate_in=12.5,
            subscription=SubscriptionStats("jms-queue", "Shared", backlog, 2),
        )
        for name, backlog in (("customer-orders-of-the-european-branch", 1842), ("b", 3))
    ]  # fmt: skip
    head, first, second, last = table_of(states, "batches", 80).plain.splitlines()
    assert head.split() == ["name", "batches", "unacknowledged", "consumers"]
    assert first.split() == ["customer-orders-of-the-european-branch", "1842", "0", "2"]
    assert max(map(len, (head, first, second))) <= 80
    assert last == "no room for: rate in, rate out, producers, rate redelivered, subscription"
    whole = table_of(states, "batches", None).plain.splitlines()
    assert (len(whole), whole[0].endswith("rate redelivered")) == (3, True)
    assert table_of(states, "batches", 10).plain.splitlines()[1].split()[1] == "1842"
