"""What several tests of the message model need."""

from __future__ import annotations

from typing import Any

from jmsaio.model.headers import Headers
from jmsaio.model.messages.message import Message
from jmsaio.model.values import TYPE_NAMES, Byte, Char, Float, Long, Short

#: One value of each JMS type.
SAMPLES: dict[type, Any] = {
    bool: True,
    Byte: Byte(-7),
    Short: Short(-300),
    Char: Char("é"),
    int: 70_000,
    Long: Long(5_000_000_000),
    Float: Float(1.1),
    float: 2.5e-7,
    str: "12",
    bytes: b"\x00\xff",
}
#: Classes by the names of their types.
BY_NAME = {name: kind for kind, name in TYPE_NAMES.items()}
#: The eight types of properties.
PROPERTY_TYPES = [kind for kind in SAMPLES if kind not in (Char, bytes)]
_B, _Y, _S, _C, _I, _L, _F, _D, _T, _A = SAMPLES
#: The tables of Jakarta Messaging 3.1, 3.5.4 and 3.11.3, written once more by hand: type set, types it can be read as.
READABLE: dict[type, set[type]] = {
    _B: {_B, _T},
    _Y: {_Y, _S, _I, _L, _T},
    _S: {_S, _I, _L, _T},
    _C: {_C, _T},
    _I: {_I, _L, _T},
    _L: {_L, _T},
    _F: {_F, _D, _T},
    _D: {_D, _T},
    _T: {_B, _Y, _S, _I, _L, _F, _D, _T},
    _A: {_A},
}
#: What a sample reads as, where that is not the sample itself.
READS_AS: dict[tuple[type, type], Any] = {
    (_B, _T): "true",
    (_Y, _T): "-7",
    (_S, _T): "-300",
    (_C, _T): "é",
    (_I, _T): "70000",
    (_L, _T): "5000000000",
    (_F, _T): "1.1",
    (_F, _D): 1.100000023841858,
    (_D, _T): "2.5E-7",
    (_T, _B): False,
    (_T, _Y): 12,
    (_T, _S): 12,
    (_T, _I): 12,
    (_T, _L): 12,
    (_T, _F): 12.0,
    (_T, _D): 12.0,
}


def expected(source: type, target: type) -> Any:
    """What the sample of one type reads as in another."""
    return READS_AS.get((source, target), SAMPLES[source])


class Source:
    """The headers and properties of a received message; counts how often it is asked."""

    def __init__(self, headers: Headers | None = None, **properties: Any) -> None:
        self.head = headers or Headers()
        self.values = properties
        self.asked: list[str] = []

    def headers(self, record: object) -> Headers:
        self.asked.append("headers")
        return self.head

    def property(self, record: object, name: str) -> Any:
        self.asked.append(name)
        return self.values.get(name)

    def properties(self, record: object) -> dict[str, Any]:
        self.asked.append("properties")
        return dict(self.values)


def received(message: Message, source: Source | None = None) -> Any:
    """The message as a receiver gets it, without a wire between."""
    return type(message)._received(source or Source(), None, message._body())
