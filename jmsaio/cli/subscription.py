"""``jmsaio subscriptions``: lists, changes and deletes subscriptions of queues and topics."""

from __future__ import annotations

from contextlib import suppress

import click

from jmsaio.cli.common.connecting import (
    Source,
    agreed,
    broker_options,
    complete_destination,
    destination,
    run,
    topic_option,
    yes_option,
)
from jmsaio.cli.common.output import ERROR, NOTHING, OK, Output, json_option, printable, show_help_alone
from jmsaio.cli.states import MESSAGES, open_admin, write_states
from jmsaio.config import Configuration, load
from jmsaio.errors import NotFoundError
from jmsaio.model.destinations import Topic, resolve
from jmsaio.transport.subscriptions import list_partitions


@click.group(invoke_without_command=True)
@click.pass_context
def subscriptions(context: click.Context) -> None:
    """List, change and delete subscriptions. Queues have one, named jms-queue by default."""
    show_help_alone(context)


@subscriptions.command("list")
@click.argument("target", metavar="DESTINATION", shell_complete=complete_destination)
@broker_options()
@json_option
async def show(source: Source, target: str, output: Output) -> int:
    """List the subscriptions of a topic or queue, and of each of its partitions.

    The exit code is 3 if it has none.
    """
    from jmsaio.maintenance.overview import read_states

    config = load(source)
    async with open_admin(config) as admin:
        found = [each for each in await read_states(admin, config, Topic(target)) if each.subscription is not None]
    write_states(output, found, MESSAGES)
    if not found:
        output.remark(f"{printable(target)} has no subscription")
        return NOTHING
    return OK


@subscriptions.command()
@click.argument("target", metavar="DESTINATION", shell_complete=complete_destination)
@click.argument("name", metavar="SUBSCRIPTION")
@broker_options()
@click.option("--force", is_flag=True, help="Delete it even if consumers are connected; they are disconnected.")
@yes_option
@json_option
def delete(source: Source, target: str, name: str, force: bool, yes: bool, output: Output) -> int:
    """Delete a subscription and its messages. SUBSCRIPTION is the name that 'subscriptions list' shows.

    The exit code is 1 if it has consumers (see --force), does not exist, or the question is answered with no.
    """
    config = load(source)
    if not agreed(f"delete subscription {name} of {target} and its messages?", yes):
        return ERROR
    return run(_delete(config, target, name, force, output))


async def _delete(config: Configuration, target: str, name: str, force: bool, output: Output) -> int:
    async with open_admin(config) as admin:
        deleted = 0
        for topic in resolve(Topic(target), config.system_namespace).topics:
            for part in await list_partitions(admin, topic):
                with suppress(NotFoundError):  # subscriptions of jobs and copies are on some partitions only
                    await admin.delete_subscription(part, name, force)
                    deleted += 1
    if not deleted:
        raise NotFoundError(f"{target} has no subscription {name}")
    data = {"destination": target, "subscription": name, "deleted": True}
    output.result(data, f"subscription {name} of {target} is deleted")
    return OK


@subscriptions.command("set-selector")
@click.argument("target", metavar="DESTINATION", shell_complete=complete_destination)
@click.argument("selector", required=False, default="")
@broker_options()
@topic_option
@click.option("-n", "--name", help="Name of a durable subscription of a topic, without the client id.")
@json_option
async def set_selector(
    source: Source, target: str, selector: str, topic: bool, name: str | None, output: Output
) -> int:  # fmt: skip
    """Set the selector of a subscription for all its consumers; without SELECTOR, remove it.

    Messages that don't match are removed from the subscription. The selector follows the rules of Starlight's filter
    plugin; see 'jmsaio guide selectors'.
    """
    import jmsaio

    if topic is not bool(name):
        raise click.UsageError("a topic needs --name and --topic; a queue has one subscription, which needs no name")
    async with jmsaio.connect(source, auto_start=False) as connection, connection.create_session() as session:
        await session.set_subscription_selector(name, destination(session, target, topic), selector)
    data = {"destination": target, "subscription": name, "selector": selector or None}
    output.result(data, f"selector of {name or target}: {selector or 'none'}")
    return OK
