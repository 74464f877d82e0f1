"""``jmsaio receive`` acknowledges messages once the output's reader has them; ``browse`` shows them."""

from __future__ import annotations

import array
import asyncio
import errno
import os
import select
import stat
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

from jmsaio.cli.common.connecting import (
    Number,
    Source,
    broker_options,
    complete_destination,
    create_option,
    destination,
    require_destination,
    topic_option,
)
from jmsaio.cli.common.output import ERROR, NOTHING, OK, Output, json_option, printable
from jmsaio.cli.messages import raw_to_json, raw_to_text, to_json, to_text
from jmsaio.errors import IllegalStateError, MalformedMessageError
from jmsaio.model.destinations import Queue, Topic
from jmsaio.model.messages.message import Message
from jmsaio.selector import Selector

if TYPE_CHECKING:
    from jmsaio.client.consumer import MessageConsumer
    from jmsaio.client.lifetime.scope import Opening
    from jmsaio.client.session import Session


#: Checks of the output's pipe before the first pause: a waiting reader reads a line within microseconds.
_QUICK = 20
#: Seconds between two checks of a slow reader.
_PAUSE = 0.005


@click.command()
@click.argument("name", metavar="DESTINATION", shell_complete=complete_destination)
@broker_options()
@topic_option
@click.option("-s", "--selector", help="Message selector, such as \"region = 'EU' AND amount > 3\".")
@click.option("-n", "--count", type=click.IntRange(min=1), help="Number of messages; default 1.")
@click.option("-a", "--all", "everything", is_flag=True, help="Receive until no message arrives within --timeout.")
@click.option("-F", "--follow", is_flag=True, help="Receive until interrupted.")
@click.option(
    "--timeout",
    type=Number(min=0, min_open=True),
    help="Seconds to wait for a message; default 10, with --all 2, with --follow no limit.",
)
@click.option("--durable", metavar="NAME", help="Durable subscription of a topic; also needs -o jms.clientId=...")
@click.option("--shared", metavar="NAME", help="Shared subscription of a topic; deleted with its last consumer.")
@click.option("--shared-durable", metavar="NAME", help="Shared durable subscription of a topic.")
@create_option
@click.option("-H", "--headers", is_flag=True, help="Include all headers in text output (JSON always does).")
@json_option
async def receive(
    source: Source, name: str, topic: bool, selector: str | None, count: int | None, everything: bool, follow: bool,
    timeout: float | None, durable: str | None, shared: str | None, shared_durable: str | None, create: bool,
    headers: bool, output: Output,
) -> int:  # fmt: skip
    """Receive messages from a queue (or topic, with -t).

    Each message is acknowledged once it is written and, in a pipe, read by the next command: if either command exits
    early, the rest stays on the queue. A message that the next command has read but not processed is lost; to be safe,
    receive into a file. A message that can't be decoded is written as received, with kind "raw". The exit code is 3 if
    no message arrived, and 1 if one could not be decoded.

    \b
      jmsaio receive orders
      jmsaio receive orders --all -s "amount > 3" --json > orders.jsonl
      jmsaio receive orders --follow --json >> orders.jsonl
      jmsaio receive -t prices --follow --durable audit -o jms.clientId=me
    """
    import jmsaio

    if everything + follow + (count is not None) > 1:
        raise click.UsageError("--count, --all and --follow exclude each other")
    kinds = {"durable": durable, "shared": shared, "shared-durable": shared_durable}
    subscriptions = {kind: value for kind, value in kinds.items() if value is not None}
    if len(subscriptions) > 1:
        raise click.UsageError("--durable, --shared and --shared-durable exclude each other")
    if subscriptions and not topic:
        raise click.UsageError(f"--{next(iter(subscriptions))} is a subscription of a topic; add --topic")
    if timeout is None and not follow:
        timeout = 2.0 if everything else 10.0
    limit = None if everything or follow else count or 1
    if selector:
        Selector(selector)  # report a syntax error before connecting
    if not create:
        await require_destination(source, Topic(name) if topic else Queue(name), output)
    async with (
        jmsaio.connect(source) as connection,
        connection.create_session(jmsaio.AcknowledgeMode.INDIVIDUAL) as session,
        _consumer(session, name, topic, selector, subscriptions) as consumer,
    ):
        if limit is None:
            output.remark(f"receiving from {printable(name)}; press Ctrl-C to stop")
        received, unreadable = await _write_all(consumer, limit, timeout, headers, output)
    if not received:
        output.remark(f"no message in {printable(name)}" + (f" within {timeout:g} s" if timeout else ""))
        return NOTHING
    if unreadable:
        output.remarks.print(f"{unreadable} of {received} messages can't be read; they are shown as received")
        return ERROR
    return OK


