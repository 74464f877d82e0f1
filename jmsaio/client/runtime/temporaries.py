"""Temporary destinations: owned by a connection, deleted with it.

Jakarta Messaging 3.1, 6.2.2 Creating temporary destinations.
."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import anyio
import attrs

from jmsaio.client.callbacks.reports import ExceptionReports
from jmsaio.client.delivery.session_inboxes import SessionInboxes
from jmsaio.client.lifetime.scope import Affinity
from jmsaio.client.senders.pool import SenderPool
from jmsaio.config import Configuration
from jmsaio.errors import (
    AdminError,
    IllegalStateError,
    InvalidDestinationError,
    JMSError,
    NotFoundError,
    ObjectClosedError,
)
from jmsaio.model.arguments import shown
from jmsaio.model.destinations import Destination, TemporaryQueue, TemporaryTopic, resolve
from jmsaio.model.log_fields import log_fields
from jmsaio.model.topic_names import QUEUE_PREFIX, TOPIC_PREFIX, is_temporary
from jmsaio.transport.base import Admin, Transport

_log = logging.getLogger(__name__)

#: Seconds until the producers of a terminated topic notice that: they retry after 0.1 s.
_PRODUCERS_END = 0.5
#: Maximum number of names of deleted destinations that are remembered.
_REMEMBERED = 1000

Temporary = TypeVar("Temporary", TemporaryQueue, TemporaryTopic)


@attrs.define(eq=False, repr=False)
class Temporaries:
    """The temporary destinations of one connection, whose uuid is ``owner``."""

    _configuration: Configuration
    _transport: Transport
    _senders: SenderPool
    _owner: str
    _affinity: Affinity
    _inboxes: Iterable[SessionInboxes]
    _reports: ExceptionReports
    _alive: dict[str, Destination] = attrs.field(factory=dict, init=False)
    _deleted: dict[str, None] = attrs.field(factory=dict, init=False)
    _running: dict[asyncio.Future[Any], str] = attrs.field(factory=dict, init=False)

    async def create_queue(self) -> TemporaryQueue:
        """Create a temporary queue. Raises IllegalStateError without the admin interface, unless configured."""
        return await self._create(TemporaryQueue, QUEUE_PREFIX)

    async def create_topic(self) -> TemporaryTopic:
        """Create a temporary topic. Raises IllegalStateError without the admin interface, unless configured."""
        return await self._create(TemporaryTopic, TOPIC_PREFIX)

    async def _create(self, kind: type[Temporary], prefix: str) -> Temporary:
        """Create the topic. Cancelling: it is deleted, by the connection's close at the latest."""
        topic = f"persistent://{self._configuration.system_namespace}/{prefix}{uuid.uuid4()}"
        destination = kind(topic, delete=partial(self.delete, topic), owner=self._owner)
        admin = self._transport.admin
        if admin is None and not self._configuration.allow_temporary_topic_without_admin:
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
        return {**self._reports.where(), **log_fields(destination=topic)}

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
        """Raise InvalidDestinationError for another connection's temporary destination, and for a deleted one."""
        for topic in resolve(destination, self._configuration.system_namespace).topics:
            if is_temporary(topic) and topic not in self._alive:
                raise InvalidDestinationError(
                    f"{destination!r} is temporary and was deleted, or belongs to another connection: "
                    "only its own connection can consume from it"
                )

    def check_not_deleted(self, topic: str, destination: Destination) -> None:
        """Raise InvalidDestinationError for a destination that this connection deleted.

        Objects of this connection are recognized forever; names only for the last thousand deleted ones.
        """
        ours = isinstance(destination, TemporaryQueue | TemporaryTopic) and destination._owner == self._owner
        if topic in self._deleted or (ours and topic not in self._alive):
            raise InvalidDestinationError(f"{destination!r} was deleted")

    async def delete(self, topic: str) -> None:
        """Delete a destination. Raises JMSError while consumers of this connection use it. Idempotent."""
        self._affinity.check()
        if topic not in self._alive:
            return
        if any(topic in inbox.subscription.topics for inboxes in self._inboxes for inbox in inboxes):
            raise JMSError(
                f"{shown(self._alive[topic])} has active consumers, or unsettled messages; close and settle before you "
                "delete it"
            )
        destination = self._alive.pop(topic)
        self._deleted[topic] = None
        if len(self._deleted) > _REMEMBERED:
            del self._deleted[next(iter(self._deleted))]
        try:
            await self._senders.close_topic(topic, self._configuration.close_timeout)
            admin = self._transport.admin
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
        """Delete the topic, even if others still have senders to it.

        Producers reconnect by themselves and recreate a deleted topic. Producers of a terminated topic
        end permanently, as Java's do. So a topic in use is first terminated, and deleted a moment later.
        """
        force = self._configuration.force_delete_temporary_destinations
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
        """Delete all remaining destinations. Failures are logged and reported to the ExceptionListener.

        Other deletions continue. A destination that is being created is deleted once it exists. Cancelling: its
        creation fails as soon as it ends.
        """
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
            self._reports.add(error, logged=True)
