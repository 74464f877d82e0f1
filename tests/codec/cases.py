"""The messages of the golden files: every type with its extremes, described for the Java program and for Python.

The language of descriptions is explained in ``tests/java/Messages.java``.
"""

from __future__ import annotations

import math
import struct
from typing import Any

Described = dict[str, Any]

#: Texts that need care: empty, NUL, two and three bytes, a surrogate pair, a noncharacter, controls.
TEXTS = ["", "x", "\0", "é", "€", "😀", "a\0é€😀\uffff", "\r\n\t\x7f"]
BITS = {"byte": 8, "short": 16, "int": 32, "long": 64}
_REALS = [0.0, -0.0, 1.0, -1.5, 0.1, 1.3, 100.0, 0.001, 9.999e-4, 1.0e7, 9999999.0, 1.0e10, 1.0e-4, 12345.678]
#: Without 2**-126, of which Java before 19 writes one digit more than the shortest form that is ours.
FLOATS = [*_REALS, 2.0**-149, 3.4028234663852886e38, 1.17549421e-38, 16777216.0, 3.3e-45]
DOUBLES = [*_REALS, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 1 / 3, 2.0e-3, 9007199254740993.0]
SPECIAL = [math.inf, -math.inf, math.nan]


def value(kind: str, content: object = None) -> Described:
    """The description of a value of a JMS type."""
    if kind == "null":
        return {"t": "null"}
    if kind == "boolean":
        return {"t": kind, "v": "true" if content else "false"}
    if kind == "float":
        return {"t": kind, "v": struct.pack(">f", content).hex()}
    if kind == "double":
        return {"t": kind, "v": struct.pack(">d", content).hex()}
    if kind == "bytes":
        assert isinstance(content, bytes)
        return {"t": kind, "v": content.hex()}
    return {"t": kind, "v": str(content)}


def repeated(text: str, times: int) -> Described:
    """The description of a long string."""
    return {"t": "string", "v": text, "times": times}


def integers(kind: str) -> list[int]:
    """Extremes of an integer type and what lies around zero."""
    bits = BITS[kind]
    return [-(2 ** (bits - 1)), -1, 0, 1, 42, 2 ** (bits - 1) - 1]


def everything() -> list[tuple[str, Described]]:
    """Each property type's values, with a name for each."""
    found: list[tuple[str, Described]] = [("boolean0", value("boolean", False)), ("boolean1", value("boolean", True))]
    for kind in BITS:
        found += [(f"{kind}{index}", value(kind, number)) for index, number in enumerate(integers(kind))]
    found += [(f"float{index}", value("float", number)) for index, number in enumerate(FLOATS + SPECIAL)]
    found += [(f"double{index}", value("double", number)) for index, number in enumerate(DOUBLES + SPECIAL)]
    found += [(f"string{index}", value("string", text)) for index, text in enumerate(TEXTS)]
    return found


def body_values() -> list[tuple[str, Described]]:
    """Each body type's values: those of properties, characters, byte arrays and null."""
    found = everything()
    found += [(f"char{index}", value("char", text)) for index, text in enumerate(["A", "\0", "é", "\uffff", "\ud83d"])]
    found += [(f"bytes{index}", value("bytes", data)) for index, data in enumerate([b"", b"\0", bytes(range(256))])]
    return [*found, ("null", value("null"))]


def text_cases() -> list[Described]:
    """TextMessage."""
    found = [_case(f"text-{index}", "text", value("string", text)) for index, text in enumerate(TEXTS)]
    found.append(_case("text-null", "text", value("null")))
    found.append(_case("text-long", "text", repeated("xé😀", 30_000)))
    return found


def header_cases() -> list[Described]:
    """Headers, properties and send options, on messages without body."""
    null = value("null")
    found = [
        _case("header", "header", null),
        _case("properties", "header", null, properties=dict(everything())),
        _case("names", "header", null, properties={name: value("int", 1) for name in ("$", "_x", "größe", "名")}),
        _case("long-property", "header", null, properties={"n" * 300: value("string", "v" * 1100)}),
        _case("group", "header", null, properties=_group("g1", 7)),
        _case("group-unicode", "header", null, properties={"JMSXGroupID": value("string", "grüppe-😀")}),
        _case("type", "header", null, headers={"type": "order"}),
        _case("type-empty", "header", null, headers={"type": ""}),
        _case("correlation", "header", null, headers={"correlation_id": "corr-é-😀"}),
        _case("correlation-empty", "header", null, headers={"correlation_id": ""}),
        _case("correlation-bytes", "header", null, headers={"correlation_id_bytes": "00ff80fe"}),
        _case("persistent-9", "header", null, options={"priority": 9}),
        _case("priority-0", "header", null, options={"priority": 0}),
        _case("non-persistent", "header", null, options={"delivery_mode": 1}),
        _case("time-to-live", "header", null, options={"time_to_live": 86_400_000}),
        _case("no-timestamp", "header", null, options={"disable_timestamp": True}),
    ]
    for kind in ("queue", "topic"):
        for index, name in enumerate(["answers", "persistent://public/default/answers", "a/b", "answers:sub"]):
            reply_to = {"reply_to": {"kind": kind, "name": name}}
            found.append(_case(f"reply-to-{kind}-{index}", "header", null, headers=reply_to))
    found.append(
        _case("forwarded", "text", value("string", "x"), headers={"correlation_id": "one", "type": "first"})
        | {"forward": {"correlation_id": "two"}}
    )
    return found


