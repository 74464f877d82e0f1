"""``jmsaio subscription``: changes settings of a subscription of a queue or topic."""

from __future__ import annotations

import click

from jmsaio.cli.common.connecting import connection_options, destination, read_connection, run
from jmsaio.cli.common.exits import OK
from jmsaio.cli.common.output import Output, json_option, make_output, printable, show_help_alone


@click.group(invoke_without_command=True)
@click.pass_context
def subscription(context: click.Context) -> None:
    """Change settings of a subscription."""
    show_help_alone(context)


@subscription.command("set-selector")
@click.argument("target", metavar="DESTINATION")
@click.argument("selector", required=False, default="")
@connection_options
@click.option("-n", "--name", help="Name of a durable subscription of a topic, without the client id.")
@json_option
def set_selector(
    target: str, selector: str, url: str | None, settings: tuple[str, ...], topic: bool, name: str | None,
    as_json: bool | None,
) -> int:  # fmt: skip
    """Set the selector of a subscription for all its consumers; without SELECTOR, remove it.

    Messages that don't match are removed from the subscription. The selector follows the rules of Starlight's filter
    plugin; see 'jmsaio guide selectors'.
    """
    if topic is not bool(name):
        raise click.UsageError("a topic needs --name and --topic; a queue has one subscription, which needs no name")
    return run(_set(read_connection(url, settings), name, target, topic, selector, make_output(as_json)))


async def _set(
    config: dict[str, object], name: str | None, target: str, topic: bool, selector: str, output: Output
) -> int:
    import jmsaio

    async with jmsaio.connect(config, auto_start=False) as connection, connection.create_session() as session:
        await session.set_subscription_selector(name, destination(session, target, topic), selector)
    if output.as_json:
        output.record({"destination": target, "subscription": name, "selector": selector or None})
    else:
        output.line(f"selector of {printable(name or target)}: {printable(selector) or 'none'}")
    return OK
