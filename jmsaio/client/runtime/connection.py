"""``ConnectionRuntime``: the part of a connection that its sessions and their children share."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator

import attrs

from jmsaio.client.callbacks.exception_listener import ExceptionReports
from jmsaio.client.delivery.inbox import Inbox
from jmsaio.client.delivery.schemas import Schemas
from jmsaio.client.delivery.session_inboxes import SessionInboxes
from jmsaio.client.lifetime.affinity import Affinity
from jmsaio.client.runtime.temporaries import Temporaries
from jmsaio.client.senders.pool import SenderPool
from jmsaio.client.subscriptions.selectors import SelectorReader
from jmsaio.config import Configuration
from jmsaio.errors import JMSError
from jmsaio.model.destinations import Destination
from jmsaio.rules.share import Share
from jmsaio.transport.base import Transport
from jmsaio.transport.clock import LoopTimers

_log = logging.getLogger("jmsaio")


@attrs.define(eq=False)
class ConnectionRuntime:
    """The part of a connection that its sessions, producers, consumers and browsers use.

    Attributes:
        configuration: options.
        transport: the transport.
        senders: the senders of the factory.
        broker: the broker's name in this process.
        affinity: event loop and process.
        uuid: identifies the connection.
        client_id: client identifier, or None.
        connection_id: carried by sent messages, so that noLocal recognizes them.
        started: whether delivery is started.
        reports: problems that no caller can receive.
        inbox_bytes: maximum bytes in all inboxes together.
        inboxes: the inboxes of each open session.
        temporaries: its temporary destinations.
        timers: timers on the transport's clock.
        schemas: the schemas of messages that other libraries sent.
        selectors: reads the selectors that operators set on subscriptions.
        outage: how the connection to the broker was lost; None if it is not known to be lost.
    """

    configuration: Configuration
    transport: Transport
    senders: SenderPool
    broker: str
    affinity: Affinity = attrs.field(factory=Affinity.here, init=False)
    uuid: str = attrs.field(factory=lambda: str(uuid.uuid4()), init=False)
    client_id: str | None = attrs.field(default=None, init=False)
    connection_id: str = attrs.field(init=False)
    started: bool = attrs.field(default=False, init=False)
    reports: ExceptionReports = attrs.field(factory=ExceptionReports, init=False)
    inbox_bytes: Share = attrs.field(init=False)
    inboxes: dict[SessionInboxes, None] = attrs.field(factory=dict, init=False)
    temporaries: Temporaries = attrs.field(init=False)
    timers: LoopTimers = attrs.field(init=False)
    schemas: Schemas = attrs.field(init=False)
    selectors: SelectorReader = attrs.field(init=False)
    outage: JMSError | None = attrs.field(default=None, init=False)
    _warned: set[str] = attrs.field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self.connection_id = self.uuid
        self.timers = LoopTimers(self.transport.clock)
        self.schemas = Schemas(self.transport.admin, self.transport.clock.steady, self.warn_once)
        self.selectors = SelectorReader(
            self.transport.admin,
            self.timers,
            self.configuration.refresh_server_side_filters_period,
            self.warn_once,
            self.report,
        )
        self.temporaries = Temporaries(
            self.configuration,
            self.transport,
            self.senders,
            self.uuid,
            self.affinity,
            self.consumed_topics,
            self.report,
        )
        self.inbox_bytes = Share(self.configuration.receive_buffer_bytes // 2)  # the rest is for the transport

    def identify(self, client_id: str) -> None:
        """Set the client identifier."""
        self.client_id = client_id
        self.connection_id = f"{client_id}_{self.uuid}"

    def all_inboxes(self) -> Iterator[Inbox]:
        """Yield the inboxes of open consumers, and those of closed consumers with unsettled messages."""
        for inboxes in self.inboxes:
            yield from inboxes

    def consumed_topics(self) -> Iterator[tuple[str, ...]]:
        """Yield the topics of each inbox."""
        for inbox in self.all_inboxes():
            yield inbox.subscription.topics

    def check_not_deleted(self, topic: str, destination: Destination) -> None:
        """Raise InvalidDestinationError for a temporary destination that was deleted."""
        self.temporaries.check_not_deleted(topic, destination)

    def report(self, error: Exception, circumstances: str = "", *, logged: bool = False) -> None:
        """Log a problem that no caller can receive, unless ``logged``; report it to the exception listener later."""
        self.reports.add(error, circumstances, logged)

    def warn_once(self, text: str) -> None:
        """Log a warning, only the first time."""
        if text not in self._warned:
            self._warned.add(text)
            _log.warning("%s", text)