def bytes_cases() -> list[Described]:
    """BytesMessage: one of each writer, and extremes."""
    found = [_case("bytes-empty", "bytes", [])]
    for name, item in body_values():
        if item["t"] != "null":
            found.append(_case(f"bytes-{name}", "bytes", [item]))
    mixed = [value("string", "hi"), value("int", 1), value("boolean", True), value("char", "A"), value("double", 1.5)]
    found.append(_case("bytes-mixed", "bytes", mixed))
    found.append(_case("bytes-long-utf", "bytes", [repeated("é", 32_767)]))
    return found


def stream_cases() -> list[Described]:
    """StreamMessage: one of each writer, and all in one."""
    found = [_case("stream-empty", "stream", [])]
    found += [_case(f"stream-{name}", "stream", [item]) for name, item in body_values()]
    found.append(_case("stream-all", "stream", [item for _, item in body_values()]))
    found.append(_case("stream-long-utf", "stream", [repeated("é", 32_767)]))
    return found


def map_cases() -> list[Described]:
    """MapMessage: one entry of each type, many entries, keys across block-data records."""
    found = [_case("map-empty", "map", [])]
    for name, item in body_values():
        found.append(_case(f"map-{name}", "map", [[value("string", "k"), item]]))
    found.append(_case("map-all", "map", [[value("string", name), item] for name, item in body_values()]))
    for index, text in enumerate(TEXTS[1:]):
        found.append(_case(f"map-key-{index}", "map", [[value("string", text), value("int", index)]]))
    for length in (248, 249, 250, 255, 256, 300, 1017, 1018, 1019, 1024, 1500, 2048, 5000):
        found.append(_case(f"map-key-length-{length}", "map", [[repeated("k", length), value("string", "v")]]))
        found.append(_case(f"map-key-wide-{length}", "map", [[repeated("é", length), value("int", 1)]]))
    found.append(_case("map-key-longest", "map", [[repeated("é", 32_767), value("int", 1)]]))
    found += [
        _case(f"map-string-{length}", "map", [[value("string", "k"), repeated("x", length)]])
        for length in (65_535, 65_536, 70_000)
    ]
    pairs = [[value("string", f"key{number}"), value("int", number)] for number in range(40)]
    found.append(_case("map-40", "map", pairs))
    long_keys = [[repeated("ab", 400 + number), value("long", number)] for number in range(4)]
    found.append(_case("map-long-keys", "map", long_keys))
    return found


def object_cases() -> list[Described]:
    """ObjectMessage: every fixed layout, and classes that stay unread."""
    found = [_case(f"object-{name}", "object", item) for name, item in body_values()]
    found += [_case(f"object-string-{length}", "object", repeated("x", length)) for length in (65_535, 65_536)]
    found.append(_case("object-list", "object", {"t": "list", "v": [value("int", 1), value("string", "two")]}))
    return found


def all_cases() -> dict[str, list[Described]]:
    """The cases of each golden file."""
    return {
        "text": text_cases(),
        "header": header_cases(),
        "bytes": bytes_cases(),
        "stream": stream_cases(),
        "map": map_cases(),
        "object": object_cases(),
    }


def _group(name: str, number: int) -> Described:
    return {"JMSXGroupID": value("string", name), "JMSXGroupSeq": value("int", number)}


def _case(name: str, kind: str, body: object, **more: object) -> Described:
    """One case; ``headers`` and ``properties`` belong to the message, ``options`` to the send."""
    message: Described = {"kind": kind, "body": body}
    message |= {key: more[key] for key in ("headers", "properties") if key in more}
    case: Described = {"name": name, "message": message}
    if "options" in more:
        case["options"] = more["options"]
    return case
