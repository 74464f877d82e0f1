"""``ConnectionRuntime``: the part of a connection that its sessions share, with its temporary destinations."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import anyio
import attrs

from jmsaio.client.callbacks.reports import ConnectionState, ConnectionStates, ExceptionReports
from jmsaio.client.delivery.inbox import Inbox
from jmsaio.client.delivery.schemas import Schemas
from jmsaio.client.delivery.session_inboxes import SessionInboxes
from jmsaio.client.lifetime.scope import Affinity
from jmsaio.client.senders.pool import SenderPool
from jmsaio.client.subscriptions.selectors import SelectorReader
from jmsaio.config import Configuration, without_effect
from jmsaio.errors import (
    AdminError,
    IllegalStateError,
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    NotFoundError,
    ObjectClosedError,
)
from jmsaio.model.arguments import shown
from jmsaio.model.destinations import Destination, TemporaryQueue, TemporaryTopic, resolve
from jmsaio.model.log_fields import log_fields
from jmsaio.model.messages.tracing import Tracing
from jmsaio.model.topic_names import QUEUE_PREFIX, TOPIC_PREFIX, is_temporary
from jmsaio.rules.lifecycle import Event, State, advance
from jmsaio.rules.share import Share
from jmsaio.transport.base import Admin, LinkChange, Transport
from jmsaio.transport.clock import LoopTimers

_log = logging.getLogger(__name__)


class ConnectionRuntime:
    """The part of a connection that its sessions, producers, consumers and browsers use."""

    def __init__(
        self,
        configuration: Configuration,
        transport: Transport,
        senders: SenderPool,
        broker: str,
        tracing: Tracing | None = None,
    ) -> None:
        self.configuration = configuration
        self.transport = transport
        self.senders = senders
        self.broker = broker  # its name in this process
        self.states = ConnectionStates()
        self.tracing = tracing
        self.affinity = Affinity.here()
        self.uuid = self.connection_id = str(uuid.uuid4())  # sent with messages: noLocal recognizes them
        self.client_id: str | None = None
        self._idle_options: set[tuple[str, ...]] = set()  # logged
        self.state = State.STOPPED
        self.started = False  # for each message, instead of ``state``
        self.reports = ExceptionReports(self.states.calls, where=self.where)
        self.inbox_bytes = Share(configuration.receive_buffer_bytes // 2)  # the rest is for the transport
        self.inboxes: dict[SessionInboxes, None] = {}
        self.timers = LoopTimers(transport.clock)
        self.schemas = Schemas(transport.admin, transport.clock, self.reports)
        period = configuration.refresh_server_side_filters_period
        self.selectors = SelectorReader(transport.admin, self.timers, period, self.reports)
        self.temporaries = Temporaries(self)

    def where(self) -> dict[str, str | int]:
        return log_fields(connection=self.connection_id)

    def identify(self, client_id: str) -> None:
        self.client_id = client_id
        self.connection_id = f"{client_id}_{self.uuid}"

    def check_options(self, destination: Destination) -> None:
        """Check the consumer options in a destination's name, and log those that have no effect, once."""
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
        for inboxes in self.inboxes:
            yield from inboxes

    def advance(self, event: Event) -> None:
        self.state = advance(self.state, event, "connection")
        self.started = self.state is State.STARTED

    def link_changed(self, change: LinkChange) -> None:
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


#: Seconds until the producers of a terminated topic notice that: they retry after 0.1 s.
_PRODUCERS_END = 0.5
#: Maximum number of names of deleted destinations that are remembered.
_REMEMBERED = 1000

Temporary = TypeVar("Temporary", TemporaryQueue, TemporaryTopic)


