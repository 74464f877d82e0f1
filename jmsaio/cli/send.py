"""``jmsaio send``: sends one message, many from a file, or the output of another program."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import attrs
import click
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from jmsaio.cli.bodies import BodySource, parse_property
from jmsaio.cli.common.connecting import (
    Number,
    complete_destination,
    connection_options,
    destination,
    read_connection,
    require_rest,
    run,
)
from jmsaio.cli.common.output import OK, Output, json_option, make_output, printable
from jmsaio.errors import JMSError, SendInDoubtError
from jmsaio.model.arguments import shown
from jmsaio.model.headers import OF_APPLICATION, HeaderKind
from jmsaio.model.messages.kinds import KINDS
from jmsaio.model.modes import DeliveryMode

if TYPE_CHECKING:
    from jmsaio.client.connection import Connection
    from jmsaio.client.senders.pending import Receipt
    from jmsaio.client.session import Session
    from jmsaio.model.destinations import Queue, Topic
    from jmsaio.model.messages.message import Message, Property

Command = TypeVar("Command", bound=Callable[..., Any])

#: Minimum number of messages for a progress bar.
_MANY = 200
#: Maximum number of sends in flight.
_PENDING = 5000


class SendingStopped(JMSError):
    """Sending stopped before the end of its input; ``__cause__`` is the first error."""


@attrs.frozen
class SendArguments:
    """The arguments of ``jmsaio send``.

    Attributes:
        repeat: how often each message is sent.
        headers: texts of headers by their fields; None if not given.
        options: keyword arguments of ``producer.send_async``.
    """

    config: dict[str, object]
    name: str
    topic: bool
    source: BodySource
    repeat: int
    properties: Mapping[str, Property]
    headers: Mapping[str, str | None]
    options: dict[str, Any]


def _header_options(command: Command) -> Command:
    """Add an option for each header that the application sets."""
    for header in reversed(OF_APPLICATION):
        rest = ", a queue; topic:NAME for a topic" if header.kind is HeaderKind.DESTINATION else ""
        flag = f"--{header.field.replace('_', '-')}"
        command = click.option(flag, header.field, help=f"Header {header.name}{rest}.")(command)
    return command


@click.command()
@click.argument("name", metavar="DESTINATION", shell_complete=complete_destination)
@click.argument("bodies", nargs=-1, metavar="[BODY]...")
@connection_options
@click.option(
    "-f", "--file", "files", type=click.File("rb"), multiple=True, help="A file that holds a body; - is standard input."
)
@click.option(
    "--as",
    "kind",
    type=click.Choice(tuple(KINDS)),
    help="Kind of message; default text. Map, stream and object bodies are JSON; a header message has no body.",
)
@click.option("--lines", is_flag=True, help="Send each line of the input as a message.")
@click.option(
    "--json-lines",
    "records",
    is_flag=True,
    help="Send each line as a message as written by 'jmsaio receive --json', with a new id, new times and expiration.",
)
@click.option(
    "-p",
    "--property",
    "properties",
    multiple=True,
    metavar="NAME[:TYPE]=VALUE",
    help="A property; types: string, boolean, byte, short, int, long, float, double.",
)
@click.option("--priority", type=click.IntRange(0, 9), help="Priority, 0 to 9; default 4.")
@click.option("--ttl", type=Number(min=0), help="Seconds until the message expires; 0: never.")
@click.option("--delay", type=Number(min=0), help="Seconds until the message is delivered.")
@click.option("--non-persistent", is_flag=True, help="Send with delivery mode NON_PERSISTENT.")
@_header_options
@click.option("-n", "--count", type=click.IntRange(min=1), default=1, help="Send each message this many times.")
@json_option
def send(
    name: str, bodies: tuple[str, ...], url: str | None, settings: tuple[str, ...], topic: bool,
    files: tuple[BinaryIO, ...], kind: str | None, lines: bool, records: bool, properties: tuple[str, ...],
    priority: int | None, ttl: float | None, delay: float | None, non_persistent: bool, count: int,
    as_json: bool | None, **headers: str | None,
) -> int:  # fmt: skip
    """Send messages to a queue (or topic, with -t).

    Bodies are arguments, files, or standard input. The command exits when the broker has confirmed every message, and
    reports the messages sent. Empty standard input is an error: the command before the pipe has probably failed.

    \b
      jmsaio send orders 'hello' -p region=EU -p amount:int=5
      jmsaio send orders --as map '{"price": 9.5, "item": "tea"}'
      jmsaio send -t prices --file ticks.txt --lines
      jmsaio receive orders --all --json > orders.jsonl && jmsaio send archive --json-lines --file orders.jsonl
    """
    if lines and records:
        raise click.UsageError("--lines and --json-lines exclude each other")
    if bodies and (lines or records):
        raise click.UsageError(
            "--lines and --json-lines read files or standard input; leave out the bodies beside them"
        )
    if kind and records:
        raise click.UsageError("with --json-lines each line names its kind; leave out --as")
    typed = _parse_properties(properties)
    options = {"priority": priority, "time_to_live": ttl, "delivery_delay": delay}
    job = SendArguments(
        config=read_connection(url, settings),
        name=name,
        topic=topic,
        source=BodySource(bodies, files, kind or "text", lines, records),
        repeat=count,
        properties=typed,
        headers=headers,
        options={key: value for key, value in options.items() if value is not None}
        | ({"delivery_mode": DeliveryMode.NON_PERSISTENT} if non_persistent else {}),
    )
    return run(_send(job, make_output(as_json)))


def _parse_properties(texts: tuple[str, ...]) -> dict[str, Property]:
    found: dict[str, Property] = {}
    for name, value in map(parse_property, texts):
        if name in found:
            raise click.UsageError(f"property {shown(name)} is given twice")
        found[name] = value
    return found


@contextlib.asynccontextmanager
async def _connected(job: SendArguments) -> AsyncIterator[Connection]:
    import jmsaio

    async with jmsaio.connect(job.config) as connection:
        config = connection.configuration
        makes_queue = config.use_pulsar_admin and config.precreate_queue_subscription and not job.topic
        if makes_queue and not config.in_process:
            await require_rest(config)
        yield connection


async def _send(job: SendArguments, output: Output) -> int:
    known = job.source.count()
    total = None if known is None else known * job.repeat
    messages = job.source.messages()
    message = await anext(messages, None)  # report a malformed body before connecting
    if message is None:
        output.remark("nothing to send: the input is empty")
        return OK
    async with (
        contextlib.aclosing(messages),
        _connected(job) as connection,
        connection.create_session() as session,
        session.create_producer(destination(session, job.name, job.topic)) as producer,
    ):
        with _progress(output, total) as progress:
            task = progress.add_task(f"sending to {printable(job.name)}", total=total)
            window = SendsInFlight(output, total == 1, lambda done: progress.update(task, completed=done))
            try:
                while message is not None:
                    _prepare(session, message, job)
                    carried = {"priority": message.jms_priority, "delivery_mode": message.jms_delivery_mode}
                    for _ in range(job.repeat):
                        await window.add(producer.send_async(message, **(carried | job.options)))
                    message = await anext(messages, None)
                await window.finish()
            except JMSError as error:
                await window.settle()
                raise SendingStopped(f"{window.outcome()}, first {type(error).__name__}: {error}") from error
            except click.UsageError as error:  # a malformed line in the input
                await window.settle()
                raise click.UsageError(f"{window.outcome()}, then: {error.message}") from None
            except asyncio.CancelledError:
                output.remark(_summary(window.sent, job))
                raise
            finally:
                window.drop()
    if not (output.as_json or window.single):
        output.line(_summary(window.sent, job))
    return OK


def _summary(sent: int, job: SendArguments) -> str:
    return f"{sent} message{'' if sent == 1 else 's'} sent to {printable(job.name)}"


@attrs.define
class SendsInFlight:
    """The sends in flight, whose receipts are reported in order.

    Attributes:
        single: whether there is only one message, whose id is shown then.
        advance: called with the number of confirmed sends.
        failed: number of messages that were not stored.
        in_doubt: number of messages that the broker might have stored.
    """

    output: Output
    single: bool
    advance: Callable[[int], None]
    sent: int = 0
    failed: int = 0
    in_doubt: int = 0
    _pending: deque[asyncio.Future[Receipt]] = attrs.field(factory=deque, init=False)

    async def add(self, sending: Awaitable[asyncio.Future[Receipt]]) -> None:
        """Add a send, waiting while too many are in flight. Raises its error or an earlier send's."""
        pending = self._pending
        with self._counting():
            pending.append(await sending)
        while pending and (pending[0].done() or len(pending) > _PENDING):
            await self._next()

    async def finish(self) -> None:
        """Wait for all sends. Raises the error of the first failed one."""
        while self._pending:
            await self._next()

    async def settle(self) -> None:
        """Wait for all sends, counting failures instead of raising them."""
        while self._pending:
            with contextlib.suppress(JMSError):  # counted; the first error is reported
                await self._next()

    def outcome(self) -> str:
        """Return the outcomes so far as text."""
        parts = [f"{self.sent} sent"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.in_doubt:
            parts.append(f"{self.in_doubt} in doubt (the broker might have stored them)")
        return ", ".join(parts)

    @contextlib.contextmanager
    def _counting(self) -> Iterator[None]:
        try:
            yield
        except SendInDoubtError:
            self.in_doubt += 1
            raise
        except JMSError:
            self.failed += 1
            raise

    async def _next(self) -> None:
        with self._counting():
            receipt = await self._pending.popleft()
        self.sent += 1
        self.advance(self.sent)
        if self.output.as_json:
            place = None if receipt.place is None else str(receipt.place)
            self.output.record({"message_id": receipt.jms_message_id, "place": place})
        elif self.single:
            self.output.line(f"sent {receipt.jms_message_id}")

    def drop(self) -> None:
        """Abandon the remaining sends."""
        for future in self._pending:
            future.cancel()


def _prepare(session: Session, message: Message, job: SendArguments) -> None:
    """Set the properties and headers given as options."""
    for name, value in job.properties.items():
        message.set_object_property(name, value)
    for header in OF_APPLICATION:
        text = job.headers.get(header.field)
        if text is not None:
            given = _named(session, text) if header.kind is HeaderKind.DESTINATION else text
            setattr(message, header.attribute, given)


def _named(session: Session, text: str) -> Queue | Topic:
    """Return the queue of that name, or the topic of ``topic:NAME``."""
    is_topic = text.startswith("topic:")
    return destination(session, text.removeprefix("topic:"), is_topic)


def _progress(output: Output, total: int | None) -> Progress:
    worth_it = (total is None or total >= _MANY) and not output.as_json and output.remarks.is_terminal
    return Progress(
        SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn(),
        console=output.remarks, transient=True, disable=not worth_it,
    )  # fmt: skip
