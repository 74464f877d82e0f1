"""``Listeners``: the message listeners of one session, served in turn by its callback workers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import attrs

from jmsaio.client.callbacks.callback_context import CallbackContext, CallbackKind
from jmsaio.client.callbacks.reports import ExceptionReports
from jmsaio.client.callbacks.worker import Job, call, run_inside
from jmsaio.client.delivery.deliveries import Deliveries
from jmsaio.client.delivery.inbox import Inbox
from jmsaio.client.delivery.schemas import SchemaNeededError
from jmsaio.errors import MalformedMessageError
from jmsaio.model.log_fields import log_fields
from jmsaio.model.messages.message import Message
from jmsaio.model.messages.tracing import EndpointTrace
from jmsaio.model.wire import DELIVERY_COUNT, ReceivedRecord


@attrs.frozen(eq=False)
class Listener:
    """A consumer's message listener; ``decode`` returns None for a record that became a dead letter."""

    inbox: Inbox
    function: Callable[[Message], Any]
    decode: Callable[[ReceivedRecord], Message | None]
    consumer: object


@attrs.define(eq=False)
class Listeners:
    """The message listeners of one session; ``where`` returns its fields of log records."""

    deliveries: Deliveries
    reports: ExceptionReports
    connection: object
    session: object
    where: Callable[[], Mapping[str, object]] = dict
    by_inbox: dict[Inbox, Listener] = attrs.field(factory=dict, init=False)
    _turns: deque[Inbox] = attrs.field(factory=deque, init=False)  # without inboxes that failed or wait for a schema
    _waiting: asyncio.Queue[tuple[Inbox, SchemaNeededError]] = attrs.field(factory=asyncio.Queue, init=False)

    def set(self, listener: Listener) -> None:
        self.unset(listener.inbox)
        self.by_inbox[listener.inbox] = listener
        self._turns.append(listener.inbox)

    def unset(self, inbox: Inbox) -> None:
        self.by_inbox.pop(inbox, None)
        if inbox in self._turns:
            self._turns.remove(inbox)

    def next_job(self) -> Job | None:
        for _ in range(len(self._turns)):
            inbox = self._turns.popleft()
            record = inbox.pop()
            if record is None and inbox.failure is not None:
                # no receive will raise it, and no more messages will arrive
                self.reports.add(inbox.failure, about={**self.where(), **inbox.where()})
                continue
            self._turns.append(inbox)
            if record is not None:
                return partial(self._call, inbox, record)
            if inbox.more:  # waking it every time would keep an idle session busy
                inbox.wake()
        return None

    async def fetch_schemas(self) -> None:
        """Fetch the schemas that inboxes wait for, until cancelled. The listeners of other inboxes continue."""
        while True:
            inbox, needed = await self._waiting.get()
            await needed.learn()
            if inbox in self.by_inbox and inbox not in self._turns:
                self._turns.append(inbox)
                inbox.wake()

    async def _call(self, inbox: Inbox, record: ReceivedRecord) -> None:
        listener = self.by_inbox.get(inbox)
        if listener is None:
            inbox.put_back(record)
            return
        try:
            message = listener.decode(record)
        except MalformedMessageError as malformed:
            self.reports.add(malformed, about={**self.where(), **inbox.where(record)})
            return
        except SchemaNeededError as needed:
            inbox.put_back(record)
            if inbox in self._turns:
                self._turns.remove(inbox)
            self._waiting.put_nowait((inbox, needed))
            return
        if message is None:
            return
        number = self.deliveries.deliver(inbox, record, message, deferred=True)
        callback = CallbackContext(CallbackKind.LISTENER, self.connection, self.session, listener.consumer)
        if inbox.settlement.trace is None:
            error = await run_inside(callback, listener.function, message)
        else:
            error = await run_inside(callback, _traced, inbox.settlement.trace, listener.function, message)
        if error is not None:
            attempt = message.get_int_property(DELIVERY_COUNT)
            about = {**self.where(), **inbox.where(), **log_fields(message_id=message.jms_message_id, attempt=attempt)}
            what = f"the listener of {inbox.destination!r} failed on message {message.jms_message_id}"
            self.reports.add(error, what, about=about)
        if self.deliveries.self_acknowledging:
            if error is None:
                self.deliveries.acknowledge_deferred(number)
            else:
                await self.deliveries.redeliver_one(number)
        if self.deliveries.inboxes.lingering:  # rare; otherwise each message would cost a coroutine
            await self.deliveries.close_settled()


async def _traced(trace: EndpointTrace, function: Callable[[Message], Any], message: Message) -> None:
    with trace.processing(message, pushed=True):
        await call(function, message)
