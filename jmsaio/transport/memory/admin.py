"""``Admin`` of the embedded broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from jmsaio.errors import AdminError, NotFoundError
from jmsaio.model.arguments import brief, shown
from jmsaio.model.schema import Schema
from jmsaio.model.wire import WireId
from jmsaio.transport.administration import (
    Activity,
    OpenTransaction,
    StoredEntry,
    SubscriptionActivity,
    check_partition,
)
from jmsaio.transport.base import (
    CLIENT_SELECTOR,
    PLUGIN,
    SELECTOR,
    ConnectedConsumer,
    Cursor,
    Ledger,
    StartPosition,
    SubscriptionStats,
    TopicLog,
    TopicStats,
)
from jmsaio.transport.memory.broker.broker import Broker
from jmsaio.transport.memory.broker.entry_filter import check_playable
from jmsaio.transport.memory.broker.subscription import BrokerSubscription, subscriptions_named, subscriptions_of


class MemoryAdmin:
    """Administration of a broker in this process."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @property
    def address(self) -> str:
        return f"memory://{self._broker.name}"

    @contextmanager
    def _reachable(self) -> Iterator[None]:
        with self._broker.lock:
            self._broker.check_up()
            yield

    def _find(self, topic: str, name: str) -> list[BrokerSubscription]:
        self._broker.check_up()
        found = subscriptions_named(name, self._broker.find(topic))
        if not found:
            raise NotFoundError(f"topic {brief(topic)} has no subscription {shown(name)}")
        return found

    async def partitions(self, topic: str) -> int:
        with self._reachable():
            self._broker.find(topic)
            return self._broker.partitioned.get(topic, 0)

    async def create_topic(self, topic: str, partitions: int = 0) -> bool:
        with self._reachable():
            return self._broker.create(topic, partitions)

    async def delete_topic(self, topic: str, force: bool = False) -> None:
        with self._reachable():
            self._broker.delete(topic, force)

    async def terminate_topic(self, topic: str) -> None:
        with self._reachable():
            self._broker.terminate(topic)

    async def topics(self, namespace: str) -> list[str]:
        with self._reachable():
            return sorted(name for name in self._broker.logs if name.split("/")[2:4] == namespace.split("/"))

    async def stats(self, topic: str) -> TopicStats:
        with self._reachable():
            logs = self._broker.find(topic)
            parts: dict[str, list[BrokerSubscription]] = {}
            for log in logs:
                for subscription in subscriptions_of(log).values():
                    parts.setdefault(subscription.name, []).append(subscription)
            return TopicStats(
                producers=len({sender for log in logs for sender in log.senders.values()}),
                subscriptions={name: _stats(name, found) for name, found in parts.items()},
            )

    async def subscriptions(self, topic: str) -> list[str]:
        return list((await self.stats(topic)).subscriptions)

    async def activity(self, topic: str) -> Activity:
        stats = await self.stats(topic)
        found = {one.name: SubscriptionActivity(one.consumers, None) for one in stats.subscriptions.values()}
        return Activity(stats.producers, None, int(self._broker.now() * 1000), found)

    async def backlog(self, topic: str, subscription: str) -> int:
        with self._broker.lock:
            return sum(part.size for part in self._find(topic, subscription))

    async def cursor(self, topic: str, subscription: str) -> Cursor:
        with self._broker.lock:
            found = self._find(topic, subscription)
            self._broker.check_unpartitioned(topic, "request the cursor of one partition")
            return found[0].log.cursor(found[0].pending())

    async def log(self, topic: str) -> TopicLog:
        """Return the storage: one ledger, whose ``entries`` also count records that are no longer stored.

        A transaction's records are stored by its commit, so everything stored is readable.
        """
        with self._reachable():
            found = self._broker.find(topic)
            self._broker.check_unpartitioned(topic, "request the log of one partition")
            log = found[0]
            ledger = Ledger(log.ledger, log.next, sum(record.size for record in log.records.values()))
            return TopicLog(
                (ledger,), log.last, log.last, is_readable_known=True, deduplication=self._broker.deduplicates
            )

    async def held_back(self, topic: str) -> OpenTransaction | None:
        with self._reachable():
            self._broker.find(topic)
        return None

    async def ledgers(self, topic: str) -> tuple[Ledger, ...]:
        return (await self.log(topic)).ledgers

    async def entry_filters(self, topic: str) -> frozenset[str]:
        with self._reachable():
            self._broker.find(topic)
            return frozenset({PLUGIN} if self._broker.filters else ())

    async def schemas(self, topic: str) -> list[Schema]:
        with self._reachable():
            return list(self._broker.schemas.get(topic, ()))

    async def schema(self, topic: str, version: int) -> Schema:
        with self._reachable():
            found = self._broker.schemas.get(topic, [])
            if version < len(found):
                return found[version]
        raise NotFoundError(f"topic {brief(topic)} of the embedded broker has no schema {version}")

    async def entry(self, topic: str, message_id: WireId) -> StoredEntry:
        with self._reachable():
            records = [log.records.get(message_id.entry) for log in self._broker.find(topic)]
            if (record := records[0]) is None or len(records) > 1:
                raise AdminError(f"topic {brief(topic)} of the embedded broker stores no entry {message_id}")
            return StoredEntry(record.publish_time)

    async def first_since(self, topic: str, time: int) -> WireId:
        with self._reachable():
            found = self._broker.find(topic)
            if len(found) > 1:
                raise AdminError(f"topic {brief(topic)} of the embedded broker has partitions")
            return found[0].message_id(next((record.number for record in found[0].after(time)), found[0].next))

    async def advance(self, topic: str, subscription: str, message_id: WireId) -> None:
        with self._broker.lock:
            found = self._find(topic, subscription)
            self._broker.check_unpartitioned(topic, "advance them one by one")
            check_partition(topic, message_id)
            log = found[0].log
            if (message_id.ledger, message_id.entry) > (log.ledger, log.next - 1):
                end = f"its last entry, {log.message_id(log.next - 1)}" if log.next else "its start, as it is empty"
                text = f"advance subscription {subscription} of {brief(topic)}: {message_id} is after {end}"
                raise AdminError(f"{text}; advance no further than the last entry", 409)
            if message_id.ledger == log.ledger:
                found[0].advance(message_id.entry)
                self._broker.freed()

    async def create_subscription(self, topic: str, name: str, position: StartPosition) -> bool:
        with self._reachable():
            missing = [log for log in self._broker.open(topic) if name not in subscriptions_of(log)]
            for log in missing:
                self._broker.subscribe(log, name, True, position)
            return bool(missing)

    async def delete_subscription(self, topic: str, name: str, force: bool = False) -> None:
        with self._broker.lock:
            found = self._find(topic, name)
            if not force and any(subscription.consumers for subscription in found):
                raise AdminError(
                    f"subscription {shown(name)} of {brief(topic)} has connected consumers; close them, or force", 412
                )
            for subscription in found:
                self._broker.remove(
                    subscription, NotFoundError(f"subscription {shown(name)} of {brief(topic)} was deleted")
                )

    async def subscription_properties(self, topic: str, name: str) -> dict[str, str]:
        with self._broker.lock:
            return dict(self._find(topic, name)[0].properties)

    async def set_subscription_properties(self, topic: str, name: str, properties: Mapping[str, str]) -> None:
        check_playable(properties)
        with self._broker.lock:
            for subscription in self._find(topic, name):
                subscription.properties = dict(properties)


def _stats(name: str, parts: list[BrokerSubscription]) -> SubscriptionStats:
    return SubscriptionStats(
        name=name,
        type=parts[0].type.value,
        backlog=sum(part.size for part in parts),
        consumers=len({consumer.port for part in parts for consumer in part.consumers}),
        properties=dict(parts[0].properties),
        connected=tuple(
            ConnectedConsumer(
                name=consumer.name, unacknowledged=consumer.unsettled,
                selector=consumer.metadata.get(SELECTOR) or consumer.metadata.get(CLIENT_SELECTOR),
            )
            for part in parts
            for consumer in part.consumers
        ),
    )  # fmt: skip
