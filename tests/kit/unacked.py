"""The unacked tracker of one receiver, over a native consumer that a test feeds."""

from __future__ import annotations

from collections.abc import Mapping

import anyio
import attrs

from jmsaio.config import ConsumerConfig
from jmsaio.transport.base import Subscription, SubscriptionType
from jmsaio.transport.pulsar.dead_letters import DeadLetters, Ended
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.binding.native_consumer import NativeConsumer
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord
from jmsaio.transport.pulsar.native.records.subscription_records import SubscriptionRecords
from jmsaio.transport.pulsar.native.records.unacked_tracker import UnackedTracker
from tests.kit.native_fakes import FakeConsumer, FakeMessage


@attrs.define
class Letters:
    """Dead letters after two redeliveries, which are stored when the test says so."""

    limit: int = 2
    put_in: list[tuple[PulsarRecord, int]] = attrs.field(factory=list)
    ended: list[Ended] = attrs.field(factory=list)

    def put(
        self, records: list[tuple[PulsarRecord, int]], ended: Ended, properties: Mapping[str, str] | None = None
    ) -> None:  # fmt: skip
        self.put_in += records
        self.ended.append(ended)


class Desk:
    """A tracker and its parts, as it has put them together."""

    def __init__(
        self,
        shared: bool,
        *,
        config: ConsumerConfig | None = None,
        others: SubscriptionRecords | None = None,
        bridge: Bridge | None = None,
        letters: DeadLetters | None = None,
    ) -> None:
        kind = SubscriptionType.SHARED if shared else SubscriptionType.EXCLUSIVE
        subscription = Subscription(("t",), "s", kind, config or ConsumerConfig())
        self.woken = self.renewed = 0
        self.bridge = Bridge() if bridge is None else bridge
        self.consumer = FakeConsumer()
        self.native_consumer = self.receive_from("t")
        self.tracker = UnackedTracker(
            self.bridge,
            subscription,
            self._wake,
            SubscriptionRecords() if others is None else others,
            letters,
            self._renew,
        )
        self.states = self.tracker._states
        self.acks = self.tracker.acks

    def _wake(self) -> None:
        self.woken += 1

    def _renew(self) -> None:
        self.renewed += 1

    def receive_from(self, topic: str) -> NativeConsumer:
        """Have what is admitted from now on come from this topic."""
        native = self.consumer
        self.native_consumer = NativeConsumer(
            self.bridge, native, native.receive_async, native.receive, topic, "r", lambda: None
        )
        return self.native_consumer

    def admit(self, *messages: FakeMessage) -> list[PulsarRecord]:
        """The records of messages that came, as far as they are not known."""
        taken: list[PulsarRecord] = []
        self.tracker.admit(self.native_consumer, list(messages), taken)
        return taken

    async def until_acknowledged(self, count: int) -> list[object]:
        """What pulsar-client was given as acknowledged, once it is so many."""
        with anyio.fail_after(20):
            while len(self.consumer.acknowledged) < count:
                await anyio.sleep(0.005)
        return self.consumer.acknowledged


def batch(count: int = 0, entry: int = 0) -> list[FakeMessage]:
    """Four records of one entry whose number of records is not given: each is acknowledged by itself."""
    return [FakeMessage(entry, index, count, b"x") for index in range(4)]


def whole_batch(entry: int = 0, count: int = 0) -> list[FakeMessage]:
    """Four records of one entry, which is acknowledged as a whole."""
    return [FakeMessage(entry, index, count, batch_size=4) for index in range(4)]
