"""``jmsaio dlq``: lists, shows and redrives dead letters, without Spark."""

from __future__ import annotations

from typing import Any

import click

from jmsaio.cli.browse import browse_each
from jmsaio.cli.common.asking import agreed, yes_option
from jmsaio.cli.common.connecting import broker_options, read_connection, run
from jmsaio.cli.common.exits import ERROR, NOTHING, OK
from jmsaio.cli.common.output import Output, json_option, make_output, printable, show_help_alone
from jmsaio.cli.common.selecting import full_name, of_option, selector_option, target_options, topic_option
from jmsaio.cli.states import open_admin, write_states
from jmsaio.cli.transfer import carry_out, transfer_options
from jmsaio.codec.properties import EXPIRED_AT
from jmsaio.config import Configuration, load
from jmsaio.model.destination_text import parse_destination_text
from jmsaio.model.messages.message import Message
from jmsaio.model.wire import FAILED_DELIVERIES, ORIGIN_MESSAGE_ID, REAL_SUBSCRIPTION, REAL_TOPIC


@click.group(invoke_without_command=True)
@click.pass_context
def dlq(context: click.Context) -> None:
    """List and show dead letters, and send them back to the destinations they failed on.

    For millions of dead letters, see 'jmsaio spark dlq'.
    """
    show_help_alone(context)


@dlq.command("list")
@broker_options
@json_option
def list_letters(url: str | None, settings: tuple[str, ...], as_json: bool | None) -> int:
    """List the dead letter topics of jms.systemNamespace (named ...-DLQ) that have dead letters.

    The exit code is 3 if there are none.
    """
    return run(_list(load(read_connection(url, settings)), make_output(as_json)))


@dlq.command()
@click.argument("name", metavar="QUEUE")
@broker_options
@selector_option
@click.option("-n", "--count", "limit", type=click.IntRange(min=1), help="Maximum number of messages; default: all.")
@json_option
def show(
    name: str, url: str | None, settings: tuple[str, ...], selector: str | None, limit: int | None,
    as_json: bool | None,
) -> int:  # fmt: skip
    """Show where, why and how often each dead letter in QUEUE failed, and how often it was redriven.

    The reason is "expired", or "failed": redelivered too often, or unreadable. The application's error is not in the
    dead letter; see the application's log. The number of failed deliveries is missing in letters of the Java client.

    Nothing is consumed. 'jmsaio browse QUEUE' shows the contents. The exit code is 3 if there are none.
    """
    return run(_show(read_connection(url, settings), name, selector, limit, make_output(as_json)))


@dlq.command()
@click.argument("source", metavar="DESTINATION")
@topic_option
@of_option
@target_options
@transfer_options
@yes_option
def redrive(
    source: str, topic: bool, of: str | None, to: str | None, max_redrives: int, url: str | None,
    settings: tuple[str, ...], selector: str | None, limit: int | None, dry_run: bool, yes: bool, as_json: bool | None,
) -> int:  # fmt: skip
    """Send the dead letters in DESTINATION back to the destinations they failed on.

    Each is acknowledged when the broker has stored it there.

    An interrupted command loses nothing: run it again, and it continues; a message can then be sent twice. Each has the
    properties jmsaio_redrive_count and jmsaio_origin_message_id, which identifies copies of the same message.

    The exit code is 5 if something was left.
    """
    from jmsaio.maintenance.dead_letters import RedriveRequest

    request = RedriveRequest(
        destination=parse_destination_text(full_name(source, topic)), of=of, selector=selector, limit=limit,
        to=None if to is None else parse_destination_text(full_name(to, topic=False)), max_redrives=max_redrives,
        dry_run=dry_run,
    )  # fmt: skip
    config = load(read_connection(url, settings))
    if not dry_run and not agreed(f"redrive the dead letters of {request.destination}?", yes):
        return ERROR
    return run(carry_out(config, request, make_output(as_json)))


def describe_letter(message: Message) -> dict[str, Any]:
    """Return where, why and how often a dead letter failed, and its number of redrives; None for what is unknown."""
    from jmsaio.maintenance.dead_letters import ORIGINAL_PLACE, REDRIVE_COUNT

    found = dict(message.properties)
    return {
        "id": message.jms_message_id,
        "timestamp": message.jms_timestamp,
        "type": message.jms_type,
        "origin": found.get(REAL_TOPIC),
        "subscription": found.get(REAL_SUBSCRIPTION),
        "origin_message_id": found.get(ORIGINAL_PLACE) or found.get(ORIGIN_MESSAGE_ID),
        "reason": "failed" if found.get(EXPIRED_AT) is None else "expired",
        "failed_deliveries": found.get(FAILED_DELIVERIES),
        "redriven": int(found.get(REDRIVE_COUNT) or 0),
    }


async def _list(config: Configuration, output: Output) -> int:
    from jmsaio.maintenance.overview import list_states

    async with open_admin(config) as admin:
        states = await list_states(admin, config)
    found = [
        one for one in states
        if one.name.endswith("-DLQ") and one.subscription is not None and one.subscription.backlog
    ]  # fmt: skip
    found.sort(key=lambda one: one.subscription is None or one.subscription.name != config.queue_subscription_name)
    write_states(output, found)
    if not found:
        output.remark(f"no dead letters in {config.system_namespace}")
        return NOTHING
    return OK


async def _show(config: dict[str, object], name: str, selector: str | None, limit: int | None, output: Output) -> int:
    def write(message: Message) -> None:
        letter = describe_letter(message)
        if output.as_json:
            output.record(letter)
        else:
            output.line(printable("  ".join(f"{key}={value}" for key, value in letter.items() if value is not None)))

    if not await browse_each(config, name, selector, limit, write):
        output.remark(f"no dead letter in {printable(name)}")
        return NOTHING
    return OK
