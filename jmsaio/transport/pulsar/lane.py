"""One native producer, that is one partition: records leave in groups with one callback (group commit).

A Python callback costs pulsar-client 13 acquisitions of the GIL and three thread states; ``None`` costs nothing. One
producer's messages to one partition end in order, so Ok for the last of a group covers the earlier ones, and a
time-out or a close fails the last, too. What pulsar-client may refuse before it is queued, or send outside the order,
never travels without a callback of its own: see ``Lane.alone``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from jmsaio.errors import JMSError, ObjectClosedError, SendInDoubtError
from jmsaio.model.partitions import split_partition
from jmsaio.model.wire import WireId
from jmsaio.transport.base import SendDone
from jmsaio.transport.pulsar.bridge import Bridge, Released, ignore
from jmsaio.transport.pulsar.results import OK, translate_send

#: Records of a group at most; a longer group would hold its first records back from the broker.
GROUP = 1000

#: Tells the sender that records and bytes have their outcome.
Ended = Callable[[int, int], None]


@attrs.define(eq=False)
class Group:
    """Records that share one callback: each one's ``done``, and their bytes together."""

    dones: list[SendDone]
    size: int


class Lane:
    """Sends to one topic without partitions, or to one partition.

    Args:
        bridge: the way back from native threads.
        native: ``_pulsar.Producer``.
        topic: its topic, for errors.
        ended: told how many records and bytes have their outcome.
    """

    __slots__ = (
        "__weakref__", "_armed", "_bridge", "_dones", "_ended", "_groups", "_messages", "_partition", "_send", "_size",
        "native", "topic",
    )  # fmt: skip

    def __init__(self, bridge: Bridge, native: Any, topic: str, ended: Ended) -> None:
        self.native = native
        self.topic = topic
        self._bridge = bridge
        self._send = native.send_async
        self._ended = ended
        self._partition = split_partition(topic)[1]  # pulsar-client tells -1 for a producer of one partition
        self._messages: list[Any] = []
        self._dones: list[SendDone] = []
        self._size = 0
        self._groups: dict[Group, None] = {}
        self._armed = False
        bridge.made(self)

    def release(self) -> None:
        """Let go of the native producer, which is closed."""
        self.native, self._send = Released(), ignore

    def add(self, message: Any, done: SendDone, size: int) -> None:
        """Take a message into the current group, which leaves in the next turn of the loop or when it is long."""
        self._messages.append(message)
        self._dones.append(done)
        self._size += size
        if len(self._messages) >= GROUP:
            self.flush()
        elif not self._armed:
            self._armed = True
            self._bridge.loop.call_soon(self._turn)

    def alone(self, message: Any, done: SendDone, size: int) -> None:
        """Send a message with a callback of its own.

        For messages that may be refused for their size, that have a delivery time (they leave outside the batch and
        may overtake), and for producers without plain batching.
        """
        self.flush()
        self._submit(message, Group([done], size))

    def flush(self) -> None:
        """Hand the current group to pulsar-client."""
        messages = self._messages
        if not messages:
            return
        group = Group(self._dones, self._size)
        self._messages, self._dones, self._size = [], [], 0
        last = messages.pop()
        send = self._send
        for message in messages:
            send(message, None)
        self._submit(last, group)

    def _turn(self) -> None:
        self._armed = False
        self.flush()

    def _submit(self, message: Any, group: Group) -> None:
        self._groups[group] = None
        post, answered = self._bridge.post, self._answered
        self._send(message, lambda result, place: post(answered, group, result, place))

    def _answered(self, group: Group, result: Any, place: Any) -> None:
        if group not in self._groups:
            return  # the sender was closed and has told everybody already
        del self._groups[group]
        dones = group.dones
        count = len(dones)
        self._ended(count, group.size)
        if int(result) != OK:
            self._fail(dones, lambda: translate_send(result, f"send to {self.topic}", count == 1))
            return
        ledger, entry, partition, index = place.ledger_id(), place.entry_id(), self._partition, place.batch_index()
        if count == 1:
            dones[0](WireId(ledger, entry, partition, index), None)
            return
        # Records are numbered in their batch in the order of sending: this many at the end lie in the last one's batch.
        known = min(count, index + 1) if index >= 0 else 1
        for done in dones[: count - known]:
            done(None, None)
        first = index - known + 1 if index >= 0 else -1
        new = tuple.__new__  # as WireId(...), without the frame of its constructor: one is made for every message
        for index, done in enumerate(dones[count - known :], first):
            done(new(WireId, (ledger, entry, partition, index)), None)

    def abandon(self, reason: str) -> None:
        """Tell every record without an outcome that it is in doubt, or unsent if it did not leave yet."""
        unsent, size = self._dones, self._size
        self._messages, self._dones, self._size = [], [], 0
        groups, self._groups = list(self._groups), {}
        for group in groups:
            self._ended(len(group.dones), group.size)
            self._fail(group.dones, lambda: SendInDoubtError(f"send to {self.topic}: {reason} before the answer came"))
        if unsent:
            self._ended(len(unsent), size)
            self._fail(unsent, lambda: ObjectClosedError(f"send to {self.topic}: {reason} before it was sent"))

    def _fail(self, dones: list[SendDone], error: Callable[[], JMSError]) -> None:
        for done in dones:
            done(None, error())
