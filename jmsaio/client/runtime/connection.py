"""``ConnectionRuntime``: the part of a connection that its sessions and their children share."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator

from jmsaio.client.callbacks.reports import ConnectionState, ConnectionStates, ExceptionReports
from jmsaio.client.delivery.inbox import Inbox
from jmsaio.client.delivery.schemas import Schemas
from jmsaio.client.delivery.session_inboxes import SessionInboxes
from jmsaio.client.lifetime.scope import Affinity
from jmsaio.client.runtime.temporaries import Temporaries
from jmsaio.client.senders.pool import SenderPool
from jmsaio.client.subscriptions.selectors import SelectorReader
from jmsaio.config import Configuration, without_effect
from jmsaio.errors import JMSSecurityError
from jmsaio.model.destinations import Destination, resolve
from jmsaio.model.log_fields import log_fields
from jmsaio.model.messages.tracing import Tracing
from jmsaio.rules.lifecycle import Event, State, advance
from jmsaio.rules.share import Share
from jmsaio.transport.base import LinkChange, Transport
from jmsaio.transport.clock import LoopTimers

_log = logging.getLogger(__name__)


class ConnectionRuntime:
    """The part of a connection that its sessions, producers, consumers and browsers use.

    Attributes:
        broker: the broker's name in this process.
        connection_id: carried by sent messages, so that noLocal recognizes them.
        inbox_bytes: maximum bytes in all inboxes together.
        inboxes: the inboxes of each open session.
        schemas: the schemas of messages that other libraries sent.
        selectors: reads the selectors that operators set on subscriptions.
    """

    def __init__(
        self,
        configuration: Configuration,
        transport: Transport,
        senders: SenderPool,
        broker: str,
        states: ConnectionStates,
        tracing: Tracing | None = None,
    ) -> None:
        self.configuration = configuration
        self.transport = transport
        self.senders = senders
        self.broker = broker
        self.states = states
        self.tracing = tracing
        self.affinity = Affinity.here()
        self.uuid = self.connection_id = str(uuid.uuid4())
        self.client_id: str | None = None
        self._idle_options: set[tuple[str, ...]] = set()  # logged
        self.state = State.STOPPED
        self.started = False  # for each message, instead of ``state``
        self.reports = ExceptionReports(states.calls, where=self.where)
        self.inbox_bytes = Share(configuration.receive_buffer_bytes // 2)  # the rest is for the transport
        self.inboxes: dict[SessionInboxes, None] = {}
        self.timers = LoopTimers(transport.clock)
        self.schemas = Schemas(transport.admin, transport.clock, self.reports)
        period = configuration.refresh_server_side_filters_period
        self.selectors = SelectorReader(transport.admin, self.timers, period, self.reports)
        self.temporaries = Temporaries(
            configuration, transport, senders, self.uuid, self.affinity, self.inboxes, self.reports
        )

    def where(self) -> dict[str, str | int]:
        """Return the fields of log records about the connection."""
        return log_fields(connection=self.connection_id)

    def identify(self, client_id: str) -> None:
        """Set the client identifier."""
        self.client_id = client_id
        self.connection_id = f"{client_id}_{self.uuid}"

    def check_options(self, destination: Destination) -> None:
        """Check the consumer options of a destination, and log those that have no effect, once.

        Raises:
            InvalidDestinationError: the name or its query string is malformed.
            ConfigurationError: an option is unknown or has an invalid value.
        """
        if "?" not in destination.name:
            return
        resolved = resolve(destination, self.configuration.system_namespace)
        overrides = resolved.overrides
        merged = self.configuration.consumer.merge(overrides)
        self.configuration.type_of_queue(resolved.queue_type)
        known = self.configuration.without_effect
        here = [name for name in self.configuration.idle_in(merged) if name not in known]
        idle = (*without_effect({"consumerConfig": overrides}, {}), *here)
        if idle and idle not in self._idle_options:
            self._idle_options.add(idle)
            _log.info("options without an effect here: %s", ", ".join(idle), extra=self.where())

    def all_inboxes(self) -> Iterator[Inbox]:
        """Yield the inboxes of open consumers, and of closed consumers with unsettled messages."""
        for inboxes in self.inboxes:
            yield from inboxes

    def advance(self, event: Event) -> None:
        """Advance the life cycle. Raises as ``jmsaio.rules.lifecycle.advance``."""
        self.state = advance(self.state, event, "connection")
        self.started = self.state is State.STARTED

    def link_changed(self, change: LinkChange) -> None:
        """Handle that the transport lost the broker or a subscription, or restored it."""
        if change.whole:
            lost = change.error is not None
            state = ConnectionState.RECONNECTING if lost else ConnectionState.CONNECTED
            self.states.change(state, change.error)
        refusal = change.error if isinstance(change.error, JMSSecurityError) else None
        about: dict[str, str | int] = {}
        for inbox in [inbox for inboxes in self.inboxes for inbox in inboxes.open]:
            if change.whole or inbox.settlement.own is change.receiver:
                inbox.refuse(refusal)
                inbox.settlement.counts.reconnects += change.error is None
                about = {} if change.whole else inbox.where()
        if change.error is not None:
            self.reports.lost(change.error, about)
        else:
            _log.info("%s", change.text, extra={**self.where(), **about})
