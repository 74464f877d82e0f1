"""Which broker serves a topic: a look-up, which brokers can answer with the address of another broker to ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from jmsaio.errors import TransportError
from jmsaio.protocol.codes import LookupType
from jmsaio.protocol.commands import key_values


@attrs.frozen
class Address:
    """Where to connect."""

    broker: str  # URL of the broker that is meant, ``pulsar://host:port``
    through: str = ""  # URL of the proxy to connect to, which passes everything on to that broker; "" without one
    slot: int = 0  # number of the connection, if there are several to one broker


@attrs.define(eq=False)
class Lookup:
    """One look-up of a topic."""

    topic: str
    service: str  # URL of the broker, or proxy, that is asked first
    tls: bool
    listener: str | None = None
    most_redirects: int = 20
    properties: Mapping[str, str] = attrs.field(factory=dict)
    address: Address = attrs.field(init=False)  # whom to ask now; once found, the broker that serves the topic
    _authoritative: bool = attrs.field(default=False, init=False)
    _asked: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.address = Address(self.service)

    def request(self) -> dict[str, Any]:
        """Return the fields of the LOOKUP command for ``address``, without its request id."""
        self._asked += 1
        fields: dict[str, Any] = {"topic": self.topic, "authoritative": self._authoritative}
        if self.properties:
            fields["properties"] = key_values(self.properties)
        if self.listener is not None:
            fields["advertised_listener_name"] = self.listener
        return fields

    def answered(self, answer: Mapping[str, Any]) -> bool:
        """Read a LOOKUP_RESPONSE without an error; return whether the broker is found, else ``address`` is to be asked.

        Raises TransportError if the answer has no address, or this look-up was passed on too often.
        """
        kind = answer.get("response")
        url = answer.get("broker_service_url_tls" if self.tls else "broker_service_url") or ""
        if kind not in (LookupType.Redirect, LookupType.Connect):
            raise TransportError(f"look up {self.topic}: an answer of unknown kind {kind}", "LookupError")
        if not url:
            way = "with" if self.tls else "without"
            raise TransportError(
                f"look up {self.topic}: its broker names no address for connections {way} TLS", "LookupError"
            )
        # Behind a proxy the broker's own address might be out of reach.
        through = self.service if answer.get("proxy_through_service_url") else ""
        self.address = Address(url, through)
        if kind == LookupType.Connect:
            return True
        if self._asked > self.most_redirects:
            raise TransportError(f"look up {self.topic}: passed on {self._asked} times", "LookupError")
        self._authoritative = bool(answer.get("authoritative"))
        return False
