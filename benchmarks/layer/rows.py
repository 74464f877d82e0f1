"""What the rows of the layer measure: jmsaio over the peer that costs nothing, and loops that do the least by hand."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from benchmarks import scenarios
from benchmarks.layer.peer import ENTRIES, GROUP, fill, map_records, registered, split
from benchmarks.meter import Meter, Metrics
from benchmarks.workload import AMOUNT, KIND, KIND_VALUE, REGION, REGION_VALUE, Task
from jmsaio.model.packed import pack, pack_name, pack_value
from jmsaio.model.wire import CONNECTION_ID, DELIVERY_TIME, MESSAGE_ID, MESSAGE_TYPE, ReceivedRecord, WireId

_CONNECTION: Final = "6ed4cbc1-4f0b-4d3c-9a4e-1d6b6f3e2a90"
_SAME: Final = pack({MESSAGE_TYPE: "text", CONNECTION_ID: _CONNECTION})
_ID, _REGION, _AMOUNT, _KIND = pack_name(MESSAGE_ID), pack_name(REGION), pack_name(AMOUNT), pack_name(KIND)
_INT: Final = pack({f"{AMOUNT}_jsmtype": "int"})


async def send(task: Task) -> Metrics:
    """One coroutine sends with ``send_async``."""
    with registered():
        return await scenarios.futures(task)


async def workers(task: Task) -> Metrics:
    """Workers that each await ``send``."""
    with registered():
        return await scenarios.workers(task)


async def receive(task: Task) -> Metrics:
    """``receive`` in AUTO mode, text and int read."""
    fill(task.workload)
    with registered():
        return await scenarios.receive(task)


async def listener(task: Task) -> Metrics:
    """Return the same through a listener, a plain function."""
    fill(task.workload)
    with registered():
        return await scenarios.listen(task)


async def bare_send(task: Task) -> Metrics:
    """Return the bytes and the future of each message, groups joined and confirmed: what no client can leave out."""
    return await _bare_send(task, _packed)


async def bare_send_maps(task: Task) -> Metrics:
    """Return the map and the future of each message, as ``bare_send`` does with bytes."""
    return await _bare_send(task, _looked_at)


async def _bare_send(task: Task, prepare: Callable[[int, dict[str, str | int]], bytes]) -> Metrics:
    work, loop = task.workload, asyncio.get_running_loop()
    text = work.text
    waiting: deque[asyncio.Future[WireId]] = deque()
    group: list[asyncio.Future[WireId]] = []
    parts: list[bytes] = []
    with Meter() as meter:
        for number in range(work.messages):
            parts += prepare(number, {REGION: REGION_VALUE, AMOUNT: number, KIND: KIND_VALUE}), text.encode()
            future: asyncio.Future[WireId] = loop.create_future()
            waiting.append(future)
            group.append(future)
            if len(group) == GROUP:
                loop.call_soon(_confirm, group, b"".join(parts))
                group, parts = [], []
                await asyncio.sleep(0)
            while waiting and waiting[0].done():
                waiting.popleft().result()
        _confirm(group, b"".join(parts))
        for future in waiting:
            await future
    return meter.metrics(work.messages)


def _looked_at(number: int, properties: dict[str, str | int]) -> bytes:
    """Make the map of a message's properties, look at it, and leave it out of the bytes."""
    region, amount, kind = properties.values()
    made = {
        MESSAGE_TYPE: "text", CONNECTION_ID: _CONNECTION, DELIVERY_TIME: str(time.time_ns() // 1_000_000),
        MESSAGE_ID: f"ID:{_CONNECTION}:1:{number}", REGION: str(region), AMOUNT: str(amount),
        f"{AMOUNT}_jsmtype": "int", KIND: str(kind),
    }  # fmt: skip
    assert MESSAGE_TYPE in made
    return b""


def _packed(number: int, properties: dict[str, str | int]) -> bytes:
    """Return the properties of a message of ``scenarios``, from what an application gives."""
    now = time.time_ns() // 1_000_000
    region, amount, kind = properties.values()
    return b"".join((
        _SAME,
        pack({DELIVERY_TIME: str(now)}),
        pack_value(_ID, f"ID:{_CONNECTION}:1:{number}".encode()),
        pack_value(_REGION, str(region).encode()),
        pack_value(_AMOUNT, str(amount).encode()),
        _INT,
        pack_value(_KIND, str(kind).encode()),
    ))  # fmt: skip


def _confirm(group: list[asyncio.Future[WireId]], frame: bytes) -> None:
    for index, future in enumerate(group):
        future.set_result(WireId(1, len(frame), -1, index))


def bare_receive(task: Task) -> Metrics:
    """Each entry split, and of each message the text and the two properties that are read, acknowledged by entry."""
    return _bare_receive(task, split)


def bare_receive_maps(task: Task) -> Metrics:
    """Read records whose properties are maps, as ``bare_receive`` reads bytes."""
    return _bare_receive(task, map_records)


def _bare_receive(task: Task, records_of: Callable[[bytes, int], Sequence[ReceivedRecord]]) -> Metrics:
    work = task.workload
    fill(work)
    reading, acknowledged = scenarios.Reading(), 0
    with Meter() as meter:
        for number, entry in enumerate(ENTRIES):
            records = records_of(entry, number)
            for record in records:
                if record.get(MESSAGE_TYPE) != "text" or record.get(f"{AMOUNT}_jsmtype") != "int":
                    raise RuntimeError(f"another message: {record.properties}")
                reading.add((record.payload or b"").decode(), int(record.get(AMOUNT) or ""))
            acknowledged += len(records)
    reading.check(work)
    return meter.metrics(acknowledged)
