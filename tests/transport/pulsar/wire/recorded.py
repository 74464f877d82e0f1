"""What a real broker said in one session over wire: the fuzzer's seeds.

``python -m tests.transport.pulsar.wire.recorded URL`` records them anew, as hexadecimal lines of ``recorded.txt``: each
kind of command, and each kind of entry. Names and addresses in it are those of that session.
"""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

import httpx

import jmsaio
from jmsaio.protocol.commands import Command
from jmsaio.protocol.framing import Frame, Framing
from jmsaio.transport.pulsar.wire.connections.connection import Connection
from tests.protocol.all_commands import decode_command

PLACE = Path(__file__).with_name("recorded.txt")
#: Frames of a kind that are kept, and of entries.
_KEPT, _ENTRIES = 3, 12


def frames() -> list[bytes]:
    """The recorded frames, in their order."""
    return [bytes.fromhex(line) for line in PLACE.read_text(encoding="ascii").splitlines()]


def cut(data: bytes) -> Frame:
    """One frame."""
    [frame] = Framing().feed(data)
    return frame


def fields_of(data: bytes) -> dict[str, object]:
    """The fields of the command of one frame."""
    frame = cut(data)
    return decode_command(frame.kind, frame.data, frame.command, frame.rest)


def chosen(found: Iterable[bytes]) -> list[bytes]:
    """Some of each kind: those of different length, since they have other fields."""
    kept: defaultdict[int, dict[int, bytes]] = defaultdict(dict)
    for data in found:
        same = kept[cut(data).kind]
        if len(same) < (_ENTRIES if cut(data).kind == Command.MESSAGE else _KEPT):
            same.setdefault(len(data), data)
    return [data for same in kept.values() for data in same.values()]


async def record(url: str) -> list[bytes]:
    """Use much of a real broker, and keep what it answers.

    Args:
        url: of the broker, with ``webServiceUrl`` as its only parameter.
    """
    heard: dict[Connection, bytearray] = defaultdict(bytearray)
    taken = Connection.data_received

    def listen(self: Connection, data: bytes) -> None:
        heard[self] += data
        taken(self, data)

    with patch.object(Connection, "data_received", listen):
        for options in (
            "jms.usePulsarAdmin=false", "producerConfig.compressionType=ZLIB&producerConfig.batchingEnabled=false",
            "producerConfig.chunkingEnabled=true&producerConfig.batchingEnabled=false&producerConfig.chunkMaxMessageSize=200",
        ):  # fmt: skip
            await _use(f"{url}&transport=wire&keepAliveIntervalSeconds=1&{options}")
    found = list[bytes]()
    for data in heard.values():
        place = 0
        while place < len(data):
            end = place + 4 + int.from_bytes(data[place : place + 4])
            found.append(bytes(data[place:end]))
            place = end
    return chosen(found)


async def _use(url: str) -> None:
    queue, topic, admin = jmsaio.Queue("recorded"), jmsaio.Topic("recorded-topic"), "usePulsarAdmin" not in url
    async with jmsaio.connect(url) as connection, connection.create_session(jmsaio.AcknowledgeMode.CLIENT) as session:
        async with session.create_producer(queue) as producer:
            for number in range(5):
                last = await producer.send_async("grün " * 15 * number, properties={"n": number, "größe": "x"})
            await last
            producer.delivery_delay = 0.2
            await producer.send(b"\0\1\2")
        async with connection.create_session() as other, other.create_consumer(queue) as consumer:
            for _ in range(2):  # of a batch
                await consumer.receive(timeout=10)
        async with session.create_consumer(queue) as consumer:
            await consumer.receive(timeout=10)
            await session.recover()
            for _ in range(4):
                await consumer.receive(timeout=10)
            await session.acknowledge()
        if admin:
            async with session.create_browser(queue) as browser:
                _ = [message async for message in browser.stream()]
        async with connection.create_session() as other, other.create_durable_consumer(topic, "one"):
            async with jmsaio.connect(url) as second, second.create_session() as late:
                with suppress(jmsaio.JMSError):  # it is in use
                    await late.create_durable_consumer(topic, "one")
                with suppress(jmsaio.JMSError):
                    await late.create_consumer(jmsaio.Topic("persistent://no/tenant/topic"))
            async with httpx.AsyncClient(base_url=parse_qs(urlsplit(url).query)["webServiceUrl"][0]) as client:
                await client.put("/admin/v2/persistent/public/default/recorded-topic/unload")
            await asyncio.sleep(1.5)  # for PONG, and the consumer to be there again


if __name__ == "__main__":
    kept = asyncio.run(record(sys.argv[1]))
    PLACE.write_text("".join(f"{data.hex()}\n" for data in kept), encoding="ascii")
    for data in kept:
        print(Command(cut(data).kind).name, len(data), str(fields_of(data))[:150])
