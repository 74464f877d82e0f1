"""``jmsaio queues``, ``jmsaio topics``, ``jmsaio stats``: backlogs, rates and consumers of queues and topics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Literal

import click
from rich.text import Text

from jmsaio.cli.common.connecting import broker_options, connection_options, read_connection, run
from jmsaio.cli.common.exits import NOTHING, OK
from jmsaio.cli.common.output import Output, json_option, make_output, printable
from jmsaio.config import Configuration, load
from jmsaio.model.destinations import Queue, Topic

if TYPE_CHECKING:
    from rich.table import Table

    from jmsaio.maintenance.overview import DestinationState
    from jmsaio.transport.base import Admin

#: Columns: name, also in JSON, and value. None is unknown, or does not apply.
COLUMNS: Final[Sequence[tuple[str, Callable[[DestinationState], Any]]]] = (
    ("name", lambda state: state.name),
    ("subscription", lambda state: state.subscription and state.subscription.name),
    ("backlog", lambda state: state.subscription and state.subscription.backlog),
    ("unacknowledged", lambda state: state.subscription and state.subscription.unacknowledged),
    ("consumers", lambda state: state.subscription and state.subscription.consumers),
    ("producers", lambda state: state.producers),
    ("rate_in", lambda state: _rounded(state.rate_in)),
    ("rate_out", lambda state: state.subscription and _rounded(state.subscription.rate)),
    ("rate_redelivered", lambda state: state.subscription and _rounded(state.subscription.redelivery_rate)),
)
#: Columns with text; the others are numbers.
TEXTS: Final = ("name", "subscription")

_watch = click.option(
    "--watch", type=click.FloatRange(min=0.1), metavar="SECONDS",
    help="Repeat at this interval until interrupted; on a terminal, redraw one table.",
)  # fmt: skip


@click.command()
@click.argument("address", metavar="[URL]", required=False)
@broker_options
@_watch
@json_option
def queues(
    address: str | None, url: str | None, settings: tuple[str, ...], watch: float | None, as_json: bool | None
) -> int:  # fmt: skip
    """List the queues of jms.systemNamespace with backlog, rates (messages per second) and consumers.

    A batch counts as one message in the backlog. The exit code is 3 if there are none.
    """
    config = load(read_connection(only_url(address, url), settings))
    return run(_list(config, True, watch, make_output(as_json)))


@click.command()
@click.argument("address", metavar="[URL]", required=False)
@broker_options
@_watch
@json_option
def topics(
    address: str | None, url: str | None, settings: tuple[str, ...], watch: float | None, as_json: bool | None
) -> int:  # fmt: skip
    """List the topics of jms.systemNamespace and their subscriptions with backlog, rates and consumers.

    Queues are left out: 'jmsaio queues' lists them. A batch counts as one message in the backlog. The exit code is 3 if
    there are none.
    """
    config = load(read_connection(only_url(address, url), settings))
    return run(_list(config, False, watch, make_output(as_json)))


@click.command()
@click.argument("name", metavar="DESTINATION")
@connection_options
@json_option
def stats(name: str, url: str | None, settings: tuple[str, ...], topic: bool, as_json: bool | None) -> int:
    """Show who consumes a queue or topic, who holds unacknowledged messages, and why nothing is received.

    Consumers count as idle if they hold messages and have acknowledged nothing for 10 seconds.
    """
    config = load(read_connection(url, settings))
    return run(_stats(config, Topic(name) if topic else Queue(name), make_output(as_json)))


def only_url(address: str | None, url: str | None) -> str | None:
    """Return the URL, which was given as an argument or with ``--url``. Raises click.UsageError if both were given."""
    if address and url:
        raise click.UsageError("give the URL once: as an argument or with --url")
    return address or url


@asynccontextmanager
async def open_admin(config: Configuration) -> AsyncIterator[Admin]:
    """Connect to a broker for a block that uses its administration. Raises ConfigurationError if it is switched off."""
    from jmsaio.maintenance.dead_letters import require_admin
    from jmsaio.transport.registry import connected

    async with connected(config) as transport:
        yield require_admin(transport)


async def _list(config: Configuration, queues: bool, watch: float | None, output: Output) -> int:
    from rich.live import Live

    from jmsaio.maintenance.overview import list_states

    redraws = watch is not None and not output.as_json and output.console.is_terminal
    live = Live(console=output.console, auto_refresh=False) if redraws else None
    async with open_admin(config) as admin:
        with live or nullcontext():
            while True:
                found = await list_states(admin, config, queues=queues)
                if live is None:
                    write_states(output, found)
                else:
                    live.update(table_of(found), refresh=True)
                if watch is None:
                    break
                await asyncio.sleep(watch)
    if not found:
        output.remark(f"no {'queue' if queues else 'topic'} in {config.system_namespace}")
        return NOTHING
    return OK


async def _stats(config: Configuration, destination: Queue | Topic, output: Output) -> int:
    from jmsaio.maintenance.overview import read_states

    async with open_admin(config) as admin:
        found = await read_states(admin, config, destination)
    now = time.time() * 1000
    for state in found:
        if output.as_json:
            output.record({**record_of(state), "connected": _consumers(state, now), "reasons": [*_reasons(state, now)]})
            continue
        output.console.print(table_of([state]))
        for line in detail_of(state, now):
            output.console.print(line)
    return OK


def detail_of(state: DestinationState, now: float) -> Iterator[Text]:
    """Yield a line for each consumer of a state, and for each reason why nothing is received.

    Args:
        state: the state.
        now: current time in milliseconds since the epoch.
    """
    for one in _consumers(state, now):
        yield Text(printable("  consumer {name} {address}: {unacknowledged} unacknowledged".format(**one)))
    for reason in _reasons(state, now):
        yield Text(printable(f"  {reason}"), "yellow")


def _reasons(state: DestinationState, now: float) -> Sequence[str]:
    from jmsaio.maintenance.overview import explain

    return () if state.subscription is None else explain(state.subscription, now)


def _consumers(state: DestinationState, now: float) -> list[dict[str, Any]]:
    return [
        {
            "name": one.name, "address": one.address, "unacknowledged": one.unacknowledged, "blocked": one.blocked,
            "idle": None if one.last_acknowledged is None else round((now - one.last_acknowledged) / 1000, 1),
        }
        for one in (() if state.subscription is None else state.subscription.connected)
    ]  # fmt: skip


def record_of(state: DestinationState) -> dict[str, Any]:
    """Return the columns of a state by name, and its topic."""
    return {**{name: value(state) for name, value in COLUMNS}, "topic": state.topic}


def table_of(states: Sequence[DestinationState]) -> Table:
    """Build a table for a terminal."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name, _ in COLUMNS:
        table.add_column(name.replace("_", " "), justify=justify(name), overflow="fold")
    for state in states:
        table.add_row(*cells_of(state))
    return table


def cells_of(state: DestinationState) -> list[Text]:
    """Return the text of each column, aligned."""
    cells = ((name, value(state)) for name, value in COLUMNS)
    return [Text("-" if cell is None else printable(str(cell)), justify=justify(name)) for name, cell in cells]


def justify(column: str) -> Literal["left", "right"]:
    """Return the side to which a column is aligned: left for texts, right for numbers."""
    return "left" if column in TEXTS else "right"


def write_states(output: Output, states: Sequence[DestinationState]) -> None:
    """Write states as one table, or as JSON lines."""
    if not output.as_json and states:
        output.console.print(table_of(states))
    for state in states if output.as_json else ():
        output.record(record_of(state))


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 1)
