"""A model cluster: three brokers that serve topics to clients, and do to them what brokers do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from jmsaio.protocol import messages
from jmsaio.protocol.commands import ANSWERS, Command, InitialPosition, LookupType, SubType
from jmsaio.protocol.framing import Frame, Framing
from tests.protocol.all_commands import decode_command, encode_command
from tests.protocol.server_errors import ServerError
from tests.simulation.network import Network
from tests.simulation.storage import Consumer, Fields, Place, Producer, Subscription, Topic
from tests.simulation.transactions import Coordinators, txn_of

#: What a broker sends in place of a request id, and the place of a duplicate.
NONE = (1 << 64) - 1
KEEP_ALIVE = 30.0


class Link(asyncio.Protocol):
    """A broker's end of a connection."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.producers: dict[int, Producer] = {}
        self.consumers: dict[int, Consumer] = {}
        self._framing = Framing()
        self._loop = asyncio.get_running_loop()
        self._heard = self._loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.broker.links[self] = None
        self._timer = self._loop.call_later(KEEP_ALIVE, self._check_alive)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        del self.broker.links[self]
        for producer in list(self.producers.values()):
            self.broker.remove_producer(producer)
        for consumer in list(self.consumers.values()):
            self.broker.remove_consumer(consumer)

    def _check_alive(self) -> None:
        if self._loop.time() - self._heard >= 2 * KEEP_ALIVE:
            self.transport.abort()
            return
        self.send(Command.PING)
        self._timer = self._loop.call_later(KEEP_ALIVE, self._check_alive)

    def data_received(self, data: bytes) -> None:
        self._heard = self._loop.time()
        for frame in self._framing.feed(data):
            if not self.transport.is_closing():
                command = Command(frame.kind)
                fields: Fields = decode_command(frame.kind, frame.data, frame.command, frame.rest)
                self.broker.cluster.seen(self.broker.name, command, fields)
                self.broker.take(self, command, fields, frame)

    def write(self, data: bytes) -> None:
        self.transport.write(data)

    def send(self, command: Command, **fields: Any) -> None:
        self.write(encode_command(command, **fields))


