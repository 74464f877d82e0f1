"""``jmsaio move``, ``jmsaio copy``, ``jmsaio purge``: the messages of a queue, selected by a selector."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from jmsaio.cli.common.connecting import (
    Command,
    Source,
    agreed,
    broker_options,
    complete_destination,
    run,
    selector_option,
    with_options,
    yes_option,
)
from jmsaio.cli.common.output import ERROR, Output, json_option, progress_of, write_outcome
from jmsaio.config import Configuration, load
from jmsaio.model.destinations import Queue

if TYPE_CHECKING:
    from jmsaio.maintenance.transfer import TransferRequest


count_option = click.option(
    "-n", "--count", "limit", type=click.IntRange(min=1), help="Maximum number of messages; default: all."
)


def transfer_options(command: Command) -> Command:
    return with_options(
        command,
        broker_options(),
        selector_option,
        click.option("--dry-run", is_flag=True, help="Only report what would be done."),
        json_option,
    )


@click.command()
@click.argument("queue", metavar="QUEUE", shell_complete=complete_destination)
@click.argument("target", metavar="TARGET", shell_complete=complete_destination)
@transfer_options
@count_option
@yes_option
def move(queue: str, target: str, yes: bool, **options: Any) -> int:
    """Move messages from QUEUE to the queue TARGET, each acknowledged when the broker has stored it in TARGET.

    JMSMessageID, JMSTimestamp and all properties are kept. An interrupted command loses nothing: run it again, and it
    continues; a message can then be in TARGET twice. Messages sent after the start are ignored.

    The exit code is 5 if something was left, such as messages held by other consumers.
    """
    return transfer("move", Queue(queue), Queue(target), yes, **options)


@click.command()
@click.argument("queue", metavar="QUEUE", shell_complete=complete_destination)
@click.argument("target", metavar="TARGET", shell_complete=complete_destination)
@transfer_options
def copy(queue: str, target: str, **options: Any) -> int:
    """Copy messages from QUEUE to the queue TARGET; they also stay in QUEUE.

    JMSMessageID, JMSTimestamp and all properties are kept. Messages that consumers hold are also copied. Messages sent
    after the start, or acknowledged by consumers, are not.

    Run an interrupted command again with the same arguments, and it continues. Only messages whose copies were stored
    but not yet recorded are then copied twice: about 1000 after a kill, hardly any after Ctrl-C. A second Ctrl-C, at
    least a second later, is a kill. A batch is recorded when all its messages are copied. After a complete copy, the
    command copies everything again.

    The progress is recorded by a subscription of QUEUE named jmsaio-copy-..., which keeps messages until the copy is
    complete. To give up a copy, see 'jmsaio subscriptions list' and 'jmsaio subscriptions delete'.

    The exit code is 5 if something was left out, such as delayed messages. Run the command again for the rest.
    """
    return transfer("copy", Queue(queue), Queue(target), True, **options)


@click.command()
@click.argument("queue", metavar="QUEUE", shell_complete=complete_destination)
@transfer_options
@count_option
@yes_option
def purge(queue: str, yes: bool, **options: Any) -> int:
    """Delete messages from QUEUE. Messages sent after the start are kept.

    For a durable subscription of a topic, QUEUE is TOPIC:SUBSCRIPTION.

    Without --selector and --count, everything is deleted, including delayed messages and those that consumers hold. A
    consumer still processes the messages that its client has already received, and can acknowledge them; no other
    consumer receives them, even after it closes. Above 10,000 messages, the reported number is approximate.

    With --selector or --count, messages that consumers hold are left, and the exit code is then 5.
    """
    return transfer("purge", Queue(queue), None, yes, **options)


def transfer(
    kind: str, queue: Queue, target: Queue | None, yes: bool, *, source: Source, selector: str | None, dry_run: bool,
    output: Output, limit: int | None = None,
) -> int:  # fmt: skip
    """Ask if needed, then move, copy or delete messages of a queue. ``kind`` is a value of ``Transfer``."""
    from jmsaio.maintenance.transfer import Transfer, TransferRequest

    request = TransferRequest(
        destination=queue, to=target, selector=selector, limit=limit, dry_run=dry_run, transfer=Transfer(kind)
    )
    config = load(source)
    where = "" if target is None else f" to {target}"
    what = "messages" if selector is None else f"messages that match {selector}"
    if not dry_run and not agreed(f"{kind} {what} of {queue}{where}?", yes):
        return ERROR
    return write_outcome(output, run(perform(config, request, output)))


async def perform(config: Configuration, request: TransferRequest, output: Output) -> dict[str, Any]:
    from jmsaio.maintenance.transfers import describe, transfer_all
    from jmsaio.transport.registry import connected

    began, kind = time.monotonic(), request.transfer.value
    async with connected(config) as transport:
        with progress_of(output, kind, request.dry_run) as progress:
            outcomes = await transfer_all(transport, config, request, progress)
    return describe(kind, request, outcomes, began)
