"""The simplified API: a context is a connection and a session in one."""

from __future__ import annotations

from typing import Unpack

import attrs

from jmsaio.client.callbacks import callback_context
from jmsaio.client.connection import Connection, ConnectionCalls
from jmsaio.client.consumer import MessageConsumer
from jmsaio.client.jms_producer import JMSProducer
from jmsaio.client.lifetime.scope import AsyncClosing, Opening
from jmsaio.client.producer import MessageProducer, SendOptions
from jmsaio.client.runtime.connection import ConnectionRuntime
from jmsaio.client.runtime.session import SessionRuntime
from jmsaio.client.session import Session, SessionCalls
from jmsaio.client.subscriptions.plan import ConsumerRequest
from jmsaio.errors import ObjectClosedError
from jmsaio.model.arguments import check_flag
from jmsaio.model.destinations import Destination
from jmsaio.model.durations import Duration
from jmsaio.model.messages.kinds import Sendable
from jmsaio.model.messages.message import Message
from jmsaio.model.modes import AcknowledgeMode
from jmsaio.model.public import created_by, public


@public
@created_by("factory.create_context")
@attrs.define(eq=False)
class Context(SessionCalls, ConnectionCalls, AsyncClosing):
    """JMSContext: a connection and a session in one. Created by factories and contexts; ``async with`` closes it.

    Once it is closed, calls other than ``close`` raise ObjectClosedError.
    """

    _connection: Connection
    _contexts: set[Context]  # open ones of the connection, which is closed with the last of them
    _session: Session
    _auto_start: bool
    _closed: bool = False

    @property
    def _runtime(self) -> SessionRuntime:
        return self._session._runtime

    @classmethod
    async def _open(
        cls, connection: Connection, contexts: set[Context], mode: AcknowledgeMode, auto_start: bool
    ) -> Context:
        context = cls(connection, contexts, await connection.create_session(mode), auto_start)
        contexts.add(context)
        return context

    def create_context(self, mode: AcknowledgeMode = AcknowledgeMode.AUTO) -> Opening[Context]:
        """Create a context with a new session on the same connection; ``await`` it or use ``async with``.

        The connection is not started.
        """
        self._checked()
        return Opening(self._open(self._connection, self._contexts, AcknowledgeMode.of(mode), self._auto_start))

    @property
    def session_mode(self) -> AcknowledgeMode:
        """The acknowledge mode."""
        return self._session.acknowledge_mode

    def get_session_mode(self) -> AcknowledgeMode:
        """Return ``session_mode``."""
        return self.session_mode

    def set_client_id(self, client_id: str) -> None:
        """Set the client identifier before any message is sent or consumed. Raises as ``Connection.set_client_id``."""
        self._checked()
        connection = self._connection
        used = any(each.inboxes.open or each.children for each in connection._runtimes)
        connection._set_client_id(client_id, used or connection._runtime.started)

    @property
    def connection(self) -> Connection:
        """The connection that the context shares with those that it created: its state, ``stats`` and ``drain``."""
        return self._connection

    async def start(self) -> None:
        """Start delivery; see ``Connection.start``."""
        self._checked()
        await self._connection.start()

    async def stop(self) -> None:
        """Pause delivery; see ``Connection.stop``."""
        self._checked()
        await self._connection.stop()

    @property
    def auto_start(self) -> bool:
        """Whether creating a consumer starts the connection; default True."""
        return self._auto_start

    def get_auto_start(self) -> bool:
        """Return ``auto_start``."""
        return self.auto_start

    def set_auto_start(self, auto_start: bool) -> None:
        """Set ``auto_start``."""
        self._checked()
        check_flag(auto_start, "auto_start")
        self._auto_start = auto_start

    def create_producer(self) -> JMSProducer:
        """Create a producer: cheap, without a destination or a close method."""
        self._checked()
        return JMSProducer(self._anonymous_producer)

    async def request(
        self, destination: Destination, body: Sendable, *, timeout: Duration, **options: Unpack[SendOptions]
    ) -> Message:
        """See ``Session.request``; starts the connection unless ``auto_start`` is off."""
        self._checked()
        if self._auto_start:
            await self._connection.start()
        return await self._session.request(destination, body, timeout=timeout, **options)

    async def _consumer(self, request: ConsumerRequest) -> MessageConsumer:
        consumer = await super()._consumer(request)
        if self._auto_start:
            await self._connection.start()
        return consumer

    async def _anonymous_producer(self) -> MessageProducer:
        self._checked()
        return await self._session._anonymous_producer()

    @property
    def closed(self) -> bool:
        """Whether the context, its connection or its factory was closed."""
        return self._closed or self._session.closed

    async def close(self) -> None:
        """Close the session, and with the last context the connection. Idempotent; see ``Session.close``."""
        if self._closed:
            return
        affinity = self._runtime.affinity
        if affinity.forked:
            self._closed = True
            return
        affinity.check()
        callback_context.refuse("close of a context", self._runtime)
        self._closed = True
        try:
            await self._session.close()
        finally:
            self._contexts.discard(self)
            if not self._contexts:
                await self._connection.close()

    def _checked(self) -> ConnectionRuntime:
        self._runtime.affinity.check_process()
        if self.closed and not callback_context.listens(self._runtime):
            raise ObjectClosedError("the context is closed; create a new one")
        return self._runtime.connection

    def __repr__(self) -> str:
        return f"<Context {self._runtime.mode.name} {'closed' if self.closed else 'open'} on {self._connection!r}>"
