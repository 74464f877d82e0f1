"""The embedded broker: topics by name, memory, time, and connected clients. It uses no event loop.

A broker can be used from several event loops in several threads; callers hold its lock.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections import deque
from collections.abc import Callable, Mapping
from itertools import count
from typing import Protocol

import attrs

from jmsaio.errors import (
    AdminError,
    BrokerUnavailableError,
    IllegalStateError,
    InvalidDestinationError,
    JMSError,
    NotFoundError,
    TransportError,
)
from jmsaio.model.arguments import brief, shown
from jmsaio.model.destinations import full_name
from jmsaio.model.log_fields import log_fields
from jmsaio.model.schema import Schema
from jmsaio.model.topic_names import partition_name, split_partition
from jmsaio.model.wire import OutgoingRecord, letter_properties
from jmsaio.transport.base import StartPosition
from jmsaio.transport.clock import Clock, LoopClock, SteadyTimes, SystemClock, Timers, clock_of
from jmsaio.transport.memory.broker.consumer import tails_of
from jmsaio.transport.memory.broker.partition import Partition, StoredRecord
from jmsaio.transport.memory.broker.subscription import BrokerSubscription, OpenTransaction, subscriptions_of

_log = logging.getLogger(__name__)


@attrs.frozen
class SendFault:
    """A fault of one sent record, of any topic without a ``topic``.

    The sender receives ``error`` after ``delay`` seconds; None for success, which requires a stored record.
    """

    topic: str | None = None
    error: JMSError | None = None
    stored: bool = False
    delay: float = 0.0


@attrs.define
class Faults:
    """Pending faults, each used once, in the order of adding: of sends, acknowledgements and commits."""

    sends: deque[SendFault] = attrs.field(factory=deque)
    lost_acknowledgements: int = 0
    lost_commits: int = 0

    def next_send(self, topic: str) -> SendFault | None:
        for fault in self.sends:
            if fault.topic is None or fault.topic == topic:
                self.sends.remove(fault)
                return fault
        return None

    def loses_acknowledgement(self) -> bool:
        if not self.lost_acknowledgements:
            return False
        self.lost_acknowledgements -= 1
        return True

    def loses_commit(self) -> bool:
        if not self.lost_commits:
            return False
        self.lost_commits -= 1
        return True


class Client(Protocol):
    """A connected transport; it is ``gone`` once its event loop is closed, so that it will never close itself."""

    @property
    def gone(self) -> bool: ...

    def abandon(self) -> None:
        """Return its records and disconnect."""

    def timer_changed(self) -> None:
        """Handle a change of the time of the next timer."""

    def broker_down(self) -> None:
        """Handle the loss of the broker."""

    def broker_up(self) -> None:
        """Handle the return of the broker."""


class Blocked(Protocol):
    """A sender waiting for memory."""

    limit: int

    def admit(self) -> None:
        """Store waiting records while there is room."""


class Watcher(Protocol):
    """A receiver with a topics pattern."""

    pattern: re.Pattern[str]

    def discovered(self, topic: str, logs: list[Partition]) -> None:
        """Handle a new topic that matches the pattern."""


class Broker:
    """An embedded broker, by default with the clock of its clients' event loop. Callers hold its lock.

    ``now`` is wall clock time, which can be set, ``steady`` only grows; both in seconds. ``logs`` has topics without
    partitions, and partitions, by full name. ``disturbed``: senders must use the general path, as it is down, faults of
    sends are pending, or it deduplicates.
    """

    def __init__(self, name: str, clock: Clock | None = None) -> None:
        self.name = name
        self._follows = clock is None
        self._set_clock(SystemClock() if clock is None else clock)
        self.lock = threading.Lock()
        self.used = 0
        self.timers = Timers(self._earlier)
        self.logs: dict[str, Partition] = {}
        self.partitioned: dict[str, int] = {}
        self.schemas: dict[str, list[Schema]] = {}
        self._untyped: set[tuple[str, str]] = set()  # topics whose dead letters lose their schema in another
        self.clients: list[Client] = []
        self.watchers: list[Watcher] = []
        self.transactions: set[OpenTransaction] = set()
        self.faults = Faults()
        self.down = False
        self.filters = False
        self.deduplicates = False
        self.disturbed = False
        self._numbers = 0
        self._producers = count()
        self.blocked: dict[Blocked, None] = {}
        self._blocked_limit = 0
        self.self_timed = not self.clock.watch(self.tick)

    def _set_clock(self, clock: Clock) -> None:
        self.clock: Clock = clock
        self.now: Callable[[], float] = clock.now
        self.steady: Callable[[], float] = clock.steady
        self._steady_times = SteadyTimes(clock)

    def tick(self) -> None:
        """Run due actions. Acquires the lock itself."""
        with self.lock:
            self.timers.run(self.steady())

    def steady_at(self, time: float) -> float:
        return self._steady_times.at(time)

    def _earlier(self) -> None:
        for client in self.clients:
            client.timer_changed()

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def next_producer_name(self) -> str:
        return f"{self.name}-{next(self._producers)}"

    def open_to_send(self, topic: str) -> list[Partition]:
        logs = self.open(topic)
        if any(log.terminated for log in logs):
            raise terminated(topic)
        return logs

    def register(self, topic: str, schema: Schema) -> bytes:
        """Return the version of a topic's schema; a new one is added unless the topic has one of another type."""
        versions = self.schemas.setdefault(split_partition(topic)[0], [])
        if schema not in versions:
            if versions and versions[-1].type != schema.type:
                kinds = f"{versions[-1].type}, not {schema.type}"
                raise TransportError(f"the schema of topic {brief(topic)} is {kinds}", "IncompatibleSchema")
            versions.append(schema)
        return versions.index(schema).to_bytes(8, "big")

    def find(self, topic: str) -> list[Partition]:
        """Return the partitions of a topic, or the topic alone; raise NotFoundError if it does not exist."""
        count = self.partitioned.get(topic)
        if count is not None:
            return [self.logs[partition_name(topic, index)] for index in range(count)]
        if topic not in self.logs:
            raise NotFoundError(f"there is no topic {brief(topic)}")
        return [self.logs[topic]]

    def check_unpartitioned(self, topic: str, instead: str) -> None:
        if topic in self.partitioned:
            raise InvalidDestinationError(f"{brief(topic)} has partitions: {instead}")

    def open(self, topic: str) -> list[Partition]:
        """Return the partitions as ``find`` does; a missing topic is created, without partitions."""
        if topic not in self.partitioned and topic not in self.logs:
            self.create(topic, 0)
        return self.find(topic)

    def create(self, topic: str, partitions: int) -> bool:
        if "://" not in topic or topic.count("/") < 4 or topic.endswith("/"):
            raise InvalidDestinationError(
                f"{shown(topic)} is not a full topic name: persistent://tenant/namespace/name"
            )
        if partitions < 0:
            raise InvalidDestinationError(f"topic {brief(topic)}: {partitions} partitions; 0 or more are possible")
        if topic in self.partitioned or topic in self.logs:
            return False
        if partitions:
            self.partitioned[topic] = partitions
            for index in range(partitions):
                self._make(partition_name(topic, index), index)
        else:
            self._make(topic, split_partition(topic)[1])
        logs = self.find(topic)
        for watcher in list(self.watchers):
            if watcher.pattern.fullmatch(split_partition(topic)[0]):
                watcher.discovered(topic, logs)
        return True

    def _make(self, name: str, index: int) -> None:
        if name not in self.logs:
            self.logs[name] = Partition(self, name, self.next_number(), index)

    def matching(self, pattern: re.Pattern[str]) -> dict[str, list[Partition]]:
        """Return the topics that match a pattern, with all partitions of a partitioned topic under its name."""
        found = {topic: self.find(topic) for topic in self.partitioned if pattern.fullmatch(topic)}
        taken = {log.name for logs in found.values() for log in logs}
        for name, log in self.logs.items():
            if name not in taken and pattern.fullmatch(split_partition(name)[0]):
                found[name] = [log]
        return found

    def delete(self, topic: str, force: bool) -> None:
        logs = self.find(topic)
        consumers = [one.consumers for log in logs for one in subscriptions_of(log).values()]
        if not force and (any(consumers) or any(log.senders or tails_of(log) for log in logs)):
            raise AdminError(f"topic {brief(topic)} has connected clients; close them first, or force", 412)
        self.partitioned.pop(topic, None)
        self.schemas.pop(topic, None)
        for log in logs:  # before memory is freed, otherwise waiting records would be stored here
            for owner in list(log.senders.values()):
                owner.topic_ended(NotFoundError(f"topic {brief(topic)} was deleted"))
        for log in logs:
            del self.logs[log.name]
            gone = NotFoundError(f"topic {log.name} was deleted")
            for subscription in list(subscriptions_of(log).values()):
                self.remove(subscription, gone)
            for tail in tails_of(log):
                tail.close()
                tail.port.end(gone)
            for record in list(log.records.values()):
                log.drop(record)
        self.freed()

    def terminate(self, topic: str) -> None:
        for log in self.find(topic):
            log.terminated = True
            for owner in list(log.senders.values()):
                owner.topic_ended(terminated(topic))
            log.senders.clear()

    def remove(self, subscription: BrokerSubscription, reason: JMSError | None) -> None:
        for consumer in list(subscription.consumers):
            subscription.remove(consumer)
            consumer.port.end(reason)
        subscription.delete()
        self.freed()

    def subscribe(self, log: Partition, name: str, durable: bool, position: StartPosition) -> BrokerSubscription:
        subscription = subscriptions_of(log).get(name)
        return BrokerSubscription(log, name, durable, position, {}) if subscription is None else subscription

    def dead_letter(
        self, record: StoredRecord, topic: str, failed_on: str, kept_by: str | None = None,
        properties: Mapping[str, str] | None = None, failures: int = 0,
    ) -> None:  # fmt: skip
        """Store a copy of ``record`` in a dead-letter topic, which keeps it until a subscription receives it.

        ``kept_by`` names the subscription to create there, if it is missing; ``properties`` replace the record's.
        """
        topic = full_name(topic)
        known = topic in self.logs or topic in self.partitioned
        log = self.open(topic)[0]
        if not known:
            log.keeps_unread = True
        if kept_by is not None:
            self.subscribe(log, kept_by, True, StartPosition.EARLIEST)
        message_id = record.message_id
        origin = f"({message_id.ledger},{message_id.entry},{message_id.partition},{message_id.batch_index})"
        kept = record.properties if properties is None else properties
        letter = letter_properties(kept, record.topic, failed_on, origin, failures)
        copy = OutgoingRecord(record.payload, letter, record.key, record.event_time)
        log.append(copy, record.size, 0, self.now(), schema_version=self._same_schema(record, topic))

    def _same_schema(self, record: StoredRecord, topic: str) -> bytes | None:
        """Return the version of a record's schema at another topic; None if that refuses it, which is logged."""
        if record.schema_version is None:
            return None
        schema = self.schemas[split_partition(record.topic)[0]][int.from_bytes(record.schema_version, "big")]
        try:
            return self.register(topic, schema)
        except TransportError as error:
            if (record.topic, topic) not in self._untyped:
                self._untyped.add((record.topic, topic))
                text = "dead letters of %s are stored in %s without their schema, as bytes: %s"
                _log.warning(text, record.topic, topic, error, extra=log_fields(destination=record.topic))
            return None

    def freed(self) -> None:
        if self.blocked and self.used < self._blocked_limit:
            blocked, self.blocked = self.blocked, {}
            for sender in blocked:
                sender.admit()

    def block(self, sender: Blocked) -> None:
        """Register ``sender`` for a call of ``admit`` once less memory than its limit is used."""
        self._blocked_limit = max(self._blocked_limit, sender.limit) if self.blocked else sender.limit
        self.blocked[sender] = None

    def unblock(self, sender: Blocked) -> None:
        self.blocked.pop(sender, None)

    def connect(self, client: Client) -> None:
        """Connect a transport. The broker's clock follows the loop of the first one, until no client is connected."""
        self.check_up()
        for other in [other for other in self.clients if other.gone]:
            other.abandon()
        if self._follows:
            self._follow(asyncio.get_running_loop())
        self.clients.append(client)
        self.timers.run(self.steady())
        client.timer_changed()

    def _follow(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self.clients:
            self._set_clock(clock_of(loop, self.clock))
        elif isinstance(self.clock, SystemClock | LoopClock) and not self.clock.has_time_of(loop):
            raise IllegalStateError(
                f"the embedded broker {shown(self.name)} follows the virtual time of another event loop, or this loop"
                " has a virtual time: connect to one broker from one such loop, or give the broker a ManualClock"
            )

    def check_up(self) -> None:
        if self.down:
            raise BrokerUnavailableError(f"the embedded broker {shown(self.name)} is down")

    def update_disturbed(self) -> None:
        self.disturbed = self.down or self.deduplicates or bool(self.faults.sends)

    def take_down(self) -> None:
        self.down = self.disturbed = True
        for transaction in list(self.transactions):
            transaction.abort_now()
        for client in list(self.clients):
            client.broker_down()

    def bring_up(self) -> None:
        self.down = False
        self.update_disturbed()
        self.timers.run(self.steady())
        for client in list(self.clients):
            client.broker_up()
        self.freed()


_brokers: dict[str, Broker] = {}
_registry = threading.Lock()


def terminated(topic: str) -> TransportError:
    return TransportError(f"topic {brief(topic)} was terminated: it accepts no more messages", "TopicTerminated")


def broker_named(name: str, make: Callable[[str], Broker] = Broker) -> Broker:
    with _registry:
        broker = _brokers.get(name)
        if broker is None:
            broker = _brokers[name] = make(name)
        return broker


def forget_broker(name: str) -> None:
    with _registry:
        _brokers.pop(name, None)
