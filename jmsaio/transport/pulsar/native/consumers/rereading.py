"""``Rereading``: reads entries again that pulsar-client dropped because they arrived damaged, and delivers them.

pulsar-client acknowledges an entry with a wrong checksum, and only logs it. The broker never sends the entry again, but
usually still has it: a reader can read it. From then on only this process knows that it is not acknowledged: it is
redelivered from here when it is returned, and reported as lost if its receiver is closed before. When a receiver
closes, another one of the subscription takes over; without another, the entry is reported as lost at once.

For a batch, pulsar-client also returns only one permit, so that the broker sends less, or nothing at all: the consumer
is reopened.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import cast

import anyio
import attrs

from jmsaio.config import ConsumerConfig
from jmsaio.errors import BrokerUnavailableError, JMSError, OperationTimeoutError, TransportError
from jmsaio.model.wire import WireId
from jmsaio.transport.base import LinkChange, Reader, ReaderOptions
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.binding.handles import MessageHandle
from jmsaio.transport.pulsar.native.binding.native_consumer import batch_size
from jmsaio.transport.pulsar.native.binding.native_log import NATIVE_LOG, Damage
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord
from jmsaio.transport.pulsar.native.consumers.receiver import PulsarReceiver

#: Maximum seconds to read an entry again: pulsar-client needs up to 60 to notice a corrupt connection.
TIMEOUT = 120.0
#: Maximum seconds for one attempt to read the entry, and seconds between two if the broker does not answer.
_WAIT = 10.0
_PAUSE = 1.0
#: Maximum number of answered attempts: the entry might arrive damaged again.
ATTEMPTS = 3
#: Maximum seconds to close the reader.
_CLOSE = 5.0

#: Reason for the loss of an entry that is not read again.
_CLOSED = "its consumer was closed before it was read again"

_log = logging.getLogger(__name__)


@attrs.define(eq=False)
class Rereading:
    """Reads damaged entries again for the receivers of one transport."""

    bridge: Bridge
    broker: str
    receivers: Callable[[], Sequence[PulsarReceiver]]  # returns the open ones, also to other threads
    open_reader: Callable[[ReaderOptions], Awaitable[Reader]]
    report: Callable[[LinkChange], bool]  # returns False if no listener heard it
    _tasks: dict[asyncio.Task[None], Damage] = attrs.field(factory=dict, init=False)
    _delivered: dict[PulsarReceiver, list[Damage]] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        _parts.append(weakref.ref(self))

    async def aclose(self, timeout: float) -> None:
        """Stop reading; entries not yet read are reported as lost. Readers still closing end with the connection."""
        _parts[:] = [part for part in _parts if part() not in (None, self)]
        tasks = list(self._tasks)
        for task in tasks:
            self._abandon(task, "the connection was closed before it was read again")
        if tasks:
            await asyncio.wait(tasks, timeout=max(0.0, timeout))

    def _abandon(self, task: asyncio.Task[None], why: str) -> None:
        damage = self._tasks.pop(task, None)
        if damage is not None:
            task.cancel()
            self._report_loss(damage, why)

    def concerned(self, damage: Damage) -> list[PulsarReceiver]:
        """Return the receivers to which an entry might have been addressed. For any thread."""
        return [receiver for receiver in self.receivers() if receiver.receives(damage)]

    def renew(self, damage: Damage) -> None:
        """Reopen the consumers, because it is unknown which of two transports lost the entry; another one reads it."""
        for receiver in self.concerned(damage):
            receiver.renew()

    def begin(self, damage: Damage, hindrance: str = "") -> None:
        if not self.concerned(damage):
            self._report_loss(damage, _CLOSED)
            return
        task = self.bridge.task(self._run(damage, hindrance))
        self._tasks[task] = damage
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    def closed(self, receiver: PulsarReceiver) -> None:
        for task, damage in list(self._tasks.items()):
            if not self.concerned(damage):
                self._abandon(task, _CLOSED)
        for damage in self._delivered.pop(receiver, ()):
            if count := receiver.unsettled(damage.ledger, damage.entry):
                self._report_loss(damage, f"it was read again, but {count} of its messages were not acknowledged when "
                                          "their consumer was closed")  # fmt: skip

    async def _run(self, damage: Damage, hindrance: str) -> None:
        natives: list[MessageHandle] = []
        try:
            if not hindrance:
                natives = await self._read(damage)
                hindrance = "" if natives else "the topic no longer has it"
        except JMSError as error:
            hindrance = str(error)
        receivers = sorted(self.concerned(damage), key=lambda receiver: receiver.stopped)
        self._tasks.pop(asyncio.current_task(), None)  # type: ignore[arg-type]  # the current task is one of them
        if hindrance:
            self._report_loss(damage, hindrance)
        else:
            _log.warning("%s; it was read again and is delivered as redelivered", damage, extra=damage.where())
            receivers[0].deliver_again(damage.topic, natives)
            self._delivered.setdefault(receivers[0], []).append(damage)
        if len(natives) != 1:
            for receiver in receivers:
                receiver.renew()

    async def _read(self, damage: Damage) -> list[MessageHandle]:
        if damage.topic.startswith("non-persistent://"):
            raise TransportError("the topic is not persistent")
        try:
            with anyio.fail_after(TIMEOUT):
                answers = 0
                while answers < ATTEMPTS:
                    try:
                        natives = await self._read_once(damage)
                    except (BrokerUnavailableError, OperationTimeoutError):
                        await asyncio.sleep(_PAUSE)
                        continue
                    if natives:
                        return natives
                    answers += 1
        except TimeoutError:
            raise TransportError(f"it could not be read within {TIMEOUT:g} s") from None
        return []

    async def _read_once(self, damage: Damage) -> list[MessageHandle]:
        start = WireId(damage.ledger, damage.entry)
        options = ReaderOptions(damage.topic, ConsumerConfig(receiver_queue_size=1), start, prefix=_PREFIX)
        reader = await self.open_reader(options)
        natives: list[MessageHandle] = []
        try:
            while records := await reader.read(1000, _WAIT):
                found = [record for record in records if record.message_id[:2] == start[:2]]
                natives += [cast(PulsarRecord, record).native for record in found]  # of this transport's reader
                if len(found) < len(records) or len(natives) >= batch_size(natives[0].message_id()):
                    break
        finally:
            with anyio.CancelScope(shield=True):
                await reader.aclose(_CLOSE)
        return natives

    def _report_loss(self, damage: Damage, why: str) -> None:
        text = f"{damage}; it will not be redelivered: {why}; see 'jmsaio guide reliability' for how to look at it"
        if not self.report(LinkChange(text, TransportError(text))):
            _log.error("%s", text, extra=damage.where())


#: Prefix of the subscription names of these readers: the log distinguishes them from the application's.
_PREFIX = "jmsaio-rereading"
_parts: list[weakref.ref[Rereading]] = []  # not a set: other threads iterate over it


def reread(damage: Damage) -> bool:
    """Let a transport of this process read an entry again; return False if it was addressed to none. Thread-safe.

    The log does not identify the client: one of a subscription's receivers reads. If they are connected to different
    brokers, none can know whether the entry is its own, and all report it as lost.
    """
    if damage.subscription.startswith(_PREFIX):  # dropped by one of these readers: read again, or reported as lost
        return True
    parts = [part for reference in list(_parts) if (part := reference()) is not None and part.bridge.failure is None]
    concerned = [part for part in parts if part.concerned(damage)]
    if len({part.broker for part in concerned}) > 1:
        brokers = ", ".join(sorted({part.broker for part in concerned}))
        for part in concerned:
            part.bridge.post(part.begin, damage, f"it can be at any of the brokers {brokers}")
        return True
    for part in concerned[:1]:
        part.bridge.post(part.begin, damage)
    for part in concerned[1:]:
        part.bridge.post(part.renew, damage)
    return bool(concerned)


NATIVE_LOG.on_damage = reread
