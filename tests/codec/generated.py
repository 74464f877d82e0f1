"""Descriptions of messages of random content, the same for the same seed."""

from __future__ import annotations

import math
import random
import struct
from typing import Any

from tests.codec.cases import BITS, Described, value

_LETTERS = "abcxyz ABC_$'\"\\\n\t\0\x7fäéñßΩжक中文\uffff😀𝄞"
#: Half a character, which modified UTF-8 carries and UTF-8 does not.
_LONE = "\udc00"
_DESTINATIONS = ["answers", "a/b", "persistent://public/default/x", "persistent://a/b/c", "größe"]
_NAMES = ["n", "amount", "_x", "$", "größe", "名前", "Name9", "jms", "JMSXUserID", "JMS_vendor_x"]


class Generator:
    """Makes descriptions.

    Args:
        seed: the same seed gives the same messages.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def messages(self, count: int) -> list[Described]:
        """Messages of all kinds in turn, each with the options of its send under ``options``."""
        kinds = ["text", "bytes", "map", "stream", "object", "header"]
        return [self._message(kinds[number % len(kinds)]) for number in range(count)]

    def _message(self, kind: str) -> Described:
        headers: Described = {}
        chance = self._random.random
        if chance() < 0.3:
            headers["type"] = self._text(20)
        if chance() < 0.2:
            headers["correlation_id"] = self._text(30)
        elif chance() < 0.2:
            headers["correlation_id_bytes"] = self._random.randbytes(self._random.randrange(12)).hex()
        if chance() < 0.3:
            name = self._random.choice(_DESTINATIONS)
            headers["reply_to"] = {"kind": self._random.choice(["queue", "topic"]), "name": name}
        options: Described = {}
        if chance() < 0.4:
            options["priority"] = self._random.randrange(10)
        if chance() < 0.3:
            options["delivery_mode"] = 1
        if chance() < 0.2:
            options["time_to_live"] = self._random.randrange(3_600_000, 10**10)
        if chance() < 0.1:
            options["disable_timestamp"] = True
        return {
            "kind": kind,
            "body": self._body(kind),
            "headers": headers,
            "properties": self._properties(),
            "options": options,
        }

    def _properties(self) -> Described:
        names = self._random.sample(_NAMES, self._random.randrange(len(_NAMES)))
        found = {name: self._value([*BITS, "boolean", "float", "double", "string"], lone=False) for name in names}
        if self._random.random() < 0.2:
            found["JMSXGroupID"] = value("string", self._text(10) + "g")
            found["JMSXGroupSeq"] = value("int", self._random.randrange(1, 100))
        return found

    def _body(self, kind: str) -> Any:
        if kind == "text":
            return value("null") if self._random.random() < 0.1 else value("string", self._text(200))
        if kind == "header":
            return value("null")
        if kind == "object":
            return self._value(ALL)
        count = self._random.choice([0, 1, 2, 5, 20])
        if kind == "bytes":
            return [self._value([name for name in ALL if name != "null"]) for _ in range(count)]
        if kind == "stream":
            return [self._value(ALL) for _ in range(count)]
        names = {self._text(self._random.choice([5, 300]), lone=True) + "k" for _ in range(count)}
        return [[value("string", name), self._value(ALL)] for name in sorted(names)]

    def _value(self, kinds: list[str], lone: bool = True) -> Described:
        kind = self._random.choice(kinds)
        if kind in BITS:
            limit = 1 << (BITS[kind] - 1)
            near = self._random.choice([0, limit - 1, -limit])
            number = self._random.choice([self._random.randrange(-limit, limit), near, self._random.randrange(-9, 9)])
            return value(kind, max(-limit, min(limit - 1, number)))
        if kind == "boolean":
            return value(kind, self._random.random() < 0.5)
        if kind in ("float", "double"):
            return value(kind, self._real(kind))
        if kind == "char":
            return value(kind, self._random.choice([*_LETTERS.replace("😀", "").replace("𝄞", ""), _LONE]))
        if kind == "bytes":
            return value(kind, self._random.randbytes(self._random.choice([0, 1, 3, 200])))
        return value("null") if kind == "null" else value("string", self._text(40, lone))

    def _real(self, kind: str) -> float:
        layout = ">f" if kind == "float" else ">d"
        found: float = struct.unpack(layout, self._random.randbytes(struct.calcsize(layout)))[0]
        short = round(self._random.uniform(-1000, 1000), 2)
        found = self._random.choice([found, short, 0.0, -0.0, math.inf, -math.inf, math.nan])
        return math.nan if math.isnan(found) else found

    def _text(self, longest: int, lone: bool = False) -> str:
        letters = _LETTERS + _LONE if lone else _LETTERS
        return "".join(self._random.choices(letters, k=self._random.randrange(longest)))


#: The types that bodies take.
ALL = [*BITS, "boolean", "float", "double", "string", "char", "bytes", "null"]
