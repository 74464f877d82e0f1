"""The golden files: what the real Java client puts on the wire (written by ``tests/java/GoldenFiles.java``)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from jmsaio.codec import Stamp
from jmsaio.model.wire import DELIVERY_TIME, EXPIRATION, OutgoingRecord
from tests.codec.cases import Described
from tests.kit.records import Record

FOLDER = Path(__file__).parent / "golden"
#: The send time that T stands for, and the connection's id in the files.
T, CONNECTION = 1_700_000_000_000, "<connection>"
#: Largest payload that the files have in full.
LARGEST_IN_FULL = 8192


def cases() -> list[Described]:
    """All cases, each with the record that Java made of it."""
    return [case for path in sorted(FOLDER.glob("*.json")) for case in json.loads(path.read_text())]


def stamp(case: Described) -> Stamp:
    """What Java's send decided, apart from the message id, which it does not give."""
    options = case.get("options", {})
    lives = options.get("time_to_live", 0)
    return Stamp(
        message_id=None,
        connection_id=CONNECTION,
        timestamp=T,
        event_time=_time(case["record"]["event_time"]),
        delivery_time=T,
        expiration=T + lives if lives else 0,
        priority=options.get("priority", 4),
        delivery_mode=options.get("delivery_mode", 2),
    )


def received(case: Described) -> Record | None:
    """The record as a receiver gets it; None where the file has only a digest of its payload."""
    record = case["record"]
    if "sha256" in record:
        return None
    payload = None if record["payload"] is None else bytes.fromhex(record["payload"])
    properties = dict(record["properties"])
    for name in (DELIVERY_TIME, EXPIRATION):
        if name in properties:
            properties[name] = str(_time(properties[name]))
    return Record(payload, properties, record["key"], _time(record["event_time"]))


def normalised(record: OutgoingRecord) -> dict[str, Any]:
    """A record in the form of the files."""
    found: dict[str, Any] = {"key": record.key, "event_time": _written(record.event_time)}
    if record.payload is not None and len(record.payload) > LARGEST_IN_FULL:
        found |= {"size": len(record.payload), "sha256": hashlib.sha256(record.payload).hexdigest()}
    else:
        found["payload"] = None if record.payload is None else record.payload.hex()
    properties = dict(record.properties)
    for name in (DELIVERY_TIME, EXPIRATION):
        if name in properties:
            properties[name] = _written(int(properties[name]))
    return found | {"properties": properties}


def _time(written: str) -> int:
    return 0 if written == "0" else T + 60_000 * int(written[2:-3] or 0)


def _written(time: int) -> str:
    return "0" if time == 0 else "T" if time == T else f"T+{(time - T) // 60_000}min"
