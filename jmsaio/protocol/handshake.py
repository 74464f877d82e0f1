"""The first exchange on a connection, and later challenges: who the client is."""

from __future__ import annotations

from typing import Any, Final

import attrs

from jmsaio.model.version import __version__
from jmsaio.protocol.commands import PROTOCOL_VERSION, Command, encode_command

#: Name and version of this client, in the broker's log and statistics.
VERSION: Final = f"jmsaio-v{__version__}"
_FEATURES: Final = {"supports_auth_refresh": True}


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
    """Return the CONNECT command; ``proxied``: ``host:port`` of the broker that a proxy is to connect to, or ""."""
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
