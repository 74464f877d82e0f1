"""``jmsaio browse`` and ``jmsaio peek``: show messages of a queue without consuming them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import click

from jmsaio.cli.common.connecting import (
    complete_destination,
    connection_options,
    create_option,
    read_connection,
    require_destination,
    with_options,
)
from jmsaio.cli.common.interrupts import run
from jmsaio.cli.common.output import NOTHING, OK, Output, json_option, make_output, printable
from jmsaio.cli.receive import write
from jmsaio.model.destinations import Queue
from jmsaio.model.messages.message import Message
from jmsaio.selector import Selector

P = ParamSpec("P")
T = TypeVar("T")


def _options(count: int | None) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator that adds the options of a command that shows ``count`` messages; None: all."""
    default = "all" if count is None else str(count)
    return lambda command: with_options(
        command,
        click.argument("name", metavar="QUEUE", shell_complete=complete_destination),
        connection_options,
        click.option("-s", "--selector", help="Message selector, such as \"region = 'EU' AND amount > 3\"."),
        click.option(
            "-n", "--count", type=click.IntRange(min=1), default=count,
            help=f"Maximum number of messages; default: {default}.",
        ),
        click.option("-H", "--headers", is_flag=True, help="Include all headers in text output (JSON always does)."),
        create_option,
        json_option,
    )  # fmt: skip


@click.command()
@_options(count=None)
def browse(**options: Any) -> int:
    """Show the messages of a queue without consuming them.

    The exit code is 3 if there are none.
    """
    return _start(**options)


@click.command()
@_options(count=10)
def peek(**options: Any) -> int:
    """Show the first messages of a queue without consuming them; 'jmsaio browse' shows all.

    The exit code is 3 if there are none.
    """
    return _start(**options)


def _start(
    name: str, url: str | None, settings: tuple[str, ...], topic: bool, selector: str | None, count: int | None,
    headers: bool, create: bool, as_json: bool | None,
) -> int:  # fmt: skip
    if topic:
        raise click.UsageError("only a queue can be browsed; a topic keeps messages for its subscriptions")
    config = read_connection(url, settings)
    if selector:
        Selector(selector)  # report a syntax error before connecting
    return run(_browse(config, name, selector, count, headers, create, make_output(as_json)))


async def browse_each(
    config: dict[str, object], name: str, selector: str | None, limit: int | None, use: Callable[[Message], None]
) -> int:
    """Call ``use`` with the messages of a queue, up to ``limit``; return their number. Nothing is consumed."""
    import jmsaio

    seen = 0
    async with (
        jmsaio.connect(config, auto_start=False) as connection,
        connection.create_session() as session,
        session.create_browser(session.create_queue(name), selector) as browser,
    ):
        async for message in browser.stream():
            use(message)
            seen += 1
            if limit is not None and seen >= limit:
                break
    return seen


async def _browse(
    config: dict[str, object], name: str, selector: str | None, limit: int | None, headers: bool, create: bool,
    output: Output,
) -> int:  # fmt: skip
    if not create:
        await require_destination(config, Queue(name), output)
    seen = await browse_each(config, name, selector, limit, lambda message: write(output, message, headers))
    if not seen:
        output.remark(f"no message in {printable(name)}")
        return NOTHING
    output.remark(f"{seen} messages seen in {printable(name)}, all still there")
    return OK
