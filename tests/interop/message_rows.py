"""The rows of messages: types, properties, headers, sizes."""

from __future__ import annotations

from collections.abc import Sequence

from tests.codec.cases import (
    bytes_cases,
    everything,
    header_cases,
    map_cases,
    object_cases,
    repeated,
    stream_cases,
    text_cases,
)
from tests.interop.comparing import bodies, compare, exchange, same, text, texts
from tests.interop.matrix import Cell, Row
from tests.interop.sides import Described


def message_rows() -> list[Row]:
    """Every type of message, with every type and extreme of value in its body."""
    kinds = {
        "TextMessage": text_cases(), "BytesMessage": bytes_cases(), "MapMessage": map_cases(),
        "StreamMessage": stream_cases(), "ObjectMessage": object_cases(), "Message": header_cases()[:1],
    }  # fmt: skip
    exchanges: dict[str, list[Described]] = {
        name: [case for case in cases if case["name"] != "object-list"] for name, cases in kinds.items()
    }
    lists = [case for case in kinds["ObjectMessage"] if case["name"] == "object-list"]
    return [
        *(Row(group="Messages", name=name, run=exchange(cases)) for name, cases in exchanges.items()),
        Row(
            group="Messages", name="ObjectMessage of a list", run=exchange(lists),
            differs={
                ("java", "python"): "body: {'t': 'java', 'class': 'java.util.ArrayList'} arrived",
                ("python", "java"): "body: {'t': 'string', 'v': '[1,\"two\"]'} arrived",
            },
            line="a list or dict as an object",
        ),
    ]  # fmt: skip


def property_rows() -> list[Row]:
    """Every type of property, with its extremes."""
    kinds: dict[str, Described] = {}
    for name, content in everything():
        kinds.setdefault(content["t"], {})[name] = content
    rows = [
        Row(group="Properties", name=kind, run=exchange([text("x", properties=properties)]))
        for kind, properties in kinds.items()
    ]
    unusual = [case for case in header_cases() if case["name"] in ("names", "long-property")]
    return [*rows, Row(group="Properties", name="names beyond ASCII, long names and values", run=exchange(unusual))]


def header_rows() -> list[Row]:
    """Every header that a sender sets; each message's id, time stamp and destination are always compared, too."""
    cases = {case["name"]: case for case in header_cases()}
    replies = [case for name, case in cases.items() if name.startswith("reply-to")]
    rows = {
        "JMSMessageID, JMSTimestamp, JMSDestination": texts(3),
        "JMSTimestamp switched off": [cases["no-timestamp"]],
        "JMSCorrelationID": [cases["correlation"], cases["correlation-empty"]],
        "JMSCorrelationID as bytes": [cases["correlation-bytes"]],
        "JMSType": [cases["type"], cases["type-empty"]],
        "JMSReplyTo": replies,
        "JMSDeliveryMode": [cases["non-persistent"], text("persistent", options={"delivery_mode": 2})],
        "JMSPriority": [text("x", options={"priority": priority}) for priority in range(10)],
        "JMSExpiration": [cases["time-to-live"]],
        "JMSXGroupID, JMSXGroupSeq": [cases["group"], cases["group-unicode"]],
    }
    return [Row(group="Headers", name=name, run=exchange(items)) for name, items in rows.items()]


def size_rows() -> list[Row]:
    """Batches, compressed, and messages larger than the broker takes at once."""
    rows = [
        Row(
            group="Producers", name=f"compressionType={kind}", run=exchange([*texts(20), text("y" * 20_000)]),
            configuration={"producerConfig": {"compressionType": kind}},
        )
        for kind in ("LZ4", "ZLIB", "ZSTD", "SNAPPY")
    ]  # fmt: skip
    large = {"message": {"kind": "text", "body": repeated("0123456789abcdef", 400_000)}}
    chunks = {"producerConfig": {"chunkingEnabled": True, "batchingEnabled": False}}
    return [
        *rows,
        Row(
            group="Producers", name="a message in chunks", run=exchange([large]), configuration=chunks,
            differs={("java", "python"): "JMSMessageID: "}, line="JMSMessageID of a message in chunks from Java",
        ),
    ]  # fmt: skip


async def _multi(cell: Cell) -> None:
    """One consumer of several topics."""
    await _several(cell, "multi:{0}a,{0}b")


async def _regex(cell: Cell) -> None:
    """One consumer of all topics whose names match."""
    await _several(cell, "regex:{0}[ab]")


async def _several(cell: Cell, name: str) -> None:
    places = [cell.topic(stem) for stem in "ab"]
    for place in places:
        await cell.create_topic(place)
    full = f"persistent://public/default/{places[0]['name'][:-1]}"
    several = {"kind": "topic", "name": name.format(full)}
    await cell.receiver.subscribe(several)
    await _found_by_consumer(cell, places)
    items = [text(place["name"]) for place in places]
    headers = [(await cell.sender.send(place, item))[0] for place, item in zip(places, items, strict=True)]
    found = sorted(await cell.receiver.receive(2), key=lambda message: str(message["body"]["v"]))
    same("number of messages", len(found), 2)
    for item, header, message in zip(items, headers, found, strict=True):
        compare(item, header, message)
        same("JMSDestination", message["headers"]["destination"], several)


async def _found_by_consumer(cell: Cell, places: Sequence[Described]) -> None:
    """Wait until the receiver's consumer knows all topics: for a moment the broker does not list a new one."""
    missing = {place["name"]: place for place in places}
    for _ in range(60):
        for place in missing.values():
            await cell.sender.send(place, text(f"first {place['name']}"))
        for body in bodies(await cell.receiver.receive(2 * len(places), timeout=0.5)):
            missing.pop(body.removeprefix("first "), None)
        if not missing:
            break
    assert not missing, f"nothing arrives from {', '.join(missing)}"
    while await cell.receiver.receive(timeout=0.5):
        pass


async def _full_name(cell: Cell) -> None:
    """A full name and a short one are one destination."""
    await cell.receiver.subscribe(cell.queue())
    full = {"kind": "queue", "name": f"persistent://public/default/{cell.queue()['name']}"}
    [header] = await cell.sender.send(full, text("x"))
    [found] = await cell.receiver.receive()
    compare(text("x"), header, found)


def destination_rows() -> list[Row]:
    """Names of destinations; queues, topics and partitions have rows of their own."""
    often = {"consumerConfig": {"patternAutoDiscoveryPeriod": 1}}
    return [
        Row(group="Destinations", name="full name", run=_full_name),
        Row(group="Destinations", name="multi:", run=_multi),
        Row(group="Destinations", name="regex:", run=_regex, configuration=often),
    ]
