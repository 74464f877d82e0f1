"""Connection: client id, start and stop, the exception listener, and the owner of every session's task (jms-spec 5)."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

import anyio
import attrs

from jmsaio.client.callbacks import callback_context
from jmsaio.client.callbacks.callback_context import CallbackKind
from jmsaio.client.callbacks.exception_listener import ExceptionListener as ExceptionListener
from jmsaio.client.callbacks.exception_listener import ExceptionReports
from jmsaio.client.callbacks.worker import function_of
from jmsaio.client.lifetime.deadline import GRACE, Deadline
from jmsaio.client.lifetime.home import Home
from jmsaio.client.lifetime.opening import Opening
from jmsaio.client.metadata import ConnectionMetaData as ConnectionMetaData
from jmsaio.client.runtime.local_transaction import LocalTransaction
from jmsaio.client.runtime.session import SessionRuntime
from jmsaio.client.senders.pool import SenderPool
from jmsaio.client.session import Session
from jmsaio.client.subscriptions import in_process
from jmsaio.client.temporary import Temporaries
from jmsaio.config import Configuration
from jmsaio.errors import (
    ConfigurationError,
    IllegalArgumentError,
    IllegalStateError,
    JMSError,
    ObjectClosedError,
    OperationTimeoutError,
)
from jmsaio.model.destinations import Destination
from jmsaio.model.modes import AcknowledgeMode
from jmsaio.rules.ledger import Ledger, Scope
from jmsaio.rules.lifecycle import Event, State, advance
from jmsaio.rules.share import Share
from jmsaio.transport.base import LinkChange, Transport

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from jmsaio.client.delivery.inbox import Inbox
    from jmsaio.client.factory import ConnectionFactory

_log = logging.getLogger("jmsaio")


@attrs.define(eq=False)
class Connection:
    """A connection; made by ``jmsaio.connect`` or a factory; ``async with`` closes it. For use by many tasks."""

    configuration: Configuration
    transport: Transport
    senders: SenderPool
    broker: str
    _factory: ConnectionFactory
    _owns_factory: bool = False
    home: Home = attrs.field(factory=Home.here, init=False)
    uuid: str = attrs.field(factory=lambda: str(uuid.uuid4()), init=False)
    connection_id: str = attrs.field(init=False)
    client_id_value: str | None = attrs.field(default=None, init=False)
    temporaries: Temporaries = attrs.field(init=False)
    inbox_bytes: Share = attrs.field(init=False)
    _state: State = attrs.field(default=State.STOPPED, init=False)
    started: bool = attrs.field(default=False, init=False)
    _used: bool = attrs.field(default=False, init=False)
    _administered: bool = attrs.field(default=False, init=False)
    _sessions: int = attrs.field(default=0, init=False)
    _runtimes: dict[SessionRuntime, None] = attrs.field(factory=dict, init=False)
    _warned: set[str] = attrs.field(factory=set, init=False)
    _group: TaskGroup = attrs.field(init=False)
    _owner: asyncio.Task[None] = attrs.field(init=False)
    _running: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _requested: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _ended: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _reports: ExceptionReports = attrs.field(factory=ExceptionReports, init=False)
    _closed_by_listener: bool = attrs.field(default=False, init=False)
    _failed: SessionRuntime | None = attrs.field(default=None, init=False)
    _deadline: Deadline | None = attrs.field(default=None, init=False)
    _close_error: BaseException | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.connection_id = self.uuid
        self.temporaries = Temporaries(self)
        self.inbox_bytes = Share(self.configuration.receive_buffer_bytes // 2)  # the rest is for the transport

    async def open(self, client_id: str | None) -> Connection:
        """Start the owner task; called once by the factory."""
        if client_id is not None:
            self._take_client_id(client_id)
            self._administered = True
        self._owner = asyncio.get_running_loop().create_task(self._run(), name=f"jmsaio connection {self.uuid}")
        try:
            await self._running.wait()
        except BaseException:
            self._requested.set()
            with anyio.CancelScope(shield=True):
                await self._ended.wait()
            raise
        return self

    # ---------------------------------------------------------------- identity

    @property
    def client_id(self) -> str | None:
        """The client identifier, or None. Setting it: see ``set_client_id``. Raises ObjectClosedError."""
        self._check_open()
        return self.client_id_value

    @client_id.setter
    def client_id(self, client_id: str) -> None:
        self.set_client_id(client_id)

    def get_client_id(self) -> str | None:
        """The same as ``client_id``."""
        return self.client_id

    def set_client_id(self, client_id: str) -> None:
        """Set the client identifier: once, and before anything else is done with the connection.

        ``jmsaio.connect`` starts the connection, which is use, unless it is told ``auto_start=False``.

        Raises:
            IllegalStateError: it is set already, or the connection was used.
            InvalidClientIDError: it is empty, or an open connection of this process has it.
        """
        self._check_open()
        if self.client_id_value is not None:
            how = "by configuration" if self._administered else "already"
            raise IllegalStateError(f"the client id is set {how}: {self.client_id_value!r}")
        if self._used:
            raise IllegalStateError(
                "set the client id before anything else is done with the connection; jmsaio.connect starts it unless "
                "it is told auto_start=False"
            )
        self._take_client_id(client_id)

    def _take_client_id(self, client_id: str) -> None:
        in_process.claim_client_id(self.broker, client_id)
        self.client_id_value = client_id
        self.connection_id = f"{client_id}_{self.uuid}"

    @property
    def metadata(self) -> ConnectionMetaData:
        """Versions and names. Raises ObjectClosedError."""
        self._check_open()
        return ConnectionMetaData()

    def get_meta_data(self) -> ConnectionMetaData:
        """The same as ``metadata``."""
        return self.metadata

    def get_metadata(self) -> ConnectionMetaData:
        """The same as ``metadata``."""
        return self.metadata

    @property
    def queue_browser_read_max(self) -> int:
        """Messages a browser of this connection examines at most; 0 and below: all (seed 004)."""
        return self.configuration.queue_browser_read_max

    def get_queue_browser_read_max(self) -> int:
        """The same as ``queue_browser_read_max``."""
        return self.queue_browser_read_max

    # ---------------------------------------------------------------- start and stop

    async def start(self) -> None:
        """Start, or restart, delivery. Raises ObjectClosedError. No effect on a started connection."""
        self.home.check()
        self._state = advance(self._state, Event.START, "connection")
        self._used = True
        self.started = True
        for runtime in self._runtimes:
            runtime.wake()

    async def stop(self) -> None:
        """Pause delivery; returns when every running listener has returned. Sending goes on.

        Waiting receives stay where they are, and their time runs.

        Raises:
            IllegalStateError: called from a message listener of this connection.
            OperationTimeoutError: a listener did not return within ``close_timeout`` seconds.
            ObjectClosedError: the connection is closed.

        Cancelling: the connection is stopped, a listener may still run.
        """
        self.home.check()
        callback_context.refuse("stop of a connection", self, (CallbackKind.LISTENER,))
        self._state = advance(self._state, Event.STOP, "connection")
        self._used = True
        self.started = False
        callback = callback_context.current()
        deadline = Deadline.after(self.configuration.close_timeout)
        for runtime in list(self._runtimes):
            if callback is None or callback.session is not runtime:
                await runtime.wait_idle(deadline.left())

    # ---------------------------------------------------------------- sessions

    def create_session(
        self, mode: AcknowledgeMode | int = AcknowledgeMode.AUTO, *, acknowledge_scope: str | None = None
    ) -> Opening[Session]:
        """Make a session; ``await`` it or use ``async with``.

        Args:
            mode: AcknowledgeMode, or its number.
            acknowledge_scope: ``"session"`` (``acknowledge`` settles all that the session delivered) or ``"group"``
                (this message and all delivered before it); default: the option of the connection, ``"session"``.

        Raises:
            JMSError: a mode that does not exist.
            IllegalStateError: TRANSACTED where the engine has no transactions and ``jms.emulateTransactions`` is off.
            ObjectClosedError: the connection is closed.
        """
        return Opening(self._create_session(mode, acknowledge_scope))

    async def _create_session(self, mode: AcknowledgeMode | int, scope: str | None) -> Session:
        self.home.check()
        self._check_open()
        checked = AcknowledgeMode.of(mode)
        config = self.configuration
        real = self.transport.capabilities.transactions and not config.emulate_transactions
        if checked is AcknowledgeMode.TRANSACTED and not real and not config.emulate_transactions:
            raise IllegalStateError(
                "this transport has no transactions; set jms.emulateTransactions=true for emulated ones "
                "(messages go out at once, acknowledgements at commit)"
            )
        self._sessions += 1
        runtime = SessionRuntime(
            connection=self,
            number=self._sessions,
            mode=checked,
            ledger=Ledger(_scope(checked, scope or config.acknowledge_scope)),
            concurrency=config.listener_concurrency,
        )
        transacting = None
        if checked is AcknowledgeMode.TRANSACTED:
            transacting = runtime.transaction = LocalTransaction(runtime, real)
        self._used = True
        self._runtimes[runtime] = None
        self._group.start_soon(runtime.run)
        try:
            await runtime.wait_running()
        except BaseException:
            runtime.abandon()
            raise
        return Session(runtime, transacting)

    def forget(self, runtime: SessionRuntime) -> None:
        """A session has ended."""
        self._runtimes.pop(runtime, None)

    def session_failed(self, runtime: SessionRuntime) -> None:
        """A session was ended by a callback: ``close`` says so, unless its own close did."""
        if self._failed is None or self._failed._close_error is None:
            self._failed = runtime

    def consumed_topics(self) -> Iterator[tuple[str, ...]]:
        """The topics that consumers of this connection are subscribed to, or closed ones have unsettled messages of."""
        for inbox in self.inboxes():
            yield inbox.subscription.topics

    def inboxes(self) -> Iterator[Inbox]:
        """The inboxes of its consumers, and those that closed ones left with unsettled messages."""
        for runtime in self._runtimes:
            yield from (*[consumer._inbox for consumer in runtime.consumers], *runtime._lingering)

    def check_may_consume(self, destination: Destination) -> None:
        """Raise InvalidDestinationError for temporary destinations that are deleted or another connection's."""
        self.temporaries.check_may_consume(destination)

    def check_not_deleted(self, topic: str, destination: Destination) -> None:
        """Raise InvalidDestinationError for a temporary destination that was deleted."""
        self.temporaries.check_not_deleted(topic, destination)

    # ---------------------------------------------------------------- problems without a caller

    @property
    def exception_listener(self) -> ExceptionListener | None:
        """The listener, or None. Raises ObjectClosedError."""
        self._check_open()
        return self._reports.listener

    def get_exception_listener(self) -> ExceptionListener | None:
        """The same as ``exception_listener``."""
        return self.exception_listener

    def set_exception_listener(self, listener: ExceptionListener | None) -> None:
        """Have a plain or coroutine function told about problems that no caller can be told; None unsets it.

        An object with such a function as ``on_exception`` may be given, too.

        Calls come one at a time, from a task of their own. It may do anything, also close the connection.
        """
        self._check_open()
        if listener is not None and function_of(listener, "on_exception") is None:
            raise IllegalArgumentError(
                f"listener must be a function of one error, or have on_exception, and is {type(listener).__name__}"
            )
        self._reports.listener = listener

    def report(self, error: Exception, circumstances: str = "", *, logged: bool = False) -> None:
        """Log a problem that has no caller, unless it is ``logged``, and tell the exception listener later."""
        self._reports.add(error, circumstances, logged)

    def _link_changed(self, change: LinkChange) -> None:
        """The transport lost the broker or a subscription, or has it again."""
        if change.error is not None:
            self._reports.lost(change.error)
        else:
            _log.info("%s", change.text)

    def warn_once(self, text: str) -> None:
        """Log a warning the first time."""
        if text not in self._warned:
            self._warned.add(text)
            _log.warning("%s", text)

    # ---------------------------------------------------------------- end

    @property
    def closed(self) -> bool:
        """True once ``close`` was called."""
        return self._state in (State.CLOSING, State.CLOSED)

    def get_closed(self) -> bool:
        """The same as ``closed``."""
        return self.closed

    async def close(self) -> None:
        """Close the connection and everything made from it, within ``close_timeout``. Idempotent; for any task.

        Sessions close as ``Session.close`` says, all at once, then temporary destinations are deleted and the client id
        is free.

        Raises:
            IllegalStateError: called from a listener or completion listener of this connection, or outside of its loop.
            JMSError: something did not end as it should; the connection is closed nevertheless.

        Cancelling: the connection goes on closing.
        """
        if self.home.forked:
            self._state = State.CLOSED  # everything here is the parent's
            return
        self.home.check()
        await self.close_by(Deadline.after(self.configuration.close_timeout))

    async def close_by(self, deadline: Deadline) -> None:
        """``close`` within the time of what is closed with it."""
        if self._state is State.CLOSED:
            return
        callback_context.refuse("close of a connection", self)
        self._state = advance(self._state, Event.CLOSE, "connection")
        self.started = False
        self._closed_by_listener = self._closed_by_listener or self._reports.called_from_listener()
        if self._deadline is None or deadline.at < self._deadline.at:
            self._deadline = deadline
        self._requested.set()
        with anyio.move_on_after(self._deadline.left() + GRACE):
            await self._ended.wait()
        if not self._ended.is_set():
            bound = self.configuration.close_timeout
            raise OperationTimeoutError(f"the connection did not close within {bound:g} s (close_timeout)")
        if self._failed is not None:
            self._failed.raise_close_error()
        error, self._close_error = self._close_error, None
        if isinstance(error, JMSError):
            raise error

    async def _run(self) -> None:
        callback_context.leave()
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                self.transport.link_listeners.add(self._link_changed)
                self._running.set()
                try:
                    await self._requested.wait()
                finally:
                    with anyio.CancelScope(shield=True):
                        await self._shut_down()
                group.cancel_scope.cancel()
        finally:
            self._state = advance(advance(self._state, Event.CLOSE, "connection"), Event.CLOSE_DONE, "connection")
            self._ended.set()

    async def _shut_down(self) -> None:
        self.started = False
        deadline = self._deadline or Deadline.after(self.configuration.close_timeout)
        self.transport.link_listeners.discard(self._link_changed)
        reports = self._reports.count
        asked: set[SessionRuntime] = set()
        while rest := [runtime for runtime in self._runtimes if runtime not in asked]:  # a listener may make one still
            asked.update(rest)
            async with anyio.create_task_group() as group:  # at once: one may wait for what another ends
                for runtime in rest:
                    group.start_soon(self._quietly, partial(runtime.close, deadline.before(3)))
        deleting = partial(deadline.bound, self.temporaries.close(), "deleting temporary destinations", 2)
        await self._quietly(deleting)
        if self._reports.count > reports and not self._closed_by_listener:
            await self._reports.told(deadline.left(1))
        if self.client_id_value is not None:
            in_process.release_client_id(self.broker, self.client_id_value)
        self._factory.forget(self)
        if self._owns_factory:
            await self._quietly(partial(self._factory.close_by, deadline))

    async def _quietly(self, close: Callable[[], Awaitable[None]]) -> None:
        """Close a part; the first error is raised when all are closed."""
        try:
            await close()
        except JMSError as error:
            self._close_error = self._close_error or error

    def _check_open(self) -> None:
        self.home.check_process()
        if self.closed and not callback_context.listens(self):
            raise ObjectClosedError("the connection is closed; make a new one")

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<Connection {self.connection_id} to {self.broker} {self._state.value}, {len(self._runtimes)} sessions>"


def _scope(mode: AcknowledgeMode, scope: str) -> Scope:
    if mode is AcknowledgeMode.INDIVIDUAL:
        return Scope.INDIVIDUAL
    try:
        found = Scope(scope)
    except ValueError:
        found = Scope.INDIVIDUAL
    if found is Scope.INDIVIDUAL:
        raise ConfigurationError(
            f"acknowledge_scope is 'session' or 'group', not {scope!r}; "
            "for single messages use AcknowledgeMode.INDIVIDUAL",
            "acknowledge_scope",
        )
    return found
