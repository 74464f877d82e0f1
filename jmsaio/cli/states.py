"""``jmsaio queues``, ``jmsaio topics``, ``jmsaio stats``: backlogs, rates and consumers of queues and topics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import click
from rich.text import Text

from jmsaio.cli.common.connecting import Number, Source, broker_options, complete_destination, topic_option
from jmsaio.cli.common.output import NOTHING, OK, Output, json_option, printable, table_text, width_of
from jmsaio.config import Configuration, load
from jmsaio.errors import JMSError
from jmsaio.model.destinations import Queue, Topic

if TYPE_CHECKING:
    from jmsaio.maintenance.overview import DestinationState
    from jmsaio.transport.base import Admin

#: Columns: name, also in JSON, and value. None is unknown, or does not apply.
COLUMNS: Final[Mapping[str, Callable[[DestinationState], Any]]] = {
    "name": lambda state: state.name,
    "subscription": lambda state: state.subscription and state.subscription.name,
    "backlog": lambda state: state.subscription and state.subscription.backlog,
    "unacknowledged": lambda state: state.subscription and state.subscription.unacknowledged,
    "consumers": lambda state: state.subscription and state.subscription.consumers,
    "producers": lambda state: state.producers,
    "rate_in": lambda state: _rounded(state.rate_in),
    "rate_out": lambda state: state.subscription and _rounded(state.subscription.rate),
    "rate_redelivered": lambda state: state.subscription and _rounded(state.subscription.redelivery_rate),
}
#: Columns from the most important one: the last ones are left out where there is no room.
_ORDER: Final = (
    "name", "backlog", "subscription", "consumers", "unacknowledged", "rate_in", "rate_out", "producers",
    "rate_redelivered",
)  # fmt: skip
#: Headers of ``backlog``, which Pulsar's statistics count in batches: jmsaio counts the messages of few queues only.
BATCHES: Final = "batches"
MESSAGES: Final = "messages"

_watch = click.option(
    "--watch", type=Number(min=0.1), metavar="SECONDS",
    help="Repeat at this interval until interrupted; on a terminal, redraw one table.",
)  # fmt: skip


@click.command()
@broker_options()
@_watch
@json_option
async def queues(**options: Any) -> int:
    """List the queues of jms.systemNamespace with backlog, rates (messages per second) and consumers.

    A batch counts as one in the backlog; 'jmsaio stats' counts messages. The exit code is 3 if there are none.
    """
    return await _list(True, **options)


@click.command()
@broker_options()
@_watch
@json_option
async def topics(**options: Any) -> int:
    """List the topics of jms.systemNamespace and their subscriptions with backlog, rates and consumers.

    Queues are left out: 'jmsaio queues' lists them. A batch counts as one in the backlog; 'jmsaio stats' counts
    messages. The exit code is 3 if there are none.
    """
    return await _list(False, **options)


@click.command()
@click.argument("name", metavar="DESTINATION", shell_complete=complete_destination)
@broker_options()
@topic_option
@json_option
async def stats(source: Source, name: str, topic: bool, output: Output) -> int:
    """Show who consumes a queue or topic, who holds unacknowledged messages, and why nothing is received.

    Consumers count as idle if they hold messages and have acknowledged nothing for 10 seconds.
    """
    from jmsaio.maintenance.overview import read_states

    config = load(source)
    async with open_admin(config) as admin:
        found = await read_states(admin, config, Topic(name) if topic else Queue(name))
    now = time.time() * 1000
    for state in found:
        if output.as_json:
            output.record({**record_of(state), "connected": _consumers(state, now), "reasons": [*_reasons(state, now)]})
            continue
        output.console.print(table_of([state], MESSAGES, width_of(output.console)))
        for line in detail_of(state, now):
            output.console.print(line)
    return OK


@asynccontextmanager
async def open_admin(config: Configuration) -> AsyncIterator[Admin]:
    """Connect to a broker for a block that uses its administration. Raises ConfigurationError if it is switched off."""
    from jmsaio.maintenance.dead_letters import require_admin
    from jmsaio.transport.registry import connected

    async with connected(config) as transport:
        yield require_admin(transport)


async def _list(queues: bool, source: Source, watch: float | None, output: Output) -> int:
    from rich.console import Group
    from rich.live import Live

    from jmsaio.maintenance.overview import list_states

    config = load(source)
    found: list[DestinationState] | None = None
    trouble = ""
    redraws = watch is not None and not output.as_json and output.console.is_terminal
    live = Live(console=output.console, auto_refresh=False) if redraws else None
    async with open_admin(config) as admin:
        with live or nullcontext():
            while True:
                said, trouble = trouble, ""
                try:
                    found = await list_states(admin, config, queues=queues)
                except JMSError as error:
                    if watch is None or found is None:
                        raise
                    trouble = printable(f"{error}; trying again")
                if live is not None:
                    table = table_of(found, BATCHES, width_of(output.console))
                    live.update(Group(Text(trouble, "red"), table) if trouble else table, refresh=True)
                elif not trouble:
                    write_states(output, found, BATCHES)
                elif trouble != said:
                    output.remarks.print(trouble)
                if watch is None:
                    break
                await asyncio.sleep(watch)
    if not found:
        output.remark(f"no {'queue' if queues else 'topic'} in {config.system_namespace}")
        return NOTHING
    return OK


def detail_of(state: DestinationState, now: float) -> Iterator[Text]:
    """Yield a line for each consumer of a state, and for each reason why nothing is received, at ``now`` in ms."""
    for one in _consumers(state, now):
        selects = "" if one["selector"] is None else f", selector {one['selector']}"
        yield Text(printable("  consumer {name} {address}: {unacknowledged} unacknowledged".format(**one) + selects))
    for reason in _reasons(state, now):
        yield Text(printable(f"  {reason}"), "yellow")


def _reasons(state: DestinationState, now: float) -> Sequence[str]:
    from jmsaio.maintenance.overview import explain

    return () if state.subscription is None else explain(state.subscription, now, state.open_transaction)


def _consumers(state: DestinationState, now: float) -> list[dict[str, Any]]:
    return [
        {
            "name": one.name, "address": one.address, "unacknowledged": one.unacknowledged, "blocked": one.blocked,
            "selector": one.selector,
            "idle": None if one.last_acknowledged is None else round((now - one.last_acknowledged) / 1000, 1),
        }
        for one in (() if state.subscription is None else state.subscription.connected)
    ]  # fmt: skip


def record_of(state: DestinationState) -> dict[str, Any]:
    return {**{name: value(state) for name, value in COLUMNS.items()}, "topic": state.topic}


def table_of(states: Sequence[DestinationState], counts: str, width: int | None) -> Text:
    """Build a table for a terminal of that width; ``counts`` is the header of the backlog."""
    names = list(COLUMNS)
    head = [counts if name == "backlog" else name.replace("_", " ") for name in names]
    lines = [
        ["-" if (cell := value(state)) is None else printable(str(cell)) for value in COLUMNS.values()]
        for state in states
    ]
    order = [names.index(name) for name in _ORDER]
    if len(states) > 1 and len({state.subscription and state.subscription.name for state in states}) == 1:
        order.append(order.pop(_ORDER.index("subscription")))  # the same in each row
    numbers = {index for index, name in enumerate(names) if name not in ("name", "subscription")}
    return table_text([head, *lines], order, numbers, width)


def write_states(output: Output, states: Sequence[DestinationState], counts: str) -> None:
    """Write states as one table, or as JSON lines; ``counts`` is the header of the backlog in the table."""
    if not output.as_json and states:
        output.console.print(table_of(states, counts, width_of(output.console)))
    for state in states if output.as_json else ():
        output.record(record_of(state))


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 1)
