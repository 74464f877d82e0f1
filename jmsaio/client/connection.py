"""Connection: client id, start and stop, the exception listener, metadata, and the owner of all session tasks.

Jakarta Messaging 3.1, 6.1 Connections.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Never

import anyio
import attrs

from jmsaio.client.callbacks import callback_context
from jmsaio.client.callbacks.callback_context import CallbackKind
from jmsaio.client.callbacks.reports import ConnectionState, ExceptionListener, StateCallback, StateChange
from jmsaio.client.lifetime.scope import AsyncClosing, BackgroundTask, Deadline, FirstError, Opening
from jmsaio.client.lifetime.stats import ConsumerStats, ProducerStats
from jmsaio.client.producer import MessageProducer
from jmsaio.client.runtime.connection import ConnectionRuntime
from jmsaio.client.runtime.session import SessionRuntime
from jmsaio.client.session import Session
from jmsaio.client.subscriptions import in_process
from jmsaio.config import Configuration
from jmsaio.errors import (
    IllegalArgumentError,
    IllegalArgumentTypeError,
    IllegalStateError,
    ObjectClosedError,
)
from jmsaio.model.arguments import shown
from jmsaio.model.destinations import TemporaryQueue, TemporaryTopic
from jmsaio.model.durations import Duration, seconds
from jmsaio.model.headers import JMSX
from jmsaio.model.modes import AcknowledgeMode
from jmsaio.model.public import created_by, public
from jmsaio.model.version import __version__
from jmsaio.rules.ledger import DeliveryLedger, Scope
from jmsaio.rules.lifecycle import Event, State

if TYPE_CHECKING:
    from anyio.abc import TaskGroup


#: Called after a connection has closed its sessions, with the deadline of the close.
OnClosed = Callable[["Connection", Deadline], Awaitable[None]]


class ConnectionCalls:
    """The calls that a connection and a context have in common."""

    __slots__ = ()

    def _checked(self) -> ConnectionRuntime:
        raise NotImplementedError

    @property
    def client_id(self) -> str | None:
        """The client identifier, or None. To set it, see ``set_client_id``."""
        return self._checked().client_id

    @client_id.setter
    def client_id(self, client_id: str) -> None:
        self.set_client_id(client_id)

    def get_client_id(self) -> str | None:
        """Return ``client_id``."""
        return self.client_id

    def set_client_id(self, client_id: str) -> None:
        raise NotImplementedError

    @property
    def metadata(self) -> ConnectionMetaData:
        """Versions and names."""
        self._checked()
        return ConnectionMetaData()

    def get_meta_data(self) -> ConnectionMetaData:
        """Return ``metadata``."""
        return self.metadata

    @property
    def exception_listener(self) -> ExceptionListener | None:
        """The exception listener, or None."""
        return self._checked().reports.listener

    def get_exception_listener(self) -> ExceptionListener | None:
        """Return ``exception_listener``."""
        return self.exception_listener

    def set_exception_listener(self, listener: ExceptionListener | None) -> None:
        """Set the listener for problems that no caller can receive: a plain or coroutine function; None unsets it.

        An object with such a function as its ``on_exception`` is also accepted.

        Calls are made one at a time, in a separate task. The listener can do anything, even close the connection.
        """
        self._checked().reports.listen(listener)


@public
@created_by("jmsaio.connect or factory.create_connection")
@attrs.define(eq=False)
class Connection(ConnectionCalls, AsyncClosing):
    """A connection, created by ``jmsaio.connect`` or a factory; ``async with`` closes it. Many tasks can use it.

    Once it is closed, calls other than ``close`` and ``drain`` raise ObjectClosedError. One that is dropped without
    ``close`` emits a ResourceWarning when its event loop ends.
    """

    _runtime: ConnectionRuntime
    _on_closed: OnClosed
    _used: bool = attrs.field(default=False, init=False)
    _administered: bool = attrs.field(default=False, init=False)
    _sessions: int = attrs.field(default=0, init=False)
    _runtimes: dict[SessionRuntime, None] = attrs.field(factory=dict, init=False)
    _group: TaskGroup = attrs.field(init=False)
    _owner: asyncio.Task[None] = attrs.field(init=False)
    _task: BackgroundTask = attrs.field(factory=BackgroundTask, init=False)
    _closed_by_listener: bool = attrs.field(default=False, init=False)
    _failed: SessionRuntime | None = attrs.field(default=None, init=False)

    async def _open(self, client_id: str | None) -> Connection:
        if client_id is not None:
            self._claim_client_id(client_id)
            self._administered = True
        self._owner = asyncio.get_running_loop().create_task(
            self._run(), name=f"jmsaio connection {self._runtime.uuid}"
        )
        try:
            await self._task.running.wait()
        except BaseException:
            self._task.requested.set()
            with anyio.CancelScope(shield=True):
                await self._task.ended.wait()
            raise
        return self

    @property
    def configuration(self) -> Configuration:
        """The options after applying defaults and environment."""
        return self._runtime.configuration

    def set_client_id(self, client_id: str) -> None:
        """Set the client identifier: once, and before any other use of the connection.

        ``jmsaio.connect`` starts the connection, which counts as use, unless ``auto_start=False``.

        Raises:
            IllegalStateError: it is already set, or the connection was used.
            InvalidClientIDError: it is empty, or another open connection of this process uses it.
        """
        self._set_client_id(client_id, self._used)

    def _set_client_id(self, client_id: str, used: bool) -> None:
        self._checked()
        if self._runtime.client_id is not None:
            how = "by configuration" if self._administered else "already"
            raise IllegalStateError(f"the client id is set {how}: {shown(self._runtime.client_id)}")
        if used:
            raise IllegalStateError(
                "set the client id before anything else is done with the connection; jmsaio.connect starts it unless "
                "auto_start=False"
            )
        self._claim_client_id(client_id)

    def _claim_client_id(self, client_id: str) -> None:
        in_process.claim_client_id(self._runtime.broker, client_id)
        self._runtime.identify(client_id)

    async def start(self) -> None:
        """Start or restart delivery. No effect on a started connection."""
        self._runtime.affinity.check()
        self._runtime.advance(Event.START)
        self._used = True
        for runtime in self._runtimes:
            runtime.wake()

    async def stop(self) -> None:
        """Pause delivery; return once every running listener has returned. Sending continues.

        Waiting receives keep waiting, and their time-outs keep running.

        Raises:
            IllegalStateError: called from a message listener of this connection.
            OperationTimeoutError: a listener did not return within ``close_timeout`` seconds.

        Cancelling: the connection is stopped, but a listener might still run.
        """
        self._runtime.affinity.check()
        callback_context.refuse("stop of a connection", self._runtime, (CallbackKind.LISTENER,))
        self._runtime.advance(Event.STOP)
        self._used = True
        callback = callback_context.current()
        deadline = Deadline.after(self._runtime.configuration.close_timeout)
        for runtime in list(self._runtimes):
            if callback is None or callback.session is not runtime:
                await runtime.wait_idle(deadline.left())

    def create_session(self, mode: AcknowledgeMode = AcknowledgeMode.AUTO, *java: Never) -> Opening[Session]:
        """Create a session; ``await`` it or use ``async with``.

        Args:
            mode: when the session acknowledges.
            java: nothing; Java's arguments get an answer.

        Raises:
            JMSError: the mode does not exist.
            IllegalStateError: TRANSACTED, and neither ``enableTransaction`` nor ``jms.emulateTransactions`` is set, or
                this broker does not support transactions.
            TransportError: TRANSACTED, and the broker can't report whether it supports transactions.
        """
        if java:
            raise IllegalArgumentTypeError(
                "write create_session(AcknowledgeMode.AUTO), or TRANSACTED; create_queue_session(transacted, mode) has "
                "the arguments of Java's createSession"
            )
        return Opening(self._create_session(AcknowledgeMode.of(mode)))

    def create_queue_session(self, transacted: bool, mode: AcknowledgeMode) -> Opening[Session]:
        """Create a session, as in JMS 1.1: ``create_session(mode)``, or ``create_session(TRANSACTED)``.

        It serves both queues and topics, whichever of the two methods created it.
        """
        return self.create_session(AcknowledgeMode.TRANSACTED if transacted else AcknowledgeMode.of(mode))

    create_topic_session = create_queue_session

    async def _create_session(self, mode: AcknowledgeMode) -> Session:
        self._runtime.affinity.check()
        self._checked()
        config = self._runtime.configuration
        if mode is AcknowledgeMode.TRANSACTED and not (config.enable_transaction or config.emulate_transactions):
            raise IllegalStateError(
                "a transacted session needs enableTransaction=true, for transactions of the broker, or "
                "jms.emulateTransactions=true, for emulated ones: messages go out at once, acknowledgements at commit"
            )
        if mode is AcknowledgeMode.TRANSACTED and config.enable_transaction:
            await self._runtime.transport.ready_for_transactions(config.operation_timeout)
            self._checked()
        self._sessions += 1
        scope = Scope.INDIVIDUAL if mode is AcknowledgeMode.INDIVIDUAL else Scope(config.acknowledge_scope)
        runtime = SessionRuntime(
            connection=self._runtime,
            mode=mode,
            ledger=DeliveryLedger(scope),
            number=self._sessions,
            reply=lambda *answer: session._reply(*answer),
        )
        self._used = True
        self._runtimes[runtime] = None
        self._group.start_soon(self._run_session, runtime)
        try:
            await runtime.task.running.wait()
        except BaseException:
            runtime.abandon()
            raise
        session = Session(runtime, self.create_session)
        return session

    async def _run_session(self, runtime: SessionRuntime) -> None:
        """Run a session; ``close`` raises a callback's error that ended it, unless its own close did."""
        try:
            await runtime.run()
        finally:
            self._runtimes.pop(runtime, None)
            if runtime.ended_by_callback and (self._failed is None or self._failed.task.errors.error is None):
                self._failed = runtime

    @property
    def state(self) -> ConnectionState:
        """Whether the broker answers. A lost connection is noticed within 10 seconds, and so is its return."""
        return self.last_change.state

    @property
    def last_change(self) -> StateChange:
        """The state since its last change, and while the connection is lost, why."""
        return self._runtime.states.last

    def on_state(self, callback: StateCallback) -> Callable[[], None]:
        """Call ``callback`` with each later change of ``state``, until the returned function is called.

        Args:
            callback: a plain or coroutine function of one `StateChange`. It is called in a separate task, as the
                exception listener is and never together with it, and can do anything, even close the connection. An
                error that it raises is logged.

        Raises:
            IllegalArgumentError: the callback can't be called.
        """
        self._checked()
        return self._runtime.states.add(callback)

    async def ping(self, timeout: Duration = 5) -> float:
        """Send a request to the broker and return the seconds until its answer.

        Args:
            timeout: maximum seconds to wait.

        Raises:
            OperationTimeoutError: no answer in time.
            TransportError: the connection is lost, or the broker refuses this client.
            IllegalArgumentError: the timeout is not a positive number of seconds.

        Cancelling changes nothing.
        """
        self._runtime.affinity.check()
        self._checked()
        limit = seconds(timeout, "timeout")
        if limit <= 0:
            raise IllegalArgumentError(f"timeout must be above 0 seconds, and is {shown(timeout)}")
        clock = self._runtime.transport.clock
        begin = clock.steady()
        await self._runtime.transport.ping(limit)
        return clock.steady() - begin

    def stats(self) -> ConnectionStats:
        """Return what the connection and its open producers and consumers have done so far, in numbers."""
        self._checked()
        children = [child for runtime in self._runtimes for child in runtime.children]
        return ConnectionStats(
            state=self.state,
            reconnects=self._runtime.states.reconnects,
            sessions=len(self._runtimes),
            producers=tuple(child.stats() for child in children if isinstance(child, MessageProducer)),
            consumers=tuple(
                inbox.stats(held[inbox])
                for runtime in self._runtimes
                for held in (runtime.deliveries.ledger.counts(),)
                for inbox in runtime.inboxes.open
            ),
        )

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._runtime.state in (State.CLOSING, State.CLOSED)

    async def drain(self, timeout: Duration) -> None:
        """End the work in progress, then close the connection.

        Every consumer is drained, as ``MessageConsumer.drain`` says, except those of temporary destinations: replies to
        pending requests still arrive. Then sends get their outcomes, and the connection is closed, which takes up to
        ``close_timeout`` more.

        Args:
            timeout: maximum seconds until everything is settled.

        Raises:
            OperationTimeoutError: something was not settled in time; the connection is closed nevertheless.
            JMSError: another error while closing, likewise.
            IllegalStateError: called from a listener or completion listener of this connection.
            IllegalArgumentError: a negative timeout.

        Cancelling: consumers that were drained stay closed; call ``close``.
        """
        self._runtime.affinity.check()
        deadline, errors = Deadline.after(seconds(timeout, "timeout")), FirstError()
        callback_context.refuse("drain of a connection", self._runtime)
        while drains := [
            drain
            for runtime in self._runtimes
            for inbox, drain in runtime.drains.items()
            if not (runtime.closing or isinstance(inbox.destination, TemporaryQueue | TemporaryTopic))
        ]:
            async with anyio.create_task_group() as group:
                for drain in drains:
                    group.start_soon(errors.guard, partial(drain, deadline))
        for runtime in list(self._runtimes):
            await errors.guard(partial(runtime.settle_sends, deadline.left()))
        await errors.guard(self.close)
        errors.raise_once()

    async def close(self) -> None:
        """Close the connection and everything created from it, within ``close_timeout``. Idempotent.

        Any task can call it.

        Sessions close concurrently, as ``Session.close`` says. Then temporary destinations are deleted and the client
        id is released.

        Raises:
            IllegalStateError: called from a listener or completion listener of this connection, or outside of its loop.
            JMSError: an error while closing; the connection is closed nevertheless.

        Cancelling: the connection continues to close.
        """
        affinity, config = self._runtime.affinity, self._runtime.configuration
        if affinity.forked:
            self._runtime.advance(Event.CLOSE)
            self._runtime.advance(Event.CLOSE_DONE)  # everything here belongs to the parent
            return
        affinity.check()
        await self._close_by(Deadline.after(config.close_timeout))

    async def _close_by(self, deadline: Deadline) -> None:
        if self._runtime.state is State.CLOSED:
            return
        callback_context.refuse("close of a connection", self._runtime)
        self._runtime.advance(Event.CLOSE)
        self._closed_by_listener = self._closed_by_listener or self._runtime.states.calls.called_from_here()
        await self._task.end("the connection", deadline, self._runtime.configuration.close_timeout)
        if self._failed is not None:
            self._failed.task.errors.raise_once()
        self._task.errors.raise_once()

    async def _run(self) -> None:
        callback_context.unmark()
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                self._runtime.transport.link_listeners.add(self._runtime.link_changed)
                group.start_soon(self._runtime.selectors.run)
                self._task.running.set()
                try:
                    await self._task.requested.wait()
                finally:
                    with anyio.CancelScope(shield=True):
                        await self._close_all()
                group.cancel_scope.cancel()
        finally:
            self._runtime.advance(Event.CLOSE)
            self._runtime.advance(Event.CLOSE_DONE)
            self._task.ended.set()
            if not self._task.requested.is_set():  # the loop's end cancelled it
                text = f"unclosed connection {self._runtime.connection_id} to {self._runtime.broker}: await its close()"
                warnings.warn(f"{text}, or use async with", ResourceWarning, stacklevel=1, source=self)

    async def _close_all(self) -> None:
        runtime, errors = self._runtime, self._task.errors
        runtime.advance(Event.CLOSE)
        deadline = (self._task.deadline or Deadline.after(runtime.configuration.close_timeout)).before(1)
        calls, before = runtime.states.calls, runtime.states.calls.count
        runtime.states.change(ConnectionState.CLOSED)
        asked: set[SessionRuntime] = set()
        # A listener can still create a session.
        while rest := [session for session in self._runtimes if session not in asked]:
            asked.update(rest)
            async with anyio.create_task_group() as group:  # concurrently: one session might wait for another to end
                for session in rest:
                    group.start_soon(errors.guard, partial(session.close, deadline.before(3)))
        await errors.guard_within(deadline, self._runtime.temporaries.close, "deleting temporary destinations", 2)
        runtime.transport.link_listeners.discard(runtime.link_changed)  # closing consumers still report losses
        if calls.count > before and not self._closed_by_listener:
            await calls.wait(deadline.left(1))
        if runtime.client_id is not None:
            in_process.release_client_id(runtime.broker, runtime.client_id)
        await errors.guard(partial(self._on_closed, self, deadline))

    def _checked(self) -> ConnectionRuntime:
        self._runtime.affinity.check_process()
        if self.closed and not callback_context.listens(self._runtime):
            raise ObjectClosedError("the connection is closed; create a new one")
        return self._runtime

    def __repr__(self) -> str:
        runtime, count = self._runtime, len(self._runtimes)
        return f"<Connection {runtime.connection_id} to {runtime.broker} {runtime.state.value}, {count} sessions>"


@public
@created_by("connection.get_meta_data")
@attrs.frozen
class ConnectionMetaData:
    """Versions of Jakarta Messaging and of the provider, from ``connection.metadata``."""

    jms_version: str = "3.1"
    jms_major_version: int = 3
    jms_minor_version: int = 1
    jms_provider_name: str = "jmsaio"
    provider_version: str = __version__
    provider_major_version: int = int(__version__.split(".")[0])
    provider_minor_version: int = int(__version__.split(".")[1])
    jmsx_property_names: tuple[str, ...] = JMSX

    def get_jmsx_property_names(self) -> Iterator[str]:
        """Return the names of the supported JMSX properties, as an iterator."""
        return iter(self.jmsx_property_names)


@public
@created_by("connection.stats")
@attrs.frozen(kw_only=True)
class ConnectionStats:
    """Counters of a connection and of its open producers and consumers.

    Attributes:
        state: the state of the connection to the broker.
        reconnects: how often the connection was lost and restored.
        sessions: number of open sessions.
        producers: open producers, in order of their creation in each session.
        consumers: open consumers, likewise.
    """

    state: ConnectionState
    reconnects: int
    sessions: int
    producers: tuple[ProducerStats, ...]
    consumers: tuple[ConsumerStats, ...]
