"""The first exchange on a connection, and later challenges: who the client is.

``TRANSITIONS`` is the whole of it: any other command of the broker before it has accepted the client is an error.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Final

import attrs

from jmsaio.errors import ProtocolError
from jmsaio.model.version import __version__
from jmsaio.protocol.commands import PROTOCOL_VERSION, Command, encode_command
from jmsaio.protocol.framing import MAX_MESSAGE_SIZE

#: Name and version of this client, in the broker's log and statistics.
VERSION: Final = f"jmsaio-v{__version__}"
_FEATURES: Final = {"supports_auth_refresh": True, "supports_topic_watchers": True}


class State(enum.Enum):
    """How far the exchange is."""

    ASKED = "asked"  # CONNECT is sent
    ACCEPTED = "accepted"
    REFUSED = "refused"


TRANSITIONS: Final[Mapping[tuple[State, int], State]] = {
    (State.ASKED, Command.CONNECTED): State.ACCEPTED,
    (State.ASKED, Command.AUTH_CHALLENGE): State.ASKED,
    (State.ASKED, Command.ERROR): State.REFUSED,
    (State.ACCEPTED, Command.AUTH_CHALLENGE): State.ACCEPTED,  # the token is about to expire
}


@attrs.frozen
class Identity:
    """How a client introduces itself."""

    method: str = "none"
    data: bytes = attrs.field(default=b"", repr=False)

    def hidden_in(self, text: str) -> str:
        """Return a text of the broker without the data, and without the password of ``user:password``."""
        data = self.data.decode(errors="replace")
        for secret in (data, data.partition(":")[2]):
            text = text.replace(secret, "***") if secret else text
        return text


def connect_frame(identity: Identity, proxied: str = "") -> bytes:
    """Return the CONNECT command.

    Args:
        proxied: ``host:port`` of the broker that a proxy is to connect to; "" without a proxy.
    """
    fields: dict[str, Any] = {
        "client_version": VERSION,
        "protocol_version": PROTOCOL_VERSION,
        "auth_method_name": identity.method,
        "feature_flags": _FEATURES,
    }
    if identity.data:
        fields["auth_data"] = identity.data
    if proxied:
        fields["proxy_to_broker_url"] = proxied
    return encode_command(Command.CONNECT, **fields)


def response_frame(identity: Identity) -> bytes:
    """Return the answer to a challenge of the broker."""
    return encode_command(
        Command.AUTH_RESPONSE,
        client_version=VERSION,
        protocol_version=PROTOCOL_VERSION,
        response={"auth_method_name": identity.method, "auth_data": identity.data},
    )


@attrs.define(eq=False)
class Handshake:
    """The exchange on one connection."""

    state: State = attrs.field(default=State.ASKED, init=False)
    max_message_size: int = attrs.field(default=MAX_MESSAGE_SIZE, init=False)
    watches: bool = attrs.field(default=False, init=False)  # whether the broker reports new topics (WATCH_TOPIC_LIST)

    def receive(self, command: int, fields: Mapping[str, Any]) -> State:
        """Process a command of the broker, and return the state after it.

        Raises ProtocolError if the broker must not send it now, or its maximum message size is below 1.
        """
        state = TRANSITIONS.get((self.state, command))
        if state is None:
            raise ProtocolError(f"the broker sends {Command(command).name} where the connection is {self.state.value}")
        if command == Command.CONNECTED:
            size = fields.get("max_message_size", MAX_MESSAGE_SIZE)
            if size < 1:
                raise ProtocolError(f"the broker sends a max_message_size of {size} bytes")
            self.max_message_size = size
            self.watches = (fields.get("feature_flags") or {}).get("supports_topic_watchers", False)
        self.state = state
        return state
