"""Looks inside connections and sessions, for tests of what they do with the seam below them."""

from __future__ import annotations

import jmsaio
from jmsaio.client.runtime.session import SessionRuntime
from jmsaio.client.runtime.temporaries import Temporaries
from jmsaio.transport.base import Admin, Transport


def transport_of(owner: jmsaio.Connection | jmsaio.Session) -> Transport:
    """The transport of a connection, or of a session's."""
    runtime = owner._runtime
    return runtime.connection.transport if isinstance(runtime, SessionRuntime) else runtime.transport


def admin_of(owner: jmsaio.Connection | jmsaio.Session) -> Admin:
    """The administration of their broker, which it must have."""
    admin = transport_of(owner).admin
    assert admin is not None
    return admin


def temporaries(connection: jmsaio.Connection) -> Temporaries:
    """The temporary destinations of a connection."""
    return connection._runtime.temporaries