class Broker:
    """One broker.

    Attributes:
        name: host name in the network.
        url: its service URL.
        cluster: where it belongs.
        links: its connections.
        alive: whether it runs.
    """

    def __init__(self, name: str, cluster: Cluster) -> None:
        self.name = name
        self.url = f"pulsar://{name}:6650"
        self.cluster = cluster
        self.links: dict[Link, None] = {}
        self.alive = False

    def start(self) -> None:
        """Accept connections."""
        self.alive = True
        self.cluster.network.listeners[self.name] = lambda: Link(self)

    def take(self, link: Link, command: Command, fields: Fields, frame: Frame) -> None:
        """Handle a command."""
        match command:
            case Command.CONNECT:
                link.send(Command.CONNECTED, server_version="model", max_message_size=100_000)
            case Command.PING:
                link.send(Command.PONG)
            case Command.PONG:
                pass
            case Command.SEND:
                self._store(link, fields, frame)
            case Command.END_TXN:
                answer = partial(self._answer, link, command, fields["request_id"])
                self.cluster.coordinators.end(self, fields, answer)
            case Command.FLOW:
                self._flow(link, fields)
            case Command.REDELIVER_UNACKNOWLEDGED_MESSAGES:
                self._redeliver(link, fields)
            case _:
                self._answer(link, command, fields.get("request_id"), _REQUESTS[command](self, link, fields))

    def _answer(self, link: Link, asked: Command, request: int | None, fields: Fields | ServerError | None) -> None:
        if request is None or fields is None:
            return
        command = ANSWERS[asked]
        if isinstance(fields, ServerError):
            if asked not in _TELLING:
                command = Command.ERROR
            fields = {"error": int(fields), "message": fields.name}
        late = self.cluster.lateness(asked)
        if late is None:
            link.send(command, request_id=request, **fields)
        elif late > 0:
            self.cluster.network.loop.call_later(late, lambda: link.send(command, request_id=request, **fields))

    # look-ups

    def _lookup(self, link: Link, fields: Fields) -> Fields | ServerError:
        topic = self.cluster.topic(fields["topic"])
        owner = self.cluster.owner_of(topic)
        if owner is None:
            return ServerError.ServiceNotReady
        kind = LookupType.Connect if owner is self or self.cluster.random.random() < 0.5 else LookupType.Redirect
        return {"response": int(kind), "broker_service_url": owner.url, "authoritative": True}

    def _partitions(self, link: Link, fields: Fields) -> Fields:
        return {"response": 0, "partitions": self.cluster.partitions.get(fields["topic"], 0)}

    def _served(self, fields: Fields) -> Topic | None:
        topic = self.cluster.topic(fields["topic"])
        return topic if topic.owner == self.name and not topic.moving else None

    # producers

    def _open_producer(self, link: Link, fields: Fields) -> Fields | ServerError:
        topic = self._served(fields)
        if topic is None:
            return ServerError.ServiceNotReady
        number, name, epoch = fields["producer_id"], fields.get("producer_name"), fields.get("epoch") or 0
        if not name:
            name = f"model-{self.cluster.next_number()}"
        known = topic.producers.get(name)
        if known is not None and known.link is not link:
            if known.number != number or known.epoch >= epoch:
                return ServerError.ProducerBusy
            self.remove_producer(known)
        link.producers[number] = topic.producers[name] = Producer(link, number, name, epoch, topic)
        return {"producer_name": name, "last_sequence_id": topic.last[name] if self.cluster.deduplicates else -1}

    def remove_producer(self, producer: Producer) -> None:
        """Forget a producer."""
        producer.link.producers.pop(producer.number, None)  # type: ignore[attr-defined]  # a Link of this module
        if producer.topic.producers.get(producer.name) is producer:
            del producer.topic.producers[producer.name]

    def _close_producer(self, link: Link, fields: Fields) -> Fields | ServerError:
        producer = link.producers.get(fields["producer_id"])
        if producer is None:
            return ServerError.UnknownError
        self.remove_producer(producer)
        return {}

    def _store(self, link: Link, fields: Fields, frame: Frame) -> None:
        producer = link.producers.get(fields["producer_id"])
        if producer is None:
            return  # closed; what was on its way is dropped
        cluster, topic, sequence = self.cluster, producer.topic, fields["sequence_id"]
        highest = max(sequence, fields.get("highest_sequence_id") or 0)
        known = {"producer_id": producer.number, "sequence_id": sequence}
        producer.failed |= cluster.failing
        if producer.failed:
            error = ServerError.PersistenceError
            link.send(Command.SEND_ERROR, **known, error=int(error), message="the bookies are away")
        elif cluster.deduplicates and highest <= topic.last[producer.name]:
            link.send(Command.SEND_RECEIPT, **known, message_id={"ledger_id": NONE, "entry_id": NONE})
        else:
            topic.last[producer.name] = highest
            txn = txn_of(fields)
            if txn is not None:
                cluster.coordinators.check(topic, None, txn)
            ledger, entry = topic.store(frame, txn)
            link.send(Command.SEND_RECEIPT, **known, message_id={"ledger_id": ledger, "entry_id": entry})

    # consumers

    def _subscribe(self, link: Link, fields: Fields) -> Fields | ServerError:
        topic = self._served(fields)
        if topic is None:
            return ServerError.ServiceNotReady
        number, kind = fields["consumer_id"], SubType(fields["sub_type"])
        if number in link.consumers:
            self.cluster.wrong(f"a consumer with the id {number} is registered twice")
        earliest = fields.get("initial_position") == InitialPosition.Earliest
        subscription = topic.subscribe(fields["subscription"], kind, fields.get("durable", True), earliest)
        if subscription.consumers and (kind is SubType.Exclusive or subscription.type is not kind):
            return ServerError.ConsumerBusy
        consumer = link.consumers[number] = Consumer(link, number, subscription)
        subscription.join(consumer)
        self.cluster.network.loop.call_soon(subscription.dispatch)  # after the answer
        return {}

    def remove_consumer(self, consumer: Consumer) -> None:
        """Forget a consumer: others get what it did not acknowledge."""
        consumer.link.consumers.pop(consumer.number, None)  # type: ignore[attr-defined]  # a Link of this module
        if consumer in consumer.subscription.consumers:
            consumer.subscription.leave(consumer)

    def _close_consumer(self, link: Link, fields: Fields) -> Fields | ServerError:
        consumer = link.consumers.get(fields["consumer_id"])
        if consumer is None:
            return ServerError.MetadataError
        self.remove_consumer(consumer)
        return {}

    def _unsubscribe(self, link: Link, fields: Fields) -> Fields | ServerError:
        consumer = link.consumers.get(fields["consumer_id"])
        if consumer is None or len(consumer.subscription.consumers) > 1:
            return ServerError.MetadataError
        consumer.subscription.topic.subscriptions.pop(consumer.subscription.name, None)
        return {}

    def _last_message(self, link: Link, fields: Fields) -> Fields | ServerError:
        consumer = link.consumers.get(fields["consumer_id"])
        if consumer is None:
            return ServerError.MetadataError
        last, taken = consumer.subscription.ends()
        names = "last_message_id", "consumer_mark_delete_position"
        return {
            name: {"ledger_id": ledger, "entry_id": entry % (1 << 64)}
            for name, (ledger, entry) in zip(names, (last, taken), strict=True)
        }

    def _flow(self, link: Link, fields: Fields) -> None:
        consumer, permits = link.consumers.get(fields["consumer_id"]), fields["message_permits"]
        if not permits:
            self.cluster.wrong("FLOW of 0 permits, which closes the connection")
        if consumer is not None:
            consumer.permits += permits
            if consumer.permits > self.cluster.queue_size:
                self.cluster.wrong(f"{consumer.permits} permits, and a queue of {self.cluster.queue_size}")
            consumer.subscription.dispatch()

    def _acknowledge(self, link: Link, fields: Fields) -> Fields | None:
        number = fields["consumer_id"]
        consumer = link.consumers.get(number)
        if consumer is None:
            return None
        subscription, txn, left = consumer.subscription, txn_of(fields), dict[Place, int]()
        for each in fields.get("message_id", ()):
            place, words = (each["ledger_id"], each["entry_id"]), each.get("ack_set")
            if place in consumer.given:
                left[place] = messages.ack_set(words) if words else 0
            else:
                self.cluster.wrong(f"consumer {number} acknowledges {place}, which it did not get")
        if txn is None:
            subscription.acknowledge(consumer, left)
            return {"consumer_id": number}
        self.cluster.coordinators.check(subscription.topic, subscription.name, txn)
        if subscription.acknowledge_in(txn, left):
            return {"consumer_id": number}
        conflict = ServerError.TransactionConflict
        return {"consumer_id": number, "error": int(conflict), "message": conflict.name}

    def _redeliver(self, link: Link, fields: Fields) -> None:
        consumer = link.consumers.get(fields["consumer_id"])
        if consumer is not None:
            places = [(each["ledger_id"], each["entry_id"]) for each in fields.get("message_ids", ())]
            consumer.subscription.returned(consumer, places or list(consumer.pending))

    # faults

    def crash(self, silent: bool) -> None:
        """End at once, with or without a word to the clients; topics move when somebody asks for them."""
        self.alive = False
        del self.cluster.network.listeners[self.name]
        for topic in self.cluster.topics.values():
            if topic.owner == self.name:
                topic.undo(self.cluster.random.randrange(min(len(topic.recent), 8) + 1))
                topic.leave()
        for link in list(self.links):
            link.producers.clear()
            link.consumers.clear()
            link.transport.silent = silent  # type: ignore[attr-defined]  # an End
            link.transport.abort()


