"""A tour of jmsaio on the embedded broker: each chapter shows its code, then the events as the code runs.

Nothing is prepared or recorded: the source shown is the source that runs. ``jmsaio demo`` starts it.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import textwrap
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import attrs

import jmsaio
from jmsaio import AcknowledgeMode, Float, MessageFormatError, Short

#: Function that a chapter calls to report an event.
Say = Callable[[str], Awaitable[None]]
#: A chapter: runs on a connection (Any: a chapter reads as a script does, without narrowing) and reports events.
Play = Callable[[Any, Say], Awaitable[None]]


async def typed_properties(connection: Any, say: Say) -> None:
    """Send properties with JMS types. They keep them on the wire: Java reads the same short, float or int.

    Reading converts as JMS allows, and raises an error otherwise.
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
    """Share one queue between two consumers with selectors: SQL conditions on headers and properties.

    Each consumer receives only matching messages. A missing property is unknown, neither true nor false: the last
    message matches no condition on its region, and stays.
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
    """Look at a queue without removing anything: what the last chapter left is still there, before and after."""
    async with connection.create_session() as session:
        parcels = session.create_queue("parcels")
        for attempt in ("first look", "second look"):
            async with session.create_browser(parcels) as look:
                found = [message.text async for message in look]
            await say(f"{attempt}: {found}")


async def durable_subscription(connection: Any, say: Say) -> None:
    """Subscribe by client id and name. A durable subscription keeps what is published while no one is connected."""
    async with connection.create_session() as session:
        news = session.create_topic("news")
        producer = await session.create_producer(news)
        async with session.create_durable_consumer(news, "morning-paper") as reader:
            await producer.send("Monday's news")
            await say(f"at home: {(await reader.receive(timeout=5)).text!r}")
        await say("the reader leaves for a holiday")
        await producer.send("Tuesday's news")
        await producer.send("Wednesday's news")
        async with session.create_durable_consumer(news, "morning-paper") as reader:
            for _ in range(2):
                await say(f"back home, from the letter box: {(await reader.receive(timeout=5)).text!r}")
        await session.unsubscribe("morning-paper", news)
        await say("subscription ended: from now on nothing is kept")


async def redelivery(connection: Any, say: Say) -> None:
    """Reject a message: it is redelivered, marked and counted. After the limit, it is sent to the dead letter queue.

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


async def transactions(connection: Any, say: Say) -> None:
    """Receive a transfer and send what follows from it in one transaction: rolled back or committed together.

    Over Pulsar, ``enableTransaction=true`` does the same with transactions of the broker, as in Java.
    """
    async with (
        connection.create_session(AcknowledgeMode.TRANSACTED) as session,
        connection.create_session() as observer,
    ):
        transfers, bookings = session.create_queue("transfers"), session.create_queue("bookings")
        producer = await session.create_producer()
        await producer.send(transfers, "5 pounds from Ann to Bob")
        await session.commit()
        async with session.create_consumer(transfers) as consumer, observer.create_consumer(bookings) as reader:
            for end in ("rollback", "commit"):
                transfer = await consumer.receive(timeout=5)
                for booking in ("Ann -5", "Bob +5"):
                    await producer.send(bookings, booking)
                await say(f"received {transfer.text!r}, redelivered: {transfer.jms_redelivered}; two bookings sent")
                await (session.rollback() if end == "rollback" else session.commit())
                booked = [message.text for _ in range(2) if (message := await reader.receive(timeout=0.2)) is not None]
                await say(f"{end}: the bookings are {booked}")


@attrs.frozen
class Chapter:
    """One chapter of the tour."""

    title: str
    play: Play

    @property
    def text(self) -> str:
        """Description of the chapter."""
        return inspect.cleandoc(self.play.__doc__ or "").replace("\n\n", "\n")

    @property
    def code(self) -> str:
        """Source code of the chapter, without its first lines and its docstring."""
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
    Chapter("A transaction", transactions),
)


#: Shows the beginning of a chapter with its number, and returns the function that reports its events.
Show = Callable[[int, Chapter], Awaitable[Say]]


async def tour(show: Show, chapters: tuple[Chapter, ...] = CHAPTERS) -> None:
    """Play the chapters, in order, on an embedded broker of their own.

    Raises the errors of chapters. Cancelling closes the connection.
    """
    broker = f"memory://demo-{uuid.uuid4().hex[:8]}?enableTransaction=true"
    async with jmsaio.connect(broker, client_id="demo") as connection:
        for number, chapter in enumerate(chapters, 1):
            await chapter.play(connection, await show(number, chapter))
