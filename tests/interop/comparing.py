"""Compares what arrived with what was sent, field by field."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tests.codec.cases import value
from tests.codec.test_golden import canonical_body, expanded_body
from tests.codec.test_live_exchange import SYSTEM, short
from tests.interop.matrix import Cell
from tests.interop.sides import Described


def same(what: str, found: object, wanted: object) -> None:
    """Compare a field of what arrived with what was sent."""
    assert found == wanted, f"{what}: {_short(found)} arrived, {_short(wanted)} was sent"


def _short(content: object) -> str:
    text = repr(content)
    return text if len(text) < 200 else f"{text[:200]}... ({len(text)} characters)"


def compare(item: Described, header: Described, found: Described, extra: bool = False) -> None:
    """Compare a message that arrived with the one that was sent, field by field.

    Args:
        item: the message and its options, as described.
        header: the headers of the sender's object after the send.
        found: the message that arrived.
        extra: properties that were not sent are allowed.
    """
    sent, options, seen = item["message"], item.get("options", {}), found["headers"]
    kind, headers, properties = sent["kind"], sent.get("headers", {}), sent.get("properties", {})
    same("kind", found["kind"], kind)
    same("body", canonical_body(kind, found["body"]), canonical_body(kind, expanded_body(sent)))
    for name, content in properties.items():
        same(f"property {name}", found["properties"].get(name), content)
    assert extra or not set(found["properties"]) - set(properties) - SYSTEM, f"properties: {found['properties']}"
    same("JMSType", seen["type"], headers.get("type"))
    same("JMSPriority", seen["priority"], options.get("priority", 4))
    same("JMSDeliveryMode", seen["delivery_mode"], options.get("delivery_mode", 2))
    same("JMSReplyTo", short(seen["reply_to"]), short(headers.get("reply_to")))
    same("JMSMessageID", seen["message_id"], header["message_id"])
    same("JMSExpiration", seen["expiration"], header["expiration"])
    assert (seen["expiration"] > 0) is ("time_to_live" in options), f"JMSExpiration: {seen['expiration']}"
    same("JMSCorrelationID as bytes", seen["correlation_id_bytes"], header["correlation_id_bytes"])
    if "correlation_id" in headers:
        same("JMSCorrelationID", seen["correlation_id"], headers["correlation_id"])
    if "disable_timestamp" in options:
        same("JMSTimestamp", seen["timestamp"], 0)
    else:
        same("JMSTimestamp", seen["timestamp"], header["timestamp"])
        same("JMSDeliveryTime", seen["delivery_time"], header["delivery_time"])


def text(body: str, **more: Any) -> Described:
    """A text message to be sent; ``options`` are the send's, the rest is the message's."""
    options = more.pop("options", {})
    return {"message": {"kind": "text", "body": value("string", body), **more}, "options": options}


def texts(count: int, stem: str = "m") -> list[Described]:
    """Text messages."""
    return [text(f"{stem}{number}") for number in range(count)]


def bodies_of(items: Sequence[Described]) -> list[str]:
    """The texts of messages to be sent."""
    return [str(item["message"]["body"]["v"]) for item in items]


def bodies(found: Sequence[Described]) -> list[str]:
    """The texts of messages that arrived."""
    return [str(message["body"]["v"]) for message in found]


async def arrive(cell: Cell, target: Described, items: Sequence[Described], redelivered: bool = False) -> None:
    """Send, and compare each message that the receiver's consumer gets."""
    headers = await cell.sender.send(target, *items)
    found = await cell.receiver.receive(len(items))
    same("number of messages", len(found), len(items))
    for item, header, message in zip(items, headers, found, strict=True):
        compare(item, header, message)
        same("JMSDestination", short(message["headers"]["destination"]), target)
        same("JMSRedelivered", message["headers"]["redelivered"], redelivered)


def exchange(items: Sequence[Described]) -> Callable[[Cell], Awaitable[None]]:
    """What a row runs that sends these messages to a queue and compares what arrives."""

    async def run(cell: Cell) -> None:
        await cell.receiver.subscribe(cell.queue())
        await arrive(cell, cell.queue(), items)

    return run
