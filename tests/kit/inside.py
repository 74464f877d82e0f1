"""Looks inside connections and sessions, for tests of what they do with the seam below them."""

from __future__ import annotations

from typing import overload

import jmsaio
from jmsaio.client.delivery.inbox import Inbox
from jmsaio.client.runtime.connection import ConnectionRuntime, Temporaries
from jmsaio.client.runtime.session import SessionRuntime
from jmsaio.client.senders.pool import SenderPool
from jmsaio.transport.base import Admin, Transport


@overload
def runtime_of(owner: jmsaio.Connection) -> ConnectionRuntime: ...


@overload
def runtime_of(owner: jmsaio.Session) -> SessionRuntime: ...


def runtime_of(owner: jmsaio.Connection | jmsaio.Session) -> ConnectionRuntime | SessionRuntime:
    """What a connection or a session shares with all that it made."""
    return owner._runtime


def transport_of(owner: jmsaio.Connection | jmsaio.Session) -> Transport:
    """The transport of a connection, or of a session's."""
    runtime = runtime_of(owner)
    return runtime.connection.transport if isinstance(runtime, SessionRuntime) else runtime.transport


def admin_of(owner: jmsaio.Connection | jmsaio.Session) -> Admin:
    """The administration of their broker, which it must have."""
    admin = transport_of(owner).admin
    assert admin is not None
    return admin


def temporaries(connection: jmsaio.Connection) -> Temporaries:
    """The temporary destinations of a connection."""
    return runtime_of(connection).temporaries


def temporaries_left(connection: jmsaio.Connection) -> list[str]:
    """The topics of those that were not deleted."""
    return [*temporaries(connection)._alive]


def senders_of(connection: jmsaio.Connection) -> SenderPool:
    """The senders that a connection shares with others of its factory."""
    return runtime_of(connection).senders


def inbox_of(consumer: jmsaio.MessageConsumer) -> Inbox:
    """What a consumer received and did not deliver yet."""
    return consumer._inbox