@attrs.define(eq=False, repr=False)
class Temporaries:
    """The temporary destinations of one connection (Jakarta Messaging 3.1, 6.2.2), which deletes them at its end."""

    _connection: ConnectionRuntime
    _alive: dict[str, Destination] = attrs.field(factory=dict, init=False)
    _deleted: dict[str, None] = attrs.field(factory=dict, init=False)
    _running: dict[asyncio.Future[Any], str] = attrs.field(factory=dict, init=False)

    async def create(self, kind: type[Temporary]) -> Temporary:
        config, admin = self._connection.configuration, self._connection.transport.admin
        prefix = QUEUE_PREFIX if kind is TemporaryQueue else TOPIC_PREFIX
        topic = f"persistent://{config.system_namespace}/{prefix}{uuid.uuid4()}"
        destination = kind(topic, delete=partial(self.delete, topic), owner=self._connection.uuid)
        if admin is None and not config.allow_temporary_topic_without_admin:
            raise IllegalStateError(
                "temporary destinations need the admin interface; set jms.usePulsarAdmin=true, "
                "or jms.allowTemporaryTopicWithoutAdmin=true to leave their deletion to the broker"
            )
        self._alive[topic] = destination
        if admin is None:
            return destination  # the first sender or consumer creates it
        creating = self._start(topic, admin.create_topic(topic))
        try:
            await asyncio.shield(creating)
        except JMSError:
            self._alive.pop(topic, None)
            raise
        except asyncio.CancelledError:
            self._start(topic, self._undo(topic, creating))
            raise
        if topic not in self._alive:
            raise ObjectClosedError("the connection was closed while the temporary destination was created")
        return destination

    def _where(self, topic: str) -> dict[str, object]:
        return {**self._connection.where(), **log_fields(destination=topic)}

    async def _undo(self, topic: str, creating: asyncio.Future[Any]) -> None:
        await asyncio.wait({creating})
        await self.delete(topic)

    def _start(self, topic: str, work: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
        """Run work on a topic that continues if its caller is cancelled."""
        task = asyncio.ensure_future(work)
        self._running[task] = topic
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Future[Any]) -> None:
        del self._running[task]
        with suppress(asyncio.CancelledError):
            task.exception()  # a waiting caller raises it; otherwise the connection's close retries

    def check_may_consume(self, destination: Destination) -> None:
        for topic in resolve(destination, self._connection.configuration.system_namespace).topics:
            if is_temporary(topic) and topic not in self._alive:
                raise InvalidDestinationError(
                    f"{destination!r} is temporary and was deleted, or belongs to another connection: "
                    "only its own connection can consume from it"
                )

    def check_not_deleted(self, topic: str, destination: Destination) -> None:
        """Refuse a destination that this connection deleted: an object forever, a name among the last thousand."""
        ours = isinstance(destination, TemporaryQueue | TemporaryTopic) and destination._owner == self._connection.uuid
        if topic in self._deleted or (ours and topic not in self._alive):
            raise InvalidDestinationError(f"{destination!r} was deleted")

    async def delete(self, topic: str) -> None:
        """Delete a destination. Raises JMSError while consumers of this connection use it. Idempotent."""
        connection = self._connection
        connection.affinity.check()
        if topic not in self._alive:
            return
        if any(topic in inbox.subscription.topics for inbox in connection.all_inboxes()):
            raise JMSError(
                f"{shown(self._alive[topic])} has active consumers, or unsettled messages; close and settle before you "
                "delete it"
            )
        destination = self._alive.pop(topic)
        self._deleted[topic] = None
        if len(self._deleted) > _REMEMBERED:
            del self._deleted[next(iter(self._deleted))]
        try:
            await connection.senders.close_topic(topic, connection.configuration.close_timeout)
            admin = connection.transport.admin
            if admin is None:
                text = "temporary destination %s is left to the broker, because jms.usePulsarAdmin=false"
                _log.warning(text, topic, extra=self._where(topic))
            else:
                await self._delete(admin, topic)
        except BaseException:  # it still exists: delete can be repeated, and the connection's close retries
            self._alive[topic] = destination
            self._deleted.pop(topic, None)
            raise

    async def _delete(self, admin: Admin, topic: str) -> None:
        """Delete the topic; one in use is first terminated, and deleted a moment later.

        Producers reconnect by themselves and recreate a deleted topic; those of a terminated one, even Java's, end.
        """
        force = self._connection.configuration.force_delete_temporary_destinations
        try:
            try:
                await admin.delete_topic(topic)
            except AdminError as error:
                if not error.in_use:
                    raise
                await admin.terminate_topic(topic)
                await asyncio.sleep(_PRODUCERS_END)
                await admin.delete_topic(topic, force=force)
        except NotFoundError:
            _log.debug("temporary destination %s is already gone", topic, extra=self._where(topic))

    async def close(self) -> None:
        """Delete all remaining destinations, and those being created once they exist; failures are reported."""
        try:
            async with anyio.create_task_group() as group:
                for topic in {*self._alive, *self._running.values()}:
                    group.start_soon(self._delete_last, topic)
        finally:
            self._alive.clear()

    async def _delete_last(self, topic: str) -> None:
        running = [task for task, its_topic in self._running.items() if its_topic == topic]
        if running:
            await asyncio.wait(running)
        try:
            await self.delete(topic)
        except JMSError as error:
            text = "temporary destination %s is left, `jmsaio sweep` can remove it: %s"
            _log.warning(text, topic, error, extra=self._where(topic))
            self._connection.reports.add(error, logged=True)
