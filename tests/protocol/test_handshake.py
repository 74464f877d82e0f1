"""A client says who it is, and hides its secret."""

from __future__ import annotations

import pytest

from jmsaio.model.version import __version__
from jmsaio.protocol.commands import PROTOCOL_VERSION, Command
from jmsaio.protocol.framing import Framing
from jmsaio.protocol.handshake import Identity, connect_frame, response_frame
from tests.protocol.all_commands import decode_command

pytestmark = pytest.mark.fast
SECRET = Identity("token", b"s3cret")


def decoded(data: bytes) -> tuple[int, dict[str, object]]:
    (frame,) = Framing().feed(data)
    return frame.kind, decode_command(frame.kind, frame.data, frame.command, frame.rest)


def test_connect_introduces_the_client() -> None:
    kind, fields = decoded(connect_frame(SECRET, "broker:6650"))
    assert kind == Command.CONNECT
    assert fields["client_version"] == f"jmsaio-v{__version__}"
    assert fields["protocol_version"] == PROTOCOL_VERSION
    assert (fields["auth_method_name"], fields["auth_data"]) == ("token", b"s3cret")
    assert fields["proxy_to_broker_url"] == "broker:6650"


def test_without_credentials_and_proxy_connect_names_neither() -> None:
    fields = decoded(connect_frame(Identity()))[1]
    assert fields["auth_method_name"] == "none"
    assert "auth_data" not in fields
    assert "proxy_to_broker_url" not in fields


def test_a_challenge_is_answered_with_the_credentials() -> None:
    kind, fields = decoded(response_frame(SECRET))
    assert kind == Command.AUTH_RESPONSE
    assert fields["response"] == {"auth_method_name": "token", "auth_data": b"s3cret"}


def test_an_identity_hides_its_secret() -> None:
    assert "s3cret" not in repr(SECRET)
