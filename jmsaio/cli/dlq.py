"""``jmsaio dlq``: lists, shows and redrives dead letters, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs
import click
from rich.text import Text

from jmsaio.cli.common.connecting import (
    Source,
    agreed,
    broker_options,
    complete_destination,
    full_name,
    of_option,
    require_destination,
    require_terminal,
    run,
    selector_option,
    topic_option,
    yes_option,
)
from jmsaio.cli.common.output import (
    ERROR,
    NOTHING,
    OK,
    Output,
    json_option,
    printable,
    show_help_alone,
    write_outcome,
)
from jmsaio.cli.messages import body_text, clock_text, to_json
from jmsaio.cli.receive import browse_each
from jmsaio.cli.states import MESSAGES, open_admin, write_states
from jmsaio.cli.transfer import count_option, perform, transfer_options
from jmsaio.codec.properties import EXPIRED_AT
from jmsaio.config import Configuration, load
from jmsaio.model.destinations import Queue, Topic, parse_destination_text, resolve, short_name
from jmsaio.model.messages.message import Message
from jmsaio.model.topic_names import split_partition
from jmsaio.model.wire import FAILED_DELIVERIES, ORIGIN_MESSAGE_ID, REAL_SUBSCRIPTION, REAL_TOPIC

if TYPE_CHECKING:
    from jmsaio.maintenance.transfer import TransferRequest


@click.group(invoke_without_command=True)
@click.pass_context
def dlq(context: click.Context) -> None:
    """List and show dead letters, and send them back to the destinations they failed on.

    For millions of dead letters, see 'jmsaio spark dlq'.
    """
    show_help_alone(context)


@dlq.command("list")
@broker_options()
@json_option
async def list_letters(source: Source, output: Output) -> int:
    """List the topics of jms.systemNamespace with dead letters, named ...-DLQ, and the number of their messages.

    The exit code is 3 if there are none. 'jmsaio queues' also lists topics that a policy names otherwise.
    """
    from jmsaio.maintenance.overview import list_letters

    config = load(source)
    async with open_admin(config) as admin:
        found = await list_letters(admin, config)
    found.sort(key=lambda one: one.subscription is None or one.subscription.name != config.queue_subscription_name)
    write_states(output, found, MESSAGES)
    if not found:
        output.remark(f"no dead letters in {config.system_namespace}")
        return NOTHING
    return OK


@dlq.command()
@click.argument("name", metavar="QUEUE", shell_complete=complete_destination)
@broker_options()
@selector_option
@count_option
@json_option
async def show(source: Source, name: str, selector: str | None, limit: int | None, output: Output) -> int:
    """Show where, why and how often each dead letter in QUEUE failed, and how often it was redriven.

    The reason is "expired", or "failed": redelivered too often, or unreadable. The application's error is not in the
    dead letter; see the application's log. The number of failed deliveries is missing in letters of the Java client.

    The body is also shown; 'jmsaio browse QUEUE' also shows properties and headers. Nothing is consumed. The exit code
    is 3 if there are none.
    """
    topic = next(iter(resolve(Queue(name), load(source).system_namespace).topics), "")

    def write(message: Message) -> None:
        letter = describe_letter(message, topic)
        if output.as_json:
            output.record(letter)
        else:
            output.console.print(letter_to_text(message, letter))

    await require_destination(source, Queue(name), output)
    if not await browse_each(source, name, selector, limit, write):
        output.remark(f"no dead letter in {printable(name)}")
        return NOTHING
    return OK


@dlq.command()
@click.argument("letters", metavar="DESTINATION", shell_complete=complete_destination)
@topic_option
@of_option
@click.option(
    "--to", metavar="DESTINATION",
    help="Send all letters to this queue, which is created if it is missing; topic://NAME for a topic. Default: the "
    "destination that each failed on.",
)  # fmt: skip
@click.option(
    "--max-redrives", type=click.IntRange(min=1), default=3, show_default=True, metavar="N",
    help="Skip messages that were already redriven N times.",
)  # fmt: skip
@transfer_options
@count_option
@yes_option
def redrive(
    source: Source, letters: str, topic: bool, of: str | None, to: str | None, max_redrives: int,
    selector: str | None, limit: int | None, dry_run: bool, yes: bool, output: Output,
) -> int:  # fmt: skip
    """Send the dead letters in DESTINATION back to the destinations they failed on.

    First counts them, and asks. Each is acknowledged when the broker has stored it at its target.

    A topic delivers what is sent to it to all its subscriptions, not only to the one on which a letter failed; the
    question names them. With --to QUEUE, only the consumers of that queue receive the letters.

    An interrupted command loses nothing: run it again, and it continues; a message can then be sent twice. Each has the
    properties jmsaio_redrive_count and jmsaio_origin_message_id, which identifies copies of the same message.

    The exit code is 5 if something was left.
    """
    from jmsaio.maintenance.transfer import TransferRequest

    target = None if to is None else parse_destination_text(full_name(to, topic=False))
    request = TransferRequest(
        destination=parse_destination_text(full_name(letters, topic)), of=of, selector=selector, limit=limit, to=target,
        max_redrives=max_redrives, dry_run=dry_run,
    )  # fmt: skip
    config = load(source)
    if not dry_run and not yes:
        require_terminal(yes)
        planned, shared = run(_redrive(config, attrs.evolve(request, dry_run=True), output))
        if not planned["sent"]:
            return write_outcome(output, {**planned, "dry_run": False})
        if not agreed(_question(config, planned, shared), yes):
            return ERROR
    outcome, shared = run(_redrive(config, request, output))
    for text in _remarks(config, shared) if dry_run or yes else ():
        output.remarks.print(text)
    return write_outcome(output, outcome)


async def _redrive(
    config: Configuration, request: TransferRequest, output: Output
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Redrive; return the summary, and the subscriptions of each target that has several."""
    from jmsaio.maintenance.overview import find_shared

    summary = await perform(config, request, output)
    if isinstance(request.to, Topic) or not summary["targets"]:
        return summary, {}
    async with open_admin(config) as admin:
        return summary, await find_shared(admin, summary["targets"])