_REQUESTS: dict[Command, Callable[[Broker, Link, Fields], Fields | ServerError | None]] = {
    Command.LOOKUP: Broker._lookup,
    Command.PARTITIONED_METADATA: Broker._partitions,
    Command.PRODUCER: Broker._open_producer,
    Command.CLOSE_PRODUCER: Broker._close_producer,
    Command.SUBSCRIBE: Broker._subscribe,
    Command.CLOSE_CONSUMER: Broker._close_consumer,
    Command.UNSUBSCRIBE: Broker._unsubscribe,
    Command.ACK: Broker._acknowledge,
    Command.GET_LAST_MESSAGE_ID: Broker._last_message,
    Command.TC_CLIENT_CONNECT_REQUEST: lambda broker, _, fields: broker.cluster.coordinators.connect(broker, fields),
    Command.NEW_TXN: lambda broker, _, fields: broker.cluster.coordinators.begin(broker, fields),
    Command.ADD_PARTITION_TO_TXN: lambda broker, _, fields: broker.cluster.coordinators.add(broker, fields),
    Command.ADD_SUBSCRIPTION_TO_TXN: lambda broker, _, fields: broker.cluster.coordinators.add(broker, fields),
}
#: Requests whose answer has an error of its own.
_TELLING = (
    Command.LOOKUP, Command.TC_CLIENT_CONNECT_REQUEST, Command.NEW_TXN, Command.ADD_PARTITION_TO_TXN,
    Command.ADD_SUBSCRIPTION_TO_TXN, Command.END_TXN,
)  # fmt: skip


