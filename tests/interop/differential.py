"""Generated messages of three clients: jmsaio over wire and over pulsar-client, and Java; each reads those of all.

``python -m tests.interop.differential --messages 2000`` has a broker of its own. Exit status: 1 if anything differs.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import uuid
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import attrs
import click

import jmsaio
from jmsaio import launcher
from jmsaio.codec import Stamp, encode
from jmsaio.model.wire import ReceivedRecord
from tests.codec.cases import repeated
from tests.codec.described import build, describe
from tests.codec.generated import Generator
from tests.interop.comparing import compare, same
from tests.interop.sides import COMES, Described, JavaSide, java_client
from tests.support.broker import LaunchedBroker, TestBroker, watch_launcher
from tests.support.java import class_path, compile_java

#: The clients of this process, by the names of their transports.
PYTHON = ("wire", "pulsar-client")
CLIENTS = (*PYTHON, "java")
#: Configurations of the producers.
PRODUCERS = tuple(
    {"batchingEnabled": batches, "compressionType": kind} for batches in (True, False) for kind in ("NONE", "ZLIB")
)
#: What both transports must read alike in one stored record; only wire knows its sequence id.
_FIELDS = (
    "payload", "properties", "key", "event_time", "publish_time", "message_id", "topic", "producer_name",
    "schema_version", "redelivery_count",
)  # fmt: skip
_STAMP = Stamp("ID:1:1:1", "c", 1, 1, 1)
#: One in so many messages has a large body.
_LARGE = 20


@attrs.define
class Findings:
    """What a run came to.

    Attributes:
        faults: what differs.
        compared: messages compared, by sender and receiver.
        batched: those of them that came in a batch, by sender.
        empty: those that wire and Java alone received, by sender.
    """

    faults: list[str] = attrs.field(factory=list)
    compared: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    batched: Counter[str] = attrs.field(factory=Counter)
    empty: Counter[str] = attrs.field(factory=Counter)


def generated(count: int, seed: int) -> list[Described]:
    """Messages and the options of their sends; some are large."""
    chance, found = random.Random(seed), []
    for number, item in enumerate(Generator(seed).messages(count)):
        if number % _LARGE == 0:
            item |= {"kind": "text", "body": repeated("größer, ", chance.randrange(100_000))}
        found.append({"message": item, "options": item.pop("options")})
    return found


async def run(broker: TestBroker, classpath: str, count: int, seed: int) -> Findings:
    """Let each client send ``count`` messages, a part with each configuration of its producer, and all receive them."""
    findings = Findings()
    async with AsyncExitStack() as stack:
        java = await stack.enter_async_context(java_client(classpath))
        for number, producer in enumerate(PRODUCERS):
            base = {
                "brokerServiceUrl": broker.service_url, "webServiceUrl": broker.web_service_url,
                "producerConfig": producer,
            }  # fmt: skip
            sides = {name: await _python(stack, {**base, "transport": name}) for name in PYTHON}
            other = await java.open(base, "auto", None)
            for sender in CLIENTS:
                items = generated(count // len(PRODUCERS), 10 * seed + number)
                empty: list[Described] = []
                if producer["compressionType"] != "NONE" and sender != "wire":
                    # Others compress a payload of no bytes, which pulsar-client can't expand.
                    empty = [item for item in items if not encode(build(item["message"]), _STAMP).payload]
                    items = [item for item in items if item not in empty]
                findings.empty[sender] += len(empty)
                await _exchange(findings, sender, items, sides, other)
                await _exchange(findings, sender, empty, sides, other, receivers=("wire",))
    return findings


async def _python(stack: AsyncExitStack, configuration: dict[str, Any]) -> jmsaio.Session:
    factory = await stack.enter_async_context(jmsaio.ConnectionFactory(configuration))
    connection = await stack.enter_async_context(await factory.create_connection())
    await connection.start()
    return await stack.enter_async_context(connection.create_session())


async def _exchange(
    findings: Findings, sender: str, items: list[Described], sides: dict[str, jmsaio.Session], java: JavaSide,
    receivers: tuple[str, ...] = PYTHON,
) -> None:  # fmt: skip
    target = f"differential-{uuid.uuid4().hex[:12]}"
    described = {"kind": "topic", "name": target}
    async with AsyncExitStack() as stack:
        consumers = {
            name: await stack.enter_async_context(sides[name].create_consumer(jmsaio.Topic(target)))
            for name in receivers
        }
        await java.subscribe(described)
        if sender == "java":
            headers: list[Described] = await java.ask("send_all", destination=described, items=items)
        else:
            headers = await _send(sides[sender], target, items)
        arrived: dict[str, list[Described]] = {"java": await java.receive(len(items))}
        records: dict[str, list[ReceivedRecord]] = {}
        for name, consumer in consumers.items():
            messages = [await consumer.receive(timeout=COMES) for _ in items]
            found = [message for message in messages if message is not None]
            arrived[name], records[name] = [describe(message) for message in found], [one._record for one in found]
        await java.close_consumer()
    for receiver, descriptions in arrived.items():
        _compare(findings, sender, receiver, items, headers, descriptions)
    if receivers == PYTHON:
        _compare_records(findings, sender, records["wire"], records["pulsar-client"])


async def _send(session: jmsaio.Session, target: str, items: list[Described]) -> list[Described]:
    messages, outcomes = [build(item["message"]) for item in items], []
    async with session.create_producer(jmsaio.Topic(target)) as producer:
        for item, message in zip(items, messages, strict=True):
            options = item["options"]
            producer.disable_message_timestamp = "disable_timestamp" in options
            outcomes.append(
                await producer.send_async(
                    message, delivery_mode=options.get("delivery_mode"), priority=options.get("priority"),
                    time_to_live=options.get("time_to_live", 0) / 1000,
                )
            )  # fmt: skip
        await asyncio.gather(*outcomes)
    return [describe(message)["headers"] for message in messages]


def _compare(
    findings: Findings, sender: str, receiver: str, items: list[Described], headers: list[Described],
    found: list[Described],
) -> None:  # fmt: skip
    where = f"{sender} to {receiver}"
    if len(found) != len(items):
        findings.faults.append(f"{where}: {len(found)} of {len(items)} messages arrived")
    for item, header, message in zip(items, headers, found, strict=False):
        findings.compared[sender, receiver] += 1
        try:
            compare(item, header, message)
            same("JMSRedelivered", message["headers"]["redelivered"], False)
        except AssertionError as error:
            findings.faults.append(f"{where}: {error}")


def _compare_records(findings: Findings, sender: str, wire: list[ReceivedRecord], native: list[ReceivedRecord]) -> None:
    for mine, other in zip(wire, native, strict=False):  # what is missing is a fault already
        findings.batched[sender] += mine.batch_size > 1
        for field in _FIELDS:
            left, right = getattr(mine, field), getattr(other, field)
            if left != right:
                text = (
                    f"{sender}, the record {mine.message_id}: {field} is {left!r} on wire, {right!r} on pulsar-client"
                )
                findings.faults.append(text[:1000])


@click.command()
@click.option("--messages", type=click.IntRange(min=len(PRODUCERS)), default=2000, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Of all chance.")
def main(messages: int, seed: int) -> None:
    """Send generated messages with three clients, receive them with all, and compare field by field."""
    jars = class_path(*launcher.fetch_jars(launcher.JAVA_CLIENT))
    sources = sorted((Path(__file__).parents[1] / "java").glob("*.java"))
    classes = class_path(jars, compile_java(sources, jars))
    watch_launcher()
    with tempfile.TemporaryDirectory(prefix="jmsaio-differential-") as folder:
        broker = LaunchedBroker(Path(folder), memory="512m")
        broker.start()
        try:
            findings = asyncio.run(run(broker, classes, messages, seed))
        finally:
            broker.kill()
    for (sender, receiver), count in sorted(findings.compared.items()):
        click.echo(f"{count:>6} from {sender} to {receiver}")
    click.echo(f"in batches: {dict(findings.batched)}; by wire and Java alone: {dict(findings.empty)}")
    for fault in findings.faults[:50]:
        click.echo(fault, err=True)
    raise SystemExit(1 if findings.faults else 0)


if __name__ == "__main__":
    main()