def _question(config: Configuration, planned: dict[str, Any], shared: dict[str, list[str]]) -> str:
    remarks = "".join(f"{text}\n" for text in _remarks(config, shared))
    targets = [f"{count} to {_name(config, topic)}" for topic, count in planned["targets"].items()]
    return f"{remarks}send {planned['sent']} dead letters: {', '.join(targets)}?"


def _remarks(config: Configuration, shared: dict[str, list[str]]) -> Iterator[str]:
    for topic, subscriptions in shared.items():
        names = printable(", ".join(subscriptions))
        yield (
            f"{_name(config, topic)} delivers each of them to all its subscriptions, also to those on which it did not "
            f"fail: {names} (--to NAME sends them to a queue instead)"
        )


def _name(config: Configuration, topic: str) -> str:
    return printable(short_name(topic, config.system_namespace))


def describe_letter(message: Message, topic: str) -> dict[str, Any]:
    """Return where, why and how often a dead letter of a topic failed, its redrives and body; None where unknown."""
    from jmsaio.maintenance.dead_letters import ORIGINAL_PLACE, REDRIVE_COUNT

    found = dict(message.properties)
    return {
        "id": message.jms_message_id,
        "timestamp": message.jms_timestamp,
        "type": message.jms_type,
        "origin": found.get(REAL_TOPIC),
        "subscription": found.get(REAL_SUBSCRIPTION) or _subscription(topic, str(found.get(REAL_TOPIC))),
        "origin_message_id": found.get(ORIGINAL_PLACE) or found.get(ORIGIN_MESSAGE_ID),
        "reason": "failed" if found.get(EXPIRED_AT) is None else "expired",
        "failed_deliveries": found.get(FAILED_DELIVERIES),
        "redriven": int(found.get(REDRIVE_COUNT) or 0),
        **{name: value for name, value in to_json(message).items() if name in ("kind", "body", "body_types")},
    }


def letter_to_text(message: Message, letter: dict[str, Any]) -> Text:
    text = Text(printable(letter["id"] or "(no id)"), style="bold")
    if letter["timestamp"]:
        text.append(f"  sent {clock_text(letter['timestamp'])}", style="dim")
    origin = letter["origin"] or "an unknown topic"
    subscription = f", subscription {letter['subscription']}" if letter["subscription"] else ""
    text.append(f"\n  {letter['reason']} on {printable(origin + subscription)}", style="yellow")
    if letter["failed_deliveries"]:
        text.append(f"; failed deliveries: {letter['failed_deliveries']}", style="yellow")
    if (expired := dict(message.properties).get(EXPIRED_AT)) is not None:
        text.append(f"; expiration: {clock_text(int(expired))}", style="yellow")
    for label, name in (("message id there", "origin_message_id"), ("redriven", "redriven"), ("JMSType", "type")):
        if letter[name]:
            text.append(f"\n  {label}: {printable(str(letter[name]))}", style="dim")
    text.append(f"\n{body_text(message)}")
    return text


def _subscription(topic: str, origin: str) -> str | None:
    """Return the subscription in a dead letter topic's name; letters of earlier versions don't name it otherwise."""
    name = split_partition(topic)[0]
    if name.startswith(f"{origin}-") and name.endswith("-DLQ"):
        return name[len(origin) + 1 : -len("-DLQ")] or None
    return None