class Cluster:
    """Three brokers with one storage.

    Args:
        network: where they listen.
        note: called with the text of each event, for the trace.
        deduplicates: whether it stores what a producer repeats.
        queue_size: most permits that a consumer may ever have.
        partitions: number of partitions by topic.

    Attributes:
        note: as above.
        topics: by their full names.
        coordinators: those of transactions.
        failing: whether nothing can be stored.
        mute: answers that are late or lost: how many follow.
        opening: answers to producers and consumers that come when the client has given up: how many follow.
        broken: what clients did that they must not do.
    """

    def __init__(
        self, network: Network, note: Callable[[str], None], *, deduplicates: bool, queue_size: int,
        partitions: dict[str, int],
    ) -> None:  # fmt: skip
        self.network, self.random = network, network.random
        self.deduplicates, self.queue_size, self.partitions = deduplicates, queue_size, partitions
        self.topics: dict[str, Topic] = {}
        self.brokers = [Broker(f"b{number}", self) for number in (1, 2, 3)]
        self.failing = False
        self.mute = self.opening = 0
        self.broken: list[str] = []
        self.note = note
        self._number = 0
        self.coordinators: Coordinators = Coordinators(self)
        for broker in self.brokers:
            broker.start()

    @property
    def url(self) -> str:
        """The service URL."""
        return "pulsar://" + ",".join(f"{broker.name}:6650" for broker in self.brokers)

    def next_number(self) -> int:
        """Return a number that was not used before."""
        self._number += 1
        return self._number

    def wrong(self, what: str) -> None:
        """Note what a client must not do."""
        self.broken.append(what)
        self.note(f"WRONG: {what}")

    def seen(self, broker: str, command: Command, fields: Fields) -> None:
        """Note a command in the trace."""
        shown = {name: value for name, value in fields.items() if name not in ("metadata", "feature_flags")}
        self.note(f"{broker} gets {command.name} {shown}")

    def lateness(self, asked: Command) -> float | None:
        """Return the seconds by which an answer is late, 0 if it is lost, None if it is neither."""
        if self.opening and asked in (Command.PRODUCER, Command.SUBSCRIBE):
            self.opening -= 1
            return 8.0
        if not self.mute:
            return None
        self.mute -= 1
        return self.random.choice((0.0, 0.0, 3.0, 8.0))

    def topic(self, name: str) -> Topic:
        """Return a topic; create it if there is none."""
        if name not in self.topics:
            self.topics[name] = Topic(name, self.random.choice, self.network.loop.time)
        return self.topics[name]

    def owner_of(self, topic: Topic) -> Broker | None:
        """Return the broker that serves a topic; let one take it if none does."""
        alive = [broker for broker in self.brokers if broker.alive]
        if topic.moving or not alive:
            return None
        if not topic.owner:
            topic.owner, topic.ledger = self.random.choice(alive).name, self.next_number()
        return next(broker for broker in alive if broker.name == topic.owner)

    def move(self, topic: Topic) -> None:
        """Move a topic to any broker, after a while; its clients are told, and perhaps where it will be."""
        owner = next((broker for broker in self.brokers if broker.name == topic.owner), None)
        if owner is None:
            return
        self.note(f"{topic.name} leaves {owner.name}")
        target = self.random.choice([broker for broker in self.brokers if broker.alive])
        told: Fields = {"request_id": NONE}
        if self.random.random() < 0.5:
            told["assigned_broker_service_url"] = target.url
        producers = list(topic.producers.values())
        consumers = [one for each in topic.subscriptions.values() for one in each.consumers]
        topic.leave()
        topic.moving = True
        for producer in producers:
            owner.remove_producer(producer)
            producer.link.send(Command.CLOSE_PRODUCER, producer_id=producer.number, **told)
        for consumer in consumers:
            owner.remove_consumer(consumer)
            consumer.link.send(Command.CLOSE_CONSUMER, consumer_id=consumer.number, **told)

        def arrived() -> None:
            topic.moving = False
            if target.alive:
                topic.owner, topic.ledger = target.name, self.next_number()

        self.network.loop.call_later(self.random.choice((0.0, 0.3, 3.0)), arrived)

    def close_one(self) -> None:
        """Close one producer or consumer, as operators do."""
        links = [link for broker in self.brokers for link in broker.links if link.producers or link.consumers]
        if not links:
            return
        link = self.random.choice(links)
        parts: list[Producer | Consumer] = [*link.producers.values(), *link.consumers.values()]
        part = self.random.choice(parts)
        if isinstance(part, Producer):
            link.broker.remove_producer(part)
            link.send(Command.CLOSE_PRODUCER, producer_id=part.number, request_id=NONE)
        else:
            link.broker.remove_consumer(part)
            link.send(Command.CLOSE_CONSUMER, consumer_id=part.number, request_id=NONE)

    def subscriptions(self) -> list[Subscription]:
        """Return the subscriptions of all topics."""
        return [each for topic in self.topics.values() for each in topic.subscriptions.values()]

    def left(self) -> list[str]:
        """Return what clients have left behind at the brokers."""
        parts = [f"connection to {broker.name}" for broker in self.brokers for _ in broker.links]
        parts += [f"producer {name} of {topic.name}" for topic in self.topics.values() for name in topic.producers]
        parts += self.coordinators.left
        return parts + [f"consumer of {each.name}" for each in self.subscriptions() for _ in each.consumers]
