"""``jmsaio send``: sends one message, many from a file, or the output of another program."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

import attrs
import click

from jmsaio.cli.common.connecting import (
    Command,
    Number,
    Source,
    broker_options,
    complete_destination,
    destination,
    require_rest,
    topic_option,
)
from jmsaio.cli.common.output import OK, Output, json_option, printable
from jmsaio.cli.messages import BodySource, parse_property
from jmsaio.errors import JMSError, SendInDoubtError
from jmsaio.model.arguments import shown
from jmsaio.model.destinations import Queue, Topic
from jmsaio.model.headers import OF_APPLICATION, HeaderKind
from jmsaio.model.messages.kinds import KINDS
from jmsaio.model.modes import DeliveryMode

if TYPE_CHECKING:
    from jmsaio.client.connection import Connection
    from jmsaio.client.producer import MessageProducer
    from jmsaio.client.senders.pending import Receipt
    from jmsaio.model.messages.message import Message, Property

#: Maximum number of sends in flight.
_PENDING = 5000


class SendingStopped(JMSError):
    """Sending stopped before the end of its input; ``__cause__`` is the first error."""


def _header_options(command: Command) -> Command:
    for header in reversed(OF_APPLICATION):
        rest = ", a queue; topic:NAME for a topic" if header.kind is HeaderKind.DESTINATION else ""
        flag = f"--{header.field.replace('_', '-')}"
        command = click.option(flag, header.field, help=f"Header {header.name}{rest}.")(command)
    return command


def _parse_properties(
    context: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, Property]:  # fmt: skip
    found: dict[str, Property] = {}
    for name, value in map(parse_property, texts):
        if name in found:
            raise click.UsageError(f"property {shown(name)} is given twice")
        found[name] = value
    return found


@click.command()
@click.argument("name", metavar="DESTINATION", shell_complete=complete_destination)
@click.argument("bodies", nargs=-1, metavar="[BODY]...")
@broker_options()
@topic_option
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
    callback=_parse_properties,
    help="A property; types: string, boolean, byte, short, int, long, float, double.",
)
@click.option("--priority", type=click.IntRange(0, 9), help="Priority, 0 to 9; default 4.")
@click.option("--ttl", type=Number(min=0), help="Seconds until the message expires; 0: never.")
@click.option("--delay", type=Number(min=0), help="Seconds until the message is delivered.")
@click.option("--non-persistent", is_flag=True, help="Send with delivery mode NON_PERSISTENT.")
@_header_options
@click.option("-n", "--count", type=click.IntRange(min=1), default=1, help="Send each message this many times.")
@json_option
async def send(
    source: Source, name: str, bodies: tuple[str, ...], topic: bool, files: tuple[BinaryIO, ...], kind: str | None,
    lines: bool, records: bool, properties: dict[str, Property], priority: int | None, ttl: float | None,
    delay: float | None, non_persistent: bool, count: int, output: Output, **headers: str | None,
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
    import jmsaio

    if lines and records:
        raise click.UsageError("--lines and --json-lines exclude each other")
    if bodies and (lines or records):
        raise click.UsageError(
            "--lines and --json-lines read files or standard input; leave out the bodies beside them"
        )
    if kind and records:
        raise click.UsageError("with --json-lines each line names its kind; leave out --as")
    input_ = BodySource(bodies, files, kind or "text", lines, records)
    mode = DeliveryMode.NON_PERSISTENT if non_persistent else None
    options = {"priority": priority, "time_to_live": ttl, "delivery_delay": delay, "delivery_mode": mode}
    given = {key: value for key, value in options.items() if value is not None}
    messages = _prepared(input_, properties, headers)
    message = await anext(messages, None)  # report a malformed body before connecting
    if message is None:
        output.remark("nothing to send: the input is empty")
        return OK
    single = input_.single and count == 1
    async with (
        contextlib.aclosing(messages),
        jmsaio.connect(source) as connection,
        _producer(connection, name, topic) as producer,
    ):
        window = SendsInFlight(output, name, single)
        await window.send_all(producer, message, messages, count, given)
    if not (output.as_json or window.single):
        output.line(window.summary())
    return OK


async def _prepared(
    source: BodySource, properties: Mapping[str, Property], headers: Mapping[str, str | None]
) -> AsyncGenerator[Message, None]:
    """Yield the messages of the input with the properties and headers that are given as options."""
    async for message in source.messages():
        for name, value in properties.items():
            message.set_object_property(name, value)
        for header in OF_APPLICATION:
            text = headers.get(header.field)
            if text is not None and header.kind is HeaderKind.DESTINATION:
                name = text.removeprefix("topic:")
                setattr(message, header.attribute, Queue(name) if name == text else Topic(name))
            elif text is not None:
                setattr(message, header.attribute, text)
        yield message


@contextlib.asynccontextmanager
async def _producer(connection: Connection, name: str, topic: bool) -> AsyncIterator[MessageProducer]:
    config = connection.configuration
    creates = config.use_pulsar_admin and config.precreate_queue_subscription and not topic
    if creates and not config.in_process:
        await require_rest(config)
    async with (
        connection.create_session() as session,
        session.create_producer(destination(session, name, topic)) as producer,
    ):
        yield producer


@attrs.define
class SendsInFlight:
    """The sends in flight, whose receipts are reported in order; of a ``single`` message, the id is shown."""

    output: Output
    name: str
    single: bool
    sent: int = 0
    failed: int = 0
    in_doubt: int = 0
    _pending: deque[asyncio.Future[Receipt]] = attrs.field(factory=deque, init=False)

    async def send_all(
        self, producer: MessageProducer, message: Message | None, rest: AsyncGenerator[Message, None], times: int,
        options: Mapping[str, Any],
    ) -> None:  # fmt: skip
        """Send ``message`` and the rest, each so many times, and wait for all; an error says what became of them."""
        try:
            while message is not None:
                carried = {"priority": message.jms_priority, "delivery_mode": message.jms_delivery_mode}
                for _ in range(times):
                    await self.add(producer.send_async(message, **{**carried, **options}))
                message = await anext(rest, None)
            while self._pending:
                await self._next()
        except JMSError as error:
            raise SendingStopped(f"{await self._settled()}, first {type(error).__name__}: {error}") from error
        except click.UsageError as error:
            raise click.UsageError(f"{await self._settled()}, then: {error.message}") from None
        except asyncio.CancelledError:
            self.output.remark(self.summary())
            raise
        finally:
            for future in self._pending:
                future.cancel()

    async def add(self, sending: Awaitable[asyncio.Future[Receipt]]) -> None:
        """Add a send, waiting while too many are in flight. Raises its error or an earlier send's."""
        pending = self._pending
        with self._counting():
            pending.append(await sending)
        while pending and (pending[0].done() or len(pending) > _PENDING):
            await self._next()

    async def _settled(self) -> str:
        """Wait for all sends, counting failures; return the outcomes as text."""
        while self._pending:
            with contextlib.suppress(JMSError):  # counted; the first error is reported
                await self._next()
        parts = [f"{self.sent} sent"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.in_doubt:
            parts.append(f"{self.in_doubt} in doubt (the broker might have stored them)")
        return ", ".join(parts)

    def summary(self) -> str:
        return f"{self.sent} message{'' if self.sent == 1 else 's'} sent to {printable(self.name)}"

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
        if self.output.as_json:
            place = None if receipt.place is None else str(receipt.place)
            self.output.record({"message_id": receipt.jms_message_id, "place": place})
        elif self.single:
            self.output.line(f"sent {receipt.jms_message_id}")