def _consumer(
    session: Session, name: str, topic: bool, selector: str | None, subscriptions: Mapping[str, str]
) -> Opening[MessageConsumer]:
    for kind, subscribed in subscriptions.items():
        create = {
            "durable": session.create_durable_consumer,
            "shared": session.create_shared_consumer,
            "shared-durable": session.create_shared_durable_consumer,
        }[kind]
        return create(session.create_topic(name), subscribed, selector)
    return session.create_consumer(destination(session, name, topic), selector)


async def _write_all(
    consumer: MessageConsumer, limit: int | None, timeout: float | None, headers: bool, output: Output
) -> tuple[int, int]:
    """Write and acknowledge up to ``limit`` messages; return their number, and that of the unreadable ones."""
    received = unreadable = 0
    try:
        while limit is None or received < limit:
            message: Message | MalformedMessageError | None
            try:
                message = await consumer.receive(timeout)
            except MalformedMessageError as error:  # is shown as received, and can acknowledge the message
                message, unreadable = error, unreadable + 1
            if message is None:
                break
            write(output, message, headers)
            await wait_until_read()
            received += 1
            try:
                await message.acknowledge()
            except IllegalStateError as error:
                if not isinstance(message, MalformedMessageError):
                    raise
                output.remarks.print(str(error))  # a slow reader: the message was returned meanwhile
    except asyncio.CancelledError:
        output.remark(f"{received} messages received")
        raise
    return received, unreadable


def write(output: Output, message: Message | MalformedMessageError, headers: bool) -> None:
    """Write a message, or the error of an unreadable one, as a JSON line or as text."""
    if isinstance(message, MalformedMessageError):
        if output.as_json:
            output.record(raw_to_json(message))
        else:
            output.console.print(raw_to_text(message))
    elif output.as_json:
        output.record(to_json(message))
    else:
        output.console.print(to_text(message, headers=headers))


async def wait_until_read() -> None:
    """Wait until the reader of standard output has read everything written; return at once if it is not a pipe.

    There is no timeout. Cancelling has no side effects. On systems that don't report how much is in a pipe (Linux
    does, Windows doesn't), everything flushed counts as read.

    Raises:
        BrokenPipeError: the reader closed the pipe before reading everything.
    """
    output = _pipe()
    if output is None:
        return
    checks = 0
    while _unread(output):
        if _reader_gone(output) and _unread(output):  # checked again: it can have read the rest before it exited
            raise BrokenPipeError(errno.EPIPE, "the reader of the output is gone")
        checks += 1
        await asyncio.sleep(0 if checks < _QUICK else _PAUSE)


def _pipe() -> int | None:
    """Return the file descriptor of standard output if it is a pipe whose unread bytes can be counted, else None."""
    if sys.platform == "win32":
        return None
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):  # replaced by an object without one
        return None
    return descriptor if stat.S_ISFIFO(os.fstat(descriptor).st_mode) else None


def _unread(output: int) -> int:
    import fcntl  # neither is in Windows' Python
    import termios

    count = array.array("i", [0])
    fcntl.ioctl(output, termios.FIONREAD, count)
    return count[0]


def _reader_gone(output: int) -> bool:
    poll = select.poll()
    poll.register(output, 0)  # a closed pipe is reported even if no event is requested
    return bool(poll.poll(0))


@click.command()
@click.argument("name", metavar="QUEUE", shell_complete=complete_destination)
@broker_options()
@topic_option
@click.option("-s", "--selector", help="Message selector, such as \"region = 'EU' AND amount > 3\".")
@click.option("-n", "--count", type=click.IntRange(min=1), help="Maximum number of messages; default: all.")
@click.option("-H", "--headers", is_flag=True, help="Include all headers in text output (JSON always does).")
@create_option
@json_option
async def browse(
    source: Source, name: str, topic: bool, selector: str | None, count: int | None, headers: bool, create: bool,
    output: Output,
) -> int:  # fmt: skip
    """Show the messages of a queue without consuming them.

    The exit code is 3 if there are none.
    """
    if topic:
        raise click.UsageError("only a queue can be browsed; a topic keeps messages for its subscriptions")
    if selector:
        Selector(selector)  # report a syntax error before connecting
    if not create:
        await require_destination(source, Queue(name), output)
    seen = await browse_each(source, name, selector, count, lambda message: write(output, message, headers))
    if not seen:
        output.remark(f"no message in {printable(name)}")
        return NOTHING
    output.remark(f"{seen} messages seen in {printable(name)}, all still there")
    return OK


async def browse_each(
    source: Source, name: str, selector: str | None, limit: int | None, use: Callable[[Message], None]
) -> int:
    """Call ``use`` with the messages of a queue, up to ``limit``; return their number. Nothing is consumed."""
    import jmsaio

    seen = 0
    async with (
        jmsaio.connect(source, auto_start=False) as connection,
        connection.create_session() as session,
        session.create_browser(session.create_queue(name), selector) as browser,
    ):
        async for message in browser.stream():
            use(message)
            seen += 1
            if limit is not None and seen >= limit:
                break
    return seen
