"""A tour of jmsaio on the embedded broker: each chapter shows its code, then what the code does as it happens.

Nothing is prepared or recorded: the source that is shown is the source that runs. ``jmsaio demo`` starts it.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import textwrap
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import attrs

import jmsaio
from jmsaio import AcknowledgeMode, Float, MessageFormatError, Short

#: Told each thing that a chapter has to say, when it happens.
Say = Callable[[str], Awaitable[None]]
#: A chapter: runs on a connection (Any: a chapter reads as a script does, without narrowing) and says what happens.
Play = Callable[[Any, Say], Awaitable[None]]


async def typed_properties(connection: Any, say: Say) -> None:
    """A property has a JMS type and keeps it on the wire: Java reads the same short, float or int that you wrote.

    Reading converts as JMS allows, and refuses the rest.
    """
    async with connection.create_session() as session:
        orders = session.create_queue("orders")
        producer = await session.create_producer(orders)
        await producer.send(
            "two pounds of tea",
            properties={"region": "EU", "amount": 5, "weight": Float(0.9), "shelf": Short(12)},
            priority=7,
        )
        async with session.create_consumer(orders) as consumer:
            message = await consumer.receive(timeout=5)
            await say(f"{message.text!r} with priority {message.jms_priority}, as {message.jms_message_id}")
            for name in ("region", "amount", "weight", "shelf"):
                await say(f"{name} = {message.properties[name]!r}")
            await say(f"amount as a long is {message.get_long_property('amount')}")
            await say(f"amount as a string is {message.get_string_property('amount')!r}")
            try:
                message.get_boolean_property("amount")
            except MessageFormatError as error:
                await say(f"amount as a boolean is refused: {error}")


async def selectors(connection: Any, say: Say) -> None:
    """A selector is an SQL condition on headers and properties. Here two consumers with listeners share one queue.

    Each takes only what it asked for. A missing property is unknown, so neither true nor false: the last message
    matches no condition on its region, and stays.
    """
    async with connection.create_session() as session:
        parcels = session.create_queue("parcels")
        producer = await session.create_producer(parcels)
        arrived: asyncio.Queue[str] = asyncio.Queue()
        async with (
            session.create_consumer(parcels, "region = 'EU'") as europe,
            session.create_consumer(parcels, "region IN ('US', 'CA') AND weight BETWEEN 5 AND 10") as heavy,
        ):
            europe.set_message_listener(lambda message: arrived.put_nowait(f"Europe gets {message.text!r}"))
            heavy.set_message_listener(lambda message: arrived.put_nowait(f"heavy gets {message.text!r}"))
            for region, weight in (("EU", 2), ("US", 9), ("EU", 7), ("US", 1)):
                await producer.send(f"{weight} kg to {region}", properties={"region": region, "weight": weight})
            await producer.send("4 kg to somewhere", properties={"weight": 4})
            for _ in range(3):
                await say(await asyncio.wait_for(arrived.get(), timeout=60))


async def browser(connection: Any, say: Say) -> None:
    """A browser looks at a queue and takes nothing: what the last chapter left is still there, before and after."""
    async with connection.create_session() as session:
        parcels = session.create_queue("parcels")
        for attempt in ("first look", "second look"):
            async with session.create_browser(parcels) as look:
                found = [message.text async for message in look]
            await say(f"{attempt}: {found}")


async def durable_subscription(connection: Any, say: Say) -> None:
    """A durable subscription belongs to a client id and a name. It collects what is published while no one listens."""
    async with connection.create_session() as session:
        news = session.create_topic("news")
        producer = await session.create_producer(news)
        async with session.create_durable_consumer(news, "morning-paper") as reader:
            await producer.send("Monday's news")
            await say(f"at home: {(await reader.receive(timeout=5)).text!r}")
        await say("the reader goes on holiday")
        await producer.send("Tuesday's news")
        await producer.send("Wednesday's news")
        async with session.create_durable_consumer(news, "morning-paper") as reader:
            for _ in range(2):
                await say(f"back home, from the letter box: {(await reader.receive(timeout=5)).text!r}")
        await session.unsubscribe("morning-paper", news)
        await say("subscription ended: from now on nothing is kept")


async def redelivery(connection: Any, say: Say) -> None:
    """A message that fails is redelivered, marked and counted. After the limit it goes to the dead letter queue.

    The limit is an option of the destination, with the name that Starlight for JMS uses.
    """
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        payments = session.create_queue("payments?consumerConfig.deadLetterPolicy.maxRedeliverCount=1")
        producer = await session.create_producer(payments)
        async with (
            session.create_consumer(session.create_queue("payments-jms-queue-DLQ")) as dead_letters,
            session.create_consumer(payments) as consumer,
        ):
            await producer.send("12 pounds to no one", properties={"account": "?"})
            for _ in range(2):
                try:
                    async with consumer.process(timeout=10) as message:
                        count = message.get_int_property("JMSXDeliveryCount")
                        await say(f"delivery {count}, redelivered: {message.jms_redelivered}")
                        raise LookupError("there is no such account")
                except LookupError as error:
                    await say(f"  the handler failed: {error}")
            letter = await dead_letters.receive(timeout=10)
            await say(f"dead letter: {letter.text!r}, account {letter.properties['account']!r}")
            await letter.acknowledge()


@attrs.frozen
class Chapter:
    """One chapter of the tour.

    Attributes:
        title: its heading.
        play: runs it.
    """

    title: str
    play: Play

    @property
    def text(self) -> str:
        """What it shows, in words."""
        return inspect.cleandoc(self.play.__doc__ or "").replace("\n\n", "\n")

    @property
    def code(self) -> str:
        """The source that runs, without its first lines and its documentation."""
        source = textwrap.dedent(inspect.getsource(self.play))
        function = ast.parse(source).body[0]
        assert isinstance(function, ast.AsyncFunctionDef)  # every chapter is one
        lines = source.splitlines()[function.body[1].lineno - 1 :]
        return textwrap.dedent("\n".join(lines))


#: The tour.
CHAPTERS = (
    Chapter("Typed properties", typed_properties),
    Chapter("Selectors", selectors),
    Chapter("A browser", browser),
    Chapter("A durable subscription", durable_subscription),
    Chapter("Redelivery and a dead letter", redelivery),
)


class Stage(Protocol):
    """Where the tour is shown."""

    async def open(self, number: int, chapter: Chapter) -> None:
        """A chapter begins."""

    async def say(self, text: str) -> None:
        """Something happened."""

    async def close(self) -> None:
        """The tour is over."""


async def tour(stage: Stage, chapters: tuple[Chapter, ...] = CHAPTERS) -> None:
    """Play the chapters, in order, on an embedded broker of their own.

    Raises what a chapter raises. Cancelling closes the connection.
    """
    broker = f"memory://demo-{uuid.uuid4().hex[:8]}"
    async with jmsaio.connect(broker, client_id="demo") as connection:
        for number, chapter in enumerate(chapters, 1):
            await stage.open(number, chapter)
            await chapter.play(connection, stage.say)
    await stage.close()
